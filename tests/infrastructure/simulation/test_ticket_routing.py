"""The simulated models on the shipped example, whose own resolver is the reference."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from burnish.application.optimizer_ports import ReflectionInput
from burnish.domain.edits import apply_patch
from burnish.domain.rollouts import SPLITS, TRAIN, VALIDATION, Rollout, plan_epoch, score_batch
from burnish.infrastructure.models.chat import ChatRequest
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.patch_reading import read_patch
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.simulation.coach import SimulatedCoach
from burnish.infrastructure.simulation.rules import answer, parse_rules

EXAMPLE = Path(__file__).parents[3] / "examples" / "ticket-routing"
HOUSE_RULES = (EXAMPLE / "house_rules.md").read_text(encoding="utf-8")
START = (EXAMPLE / "skill.md").read_text(encoding="utf-8")


def load(split: str) -> list[dict[str, str]]:
    lines = (EXAMPLE / "items" / split / "items.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


ITEMS = {split: load(split) for split in SPLITS}


async def roll_out(skill: str, items: Sequence[dict[str, str]], *, noise: float = 0.0) -> tuple[Rollout, ...]:
    model = SimulatedApprentice(noise=noise)
    rollouts: list[Rollout] = []
    for item in items:
        given = (await model.complete(ChatRequest(system=skill, user=item["question"], purpose="rollout"))).text
        score = float(given == item["answer"])
        rollouts.append(
            Rollout(
                item["id"],
                hard=score,
                soft=score,
                trajectory=f"[user]\n{item['question']}\n\n[agent]\n{given}",
                fail_reason="" if score else f'expected "{item["answer"]}", got "{given}"',
            )
        )
    return tuple(rollouts)


async def score(skill: str, split: str) -> float:
    return score_batch(await roll_out(skill, ITEMS[split])).hard


@pytest.mark.parametrize("split", SPLITS)
async def test_the_house_rules_answer_everything_and_the_first_skill_little(split: str) -> None:
    assert await score(HOUSE_RULES, split) == 1.0
    assert 0.0 < await score(START, split) < 0.3


def test_the_rules_mean_what_the_examples_own_resolver_says() -> None:
    reference = runpy.run_path(str(EXAMPLE / "check_items.py"))
    parse: Callable[[str], object] = reference["parse_rules"]
    resolve: Callable[[object, str], str] = reference["answer"]
    weakened: Callable[[str], Iterator[tuple[str, str]]] = reference["weakened"]
    skills = [skill for text in (HOUSE_RULES, START) for skill in (text, *(each for _, each in weakened(text)))]
    assert len(skills) > 70
    for skill in skills[::3]:
        ours, theirs = parse_rules(skill), parse(skill)
        for item in ITEMS[VALIDATION]:
            assert answer(ours, item["question"]) == resolve(theirs, item["question"])


@dataclass(frozen=True, slots=True)
class Climb:
    """How a loop went: train scores before the first step and after each, and the last skill."""

    scores: tuple[float, ...]
    accepted: int
    skill: str


def reflect_prompt(skill: str, rollouts: Sequence[Rollout]) -> ChatRequest:
    """A prompt of our own, so that no change of the real one's wording changes what the coach draws."""
    failures = [f"<failure>\n{each.trajectory}\n</failure>" for each in rollouts if not each.is_success]
    user = "\n\n".join([f"<skill>\n{skill}\n</skill>", "At most 4 edits.", *failures])
    return ChatRequest(system="", user=user, purpose="reflect")


async def climb(coach: SimulatedCoach, *, steps: int, is_gated: bool = True, skill: str = START) -> Climb:
    """The loop in small: 16 train items a step; the candidate stays if the train score rises, or always without a gate."""
    items = {item["id"]: item for item in ITEMS[TRAIN]}
    plan = plan_epoch(list(items), seed=1, epoch=1, batch_size=16, batches=steps)
    scores, accepted = [await score(skill, TRAIN)], 0
    for batch in plan:
        rollouts = await roll_out(skill, [items[planned.item_id] for planned in batch])
        patch = read_patch((await coach.complete(reflect_prompt(skill, rollouts))).text, skill)
        report = apply_patch(skill, patch)
        assert not report.failed
        candidate_score = await score(report.content, TRAIN)
        if candidate_score > scores[-1] or not is_gated:
            skill, accepted = report.content, accepted + 1
            scores.append(candidate_score)
        else:
            scores.append(scores[-1])
    return Climb(tuple(scores), accepted, skill)


@pytest.mark.parametrize("seed", [0, 1, 2])
async def test_a_dozen_steps_lift_the_score_over_four_fifths(seed: int) -> None:
    end = await climb(SimulatedCoach(HOUSE_RULES, seed=seed), steps=12)
    assert end.scores[0] < 0.3
    assert end.scores[-1] > 0.8
    assert await score(end.skill, VALIDATION) > 0.8


async def test_two_runs_of_the_loop_are_the_same() -> None:
    assert await climb(SimulatedCoach(HOUSE_RULES), steps=4) == await climb(SimulatedCoach(HOUSE_RULES), steps=4)


@pytest.mark.parametrize("skill", [START, START.replace("\n", "\r\n"), "# Empty\n"])
async def test_the_chat_proposer_understands_the_coach(skill: str) -> None:
    coach = SimulatedCoach(HOUSE_RULES, useful=1, useless=0, harmful=0)
    rollouts = await roll_out(skill, ITEMS[TRAIN])
    patch = await ChatPatchProposer(coach).propose(
        ReflectionInput(current_skill=skill, rollouts=rollouts, edit_budget=40)
    )
    report = apply_patch(skill, patch)
    assert not report.failed
    assert await score(report.content, TRAIN) == 1.0
    assert patch.reasoning


async def test_nothing_is_accepted_of_a_useless_coach() -> None:
    end = await climb(SimulatedCoach(HOUSE_RULES, useful=0, useless=1, harmful=0), steps=6)
    assert (end.accepted, end.skill) == (0, START)


@pytest.mark.parametrize("skill", [START, HOUSE_RULES])
async def test_a_harmful_coach_is_stopped_by_the_gate_only(skill: str) -> None:
    coach = SimulatedCoach(HOUSE_RULES, useful=0, useless=0, harmful=1)
    gated = await climb(coach, steps=6, skill=skill)
    ungated = await climb(coach, steps=6, is_gated=False, skill=skill)
    assert gated.scores[-1] >= gated.scores[0]
    assert ungated.scores[-1] < ungated.scores[0]


async def test_noise_lowers_the_score_of_the_right_rules() -> None:
    everything = [item for split in SPLITS for item in ITEMS[split]]
    assert 0.7 < score_batch(await roll_out(HOUSE_RULES, everything, noise=0.2)).hard < 0.9
