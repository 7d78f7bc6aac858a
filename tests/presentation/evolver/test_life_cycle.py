"""Steps that are called again, failed, passed over or out of order; epochs; the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from evolver_host import SMALL, START, Host, Json

from burnish.application.result import ErrorKind
from burnish.presentation.evolver import BlockingEvolver, EvolverError, LlmRequest


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def evolver() -> BlockingEvolver:
    return BlockingEvolver(SMALL)


def text_of(host: Host) -> str:
    return host.document.read_bytes().decode()


def everything(host: Host) -> dict[str, bytes]:
    """All files but those of the database, which notes every attempt."""
    return {
        str(path.relative_to(host.folder)): path.read_bytes()
        for path in host.folder.rglob("*")
        if path.is_file() and "evolver.db" not in path.name
    }


def refusal(call: Callable[[], object], host: Host, kind: ErrorKind = ErrorKind.CONFLICT) -> str:
    """The one line a call is refused with; it has changed nothing and asked nobody."""
    before, asked = everything(host), host.asked()
    with pytest.raises(EvolverError) as caught:
        call()
    assert everything(host) == before
    assert host.asked() == asked
    assert caught.value.kind is kind
    assert "\n" not in caught.value.line
    return caught.value.line


def down(request: LlmRequest) -> object:
    raise ConnectionError("no model")


def test_done_step_called_again_writes_its_files_again_and_asks_nothing(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    result, files, asked = evolver.step(host), everything(host), host.asked()
    (host.folder / "output" / "report.md").unlink()
    host.document.write_text(START)
    assert evolver.step(host) == result
    assert everything(host) == files
    assert host.asked() == asked


def test_same_number_with_other_material_is_refused(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    evolver.step(host)
    host.write_material(2)
    summary = host.folder / "learning_material" / "current" / "summary.json"
    summary.write_text(json.dumps({"step": 1}))
    assert "was called with other material before" in refusal(lambda: evolver.step(host), host)


def test_killed_step_is_not_begun_again_with_other_material(host: Host, evolver: BlockingEvolver) -> None:
    def die(_: str) -> None:
        raise KeyboardInterrupt

    host.write_material(1)
    host.before = die
    with pytest.raises(KeyboardInterrupt):
        evolver.step(host)
    host.before = lambda _: None
    host.write_material(2)
    (host.folder / "learning_material" / "current" / "summary.json").write_text(json.dumps({"step": 1}))
    assert "was begun with other material" in refusal(lambda: evolver.step(host), host)
    host.write_material(1)
    assert evolver.step(host)["status"] == "done"


def test_older_number_is_refused(host: Host, evolver: BlockingEvolver) -> None:
    for number in (5, 9):  # a host may leave numbers out
        host.write_material(number)
        assert evolver.step(host)["status"] == "done"
    host.write_material(7)
    assert refusal(lambda: evolver.step(host), host) == "step 7: step 9 was made already: steps go forward"


def test_document_that_somebody_changed_is_refused(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    evolver.step(host)
    host.document.write_text("mine")
    assert "is not the one step 1 left" in refusal(lambda: evolver.step(host), host)
    assert "is not the one the evolver left" in refusal(lambda: evolver.finalize(host), host)
    host.write_material(2)
    assert "is not the one step 1 left" in refusal(lambda: evolver.step(host), host)


def test_next_step_with_the_document_before_a_killed_one_is_sent_back(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    evolver.step(host)
    host.document.write_text(START)  # as a process leaves it that is killed before the file is written
    host.write_material(2)
    assert "call that step again" in refusal(lambda: evolver.step(host), host)


def test_failed_step_called_again_asks_only_what_stayed_without_an_answer(
    host: Host, evolver: BlockingEvolver, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Host(tmp_path_factory.mktemp("other"))
    other.write_material(1)
    expected = evolver.step(other)
    host.write_material(1)
    answer, host.llm = host.llm, down
    assert evolver.step(host)["status"] == "failed"
    assert text_of(host) == START
    assert host.asked() == ["run_agent", "run_agent"]
    host.llm = answer
    assert evolver.step(host) == expected
    assert text_of(host) == text_of(other)
    assert host.asked() == other.asked()


def test_failed_validation_called_again_is_asked_again_by_whole_blocks(host: Host, evolver: BlockingEvolver) -> None:
    blocks: list[int] = []
    answer = host.run_agent

    def run_agent(document: str, asked: list[Json]) -> object:
        blocks.append(len(asked))
        if len(blocks) == 2:
            raise ConnectionError("no agent")
        return answer(document, asked)

    host.run_agent = run_agent
    host.write_material(1)
    assert evolver.step(host)["status"] == "failed"
    assert blocks == [16, 8]
    assert evolver.step(host)["status"] == "done"
    assert blocks == [16, 8, 8, 16, 8]


def test_failed_step_may_be_passed_over(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    answer, host.llm = host.llm, down
    assert evolver.step(host)["status"] == "failed"
    host.llm = answer
    host.write_material(2)
    assert evolver.step(host)["status"] == "done"
    assert host.asked().count("run_agent") == 4  # the initial document was scored in the failed step
    assert "Epoch 1 has 1 more step." not in host.report
    assert "The next step ends epoch 1" in host.report  # a failed step counts


def test_epoch_whose_last_step_fails_is_ended_by_the_next_one(host: Host, evolver: BlockingEvolver) -> None:
    for number in (1, 2):
        host.write_material(number)
        evolver.step(host)
    answer, host.llm = host.llm, down
    host.write_material(3)
    assert evolver.next_step_ends_epoch(host)
    assert evolver.step(host)["status"] == "failed"
    assert "Memory" not in host.report
    host.llm = answer
    host.write_material(4)
    assert evolver.next_step_ends_epoch(host)
    evolver.step(host)
    assert "Memory: 39 characters" in host.report
    assert "Epoch 2 has 2 more steps." in host.report


def test_host_sees_the_end_of_an_epoch_coming(host: Host, evolver: BlockingEvolver) -> None:
    ends: list[bool] = []
    memories: list[bool] = []
    for number in range(6):
        host.write_material(number)
        ends.append(evolver.next_step_ends_epoch(host))
        evolver.step(host)
        memories.append("Memory:" in host.report)
    assert ends == memories == [False, False, True] * 2
    assert not BlockingEvolver({"steps_per_epoch": 2}).next_step_ends_epoch(Host(host.folder / "new"))
    assert BlockingEvolver({"steps_per_epoch": 1}).next_step_ends_epoch(Host(host.folder / "newer"))
    assert not BlockingEvolver().next_step_ends_epoch(Host(host.folder / "newest"))


def test_schedule_advances_only_when_patches_reach_selection(host: Host) -> None:
    evolver = BlockingEvolver({**SMALL, "lr_scheduler": "linear", "learning_rate": 3, "total_steps": 3})
    allowed: list[str] = []
    thought = host.thought
    for number, has_edits in enumerate((True, False, False, True, True, True)):
        host.thought = thought if has_edits else lambda request: {"reasoning": "", "edits": []}
        host.write_material(number)
        evolver.step(host)
        allowed += [line for line in host.report.splitlines() if line.startswith("At most")]
    assert [line.split()[2] for line in allowed] == ["3", "2", "1", "1"]


def test_state_of_other_parameters_or_validation_data_is_refused(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    evolver.step(host)
    other = BlockingEvolver({**SMALL, "learning_rate": 3, "gate_metric": "soft"})
    line = refusal(lambda: other.step(host), host)
    assert "other values of params.gate_metric, params.learning_rate" in line
    host.validation_data = host.validation_data[:-1]
    assert "other values of validation_data" in refusal(lambda: evolver.step(host), host)


def test_workers_may_change_from_call_to_call(host: Host, evolver: BlockingEvolver) -> None:
    host.write_material(1)
    evolver.step(host)
    host.write_material(2)
    assert BlockingEvolver({**SMALL, "analyst_workers": 1}).step(host)["status"] == "done"


def test_second_call_at_the_same_time_is_refused(host: Host, evolver: BlockingEvolver) -> None:
    lines: list[str] = []

    def call_again(name: str) -> None:
        if not lines:
            with pytest.raises(EvolverError) as caught:
                BlockingEvolver(SMALL).step(host)
            lines.append(caught.value.line)

    host.before = call_again
    host.write_material(1)
    assert evolver.step(host)["status"] == "done"
    assert lines == ["state: another call is at work on it: wait until it has returned"]


def test_drawn_seed_stays(host: Host) -> None:
    evolver = BlockingEvolver({**SMALL, "seed": 0})
    host.loop(evolver, 2)
    copy = Host(host.folder.parent / "copy")
    shutil.rmtree(copy.folder)
    shutil.copytree(host.folder, copy.folder)
    assert [kept["result"]["status"] for kept in copy.progress()] == ["done"] * 3


# --- the end ---


def test_finalize_without_a_step_leaves_the_initial_document(host: Host, evolver: BlockingEvolver) -> None:
    result = evolver.finalize(host)
    assert result["status"] == "done"
    assert "Nothing was ever accepted" in result["summary"]
    assert text_of(host) == START
    assert host.asked() == []
    host.write_material(1)
    assert "finalize was called" in refusal(lambda: evolver.step(host), host)


def test_finalize_called_again_changes_nothing_and_asks_nothing(host: Host, evolver: BlockingEvolver) -> None:
    host.loop(evolver, 6)
    files, asked = everything(host), host.asked()
    assert evolver.finalize(host) == host.progress()[-1]["result"]
    assert everything(host) == files
    assert host.asked() == asked
    assert "finalize was called" in refusal(lambda: evolver.step(host), host)


@pytest.mark.parametrize(("is_better", "title"), [(True, "Final promotion"), (False, "Kept best")])
def test_finalize_scores_final_and_best_afresh(
    host: Host, evolver: BlockingEvolver, *, is_better: bool, title: str
) -> None:
    for number in range(6):  # the slow update changes the document at the end without a better score
        host.write_material(number)
        evolver.step(host)
    best, final = text_of(host).partition("\n\n<!--")[0], text_of(host)
    attempt = host.attempt
    host.attempt = lambda document, task: attempt(
        document if "<!--" not in document or not is_better else f"{document}\n- use r{task['rule'][1:]}", task
    )
    result = evolver.finalize(host)
    assert host.report.startswith(f"# End: {title}")
    assert text_of(host) == (final if is_better else best)
    assert result["usage"]["target"]["calls"] == 2 * len(host.validation_data)


def test_finalize_without_answers_puts_the_best_in_place_and_may_be_called_again(
    host: Host, evolver: BlockingEvolver
) -> None:
    for number in range(6):
        host.write_material(number)
        evolver.step(host)
    best = text_of(host).partition("\n\n<!--")[0]
    answer = host.run_agent
    host.run_agent = lambda document, asked: 1 / 0
    result = evolver.finalize(host)
    assert result["status"] == "failed"
    assert host.report.startswith("# End: Inconclusive")
    assert text_of(host) == best
    host.run_agent = answer
    assert evolver.finalize(host)["status"] == "done"
    assert host.report.startswith("# End: Kept best")
    assert text_of(host) == best


def test_finalize_without_promotion_takes_the_best(host: Host) -> None:
    evolver = BlockingEvolver({**SMALL, "promote_final": False})
    host.loop(evolver, 6)
    assert "<!--" not in text_of(host)
    assert "promote_final is off" in host.progress()[-1]["result"]["summary"]
