"""Values of the engine made again from what `pickle` holds of them: plain data of Python and numpy."""

from __future__ import annotations

from typing import Any

from ._native import Decision, ObjectiveCertificate, Problem

__all__ = ["certificate", "decision", "problem", "read_problem"]


def problem(arguments: dict[str, Any], job_types: list[str | None] | None) -> Problem:
    """A problem of arrays: the arguments of `Problem`, and the job types that its jobs were looked up by, if they were."""
    made = Problem(**arguments)
    return made if job_types is None else made._with_job_types(job_types)


def read_problem(snapshot: tuple[str, str], throughputs: str, matrix: tuple[str, str] | None) -> Problem:
    """A problem of documents: name and text of the snapshot, the name of its throughputs, and their name and text if they are a file."""
    return Problem._of_documents(snapshot, throughputs, matrix)


def decision(state: dict[str, Any], solve: dict[str, Any] | None) -> Decision:
    """A decision: what was decided with its proof, and how it was solved."""
    return Decision._rebuilt(state, solve)


def certificate(state: dict[str, Any]) -> ObjectiveCertificate:
    """A certificate of its fields."""
    return ObjectiveCertificate._rebuilt(state)
