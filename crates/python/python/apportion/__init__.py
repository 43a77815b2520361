"""Decides which deep-learning jobs run on which accelerators.

`allocate` decides once, `simulate` over time, `sweep` over policies, rates and seeds. A policy is a name, a file, a document's text or
a function of a `Problem`.
"""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING, Any

from . import _native, gavel, traces
from ._columns import Table
from ._decide import allocate, explain
from ._errors import (
    AllocationError,
    ApportionError,
    InfeasibleError,
    InputError,
    PolicyError,
    ResultsError,
    SimulationError,
    SolverError,
    UnboundedError,
)
from ._explanation import Explanation, JobExplanation, WorkerTypeExplanation
from ._export import Exported, export_policy, export_weights
from ._fit import fit
from ._ids import register as _register
from ._native import Decision, ObjectiveCertificate, Problem, __version__, policies
from ._policy import Policy, document
from ._problem import problem, read_problem
from ._runs import Run, Study, metrics, simulate, sweep
from ._session import Session, SessionDecision

if TYPE_CHECKING:
    from . import envs, live

atexit.register(_native._end)
# Where Gymnasium is there already, worlds are made by their ids without a second import. One that is imported halfway is left alone.
if hasattr(sys.modules.get("gymnasium"), "registry") and hasattr(sys.modules["gymnasium"], "register"):
    _register(sys.modules["gymnasium"])

__all__ = [
    "AllocationError",
    "ApportionError",
    "Decision",
    "Explanation",
    "Exported",
    "InfeasibleError",
    "InputError",
    "JobExplanation",
    "ObjectiveCertificate",
    "Policy",
    "PolicyError",
    "Problem",
    "ResultsError",
    "Run",
    "Session",
    "SessionDecision",
    "SimulationError",
    "SolverError",
    "Study",
    "Table",
    "UnboundedError",
    "WorkerTypeExplanation",
    "__version__",
    "allocate",
    "document",
    "envs",
    "explain",
    "export_policy",
    "export_weights",
    "fit",
    "gavel",
    "live",
    "metrics",
    "policies",
    "problem",
    "read_problem",
    "simulate",
    "sweep",
    "traces",
]


def __getattr__(name: str) -> Any:
    """`apportion.envs`, which needs gymnasium, and `apportion.live` are imported when they are asked for."""
    if name not in ("envs", "live"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module(f".{name}", __name__)
