"""The repository's packaging: a namespace package in four source roots, typed, pinned, and free of index addresses."""

import ast
import os
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

import burnish

REPOSITORY = Path(__file__).resolve().parents[1]
LAYERS = ("domain", "application", "infrastructure", "presentation")
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))

# Spelt in pieces, so that this file itself names no registry.
REGISTRY_WORDS = (
    "py" + "pi",
    "python" + "hosted",
    "dev" + "pi",
    "ana" + "conda",
    "arti" + "factory",
    "cloud" + "smith",
)
INDEX_ADDRESS = re.compile(
    r"://\S*/simple\b"
    r"|file:/|(?<![\w-])--?(?:i|f|index-url|extra-index-url|find-links|trusted-host)[ =]"
    r"|://\S*(?:" + "|".join(REGISTRY_WORDS) + ")",
    re.IGNORECASE,
)


def _dependency_files() -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(REPOSITORY):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in {"runs", "dist", "build"}]
        found += [
            Path(folder, name)
            for name in names
            if name in {"pyproject.toml", "Pipfile", "pip.conf"}
            or name.endswith(".lock")
            or re.search(r"(constraints|requirements).*\.txt$", name)
        ]
    return found


def _normalized(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def _declared(*, development: bool) -> set[str]:
    declared: list[str] = [*PYPROJECT["project"]["dependencies"]]
    for extra in PYPROJECT["project"]["optional-dependencies"].values():
        declared += extra
    if development:
        declared += PYPROJECT["dependency-groups"]["dev"]
    return {_normalized(requirement) for requirement in declared}


def test_burnish_is_a_namespace_package() -> None:
    assert not [layer for layer in LAYERS if (REPOSITORY / layer / "burnish" / "__init__.py").exists()]
    assert burnish.__file__ is None


@pytest.mark.parametrize("layer", LAYERS)
def test_source_root_holds_nothing_but_burnish(layer: str) -> None:
    assert [entry.name for entry in (REPOSITORY / layer).iterdir() if entry.name != "__pycache__"] == ["burnish"]


@pytest.mark.parametrize("portion", [*(f"{layer}/burnish/{layer}" for layer in LAYERS), "presentation/burnish"])
def test_portion_is_marked_as_typed(portion: str) -> None:
    assert (REPOSITORY / portion / "py.typed").read_bytes() == b""


def test_dependency_files_name_no_index_address() -> None:
    files = _dependency_files()
    assert {"pyproject.toml", "constraints.txt"} <= {file.name for file in files}
    offending = [
        f"{file.relative_to(REPOSITORY)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if INDEX_ADDRESS.search(line)
    ]
    assert offending == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://mirror.example/team/simple/",
        "-i https://mirror.example/",
        "--extra-index-url=https://mirror.example",
        "--find-links /srv/wheels",
        'url = "https://mirror.example/simple"',
        "tool @ https://files." + REGISTRY_WORDS[1] + ".example/tool.whl",
        "tool @ file:///srv/tool.whl",
    ],
)
def test_an_index_address_is_recognized(line: str) -> None:
    assert INDEX_ADDRESS.search(line)


def test_every_declared_dependency_is_pinned() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", pin)] == []
    assert _declared(development=True) - {_normalized(pin) for pin in pins} == set()


def test_import_contract_of_the_domain_names_every_runtime_dependency() -> None:
    contracts: list[dict[str, list[str]]] = PYPROJECT["tool"]["importlinter"]["contracts"]
    forbidden = next(c["forbidden_modules"] for c in contracts if c.get("source_modules") == ["burnish.domain"])
    dependencies = _declared(development=False) - {"annotated-types"}
    modules = {
        module
        for module, distributions in packages_distributions().items()
        if not module.startswith("_")
        and dependencies & {_normalized(name) for name in distributions}
        and find_spec(module) is not None  # a distribution may list a folder it does not install
    }
    assert modules - set(forbidden) == set()


def test_domain_imports_the_standard_library_and_annotated_types_only() -> None:
    allowed = {*sys.stdlib_module_names, "annotated_types"}
    offending: list[str] = []
    for file in (REPOSITORY / "domain").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            else:
                continue
            offending += [
                f"{file.name}: {name}"
                for name in imported
                if name.partition(".")[0] not in allowed and not f"{name}.".startswith("burnish.domain.")
            ]
    assert offending == []
