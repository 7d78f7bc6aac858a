from __future__ import annotations

import asyncio

import pytest

from burnish.infrastructure.models.chat import ChatModel, ChatRequest
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice

SKILL = """
- Answer with the queue, a hyphen and the desk, and nothing else.
- When a ticket mentions "refund", the queue is TSO.
- Otherwise the queue is MOX.
- Otherwise the desk is 5B.
"""


def request(user: str, *, system: str = SKILL, seed: int | None = None) -> ChatRequest:
    return ChatRequest(system=system, user=user, purpose="rollout", seed=seed)


async def texts(model: ChatModel, requests: list[ChatRequest]) -> list[str]:
    return [answer.text for answer in await asyncio.gather(*map(model.complete, requests))]


async def test_the_rules_of_the_system_prompt_are_followed() -> None:
    model: ChatModel = SimulatedApprentice()
    assert await texts(model, [request("a refund"), request("hello"), request("hello", system="")]) == [
        "TSO-5B",
        "MOX-5B",
        "UNROUTED",
    ]


async def test_tokens_are_estimated_from_the_characters() -> None:
    answer = await SimulatedApprentice().complete(request("u" * 10, system="s" * 31))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 2)
    assert answer.usage.is_estimated


async def test_answers_do_not_depend_on_order_or_company() -> None:
    requests = [request(f"ticket {number}", seed=number % 3) for number in range(200)]
    together = await texts(SimulatedApprentice(noise=0.3, seed=7), requests)
    model = SimulatedApprentice(noise=0.3, seed=7)
    alone = [(await model.complete(each)).text for each in reversed(requests)]
    assert together == alone[::-1]


async def test_noise_is_the_share_of_slips() -> None:
    requests = [request(f"ticket {number}") for number in range(2000)]
    slips = [text for text in await texts(SimulatedApprentice(noise=0.2), requests) if text != "MOX-5B"]
    assert 0.17 < len(slips) / len(requests) < 0.23
    assert set(slips) == {"TSO-5B"}


@pytest.mark.parametrize("noise", [0.0, 1.0])
async def test_without_noise_none_slips_and_with_full_noise_all_do(noise: float) -> None:
    requests = [request(f"ticket {number}") for number in range(100)]
    slipped = [text != "MOX-5B" for text in await texts(SimulatedApprentice(noise=noise), requests)]
    assert set(slipped) == {bool(noise)}


async def test_a_slip_without_another_value_is_unrouted() -> None:
    answer = await SimulatedApprentice(noise=1.0).complete(request("x", system="- Otherwise the queue is MOX."))
    assert answer.text == "UNROUTED"


@pytest.mark.parametrize(
    "other",
    [
        request("ticket", seed=2),
        request("ticket ", seed=1),
        request("ticket", system=SKILL + " ", seed=1),
    ],
)
async def test_slips_depend_on_seed_and_texts(other: ChatRequest) -> None:
    one = request("ticket", seed=1)
    models = [SimulatedApprentice(noise=0.5, seed=seed) for seed in range(64)]
    answers = [[(await model.complete(each)).text for model in models] for each in (one, one, other)]
    assert answers[0] == answers[1] != answers[2]


def test_the_fingerprint_names_the_simulation_and_its_parameters() -> None:
    assert SimulatedApprentice().fingerprint == "simulated-apprentice(noise=0.0, seed=0)"
    assert SimulatedApprentice(noise=0.25, seed=3).fingerprint == "simulated-apprentice(noise=0.25, seed=3)"


@pytest.mark.parametrize("noise", [-0.1, 1.1, float("nan")])
def test_noise_outside_of_its_range_is_refused(noise: float) -> None:
    with pytest.raises(ValueError, match="noise"):
        SimulatedApprentice(noise=noise)
