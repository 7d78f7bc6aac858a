"""A task's own Python function as its scorer."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import SupportsFloat, cast

from burnish.domain.rollouts import SUCCESS_EPSILON
from burnish.infrastructure.tasks.items import Item, item_json
from burnish.infrastructure.tasks.refusals import DataError, shown, unreadable
from burnish.infrastructure.tasks.scoring import Score, answer_or_whole


@dataclass(frozen=True, slots=True)
class PythonScorer:
    """Calls `function(prediction, item)`, perhaps in several threads at once.

    The prediction is what stands in the last `<answer>…</answer>`, else the whole text. The item is a fresh dict of its
    JSON fields, in which `answers` is always a list and `answer` its first entry, or "". What comes back is either a
    number from 0 to 1 (soft; hard is 1 when it is 1, else 0: system C), a bool, a pair (hard, soft), or a mapping with
    `hard` and perhaps `soft` (the same as hard if left out) and `reason`.
    """

    name: str
    source_hash: str
    function: Callable[[str, dict[str, object]], object]

    @classmethod
    def load(cls, name: str, folder: Path) -> PythonScorer:
        """The function `module:callable`: of a module in the folder, else of an installed one.

        A module of the folder reaches its neighbours by relative imports (`from . import neighbour`); the folder does not
        become part of the import path, so tasks may have modules of the same name. `source_hash` covers the module and
        all neighbours it imported. Raises DataError when there is no such module or callable, or when importing it fails.
        """
        module_name, _, attribute = name.partition(":")
        if not all(map(str.isidentifier, [*module_name.split("."), *attribute.split(".")])):
            raise DataError(f"scorer {shown(name)}: not of the form module:callable; write for example checks:score")
        module = _import(name, module_name, folder)
        try:
            function = cast("object", operator.attrgetter(attribute)(module))
        except AttributeError:
            raise DataError(f"scorer {shown(name)}: the module has no such callable; correct the name") from None
        return cls._checked(name, function, module)

    @classmethod
    def of(cls, name: str, function: object) -> PythonScorer:
        """A function that somebody has imported; `source_hash` covers its module. Raises DataError when it is none."""
        return cls._checked(name, function, sys.modules.get(getattr(function, "__module__", None) or ""))

    @classmethod
    def _checked(cls, name: str, function: object, module: ModuleType | None) -> PythonScorer:
        if not callable(function) or isinstance(function, type):
            raise DataError(f"scorer {shown(name)}: not a function; name one that takes a prediction and an item")
        if inspect.iscoroutinefunction(function):
            raise DataError(f"scorer {shown(name)}: an async function; write it with def, it is called in a thread")
        return cls(name, "" if module is None else _source_hash(module), function)

    @property
    def fingerprint(self) -> str:
        """Changes with the name and the source."""
        return f"python/{self.name}/{self.source_hash}"

    @property
    def is_blocking(self) -> bool:
        """Always: nobody knows what the function does."""
        return True

    def problem(self, item: Item, /) -> str:
        """None that could be seen from outside."""
        return ""

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """The function's score. Raises what the function raises, and TypeError or ValueError when its answer is no score."""
        record = cast("dict[str, object]", json.loads(item_json(item)))
        record["answer"] = item.answers[0] if item.answers else ""
        try:
            return _score(self.function(prediction, record))
        except StopIteration as error:  # would never arrive on the other side of a thread
            raise RuntimeError("the scorer let a StopIteration out") from error


def _score(value: object) -> Score:
    if isinstance(value, Mapping):
        return _mapped_score(cast("Mapping[str, object]", value))
    if isinstance(value, tuple | list):
        hard, soft = cast("tuple[object, ...] | list[object]", value)
        return Score(_number(hard), _number(soft))
    score = _number(value)
    is_in_range = 0.0 <= score <= 1.0
    return Score(float(score >= 1.0 - SUCCESS_EPSILON) if is_in_range else score, score)


def _mapped_score(value: Mapping[str, object]) -> Score:
    if not {"hard"} <= value.keys() <= {"hard", "soft", "reason"}:
        raise ValueError("a scorer's mapping has the keys hard, and perhaps soft and reason")
    reason = value.get("reason")
    if not isinstance(reason, str | None):
        raise TypeError("a scorer's reason is a text")
    return Score(_number(value["hard"]), _number(value.get("soft", value["hard"])), reason or "")


def _number(value: object) -> float:
    if not isinstance(value, SupportsFloat):
        raise TypeError("a scorer gives a number, a bool, a pair of them, or a mapping")
    return float(value)


def _import(name: str, module_name: str, folder: Path) -> ModuleType:
    """The module, freshly imported when it is in the folder: under a package made for the folder."""
    full_name = module_name
    if _is_in(folder, module_name):
        package = _folder_package(folder)
        full_name = f"{package}.{module_name}"
    writes_bytecode = sys.dont_write_bytecode
    # The folder is the user's; and a cached file can be older than the source's last edit without Python noticing.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        return importlib.import_module(full_name)
    except (Exception, SystemExit) as error:
        raise DataError(f"scorer {shown(name)}: {_import_problem(error, module_name, full_name)}") from error
    finally:
        sys.dont_write_bytecode = writes_bytecode


def _import_problem(error: BaseException, module_name: str, full_name: str) -> str:
    """What went wrong, and the remedy. The error's own text stays out of it: it may show any value."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return f"importing it raised {type(error).__name__}; import the module in Python to see where"
    missing = shown(error.name.removeprefix(full_name.removesuffix(module_name)))
    if f"{full_name}.".startswith(f"{error.name}."):
        return f"there is no module {missing}; put it into the task's folder, or install it"
    return f"it imports {missing}, which is missing; install it, or reach a file beside it with: from . import …"


def _is_in(folder: Path, module_name: str) -> bool:
    head = folder / module_name.partition(".")[0]
    return head.with_suffix(".py").is_file() or head.is_dir()


def _folder_package(folder: Path) -> str:
    """The name of an empty package whose modules are the folder's; what was imported from it before is forgotten."""
    path = str(folder.resolve())
    name = f"_burnish_task_{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:16]}"
    for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[loaded]
    package = ModuleType(name)
    package.__path__ = [path]
    sys.modules[name] = package
    return name


def _source_hash(module: ModuleType) -> str:
    """Over the module's source and, in a folder package, that of all modules imported from it; the same in any folder."""
    package = module.__name__.partition(".")[0]
    names = [module.__name__]
    if package.startswith("_burnish_task_"):
        names = sorted(each for each in sys.modules if each.startswith(f"{package}."))
    digest = hashlib.sha256()
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)  # neither built-in modules nor plain folders have one
        if file is None:
            continue
        path = Path(file)
        try:
            source = path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from None
        digest.update(f"{name.removeprefix(package)} {len(source)} ".encode() + source)
    return digest.hexdigest()
