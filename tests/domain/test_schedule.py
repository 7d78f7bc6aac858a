"""learning_rate: reference vectors of system A, bounds, monotony, and what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.schedule import SCHEDULERS, learning_rate


def whole_run(scheduler: str, total: int, start: int, floor: int) -> list[int]:
    return [learning_rate(scheduler, step, total, start, floor) for step in range(total)]


@pytest.mark.parametrize(
    ("scheduler", "total", "start", "floor", "expected"),
    [
        pytest.param("cosine", 15, 8, 1, [8, 8, 8, 7, 7, 6, 5, 4, 4, 3, 2, 2, 1, 1, 1], id="default-run"),
        pytest.param("linear", 15, 8, 1, [8, 8, 7, 6, 6, 6, 5, 4, 4, 4, 3, 2, 2, 2, 1], id="default-run-linear"),
        pytest.param("cosine", 5, 8, 2, [8, 7, 5, 3, 2], id="cosine-5"),
        pytest.param("linear", 5, 8, 2, [8, 6, 5, 4, 2], id="linear-5-rounds-half-to-even"),
        pytest.param("cosine", 9, 16, 2, [16, 15, 14, 12, 9, 6, 4, 3, 2], id="cosine-9"),
        pytest.param("cosine", 11, 16, 2, [16, 16, 15, 13, 11, 9, 7, 5, 3, 2, 2], id="cosine-11"),
        pytest.param("linear", 10, 16, 1, [16, 14, 13, 11, 9, 8, 6, 4, 3, 1], id="linear-10"),
        pytest.param(
            "cosine", 20, 16, 1, [16, 16, 16, 15, 14, 14, 13, 12, 10, 9, 8, 7, 5, 4, 3, 3, 2, 1, 1, 1], id="cosine-20"
        ),
        pytest.param("cosine", 6, 4, 1, [4, 4, 3, 2, 1, 1], id="example"),
        pytest.param("constant", 4, 8, 1, [8, 8, 8, 8], id="constant"),
        pytest.param("linear", 2, 8, 3, [8, 3], id="two-steps"),
    ],
)
def test_reference_vectors(scheduler: str, total: int, start: int, floor: int, expected: list[int]) -> None:
    assert whole_run(scheduler, total, start, floor) == expected


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_run_of_one_step_has_the_full_budget(scheduler: str) -> None:
    assert [learning_rate(scheduler, step, 1, 8, 2) for step in (0, 1, 9)] == [8, 8, 8]


@pytest.mark.parametrize(("scheduler", "last"), [("linear", 2), ("cosine", 2), ("constant", 8)])
def test_steps_past_the_end_count_as_the_last(scheduler: str, last: int) -> None:
    assert [learning_rate(scheduler, step, 5, 8, 2) for step in (4, 5, 500)] == [last] * 3


@pytest.mark.parametrize("scheduler", ["COSINE", "Cosine", "cOsInE"])
def test_scheduler_name_ignores_case(scheduler: str) -> None:
    assert whole_run(scheduler, 5, 8, 2) == [8, 7, 5, 3, 2]


@pytest.mark.parametrize(
    ("scheduler", "step", "total", "start", "floor"),
    [
        pytest.param("exponential", 0, 5, 8, 2, id="unknown-scheduler"),
        pytest.param("", 0, 5, 8, 2, id="blank-scheduler"),
        pytest.param(" cosine", 0, 5, 8, 2, id="name-is-not-trimmed"),
        pytest.param("cosine", -1, 5, 8, 2, id="step-below-0"),
        pytest.param("cosine", 0, 0, 8, 2, id="no-steps"),
        pytest.param("cosine", 0, 5, 0, 0, id="start-below-1"),
        pytest.param("cosine", 0, 5, 8, 0, id="floor-below-1"),
        pytest.param("cosine", 0, 5, 8, 9, id="floor-above-start"),
        pytest.param("constant", 0, 5, 8, 9, id="constant-is-checked-too"),
        pytest.param("constant", -1, 5, 8, 2, id="constant-step-below-0"),
    ],
)
def test_arguments_out_of_range_are_the_callers_bug(
    scheduler: str, step: int, total: int, start: int, floor: int
) -> None:
    with pytest.raises(ValueError, match=r"scheduler|step|floor"):
        learning_rate(scheduler, step, total, start, floor)


totals, floors, extras = st.integers(1, 400), st.integers(1, 60), st.integers(0, 60)


@given(st.sampled_from(SCHEDULERS), totals, floors, extras)
def test_budget_falls_from_start_to_floor_and_never_leaves_them(
    scheduler: str, total: int, floor: int, extra: int
) -> None:
    start = floor + extra
    rates = whole_run(scheduler, total, start, floor)
    assert all(floor <= rate <= start for rate in rates)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == start
    assert rates[-1] == (start if scheduler == "constant" or total == 1 else floor)


@given(st.sampled_from(SCHEDULERS), st.integers(0, 10**9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_budget_stays_in_its_bounds_for_any_numbers(scheduler: str, step: int, total: int, floor: int) -> None:
    for start in (floor, floor + 1, 2 * floor):
        assert floor <= learning_rate(scheduler, step, total, start, floor) <= start
