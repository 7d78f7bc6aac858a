"""Build `docs/api.md`: every name of `burnish.api` with its signature and what its docstrings say.

`python scripts/api_reference.py` writes it, `--check` ends with status 1 when it is not what the code says.
"""

from __future__ import annotations

import ast
import enum
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from burnish import api

PAGE = Path(__file__).parents[1] / "docs" / "api.md"

_HEAD = """\
# API reference

Generated from the code by `make docs`. Hosts import these names from `burnish.api`; [embedding.md](embedding.md) shows how
they go together. Classes without a constructor shown are protocols, to be implemented, or enumerations.
"""


def build() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, of_classes in {"Functions": False, "Classes": True}.items():
        names = [name for name in api.__all__ if inspect.isclass(getattr(api, name)) is of_classes]
        parts += [f"## {title}\n", *(described(name, getattr(api, name)) for name in names)]
    return "\n".join(parts)


def described(name: str, thing: object) -> str:
    """One name."""
    lines = [f"### {name}", ""]
    if not _is_protocol(thing) and not _is_enumeration(thing):
        lines += ["```python", *_signature(name, thing), "```", ""]
    lines += [inspect.getdoc(thing) or "", ""]
    if inspect.isclass(thing):
        lines += [f"* `{member}`: {text}" if text else f"* `{member}`" for member, text in _members(thing)]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _signature(name: str, thing: object) -> Iterator[str]:
    """The call, a parameter a line when it is long."""
    signature = inspect.signature(cast("type", thing))
    prefix = "async " if inspect.iscoroutinefunction(thing) else ""
    is_class = inspect.isclass(thing)
    parameters = [_parameter(parameter) for parameter in signature.parameters.values()]
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    answer = (
        ""
        if is_class or signature.return_annotation is signature.empty
        else f" -> {_shown(signature.return_annotation)}"
    )
    line = f"{prefix}{name}({', '.join(parameters)}){answer}"
    if len(line) <= 100:
        yield line
        return
    yield f"{prefix}{name}("
    yield from (f"    {parameter}," for parameter in parameters)
    yield f"){answer}"


def _parameter(parameter: inspect.Parameter) -> str:
    named = (
        parameter.name
        if parameter.annotation is parameter.empty
        else f"{parameter.name}: {_shown(parameter.annotation)}"
    )
    return named if parameter.default is parameter.empty else f"{named} = {_default(parameter.default)}"


def _shown(annotation: object) -> str:
    """A type as the source has it, without modules."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("burnish.", "").rpartition(" ")[2] if text.startswith("<") else text


def _default(value: object) -> str:
    """A default as it is written; what a factory makes is an ellipsis."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "…" if text.startswith("<") else text


def _members(thing: type) -> Iterator[tuple[str, str]]:
    """Fields and enumeration members with what is said of them, then public methods with their first line."""
    yield from _said_of_fields(thing)
    for name, member in vars(thing).items():
        function = _function_of(member)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        told = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
        if isinstance(member, property):
            yield name, told
        else:
            prefix = "async " if inspect.iscoroutinefunction(function) else ""
            arguments = [name for name in inspect.signature(function).parameters if name not in {"self", "cls"}]
            yield f"{prefix}{name}({', '.join(arguments)})", told


def _function_of(member: object) -> object:
    """The function behind a property, a static or a class method; anything else as it is."""
    if isinstance(member, property):
        return member.fget
    return cast("object", member.__func__) if isinstance(member, staticmethod | classmethod) else member


def _said_of_fields(thing: type) -> Iterator[tuple[str, str]]:
    """The string literals that stand under fields, which only the source knows."""
    try:
        tree = ast.parse(inspect.getsource(thing).lstrip())
    except (OSError, TypeError):
        return
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    for statement, following in zip(body, [*body[1:], None], strict=True):
        name = _field_name(statement)
        if name is None or name.startswith("_"):
            continue
        said = ""
        if (
            isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            said = inspect.cleandoc(following.value.value).replace("\n", " ")
        if said or _is_enumeration(thing):
            yield name, said


def _field_name(statement: ast.stmt) -> str | None:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def _is_protocol(thing: object) -> bool:
    return bool(getattr(thing, "_is_protocol", False))


def _is_enumeration(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, enum.Enum)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or look whether it is right; returns the exit status."""
    built = build()
    if "--check" in arguments:
        is_right = PAGE.exists() and PAGE.read_text(encoding="utf-8") == built
        if not is_right:
            print("docs/api.md is not what the code says: run make docs", file=sys.stderr)
        return int(not is_right)
    PAGE.write_text(built, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
