"""Decides which deep-learning jobs run on which accelerators.

`allocate` decides once, `simulate` over time, `sweep` over policies, rates and seeds. A policy is a name, a file, a document's text or
a function of a `Problem`.
"""

from . import _native, gavel, traces
from ._columns import Table
from ._decide import (
    Explanation,
    JobExplanation,
    Policy,
    Session,
    SessionDecision,
    WorkerTypeExplanation,
    allocate,
    explain,
    problem,
    read_problem,
)
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
from ._fit import fit
from ._native import Certificate, Decision, Problem, __version__, document, policies
from ._runs import Run, Study, metrics, simulate, sweep

__all__ = [
    "AllocationError",
    "ApportionError",
    "Certificate",
    "Decision",
    "Explanation",
    "InfeasibleError",
    "InputError",
    "JobExplanation",
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
    "explain",
    "fit",
    "gavel",
    "metrics",
    "policies",
    "problem",
    "read_problem",
    "simulate",
    "sweep",
    "traces",
]
