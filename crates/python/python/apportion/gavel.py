"""Policy objects of Gavel's Python, run as policies of ours."""

from __future__ import annotations

import inspect
from functools import total_ordering
from typing import Any

import numpy as np

from ._decide import _name_of
from ._errors import InputError
from ._fit import fit
from ._native import Problem

__all__ = ["JobId", "adapt"]


@total_ordering
class JobId:
    """One job, or two that share workers, as Gavel's policies know them: ordered, hashed and taken apart like its `JobIdPair`."""

    __slots__ = ("_jobs",)

    def __init__(self, job: int, other: int | None = None) -> None:
        self._jobs: tuple[int, int | None] = (job, None) if other is None else (min(job, other), max(job, other))

    def __getitem__(self, place: int) -> int | None:
        return self._jobs[place]

    def is_pair(self) -> bool:
        """Are these two jobs?"""
        return self._jobs[1] is not None

    def singletons(self) -> tuple[JobId, ...]:
        """The jobs, each alone."""
        return tuple(JobId(job) for job in self._jobs if job is not None)

    def as_tuple(self) -> tuple[int, int | None]:
        """Both numbers; None for no second."""
        return self._jobs

    def as_set(self) -> set[int | None]:
        """The same as a set."""
        return set(self._jobs)

    def overlaps_with(self, other: JobId) -> bool:
        """Is this one job a part of the other?"""
        return self._jobs[0] in other._jobs

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JobId):
            return self._jobs == other._jobs
        as_tuple = getattr(other, "as_tuple", None)
        return as_tuple is not None and bool(self._jobs == as_tuple())

    def __lt__(self, other: JobId) -> bool:
        (one, second), (its, its_second) = self._jobs, other.as_tuple()
        if (second is None) != (its_second is None):
            return second is None
        return (one, second or 0) < (its, its_second or 0)

    def __hash__(self) -> int:
        one, other = self._jobs
        if other is None:
            return one
        return one * one + one + other if one > other else one + other * other

    def __int__(self) -> int:
        return self._jobs[0]

    def __repr__(self) -> str:
        one, other = self._jobs
        return str(one) if other is None else f"({one}, {other})"


def adapt(policy: Any, *, tolerance: float = 1e-4) -> Adapted:
    """A policy of ours that asks `policy.get_allocation(…)` of Gavel's, with the arguments that it names.

    Known arguments: throughputs (of single jobs, and of pairs where the class packs), `scale_factors`, `priority_weights`,
    `times_since_start`, `num_steps_remaining`, `cluster_spec`, `instance_costs`, `SLOs`. Shares that a solver left outside the allocation
    polytope by no more than `tolerance` are brought into it; further outside is an error, where Gavel would go on.
    """
    return Adapted(policy, tolerance)


