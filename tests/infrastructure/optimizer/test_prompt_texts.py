"""The optimizer's prompts: what ships, what a folder replaces, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol, cast

import pytest
from scripted_models import ScriptedModel

from burnish.domain.edits import apply_patch
from burnish.domain.regions import RegionKind
from burnish.infrastructure.optimizer.chat_optimizer import ChatOptimizer, OptimizerLimits, chat_optimizer
from burnish.infrastructure.optimizer.patch_reading import read_patch
from burnish.infrastructure.optimizer.prompt_texts import MAX_PROMPT_BYTES, PromptName, Prompts, load_prompts
from burnish.infrastructure.tasks.refusals import DataError

ROLES = {
    "proposer": {
        PromptName.ANALYST_ERROR,
        PromptName.ANALYST_SUCCESS,
        PromptName.ANALYST_MIXED,
        PromptName.EDITS,
        PromptName.SUGGESTIONS,
        PromptName.WHOLE_SKILL,
        PromptName.NOTES,
    },
    "merger": {
        PromptName.MERGE_FAILURES,
        PromptName.MERGE_SUCCESSES,
        PromptName.MERGE_FINAL,
        PromptName.EDITS,
        PromptName.SUGGESTIONS,
        PromptName.WHOLE_SKILL,
    },
    "ranker": {PromptName.RANK},
    "rate_chooser": {PromptName.LEARNING_RATE},
    "rewriter": {PromptName.REWRITE, PromptName.WHOLE_SKILL},
    "note_consolidator": {PromptName.CONSOLIDATE_NOTES},
    "guidance_writer": {PromptName.SLOW_UPDATE},
    "memory_writer": {PromptName.META_MEMORY},
}


class _Role(Protocol):
    @property
    def fingerprint(self) -> str: ...


def _role(optimizer: ChatOptimizer, name: str) -> _Role:
    return cast("_Role", getattr(optimizer, name))


def _folder(path: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (path / f"{name}.md").write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PromptName)
def test_every_prompt_ships_short_and_without_front_matter(name: PromptName) -> None:
    text = load_prompts().texts[name]
    assert text.startswith("# ")
    assert text == text.strip()
    assert 80 <= len(text.split()) <= 300
    assert "%%" not in text


@pytest.mark.parametrize("name", [name for name in PromptName if name is not PromptName.GROUND_RULES])
def test_every_system_prompt_names_every_protected_part(name: PromptName) -> None:
    system = load_prompts().system(name)
    for kind in RegionKind:
        assert kind.start_marker in system
        assert kind.end_marker in system
    assert "front matter" in system
    assert "off limits" in system


def test_a_replaced_prompt_still_has_the_ground_rules(tmp_path: Path) -> None:
    prompts = load_prompts(_folder(tmp_path, rank="Best first."))
    shipped = load_prompts()
    assert prompts.system(PromptName.RANK) == f"Best first.\n\n{shipped.texts[PromptName.GROUND_RULES]}"
    others = {name for name in PromptName if prompts.texts[name] != shipped.texts[name]}
    assert others == {PromptName.RANK}


def test_all_of_them_can_be_replaced_and_none_need_be(tmp_path: Path) -> None:
    assert load_prompts(tmp_path) == load_prompts()
    prompts = load_prompts(_folder(tmp_path, **{name.value: f"text of {name.value}" for name in PromptName}))
    assert prompts == Prompts({name: f"text of {name.value}" for name in PromptName})


def test_front_matter_a_byte_order_mark_and_hidden_files_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "rank.md").write_text("---\nname: mine\n---\n\nBest first.\n", encoding="utf-8-sig")
    (tmp_path / ".DS_Store").write_bytes(b"\xff")
    assert load_prompts(tmp_path).texts[PromptName.RANK] == "Best first."


def _refusal(folder: Path) -> str:
    with pytest.raises(DataError) as refused:
        load_prompts(folder)
    line = refused.value.line
    assert "\n" not in line
    return line


@pytest.mark.parametrize("name", ["analyst.md", "rank.txt", "RANK.md", "README.md", "a\nb.md"])
def test_a_file_nobody_knows_is_refused_with_the_names_that_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x", encoding="utf-8")
    line = _refusal(tmp_path)
    assert repr(name) in line
    assert all(f"{known.value}.md" in line for known in PromptName)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"---\nname: x\n---\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (MAX_PROMPT_BYTES + 1), "is longer than"),
    ],
)
def test_a_file_that_holds_no_prompt_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "rank.md").write_bytes(content)
    line = _refusal(tmp_path)
    assert f"{tmp_path / 'rank.md'}: {problem}" in line
    assert "meta_memory.md" in line


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank.md").mkdir()
    assert "rank.md: is no regular file" in _refusal(tmp_path)


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank.md").symlink_to(tmp_path / "nowhere")
    assert "rank.md: cannot be read" in _refusal(tmp_path)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in _refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert "cannot be read" in _refusal(tmp_path / "file")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", PromptName)
def test_a_fingerprint_changes_with_the_prompts_of_its_role_and_no_others(
    tmp_path: Path, role: str, name: PromptName
) -> None:
    shipped = _role(chat_optimizer(ScriptedModel()), role).fingerprint
    prompts = load_prompts(_folder(tmp_path, **{name.value: "Something else."}))
    changed = _role(chat_optimizer(ScriptedModel(), prompts=prompts), role).fingerprint
    assert (changed != shipped) is (name in ROLES[role] or name is PromptName.GROUND_RULES)


@pytest.mark.parametrize("role", ROLES)
def test_a_fingerprint_is_stable_and_changes_with_model_and_limits(role: str) -> None:
    fingerprints = [
        _role(chat_optimizer(ScriptedModel(fingerprint=model), limits=limits), role).fingerprint
        for model in ("one", "other")
        for limits in (OptimizerLimits(), OptimizerLimits().with_answers_of(99))
    ]
    assert len(set(fingerprints)) == 4
    assert _role(chat_optimizer(ScriptedModel(fingerprint="one")), role).fingerprint == fingerprints[0]


def test_no_two_roles_share_a_fingerprint() -> None:
    optimizer = chat_optimizer(ScriptedModel(), limits=OptimizerLimits().with_answers_of(99))
    assert len({_role(optimizer, role).fingerprint for role in ROLES}) == len(ROLES)


@pytest.mark.parametrize(
    "limits",
    [
        OptimizerLimits(analyst=0),
        OptimizerLimits(merge=0),
        OptimizerLimits(rank=0),
        OptimizerLimits(learning_rate=0),
        OptimizerLimits(rewrite=-1),
        OptimizerLimits(guidance=0),
        OptimizerLimits(memory=0),
        OptimizerLimits(trajectory=0),
        OptimizerLimits(compared_trajectory=0),
        OptimizerLimits(obs_chars=-1),
        OptimizerLimits(trajectory_view="short"),  # type: ignore[arg-type]  # what this is about
    ],
)
def test_limits_that_are_none_are_refused(limits: OptimizerLimits) -> None:
    with pytest.raises(ValueError, match=r"at least|full or paper"):
        chat_optimizer(ScriptedModel(), limits=limits)


def test_one_limit_for_all_answers_leaves_the_rest_alone() -> None:
    assert OptimizerLimits(obs_chars=5).with_answers_of(None) == OptimizerLimits(obs_chars=5)
    limits = OptimizerLimits(obs_chars=5).with_answers_of(700)
    assert (limits.analyst, limits.rewrite, limits.memory, limits.trajectory, limits.obs_chars) == (
        700,
        700,
        700,
        12_000,
        5,
    )


def test_the_worked_example_holds_what_it_teaches() -> None:
    text = load_prompts().texts[PromptName.EDITS]
    skill = text.split("<skill>\n")[-1].partition("</skill>")[0]
    answer = next(line for line in text.splitlines() if line.startswith("{"))
    assert set(json.loads(answer)) == {"reasoning", "edits"}
    report = apply_patch(skill, read_patch(answer, skill))
    assert report.failed == ()
    assert report.content == (
        "- Answer with the shelf.\n"
        '- When the label says "fragile", the shelf is A2.\n'
        '\n\n- When the label says "keep frozen", the shelf is C9.'
        '\n\n- When the label says "live plants", the shelf is F4.'
    )
