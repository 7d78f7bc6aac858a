"""SkillOpt as one learning method of a host with a loop of its own: `Evolver`, and what it is called with."""

from burnish.presentation.evolver.blocking import BlockingEvolver
from burnish.presentation.evolver.evolver import Evolver, StepResult
from burnish.presentation.evolver.host import EvolverContext, EvolverHost, LlmRequest
from burnish.presentation.evolver.manifest import Manifest, load_manifest
from burnish.presentation.evolver.parameters import EvolverParameters, read_parameters
from burnish.presentation.evolver.refusal import EvolverError

__all__ = [
    "BlockingEvolver",
    "Evolver",
    "EvolverContext",
    "EvolverError",
    "EvolverHost",
    "EvolverParameters",
    "LlmRequest",
    "Manifest",
    "StepResult",
    "load_manifest",
    "read_parameters",
]
