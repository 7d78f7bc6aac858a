"""What hosts import: messages, their data, the ports to implement, and `open_app`."""

from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.gate_candidate_skill import GateCandidateSkill
from burnish.application.meta_skill_update import MetaSkillUpdate
from burnish.application.optimizer_ports import EditSelector, PatchAggregator, PatchProposer, ReflectionInput
from burnish.application.ports import (
    AuditLog,
    CheckpointStore,
    EventSink,
    ItemCatalog,
    Journal,
    KnowledgeMemory,
    RolloutRunner,
)
from burnish.application.reflect_on_failures import ReflectOnFailures
from burnish.application.result import Result
from burnish.application.slow_update import SlowUpdate
from burnish.application.train_skill import TrainSkill
from burnish.domain.config import TrainSkillConfig
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
from burnish.presentation.app import open_app

__all__ = [
    "ApplyReport",
    "AuditLog",
    "BatchScore",
    "CheckpointStore",
    "Edit",
    "EditOp",
    "EditSelector",
    "EditSource",
    "EvaluateSkill",
    "EventSink",
    "FailedEdit",
    "GateAction",
    "GateCandidateSkill",
    "GateEvaluation",
    "GateMetric",
    "GateMode",
    "GateResult",
    "ItemCatalog",
    "Journal",
    "KnowledgeMemory",
    "MetaSkillUpdate",
    "Patch",
    "PatchAggregator",
    "PatchProposer",
    "ReflectOnFailures",
    "ReflectionInput",
    "Result",
    "Rollout",
    "RolloutBatch",
    "RolloutRunner",
    "SlowUpdate",
    "SlowUpdateAnalysis",
    "StepRecord",
    "TrainSkill",
    "TrainSkillConfig",
    "TrainingRun",
    "aggregate",
    "apply_patch",
    "compare_epochs",
    "evaluate_gate",
    "learning_rate",
    "open_app",
    "project_score",
    "score_batch",
    "select_top_k",
]
