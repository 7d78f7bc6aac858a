"""What hosts import: messages, their data, the ports to implement, and `open_app`."""

from burnish.application.budget import Budget
from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.gate_candidate_skill import GateCandidateSkill
from burnish.application.meta_skill_update import MetaSkillUpdate
from burnish.application.optimizer_ports import (
    EditRanker,
    EditSelector,
    EpochComparison,
    EpochSummary,
    Focus,
    GuidanceWriter,
    MemoryWriter,
    MergeInput,
    NoteConsolidator,
    NotesInput,
    PatchAggregator,
    PatchMerger,
    PatchProposer,
    Ranking,
    RankInput,
    RateChooser,
    RateDecision,
    RateInput,
    ReflectionInput,
    Rewrite,
    RewriteInput,
    SkillRewriter,
)
from burnish.application.ports import (
    AuditLog,
    CheckpointStore,
    EventSink,
    ItemCatalog,
    Journal,
    KnowledgeMemory,
    RolloutRunner,
)
from burnish.application.prices import Price
from burnish.application.reflect_on_failures import ReflectOnFailures
from burnish.application.result import Result
from burnish.application.slow_update import SlowUpdate
from burnish.application.train_skill import TrainSkill
from burnish.application.usage import UsageNote, note_usage
from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.edits import ApplyReport, Edit, EditOp, EditSource, FailedEdit, Patch, apply_patch
from burnish.domain.epochs import SlowUpdateAnalysis, compare_epochs
from burnish.domain.gate import (
    GateAction,
    GateEvaluation,
    GateMetric,
    GateMode,
    GateResult,
    evaluate_gate,
    project_score,
)
from burnish.domain.patches import aggregate, select_top_k
from burnish.domain.rollouts import BatchScore, Rollout, RolloutBatch, score_batch
from burnish.domain.runs import StepRecord, TrainingRun
from burnish.domain.schedule import learning_rate
from burnish.domain.step_memory import TriedStep
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scoring import Score, Scorer
from burnish.presentation.app import open_app

__all__ = [
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
