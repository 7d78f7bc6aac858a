"""What the environment says about models: addresses, keys and names, from variables and from a `.env` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from burnish.presentation.settings.dotenv import read_dotenv
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.sections import bad_model_name

OPENAI_MODEL = "gpt-5.5"
"""What openai_chat asks for when nobody names a model (system B's default)."""
NO_KEY = "sk-no-key-required"
"""What a server that wants no key is given; never a secret."""

_PREFIXES = ("", "TARGET_", "OPTIMIZER_", "JUDGE_")
_KEYS = ("OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY")
_OTHERS = ("OPENAI_BASE_URL", "OPENAI_COMPATIBLE_BASE_URL", "OPENAI_COMPATIBLE_MODEL")
_SECRETS = frozenset(map("".join, product(_PREFIXES, _KEYS)))
VARIABLES = _SECRETS | frozenset(map("".join, product(_PREFIXES, _OTHERS)))
"""Every variable that is read, prefixed ones included."""

_SHORTEST_SECRET = 8
_PLACEHOLDERS = frozenset({NO_KEY, "no-key-required", "not-needed", "placeholder", "changeme", "your-api-key"})


class Role(StrEnum):
    """Who a model works for."""

    TARGET = "target"
    OPTIMIZER = "optimizer"
    JUDGE = "judge"
    """Of the scorer llm_judge."""


ApiBackend = Literal["openai_chat", "openai_compatible"]
"""The backends that need an endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a role's model answers; without `base_url`, at the provider's own address."""

    base_url: str | None
    api_key: SecretStr
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A variable's value (None: not set) and the name it was found under, or should be set as."""

    name: str
    value: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The variables of the process and, below them, those of the `.env` file. Blank counts as not set."""

    process: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)

    def find(self, role: Role, name: str) -> Found:
        """The role's variable (`TARGET_`, `OPTIMIZER_` or `JUDGE_` in front), else the one for all roles."""
        for candidate in (f"{role.value.upper()}_{name}", name):
            for source in (self.process, self.dotenv):
                if value := source.get(candidate, "").strip():
                    return Found(name=candidate, value=value)
        return Found(name=name, value=None)

    def model(self, role: Role, backend: ApiBackend) -> Found:
        """The model to ask for when the settings name none: a variable for openai_compatible, else system B's default."""
        if backend == "openai_chat":
            return Found(name="default", value=OPENAI_MODEL)
        return self.find(role, "OPENAI_COMPATIBLE_MODEL")

    def endpoint(self, role: Role, backend: ApiBackend, model: str | None) -> Endpoint:
        """The role's endpoint; `model`, the settings' name, wins over the environment's.

        Raises SettingsError with a line for every variable that is missing or unusable, never with a value in it.
        """
        api = "OPENAI" if backend == "openai_chat" else "OPENAI_COMPATIBLE"
        url, key = self.find(role, f"{api}_BASE_URL"), self.find(role, f"{api}_API_KEY")
        name = self.model(role, backend) if model is None else Found(name=f"model.{role}", value=model)
        is_compatible = backend == "openai_compatible"
        address = "the server's address, such as http://localhost:8000/v1" if is_compatible else None
        key_of = None if is_compatible else "the key of the API"
        model_name = f"the model's name, or name it in the task file as model.{role}"
        lines = (
            *_problems(role, url, bad_address, needed=address),
            *_problems(role, key, _bad_key, needed=key_of),
            *(_problems(role, name, bad_model_name, needed=model_name) if model is None else ()),
        )
        if lines:
            raise SettingsError(lines)
        assert name.value is not None, "a missing name has been reported"
        return Endpoint(base_url=url.value, api_key=SecretStr(key.value or NO_KEY), model=name.value)

    def known_secrets(self) -> tuple[str, ...]:
        """The texts to redact wherever they turn up, the longest first: keys of 8 characters or more, no placeholders."""
        values = {source.get(name, "").strip() for source in (self.process, self.dotenv) for name in _SECRETS}
        secrets = {value for value in values if len(value) >= _SHORTEST_SECRET and value.lower() not in _PLACEHOLDERS}
        return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))


def read_environment(base_dir: Path, process: Mapping[str, str]) -> Environment:
    """The environment of a task in `base_dir`; `process` is `os.environ` or what stands for it. Raises SettingsError."""
    return Environment(
        process={name: process[name] for name in VARIABLES if name in process},
        dotenv=read_dotenv(base_dir / ".env", VARIABLES),
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


_NO_ADDRESS = "must be a server's address that begins with http:// or https://"