class Adapted:
    """A policy object of Gavel's as a function of a `Problem`."""

    def __init__(self, policy: Any, tolerance: float) -> None:
        get_allocation = getattr(policy, "get_allocation", None)
        if get_allocation is None:
            raise InputError(f"{type(policy).__name__} has no get_allocation")
        self._policy = policy
        self._tolerance = tolerance
        self._wanted = _wanted(get_allocation)
        #: Does it pack jobs onto shared workers?
        self.policy_pairs = any(base.__name__ == "PolicyWithPacking" for base in type(policy).__mro__)
        #: The name that it has in results.
        self.policy_name = str(getattr(policy, "name", None) or _name_of(policy))
        #: What its results are kept under.
        self.policy_version = f"{type(policy).__module__}.{type(policy).__qualname__} {_source(type(policy))}"

    def __call__(self, problem: Problem) -> Any:
        kinds = problem.worker_types
        jobs = [JobId(number) for number in range(problem.n_jobs)]
        alone = problem.throughputs
        throughputs: dict[JobId, dict[str, Any]] = {
            job: dict(zip(kinds, row)) for job, row in zip(jobs, alone.tolist())
        }
        if self.policy_pairs:
            positions, speeds = problem.pairs()
            for (one, other), of_pair in zip(positions.tolist(), speeds.tolist()):
                throughputs[JobId(one, other)] = {kind: list(both) for kind, both in zip(kinds, of_pair)}
            known = {(one, other) for one, other in positions.tolist()}
            for one in range(problem.n_jobs):
                for other in range(one + 1, problem.n_jobs):
                    if (one, other) not in known:
                        throughputs[JobId(one, other)] = {kind: [0.0, 0.0] for kind in kinds}
        per_job = {
            "scale_factors": problem.scale_factor,
            "priority_weights": problem.weight,
            "times_since_start": problem.elapsed,
            "num_steps_remaining": problem.steps_remaining,
        }
        given: dict[str, Any] = {name: dict(zip(jobs, values.tolist())) for name, values in per_job.items()}
        given["throughputs"] = throughputs
        given["cluster_spec"] = dict(zip(kinds, problem.workers.tolist()))
        if "instance_costs" in self._wanted.values():
            if problem.prices is None:
                raise InputError(f"{self.policy_name} needs prices", help="such as prices={'v100': 2.48, …}")
            given["instance_costs"] = dict(zip(kinds, problem.prices.tolist()))
        slos = problem.slo_remaining
        given["SLOs"] = {job: slo for job, slo in zip(jobs, slos.tolist()) if not np.isnan(slo)}
        answer = self._policy.get_allocation(**{name: given[known] for name, known in self._wanted.items()})
        return self._shares(problem, answer or {})

    def _shares(self, problem: Problem, answer: dict[Any, dict[str, float]]) -> Any:
        kinds = problem.worker_types
        alone = np.zeros((problem.n_jobs, len(kinds)))
        pairs: dict[tuple[int, int], list[float]] = {}
        for job, shares in answer.items():
            row = [float(shares[kind]) for kind in kinds]
            one, other = job.as_tuple() if hasattr(job, "as_tuple") else (int(job), None)
            if other is None:
                alone[one] = row
            elif max(row) > 0:
                pairs[(one, other)] = row
        if not pairs:
            return fit(problem, alone, tolerance=self._tolerance)
        return _fit_pairs(problem, alone, pairs, self._tolerance)


def _fit_pairs(problem: Problem, alone: Any, pairs: dict[tuple[int, int], list[float]], tolerance: float) -> dict[Any, Any]:
    """The same for shares of jobs and pairs: time and workers are scaled down together."""
    scale = problem.scale_factor.astype(np.float64)
    positions, speeds = problem.pairs()
    runs = {(one, other): of.min(axis=1) > 0 for (one, other), of in zip(map(tuple, positions.tolist()), speeds)}
    rows: dict[Any, Any] = {}
    for job in range(problem.n_jobs):
        can = (problem.throughputs[job] > 0) & (scale[job] <= problem.workers)
        rows[job] = np.where(can, np.maximum(alone[job], 0.0), 0.0)
    for pair, row in pairs.items():
        can = runs.get(pair, np.zeros(len(row), dtype=bool)) & (scale[pair[0]] <= problem.workers)
        rows[pair] = np.where(can, np.maximum(np.asarray(row), 0.0), 0.0)
    time = np.zeros(problem.n_jobs)
    used = np.zeros(len(problem.worker_types))
    for of, row in rows.items():
        members = of if isinstance(of, tuple) else (of,)
        for job in members:
            time[job] += row.sum()
        used += scale[members[0]] * row
    over = max(time.max(initial=0.0) - 1.0, (used / np.maximum(problem.workers, 1)).max(initial=0.0) - 1.0)
    if over > tolerance:
        from ._errors import AllocationError

        raise AllocationError(f"a job's time or a type's workers are exceeded by {over:.3g}, more than the tolerance of {tolerance:g}", excess=float(over))
    factor = 1.0 / max(1.0 + over, 1.0)
    return {of: row * factor for of, row in rows.items()}


def _wanted(get_allocation: Any) -> dict[str, str]:
    """The arguments of a `get_allocation`, each with what it is."""
    known = ("throughputs", "scale_factors", "priority_weights", "times_since_start", "num_steps_remaining", "cluster_spec", "instance_costs", "SLOs")
    wanted: dict[str, str] = {}
    for name, parameter in inspect.signature(get_allocation).parameters.items():
        plain = name.removeprefix("unflattened_")
        if plain in known:
            wanted[name] = plain
        elif parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            raise InputError(f"get_allocation wants {name!r}, expected only {', '.join(known)}")
    return wanted


def _source(of: type) -> str:
    try:
        return inspect.getsource(of)
    except (OSError, TypeError):
        return ""
