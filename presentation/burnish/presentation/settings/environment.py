"""What the environment says about models: addresses, keys and names, from variables and from a `.env` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from burnish.infrastructure.models.openai_settings import AZURE_API_VERSION, AZURE_SCOPE, AzureAccess, AzureAuth
from burnish.presentation.settings.dotenv import read_dotenv
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.model_section import bad_model_name

NO_KEY = "sk-no-key-required"
"""What a server that wants no key is given; never a secret."""

ApiBackend = Literal["openai_chat", "openai_compatible", "claude_chat", "qwen_chat"]
"""The backends that need an endpoint."""
AgentBackend = Literal["codex_exec", "claude_code_exec"]
"""The backends that start an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """How the variables of a backend are called, and what is known without them."""

    name: str
    model: str | None = None
    needs_address: bool = False
    needs_key: bool = True


USUAL_OPENAI_MODEL = "gpt-5.5"

_APIS: Mapping[ApiBackend, _Api] = MappingProxyType(
    {
        "openai_chat": _Api(name="OPENAI", model=USUAL_OPENAI_MODEL),
        "openai_compatible": _Api(name="OPENAI_COMPATIBLE", needs_address=True, needs_key=False),
        "claude_chat": _Api(name="ANTHROPIC", model="claude-sonnet-4-6"),
        "qwen_chat": _Api(name="QWEN_CHAT", model="Qwen/Qwen3.5-4B", needs_key=False),
    }
)
"""The models that are asked for when nobody names one are system B's."""

_MODELS = frozenset({"OPENAI_COMPATIBLE_MODEL", "QWEN_CHAT_MODEL"})
_AZURE = "AZURE_OPENAI"
_AZURE_MODES: Mapping[str, AzureAuth | None] = MappingProxyType(
    {
        "api_key": "api_key",
        "azure_cli": "azure_cli",
        "managed_identity": "managed_identity",
        "aad": "managed_identity",
        "azure_ad": "managed_identity",
        "openai_compatible": None,
        "compat": None,
        "openai": None,
    }
)
"""How Azure lets us in, with system B's other words; None: there is no Azure, whatever the address says."""

