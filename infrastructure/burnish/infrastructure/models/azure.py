"""Tokens that let us in at Azure: from the `az` command, or of a managed identity."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from burnish.application.log import get_logger
from burnish.infrastructure.models.extras import MissingExtraError
from burnish.infrastructure.models.openai_settings import AzureAccess
from burnish.infrastructure.models.wire import CredentialError

_RENEWED_SECONDS_BEFORE: Final = 300.0

log = get_logger(__name__)


class _Token(Protocol):
    @property
    def token(self) -> str: ...

    @property
    def expires_on(self) -> int: ...


def token_source(access: AzureAccess) -> Callable[[], Awaitable[str]]:
    """What gives a token whenever one is needed, a new one before the last one expires.

    It raises CredentialError when there is none. Raises MissingExtraError without the library. Getting a token starts a
    process or asks a server, so it is done in a thread, by one call at a time.
    """
    try:
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415  # an extra
        from azure.identity import AzureCliCredential, ManagedIdentityCredential  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("azure") from None

    if access.auth == "azure_cli":
        credential: AzureCliCredential | ManagedIdentityCredential = AzureCliCredential()
    elif access.client_id is None:
        credential = ManagedIdentityCredential()
    else:
        credential = ManagedIdentityCredential(client_id=access.client_id)
    asking = asyncio.Lock()
    kept: list[_Token] = []

    async def token() -> str:
        async with asking:
            if not kept or kept[0].expires_on - time.time() < _RENEWED_SECONDS_BEFORE:
                try:
                    fresh = await asyncio.to_thread(credential.get_token, access.scope)
                except AzureError as error:
                    log.warning("model.no_token", auth=access.auth, error_type=type(error).__name__)
                    raise CredentialError(is_transient=not isinstance(error, ClientAuthenticationError)) from None
                kept[:] = [fresh]
            return kept[0].token

    return token
