"""Marks the contract tests that run on PostgreSQL as tests that need a service."""

from __future__ import annotations

import pytest
from store_drivers import Driver


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        if any(isinstance(parameter, Driver) and parameter.name == "postgresql" for parameter in parameters):
            item.add_marker(pytest.mark.services)
