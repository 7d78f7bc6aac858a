"""What pydantic finds wrong, said in one line: which key, what it must be, and how to put it right."""

from __future__ import annotations

import difflib
import re

from pydantic_core import ErrorDetails

from burnish.presentation.settings.environment import VARIABLES
from burnish.presentation.settings.errors import listed, shown
from burnish.presentation.settings.keys import KEYS, SECTIONS, mapping_of, nearest
from burnish.presentation.settings.sections import ModelPrice
from burnish.presentation.settings.skillopt_names import by_path
from burnish.presentation.settings.yaml_text import Scalar, read_scalar, write_scalar

_SECRET = re.compile(
    r"(?:^|_)(?:(?:api|access|private|secret|openai)_?key|secret|password|passwd|credentials?|authorization"
    r"|(?:api|access|auth|bearer|secret)_?token)$|^token$",
    re.IGNORECASE,
)
_ENTRIES = {"budget.prices": tuple(ModelPrice.model_fields)}
_APIS = {
    "compatible": "OPENAI_COMPATIBLE",
    "azure": "AZURE_OPENAI",
    "anthropic": "ANTHROPIC",
    "claude": "ANTHROPIC",
    "qwen": "QWEN_CHAT",
}
"""How the variables of a key's provider begin, by a word in the key's name."""
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


def is_secret(name: str) -> bool:
    """Tell whether a key, by its last name, is made for a secret: its value must not be shown."""
    return _SECRET.search(name) is not None


def explain(error: ErrorDetails) -> str:
    """`key.path: what is wrong: remedy`, without line breaks and without any text value that could be a secret."""
    path = ".".join(set_at(error))
    kind, value = error["type"], error["input"]
    context = error.get("ctx", {})
    if mapping_of(path) is not None:
        path = shown(path)  # it holds a name of the user's
    if kind == "missing":
        return f"{path}: needs {error['loc'][-1]} as well"
    if kind == "extra_forbidden":
        return f"{shown(path)}: {_unknown(path)}"
    if kind in {"model_type", "dict_type"}:
        return f"{path}: must be a section of keys, not {_described(value)}"
    if kind in _EXPECTED:
        null = " or null" if path in KEYS and KEYS[path].is_nullable else ""
        return f"{path}: must be {_EXPECTED[kind]}{null}, not {_described(value)}{_remedy(path, kind, value)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{path}: must be {words} {context[name]}, not {_described(value)}"
    if kind == "literal_error":
        choices = tuple(re.findall(r"'([^']*)'", str(context["expected"])))
        return f"{path}: {_wrong_choice(path, value, choices)}"
    if kind == "value_error":
        return f"{path}: {context['error']}"
    return f"{path}: is not valid ({kind})"


def set_at(error: ErrorDetails) -> tuple[str, ...]:
    """The names that lead to what is wrong and is there: for something missing, to what it is missing from."""
    names = tuple(map(str, error["loc"]))
    return names[:-1] if error["type"] == "missing" or names[-1:] == ("[key]",) else names


def _unknown(path: str) -> str:
    section, _, name = path.rpartition(".")
    if name.upper() in VARIABLES:
        what = "a secret has" if is_secret(name) else "what depends on the machine has"
        return f"{what} no place here: set the environment variable {name.upper()}"
    if is_secret(name):
        role = next(
            (role for role in ("TARGET_", "OPTIMIZER_", "JUDGE_") if role.strip("_").lower() in name.lower()), ""
        )
        api = next((api for word, api in _APIS.items() if word in name.lower()), "OPENAI")
        return f"a secret has no place here: set the environment variable {role}{api}_API_KEY"
    if name.lower().endswith("base_url"):
        api = next((api for word, api in _APIS.items() if word in name.lower()), "OPENAI_COMPATIBLE")
        return f"addresses have no place here: set the environment variable {api}_BASE_URL"
    if (mapping := mapping_of(path)) is not None:
        return f"unknown key: each entry of {mapping} has {listed(_ENTRIES[mapping], 'and')}"
    if name == "_base_":
        return "unknown key: it belongs at the top of a task file"
    meant = nearest(path)
    known = None if meant is not None and meant.rpartition(".")[2] == name else by_path(path)
    if known is not None:
        return f"unknown key: {known.remedy}"
    section = section if section in SECTIONS else ""  # a key may have a dot in its own name
    what = "key" if section or "." in (meant or "") else "section"
    if meant is not None:
        return f"unknown {what}: did you mean {meant}?"
    there = tuple(there.rpartition(".")[2] for there in (*KEYS, *SECTIONS) if there.rpartition(".")[0] == section)
    return f"unknown {what}: there are {listed(there, 'and')}"


def _described(value: object) -> str:
    match value:
        case None | bool() | int() | float():
            return shown(write_scalar(value), 24)
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a section"


def _remedy(path: str, kind: str, value: object) -> str:
    match value:
        case None if path in KEYS:
            return f": remove it to get the default, {_written(KEYS[path].default)}"
        case float() if kind == "int_type" and value.is_integer():
            return f": write {shown(str(int(value)), 24)}"
        case str() if kind == "bool_type" and value.lower() in {"yes", "on", "no", "off"}:
            return f": write {_written(value.lower() in {'yes', 'on'})}"
        case str() if kind in {"int_type", "float_type"} and _is_number(value):
            return ": write it without quotes"
        case bool() | int() | float() if kind == "string_type":
            return ": put it in quotes"
        case _:
            return ""


def _wrong_choice(path: str, value: object, choices: tuple[str, ...]) -> str:
    allowed = listed((*choices, "null") if KEYS[path].is_nullable else choices)
    if not isinstance(value, str):
        return f"must be {allowed}, not {_described(value)}"
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,24}", value):
        return f"must be {allowed}, not another text"
    meant = difflib.get_close_matches(value.lower(), choices, n=1)
    return f"must be {allowed}, not {value}" + (f": did you mean {meant[0]}?" if meant else "")


def _is_number(text: str) -> bool:
    try:
        return not isinstance(read_scalar(text), (str, bool, type(None)))
    except ValueError:
        return False


def _written(default: object) -> str:
    scalar: Scalar = default if isinstance(default, (str, int, float)) else None
    return write_scalar(scalar)