_PREFIXES = ("", "TARGET_", "OPTIMIZER_", "JUDGE_")
_KEYS = (
    *(f"{api.name}_API_KEY" for api in _APIS.values()),
    *("ANTHROPIC_AUTH_TOKEN", f"{_AZURE}_API_KEY", "CODEX_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
)
_OTHERS = (
    *(f"{api.name}_BASE_URL" for api in _APIS.values()),
    *_MODELS,
    *(
        f"{_AZURE}_{name}"
        for name in ("ENDPOINT", "API_VERSION", "AUTH_MODE", "AD_SCOPE", "MANAGED_IDENTITY_CLIENT_ID")
    ),
)
_SECRETS = frozenset(map("".join, product(_PREFIXES, _KEYS)))
VARIABLES = _SECRETS | frozenset(map("".join, product(_PREFIXES, _OTHERS)))
"""Every variable that is read, prefixed ones included."""

_AGENTS: Mapping[AgentBackend, tuple[str, ...]] = MappingProxyType(
    {
        "codex_exec": ("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        "claude_code_exec": (
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
            "CLAUDE_CODE_OAUTH_TOKEN",
        ),
    }
)
"""What an agent is told of the variables above; without a key it goes by its own login."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_MACHINE = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CONFIG_HOME"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", *_PROXIES, *map(str.lower, _PROXIES)),
        *("CODEX_HOME", "CLAUDE_CONFIG_DIR"),
    }
)
"""What an agent's processes need of the machine; all else of the environment is kept from them."""

_SHORTEST_SECRET = 8
_PLACEHOLDERS = frozenset({NO_KEY, "no-key-required", "not-needed", "placeholder", "changeme", "your-api-key"})


class Role(StrEnum):
    """Who a model works for."""

    TARGET = "target"
    OPTIMIZER = "optimizer"
    JUDGE = "judge"
    """Of the scorer llm_judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a role's model answers; without `base_url`, at the provider's own address.

    With `azure` it is the resource's. `is_token`: what stands for the key is a gateway's token.
    """

    base_url: str | None
    api_key: SecretStr
    model: str
    azure: AzureAccess | None = None
    is_token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A variable's value (None: not set) and the name it was found under, or should be set as."""

    name: str
    value: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The variables of the process and, below them, those of the `.env` file. Blank counts as not set.

    `machine` are those of the process that tell a command where it is.
    """

    process: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)
    machine: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def find(self, role: Role, name: str) -> Found:
        """The role's variable (`TARGET_`, `OPTIMIZER_` or `JUDGE_` in front), else the one for all roles."""
        for candidate in (f"{role.value.upper()}_{name}", name):
            for source in (self.process, self.dotenv):
                if value := source.get(candidate, "").strip():
                    return Found(name=candidate, value=value)
        return Found(name=name, value=None)

    def model(self, role: Role, backend: ApiBackend) -> Found:
        """The model to ask for when the settings name none: a variable where there is one, else the backend's usual one."""
        api = _APIS[backend]
        variable = f"{api.name}_MODEL"
        found = self.find(role, variable) if variable in _MODELS else Found(name=variable, value=None)
        return found if found.value or api.model is None else Found(name="default", value=api.model)

    def endpoint(self, role: Role, backend: ApiBackend, model: str | None) -> Endpoint:
        """The role's endpoint; `model`, the settings' name, wins over the environment's.

        Raises SettingsError with a line for every variable that is missing or unusable, never with a value in it.
        """
        name = self.model(role, backend) if model is None else Found(name=f"model.{role}", value=model)
        if backend == "openai_chat" and (azure := self._azure(role)) is not None:
            return self._azure_endpoint(role, azure, name)
        api = _APIS[backend]
        url, key = self.find(role, f"{api.name}_BASE_URL"), self.find(role, f"{api.name}_API_KEY")
        token = self.find(role, "ANTHROPIC_AUTH_TOKEN") if backend == "claude_chat" else None
        is_token = key.value is None and token is not None and token.value is not None
        if is_token and token is not None:
            key = token
        address = "the server's address, such as http://localhost:8000/v1" if api.needs_address else None
        key_of = "the key of the API" if api.needs_key else None
        model_name = f"the model's name, or name it in the task file as model.{role}"
        lines = (
            *_problems(role, url, bad_address, needed=address),
            *_problems(role, key, _bad_key, needed=key_of),
            *(_problems(role, name, bad_model_name, needed=model_name) if model is None else ()),
        )
        if lines:
            raise SettingsError(lines)
        assert name.value is not None, "a missing name has been reported"
        secret = SecretStr(key.value or NO_KEY)
        return Endpoint(base_url=url.value, api_key=secret, model=name.value, is_token=is_token)

    def address_and_key(self, role: Role, backend: ApiBackend) -> tuple[Found, Found]:
        """The variables with the role's address and with its key."""
        if backend == "openai_chat" and (azure := self._azure(role)) is not None:
            return azure, self.find(role, f"{_AZURE}_API_KEY")
        name = _APIS[backend].name
        return self.find(role, f"{name}_BASE_URL"), self.find(role, f"{name}_API_KEY")

    def for_agent(self, role: Role, backend: AgentBackend) -> Mapping[str, str]:
        """All that the processes of the role's agent get to see."""
        found = {name: self.find(role, name).value for name in _AGENTS[backend]}
        return {**self.machine, **{name: value for name, value in found.items() if value is not None}}

    def known_secrets(self) -> tuple[str, ...]:
        """The texts to redact wherever they turn up, the longest first: keys of 8 characters or more, no placeholders."""
        values = {source.get(name, "").strip() for source in (self.process, self.dotenv) for name in _SECRETS}
        secrets = {value for value in values if len(value) >= _SHORTEST_SECRET and value.lower() not in _PLACEHOLDERS}
        return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))

    def _azure(self, role: Role) -> Found | None:
        """The address of the role's resource at Azure; None when its openai_chat is not at Azure."""
        url, mode = self.find(role, f"{_AZURE}_ENDPOINT"), self.find(role, f"{_AZURE}_AUTH_MODE")
        wants_none = mode.value is not None and _AZURE_MODES.get(mode.value.lower(), "api_key") is None
        return None if url.value is None or wants_none else url

    def _azure_endpoint(self, role: Role, url: Found, model: Found) -> Endpoint:
        """The endpoint at Azure: by the key when there is one and nothing else is said, else through the `az` command."""
        key, mode = self.find(role, f"{_AZURE}_API_KEY"), self.find(role, f"{_AZURE}_AUTH_MODE")
        auth = _AZURE_MODES.get(mode.value.lower()) if mode.value else "api_key" if key.value else "azure_cli"
        lines = (
            *_problems(role, url, bad_address, needed=None),
            *_problems(role, mode, _bad_mode, needed=None),
            *_problems(role, key, _bad_key, needed="the key of the resource" if auth == "api_key" else None),
        )
        if lines:
            raise SettingsError(lines)
        assert model.value is not None, "openai_chat has a model nobody needs to name"
        access = AzureAccess(
            auth=cast("AzureAuth", auth),
            api_version=self.find(role, f"{_AZURE}_API_VERSION").value or AZURE_API_VERSION,
            scope=self.find(role, f"{_AZURE}_AD_SCOPE").value or AZURE_SCOPE,
            client_id=self.find(role, f"{_AZURE}_MANAGED_IDENTITY_CLIENT_ID").value,
        )
        return Endpoint(
            base_url=url.value, api_key=SecretStr(key.value or NO_KEY), model=model.value, azure=access, is_token=False
        )


def read_environment(base_dir: Path, process: Mapping[str, str]) -> Environment:
    """The environment of a task in `base_dir`; `process` is `os.environ` or what stands for it. Raises SettingsError."""
    return Environment(
        process={name: process[name] for name in VARIABLES if name in process},
        dotenv=read_dotenv(base_dir / ".env", VARIABLES),
        machine={name: process[name] for name in _MACHINE if name in process},
    )


def _problems(role: Role, found: Found, check: Callable[[str], str | None], *, needed: str | None) -> Iterator[str]:
    if found.value is not None:
        complaint = check(found.value)
        if complaint is not None:
            yield f"environment: {found.name}: {complaint}"
    elif needed is not None:
        yield f"environment: {found.name}: is not set, nor is {role.value.upper()}_{found.name}: set it to {needed}"


def bad_address(text: str) -> str | None:
    """What is wrong with a server's address, or None."""
    try:
        url = urlsplit(text)
        is_address = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        return _NO_ADDRESS
    if not is_address or not text.isprintable() or " " in text:
        return _NO_ADDRESS
    if url.username is not None or url.password is not None or url.query or url.fragment:
        return "must be a plain address: no user, password, query or fragment (keys go into the API_KEY variable)"
    return None


def _bad_key(text: str) -> str | None:
    if not text.isascii() or not text.isprintable() or " " in text:
        return "holds a character that no HTTP header can carry: copy the key again"
    return None


def _bad_mode(text: str) -> str | None:
    if text.lower() not in _AZURE_MODES:
        return "must be api_key, azure_cli, managed_identity, or openai for no Azure at all"
    return None


_NO_ADDRESS = "must be a server's address that begins with http:// or https://"
