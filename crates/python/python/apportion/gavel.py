"""Policy objects of Gavel's Python, run as policies of ours."""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Iterable, Mapping
from functools import total_ordering
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._answers import row_of
from ._columns import Floats, short
from ._errors import AllocationError, InputError, PolicyError
from ._fit import _called, checked_tolerance, into_polytope
from ._native import Problem
from ._policy import _name_of
from ._versions import version_of

__all__ = ["Adapted", "JobId", "adapt"]

#: What a `get_allocation` may ask for by name, with or without `unflattened_` before it.
ARGUMENTS = (
    "throughputs",
    "scale_factors",
    "priority_weights",
    "times_since_start",
    "num_steps_remaining",
    "cluster_spec",
    "instance_costs",
    "SLOs",
    "entity_to_job_mapping",
)


@total_ordering
class JobId:
    """One job, or two that share workers, as Gavel's policies know them: equal to its `JobIdPair`, hashed and ordered like it."""

    # `_job0`, `_job1` and `_as_set` are what a `JobIdPair` reads of another.
    __slots__ = ("_job0", "_job1")

    def __init__(self, job: int, other: int | None = None) -> None:
        self._job0 = job if other is None else min(job, other)
        self._job1 = None if other is None else max(job, other)

    def __getitem__(self, place: int) -> int | None:
        return self.as_tuple()[place]

    def is_pair(self) -> bool:
        """Are these two jobs?"""
        return self._job1 is not None

    def singletons(self) -> tuple[JobId, ...]:
        """The jobs, each alone."""
        return (self,) if self._job1 is None else (JobId(self._job0), JobId(self._job1))

    def as_tuple(self) -> tuple[int, int | None]:
        """Both numbers, the smaller first; None for no second."""
        return self._job0, self._job1

    def as_set(self) -> set[int | None]:
        """The same as a set."""
        return set(self.as_tuple())

    @property
    def _as_set(self) -> set[int | None]:
        return self.as_set()

    def overlaps_with(self, other: Any) -> bool:
        """Is this one job a part of the other?"""
        return self._job0 in other.as_tuple()

    def __eq__(self, other: object) -> bool:
        as_tuple = getattr(other, "as_tuple", None)
        return as_tuple is not None and bool(self.as_tuple() == as_tuple())

    def __lt__(self, other: Any) -> bool:
        one, second = other.as_tuple()
        return (self.is_pair(), self._job0, self._job1 or 0) < (second is not None, one, second or 0)

    def __hash__(self) -> int:
        return hash(self._job0 if self._job1 is None else self._job0 + self._job1**2)

    def __int__(self) -> int:
        return self._job0

    def __repr__(self) -> str:
        return str(self._job0) if self._job1 is None else f"({self._job0}, {self._job1})"


def adapt(policy: Any, *, tolerance: float = 1e-4, **given: Any) -> Adapted:
    """A policy of ours that asks `policy.get_allocation(…)` of Gavel's, with the arguments that it names.

    It may ask for `throughputs` (of jobs, and of pairs where the policy packs), `scale_factors`, `priority_weights`,
    `times_since_start`, `num_steps_remaining`, `cluster_spec`, `instance_costs`, `SLOs` (s to the deadline) and `entity_to_job_mapping`,
    all with or without `unflattened_` before the name. Other arguments are `given` here, such as `entity_weights={"research": 2}`.

    In a simulation, jobs have the same numbers from call to call, so policies that remember jobs work; each simulation, each run of a
    sweep and each `allocate` begins with a copy of the policy as it is when it is adapted.

    Shares where a job cannot run are left out, as Gavel's scheduler passes them over. Shares that exceed a job's time or a type's workers
    by no more than `tolerance` are scaled down. Beyond it they are an error; `tolerance=math.inf` scales down whatever comes, for rules
    like Gavel's `fifo` and `proportional`, which give workers away more than once.

    What the policy's own code raises is a `PolicyError` that says so, with the exception as its cause; an answer that is no shares is
    an `InputError`.
    """
    return Adapted(policy, tolerance, given)


