"""A database of its own for each test, on the server that `make test-services` starts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from postgres_server import execute
from sqlalchemy import make_url


@pytest.fixture
def database_url() -> Iterator[str]:
    server = os.environ.get("BURNISH_TEST_POSTGRES")
    if not server:
        pytest.fail("BURNISH_TEST_POSTGRES is not set: run these tests with make test-services")
    name = f"test_{uuid4().hex}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))
