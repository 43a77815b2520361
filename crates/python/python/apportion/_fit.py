"""Shares that a numerical solver left slightly outside the allocation polytope, brought into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._answers import shares_of_jobs
from ._columns import short
from ._errors import AllocationError, InputError
from ._native import Problem

__all__ = ["checked_tolerance", "fit", "into_polytope"]


def fit(problem: Problem, shares: ArrayLike | Mapping[Any, Any], *, tolerance: float = 1e-4) -> NDArray[np.float64]:
    """Brings shares of jobs alone, [jobs × worker types], into the allocation polytope, if they are outside by no more than `tolerance`.

    Shares below 0, and where a job cannot run or a type has too few workers, become 0; a job with more than all of its time, and a type
    given away more than once, are scaled down. Solvers such as SCS and ECOS end outside by 1e-8 to 1e-4. Shares may be all that a
    function may answer: a DataFrame or a mapping is read by the names of worker types. What is outside by more is an `AllocationError`,
    and what is no shares an `InputError`.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {short(problem)}, expected a Problem")
    tolerance = checked_tolerance(tolerance)
    x = shares_of_jobs(problem, shares)
    return into_polytope(problem, [(job,) for job in range(problem.n_jobs)], x, tolerance, drops=False)


def checked_tolerance(tolerance: Any) -> float:
    """How far shares may be outside: a number of at least 0, infinity among them."""
    is_number = isinstance(tolerance, (int, float, np.integer, np.floating)) and not isinstance(tolerance, bool)
    if not is_number or not tolerance >= 0:
        raise InputError(f"tolerance is {short(tolerance)}, expected a number of at least 0")
    return float(tolerance)


def into_polytope(
    problem: Problem, members: Sequence[tuple[int, ...]], shares: NDArray[np.float64], tolerance: float, *, drops: bool
) -> NDArray[np.float64]:
    """Shares of jobs and pairs, [combinations × worker types], inside the allocation polytope. The first combinations are the jobs alone.

    Shares where a combination cannot run become 0, whatever they are if it `drops` them; jobs with more than all of their time are scaled
    down, then types that are given away more than once. What is outside by more than `tolerance` is an error.
    """
    if not np.isfinite(shares).all():
        row, kind = np.argwhere(~np.isfinite(shares))[0].tolist()
        said = f"the share of {_called(problem, members[row])} on worker type {problem.worker_types[kind]!r} is {shares[row, kind]}"
        raise AllocationError(f"{said}, expected finite numbers", row=row, worker_type=kind)

    def check(what: str, excess: NDArray[np.float64], place: str) -> None:
        if excess.size and excess.max() > tolerance:
            at = int(excess.argmax())
            who = f"worker type {problem.worker_types[at]!r}" if place == "worker_type" else _called(problem, members[at])
            known = {place: at, "excess": float(excess.max())}
            remedy = "a larger tolerance scales such shares down, tolerance=math.inf all of them"
            raise AllocationError(f"{who} {what} by {excess.max():.3g}, more than {tolerance:g}", help=remedy, **known)

    scale, workers = problem.scale_factor, problem.workers
    can = np.zeros(shares.shape, dtype=bool)
    can[: problem.n_jobs] = problem.throughputs > 0
    if len(members) > problem.n_jobs:
        positions, speeds = problem.pairs()
        runs = {frozenset(pair): of.min(axis=1) > 0 for pair, of in zip(positions.tolist(), speeds)}
        for row in range(problem.n_jobs, len(members)):
            can[row] = runs.get(frozenset(members[row]), False)
    needed = np.array([scale[of[0]] for of in members], dtype=np.float64)
    can &= needed[:, None] <= workers
    if not drops:
        check("has a share where it cannot run", np.where(can, 0.0, shares).max(axis=1, initial=0.0), "row")
    x: NDArray[np.float64] = np.where(can, shares, 0.0)
    check("has a share below 0", -x.min(axis=1, initial=0.0), "row")
    x = np.maximum(x, 0.0)
    jobs = np.array([job for of in members for job in of], dtype=np.intp)
    rows = np.repeat(np.arange(len(members)), np.array([len(of) for of in members], dtype=np.intp))
    time = np.zeros(problem.n_jobs)
    np.add.at(time, jobs, x.sum(axis=1)[rows])
    check("is given more than all of its time", time - 1.0, "row")
    most = np.ones(len(members))
    np.maximum.at(most, rows, time[jobs])
    x /= most[:, None]
    used = needed @ x / np.maximum(workers, 1)
    check("is given away more than once,", used - 1.0, "worker_type")
    return x / np.maximum(used, 1.0)


def _called(problem: Problem, jobs: Sequence[int]) -> str:
    """What messages call a job, or two that share workers."""
    names = problem.names
    are_positions = names == list(range(len(names)))
    return " with ".join(f"the job at position {job}" if are_positions else f"job {names[job]!r}" for job in jobs)
