"""What goes wrong, as exceptions that know the place and the remedy."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AllocationError",
    "ApportionError",
    "InfeasibleError",
    "InputError",
    "PolicyError",
    "ResultsError",
    "SimulationError",
    "SolverError",
    "UnboundedError",
]


class ApportionError(Exception):
    """Whatever apportion refuses or cannot do."""

    def __init__(self, message: str, *, help: str | None = None, **known: Any) -> None:
        super().__init__(message)
        #: What to do about it, if that is known.
        self.help = help
        for name, value in known.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhelp: {self.help}" if self.help else message


class InputError(ApportionError, ValueError):
    """An argument or a document that is wrong.

    `source` is the document, a path or a name, if it is in one, `line` and `column` its place there, from 1. `job` is the position of
    the job at fault, if it is one's. `help` is what to do about it. What is not known is None.
    """

    #: The document, a path or a name, if it is in one.
    source: str | None = None
    #: Its line, from 1.
    line: int | None = None
    #: Its column in characters, from 1.
    column: int | None = None
    #: The position of the job at fault, if it is one's.
    job: int | None = None


class PolicyError(ApportionError):
    """A policy that gave no decision.

    `job` is the position of the job at fault, if it is one's; else None.
    """

    #: The position of the job at fault, if it is one's.
    job: int | None = None


class InfeasibleError(PolicyError):
    """No allocation keeps the policy's constraints; the message says which of them conflict."""


class UnboundedError(PolicyError):
    """The policy's objective has no bound on this problem."""


class SolverError(PolicyError):
    """No backend certified an optimum."""


class AllocationError(PolicyError):
    """Shares that break a constraint of the allocation polytope.

    `row` is the position of the job, or of the row in the answer, `worker_type` that of the worker type, and `excess` by how much the
    constraint is broken: a part of a job's time, or workers of a type. What it is not about is None.
    """

    #: The position of the job, or of the row in the answer, if it is one's.
    row: int | None = None
    #: The position of the worker type, if it is one's.
    worker_type: int | None = None
    #: By how much the constraint is broken: a part of a job's time, or workers of a type.
    excess: float | None = None


class SimulationError(ApportionError):
    """A simulation that cannot go on."""


class ResultsError(ApportionError):
    """Results on disk that cannot be read, or written to."""