class Adapted:
    """A policy object of Gavel's as a function of a `Problem`."""

    def __init__(self, policy: Any, tolerance: float, given: Mapping[str, Any]) -> None:
        if inspect.isclass(policy):
            raise InputError(f"{policy.__name__} is a class, expected an object of it", help=f"gavel.adapt({policy.__name__}(…))")
        get_allocation = getattr(policy, "get_allocation", None)
        if not callable(get_allocation):
            raise InputError(f"{type(policy).__name__} has no get_allocation")
        self._policy = policy
        self._tolerance = checked_tolerance(tolerance)
        self._given = dict(given)
        self._wanted = _wanted(get_allocation, self._given)
        #: Numbers of jobs that are not called by numbers, in the order in which they came.
        self._numbers: dict[int | str, int] = {}
        name = getattr(policy, "name", None)
        #: The name that it has in results.
        self.policy_name = str(name or _name_of(policy))
        #: Does it pack jobs onto shared workers?
        self.policy_pairs = "Packing" in str(name) or any(base.__name__ == "PolicyWithPacking" for base in type(policy).__mro__)
        #: What Gavel's scheduler reads from a policy's name: types are filled in random order for a policy that does not look at their
        #: speed, and workers that a queue leaves idle stay so.
        self.policy_rules = {
            "shuffled": name is not None and "Perf" not in str(name) and not self.policy_pairs,
            "skip_zero_priority": str(name).startswith("FIFO"),
        }
        #: What its results are kept under; None where its text or its state cannot be read.
        self.policy_version = version_of((policy, tolerance, sorted(self._given.items())))

    def policy_fresh(self) -> Adapted:
        """The same as it was before it decided anything: what each run begins with."""
        fresh = copy.copy(self)
        fresh._numbers = {}
        try:
            fresh._policy = copy.deepcopy(self._policy)
        except Exception as error:
            raise InputError(f"policy `{self.policy_name}` cannot be copied, as each run needs it: {error}") from error
        return fresh

    def __call__(self, problem: Problem) -> Any:
        names = problem.names
        if not all(isinstance(name, int) for name in names):
            names = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        numbers = [int(name) for name in names]
        arguments = self._arguments(problem, numbers)
        wanted = {name: arguments[known] for name, known in self._wanted.items()}
        try:
            answer = self._policy.get_allocation(**wanted, **self._given)
        except Exception as error:
            raise _of_its_own(self.policy_name, self._policy, error) from error
        if isinstance(answer, tuple) and answer:
            answer = answer[0]  # what is beside the allocation, such as discounts
        if not isinstance(answer, Mapping):
            said = short(answer) if answer is None or answer == () else f"an object of {type(answer).__name__}"
            raise InputError(
                f"policy `{self.policy_name}`: get_allocation gave {said}, expected shares by job and worker type",
                help='such as {job: {"v100": 0.5, "k80": 0.25}}, of jobs that throughputs have',
            )
        return self._shares(problem, numbers, answer)

    def _arguments(self, problem: Problem, numbers: list[int]) -> dict[str, Any]:
        """What Gavel's scheduler says of the jobs and the cluster."""
        kinds, jobs = problem.worker_types, [JobId(number) for number in numbers]
        throughputs = {job: dict(zip(kinds, row)) for job, row in zip(jobs, problem.throughputs.tolist())}
        if self.policy_pairs:
            throughputs |= self._pairs(problem, numbers)

        def by_job(values: Any) -> dict[JobId, Any]:
            return dict(zip(jobs, values.tolist()))

        owned: dict[str, list[JobId]] = {}
        for job, owner in zip(jobs, problem.owner):
            if owner is not None:
                owned.setdefault(owner, []).append(job)
        arguments: dict[str, Any] = {
            "throughputs": throughputs,
            "scale_factors": by_job(problem.scale_factor),
            "priority_weights": by_job(problem.weight),
            "times_since_start": by_job(problem.elapsed),
            "num_steps_remaining": by_job(problem.steps_remaining),
            "cluster_spec": dict(zip(kinds, problem.workers.tolist())),
            "SLOs": {job: left for job, left in by_job(problem.slo_remaining).items() if not np.isnan(left)},
            "entity_to_job_mapping": owned or None,
        }
        if "instance_costs" in self._wanted.values():
            if problem.prices is None:
                raise InputError(f"policy `{self.policy_name}` needs prices", help='such as prices={"v100": 2.48, "p100": 1.46, "k80": 0.45}')
            arguments["instance_costs"] = dict(zip(kinds, problem.prices.tolist()))
        return arguments

    def _pairs(self, problem: Problem, numbers: list[int]) -> dict[JobId, Any]:
        """Throughputs of all pairs: Gavel's programs count on a row for each, also of two that cannot run together."""
        kinds = problem.worker_types
        pairs: dict[JobId, Any] = {
            JobId(one, other): {kind: [0.0, 0.0] for kind in kinds} for place, one in enumerate(numbers) for other in numbers[place + 1 :]
        }
        positions, speeds = problem.pairs()
        for (one, other), of_pair in zip(positions.tolist(), speeds.tolist()):
            in_order = of_pair if numbers[one] < numbers[other] else [both[::-1] for both in of_pair]
            pairs[JobId(numbers[one], numbers[other])] = dict(zip(kinds, in_order))
        return pairs

    def _shares(self, problem: Problem, numbers: list[int], answer: Mapping[Any, Any]) -> Any:
        """The answer: an array of jobs alone, or a mapping of the problem's names where there are pairs."""
        kinds, position = problem.worker_types, {number: place for place, number in enumerate(numbers)}
        members: list[tuple[int, ...]] = [(job,) for job in range(len(numbers))]
        rows: list[Any] = [[0.0] * len(kinds) for _ in numbers]
        said: set[frozenset[int]] = set()
        for job, shares in answer.items():
            places = self._places(job, position)
            called = _called(problem, places)
            if (of := frozenset(places)) in said:
                raise InputError(f"policy `{self.policy_name}` gave shares to {called} twice")
            said.add(of)
            row = row_of(shares, kinds, f"policy `{self.policy_name}`", called)
            if len(places) == 1:
                rows[places[0]] = row
            elif row.any():
                members.append(places)
                rows.append(row)
        x = self._fitted(problem, members, np.array(rows).reshape(len(rows), len(kinds)))
        if len(members) == len(numbers):
            return x
        names = problem.names
        combinations = [tuple(names[place] for place in of) for of in members]
        return {of if len(of) > 1 else of[0]: row for of, row in zip(combinations, x)}

    def _places(self, job: Any, position: Mapping[int, int]) -> tuple[int, ...]:
        """The positions of the job, or of the two jobs, that a key of an answer calls."""
        as_tuple = getattr(job, "as_tuple", None)
        parts = as_tuple() if callable(as_tuple) else (job,)
        known = [part for part in parts if part is not None] if isinstance(parts, Iterable) else [job]
        are_numbers = all(isinstance(part, (int, np.integer)) and not isinstance(part, bool) for part in known)
        if not are_numbers or not 1 <= len(set(known)) == len(known) <= 2:
            message = f"policy `{self.policy_name}` gave shares to {short(job)}, expected a job of throughputs, or its number"
            raise InputError(message)
        if gone := [part for part in known if part not in position]:
            of = f"{short(job)}, but job {gone[0]} is not active" if len(known) > 1 else f"job {gone[0]}, which is not active"
            raise InputError(f"policy `{self.policy_name}` gave shares to {of}", help="throughputs have the jobs that are")
        return tuple(position[int(part)] for part in known)

    def _fitted(self, problem: Problem, members: list[tuple[int, ...]], shares: Floats) -> Floats:
        """The shares inside the allocation polytope; where they are too far outside, the error names the policy."""
        try:
            return into_polytope(problem, members, shares, self._tolerance, drops=True)
        except AllocationError as error:
            known = {"row": error.row, "worker_type": error.worker_type, "excess": error.excess}
            raise AllocationError(f"policy `{self.policy_name}`: {error.args[0]}", help=error.help, **known) from None

    def __repr__(self) -> str:
        return f"<{self.policy_name} of Gavel's>"


