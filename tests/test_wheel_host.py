"""burnish installed beside a service that has top-level `domain` and `application` packages of its own."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
LAYERS = ("domain", "application", "infrastructure", "presentation")

HOST_FILES = {
    "domain/__init__.py": 'RULE = "Always answer with the invoice number."\n',
    "domain/edits.py": 'OWNER = "host"\n',
    "domain/py.typed": "",
    "application/__init__.py": 'from domain import RULE\n\nINITIAL_SKILL = "# Invoices"\nGOAL = RULE\n',
    "application/ports.py": 'OWNER = "host"\n',
    "host_service.py": """
import asyncio
import json

import application
import application.ports
import burnish
import burnish.domain.edits
import domain.edits
from burnish.api import Edit, EditOp, Patch, Rollout, TrainSkill, TrainSkillConfig, open_app


class Rollouts:
    async def run(self, skill, batch):
        item_ids = batch.item_ids or [f"{batch.split}-{number}" for number in range(batch.size)]
        score = 1.0 if application.GOAL in skill else 0.0
        return [Rollout(item_id=item_id, hard=score, soft=score) for item_id in item_ids]


class Proposer:
    async def propose(self, reflection):
        return Patch(edits=(Edit(op=EditOp.APPEND, content=application.GOAL),))


async def main():
    config = TrainSkillConfig(epochs=1, steps_per_epoch=2, train_batch_size=2, val_batch_size=2, seed=7)
    async with open_app(rollouts=Rollouts(), proposer=Proposer()) as app:
        command = TrainSkill(
            run_id="host-run", skill_id="invoices", initial_skill=application.INITIAL_SKILL, config=config
        )
        run = (await app.send(command)).value
    return {
        "best_skill": run.best_skill,
        "has_accepted_any": run.has_accepted_any,
        "owners": [domain.edits.OWNER, application.ports.OWNER],
        "burnish_file": burnish.__file__,
        "edits_file": burnish.domain.edits.__file__,
    }


print(json.dumps(asyncio.run(main())))
""",
}


def _call(*command: str | Path, cwd: Path) -> str:
    """The standard output of a command that must succeed, run without this process's Python settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _source_files() -> set[str]:
    return {
        str(file.relative_to(REPOSITORY / layer))
        for layer in LAYERS
        for file in (REPOSITORY / layer).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """burnish's wheel, built with the tools of the running environment."""
    folder = tmp_path_factory.mktemp("wheel")
    _call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, REPOSITORY, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


class Host:
    """A virtual environment in which a service is installed, and everything burnish needs, but not burnish."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _call(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
        self.python = folder / "venv" / "bin" / "python"
        purelib = _call(self.python, "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
        self.site_packages = Path(purelib.strip())
        self._lend_dependencies(folder / "dependencies")
        for name, text in HOST_FILES.items():
            file = self.site_packages / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def _lend_dependencies(self, folder: Path) -> None:
        """Link what is installed here, except burnish: `.pth` files of a folder named in a `.pth` file are not read."""
        folder.mkdir()
        for source in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            for entry in Path(source).iterdir():
                if "burnish" not in entry.name and entry.name != "__pycache__":
                    (folder / entry.name).symlink_to(entry)
        (self.site_packages / "lent_dependencies.pth").write_text(f"{folder}\n", encoding="utf-8")

    def pip(self, *arguments: str | Path) -> None:
        _call(self.python, "-m", "pip", *arguments, cwd=self.folder)

    def train(self) -> dict[str, object]:
        answer: dict[str, object] = json.loads(_call(self.python, "-m", "host_service", cwd=self.folder))
        return answer


def test_wheel_holds_every_source_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == _source_files()
    assert {f"burnish/{layer}/py.typed" for layer in LAYERS} | {"burnish/py.typed"} <= packed


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_installing_beside_a_host_changes_none_of_its_files(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    host = Host(tmp_path)
    before = _contents(host.site_packages)

    if kind == "wheel":
        built: Path = request.getfixturevalue("wheel")
        host.pip("install", "--no-deps", "--no-index", built)
    else:
        host.pip("install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", REPOSITORY)
    installed = _contents(host.site_packages)
    assert {name: installed.get(name) for name in before} == before
    assert len(installed) > len(before)

    answer = host.train()
    assert answer["has_accepted_any"] is True
    assert "Always answer with the invoice number." in str(answer["best_skill"])
    assert answer["owners"] == ["host", "host"]
    assert answer["burnish_file"] is None
    home = host.site_packages if kind == "wheel" else REPOSITORY
    assert Path(str(answer["edits_file"])).is_relative_to(home)

    host.pip("uninstall", "--yes", "burnish")
    assert _contents(host.site_packages) == before
