"""What hosts may import from `burnish.api`."""

from __future__ import annotations

import inspect

import burnish.api

NAMES = [
    "AppendixSource",
    "ApplyReport",
    "AuditLog",
    "BatchScore",
    "Budget",
    "CheckpointStore",
    "Edit",
    "EditOp",
    "EditRanker",
    "EditSelector",
    "EditSource",
    "EpochComparison",
    "EpochSummary",
    "EvaluateSkill",
    "EventSink",
    "FailedEdit",
    "Focus",
    "GateAction",
    "GateCandidateSkill",
    "GateEvaluation",
    "GateMetric",
    "GateMode",
    "GateResult",
    "GuidanceWriter",
    "Item",
    "ItemCatalog",
    "Journal",
    "KnowledgeMemory",
    "MemoryWriter",
    "MergeInput",
    "MetaSkillUpdate",
    "NoteConsolidator",
    "NotesInput",
    "PairPolicy",
    "Patch",
    "PatchAggregator",
    "PatchMerger",
    "PatchProposer",
    "Price",
    "RankInput",
    "Ranking",
    "RateChooser",
    "RateControl",
    "RateDecision",
    "RateInput",
    "ReflectOnFailures",
    "ReflectionInput",
    "Result",
    "Rewrite",
    "RewriteInput",
    "Rollout",
    "RolloutBatch",
    "RolloutRunner",
    "Score",
    "Scorer",
    "SkillRewriter",
    "SlowUpdate",
    "SlowUpdateAnalysis",
    "StepRecord",
    "TrainSkill",
    "TrainSkillConfig",
    "TrainingRun",
    "TriedStep",
    "UpdateMode",
    "UsageNote",
    "aggregate",
    "apply_patch",
    "compare_epochs",
    "evaluate_gate",
    "learning_rate",
    "note_usage",
    "open_app",
    "project_score",
    "score_batch",
    "select_top_k",
]
"""Names leave this list only with a major version."""


def test_the_list_of_public_names_is_this_one() -> None:
    assert burnish.api.__all__ == NAMES


def test_every_public_name_is_there_and_nothing_else_is_visible() -> None:
    visible = {
        name for name, value in vars(burnish.api).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert visible == set(NAMES)


def test_every_public_name_explains_itself() -> None:
    assert [name for name in NAMES if not inspect.getdoc(getattr(burnish.api, name))] == []