#: What Gavel's own policies are known to raise: the class, what the `TypeError` says of, and what helps.
_KNOWN_TO_RAISE = (
    (
        "MaxMinFairnessPolicyWithPacking",
        "0-dimensional",
        "it asks for float() of an array of one number, which numpy refuses from 2.4 on: an older numpy runs it,"
        " and `max_min_fairness_packed` is the same policy here",
    ),
    (
        "MaxMinFairnessStrategyProofPolicyWithPerf",
        "NoneType",
        "it does not run with one job alone: `max_min_fairness_strategy_proof` is the same policy here",
    ),
)


def _of_its_own(name: str, policy: Any, error: Exception) -> PolicyError:
    """What an adapted policy's own code raised, which is no fault of what it was asked with."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = f"policy `{name}`: its own code raised {type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
    gavels = {base.__name__ for base in type(policy).__mro__ if "policies" in base.__module__.split(".")}
    helps = [help for known, word, help in _KNOWN_TO_RAISE if known in gavels and isinstance(error, TypeError) and word in str(error)]
    return PolicyError(message, help=helps[0] if helps else None)


def _wanted(get_allocation: Any, given: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of a `get_allocation` that are ours to say, each with what it is."""
    wanted: dict[str, str] = {}
    try:
        parameters = inspect.signature(get_allocation).parameters
    except (TypeError, ValueError):
        raise InputError(f"get_allocation is {short(get_allocation)}, whose arguments cannot be read", help="a method of Python's has them") from None
    if by_place := [name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.POSITIONAL_ONLY]:
        raise InputError(f"get_allocation takes {by_place[0]!r} by its position only, expected arguments by name")
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    if not takes_all and (unknown := set(given) - set(parameters)):
        raise InputError(f"get_allocation has no {min(unknown)!r}, expected one of {', '.join(parameters)}")
    for name, parameter in parameters.items():
        plain = name.removeprefix("unflattened_")
        if name in given or parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            continue
        if plain in ARGUMENTS:
            wanted[name] = plain
        elif parameter.default is inspect.Parameter.empty:
            known = ", ".join(ARGUMENTS)
            raise InputError(f"get_allocation wants {name!r}, expected only {known}", help=f"gavel.adapt(…, {name}=…) gives it")
    return wanted
