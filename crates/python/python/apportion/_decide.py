"""One decision: throughputs in, shares of time and their proof out."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._errors import InputError
from ._native import Decision, Problem

__all__ = ["Explanation", "JobExplanation", "Policy", "Session", "WorkerTypeExplanation", "allocate", "explain", "problem", "read_problem"]

Floats = NDArray[np.float64]
#: A policy that is a function: what it gets is the problem, what it gives are shares, [jobs × worker types], or a mapping of
#: positions of jobs, or pairs of positions, to the shares of that job or pair, `[worker types]`.
PolicyFunction = Callable[[Problem], Any]


class Policy:
    """A policy by its name, the path of its file, or the text of its document, and what it is asked beyond that.

    A text is told from a name by having more than one line. `backend`, `strategy` and `time_limit` (in s) are for policies
    that are programs, `refine` chooses among several optima (`utilization`, `water_filling`, `interior`, `none`), `semantics` is
    `corrected` or `gavel`, and `seed` is that of rules that draw.

    >>> Policy("max_min_fairness_perf").name
    'max_min_fairness_perf'
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        backend: str | None = None,
        refine: str | None = None,
        strategy: str | None = None,
        semantics: str = "corrected",
        seed: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self._text = os.fspath(name)
        self._is_text = "\n" in self._text
        self._asked: dict[str, Any] = {
            "backend": backend,
            "refine": refine,
            "strategy": strategy,
            "semantics": semantics,
            "seed": seed,
            "time_limit": time_limit,
        }
        self._native = _native.Policy(self._text, self._is_text, self._asked)

    @property
    def name(self) -> str:
        """The name in its document."""
        return self._native.name

    def allocate(self, problem: Problem, *, fresh: bool = True) -> Decision:
        """Decides on a problem. Some rules remember what they gave: they do here, too, if not `fresh`."""
        return self._native.allocate(problem, fresh)

    def explain(self, problem: Problem) -> Explanation:
        """Says why each job gets what it gets."""
        decision, tree = self._native.explain(problem)
        return Explanation._of(problem, decision, tree)

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


AnyPolicy = Union[str, "os.PathLike[str]", Policy, PolicyFunction]


@lru_cache(maxsize=64)
def _named(name: str, backend: str | None) -> Policy:
    return Policy(name, backend=backend)


def _native_policy(policy: AnyPolicy, backend: str | None = None) -> _native.Policy:
    if isinstance(policy, (str, os.PathLike)):
        name = os.fspath(policy)
        # A file may change between two calls.
        built = Policy(name, backend=backend) if os.path.exists(name) else _named(name, backend)
        return built._native
    if backend is not None:
        raise InputError("backend is for a policy by name", help="Policy(…, backend=…) has one of its own")
    if isinstance(policy, Policy):
        return policy._native
    if callable(policy):
        return _native.Policy.of_function(_name_of(policy), policy)
    raise TypeError(f"a policy is a name, a path, a Policy or a function, not {type(policy).__name__}")


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "policy_name", None) or getattr(function, "__name__", None)
    return str(name or type(function).__name__)


def problem(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]],
    workers: Mapping[str, int],
    *,
    scale_factor: Any = None,
    weight: Any = None,
    steps_remaining: Any = None,
    elapsed: Any = None,
    isolated_elapsed: Any = None,
    slo_remaining: Any = None,
    owner: Any = None,
    owners: Mapping[str, Mapping[str, Any]] | None = None,
    prices: Mapping[str, float] | None = None,
    pairs: Mapping[tuple[Any, Any], ArrayLike] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    names: Sequence[int | str] | None = None,
) -> Problem:
    """One decision's input.

    `throughputs` are the steps/s of each job alone, [jobs × worker types], in the order of `workers`; 0 where it cannot run.
    Or a mapping of jobs to mappings of worker types to steps/s, as Gavel has it: the jobs are then called by its keys, and all
    that is said of jobs may be a mapping of them, too.

    What is said of jobs is `[jobs]`, or one value for all: `scale_factor` (workers at once), `weight`, `steps_remaining`,
    `elapsed` (s since arrival), `isolated_elapsed` (s), `slo_remaining` (s to the deadline, NaN = none), `owner` (a name or
    None). `owners` are `{name: {"weight": 1, "inner": "fairness" | "fifo", "parent": name}}`, parents first; owners that are not
    listed have weight 1. `prices` are $/h of a worker. `pairs` says how fast two jobs are on shared workers: their positions, or
    names, to [worker types × 2] steps/s. `extra` are columns that policy files may name.
    """
    kinds = list(workers)
    if isinstance(throughputs, Mapping):
        names = list(throughputs) if names is None else names
        rows = np.array([[row.get(kind, 0.0) for kind in kinds] for row in throughputs.values()], dtype=np.float64)
        rows = rows.reshape(len(throughputs), len(kinds))
        for job, row in throughputs.items():
            if unknown := set(row) - set(kinds):
                raise InputError(f"job {job!r}: unknown worker type {min(unknown)!r}, expected one of {', '.join(kinds)}")
    else:
        rows = np.ascontiguousarray(throughputs, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(kinds):
        raise InputError(f"throughputs have shape {rows.shape}, expected (jobs, {len(kinds)}): a column for each of {', '.join(kinds)}")
    n = rows.shape[0]
    if names is not None and len(names) != n:
        raise InputError(f"{len(names)} names for {n} jobs")

    def column(what: str, value: Any, kind: Any) -> NDArray[Any] | None:
        if value is None:
            return None
        if isinstance(value, Mapping):
            if names is None:
                raise InputError(f"{what} is a mapping, but the jobs have no names", help="give names=…, or an array")
            if missing := [name for name in names if name not in value]:
                raise InputError(f"{what} has nothing for job {missing[0]!r}")
            value = [value[name] for name in names]
        array = np.asarray(value)
        if kind is np.int64 and array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
            raise InputError(f"{what} has values that are not whole numbers")
        array = np.ascontiguousarray(np.broadcast_to(array, (n,)) if array.ndim == 0 else array, dtype=kind)
        if array.shape != (n,):
            raise InputError(f"{what} has shape {array.shape}, expected ({n},): a value for each job")
        return array

    def owner_column() -> list[str | None] | None:
        if owner is None:
            return None
        values = [owner[name] for name in names or range(n)] if isinstance(owner, Mapping) else list(owner)
        if len(values) != n:
            raise InputError(f"{len(values)} owners for {n} jobs")
        return [None if value is None else str(value) for value in values]

    of_jobs = owner_column()
    listed = [
        (name, float(of.get("weight", 1.0)), str(of.get("inner", "fairness")), of.get("parent"))
        for name, of in (owners or {}).items()
    ]
    known = {name for name, *_ in listed}
    listed += [(name, 1.0, "fairness", None) for name in dict.fromkeys(of_jobs or []) if name is not None and name not in known]
    if prices is not None and (unknown := set(prices) - set(kinds)):
        raise InputError(f"prices: unknown worker type {min(unknown)!r}, expected one of {', '.join(kinds)}")
    position = {name: place for place, name in enumerate(names)} if names is not None else None
    given = []
    for (one, other), speeds in (pairs or {}).items():
        array = np.ascontiguousarray(speeds, dtype=np.float64)
        if array.shape != (len(kinds), 2):
            raise InputError(f"pair ({one!r}, {other!r}) has shape {array.shape}, expected ({len(kinds)}, 2): worker types × jobs")
        try:
            places = (position[one], position[other]) if position is not None else (int(one), int(other))
        except KeyError as error:
            raise InputError(f"pairs: there is no job {error.args[0]!r}") from None
        given.append((*places, array))
    columns = {
        "scale_factor": column("scale_factor", scale_factor, np.int64),
        "weight": column("weight", weight, np.float64),
        "steps_remaining": column("steps_remaining", steps_remaining, np.float64),
        "elapsed": column("elapsed", elapsed, np.float64),
        "isolated_elapsed": column("isolated_elapsed", isolated_elapsed, np.float64),
        "slo_remaining": column("slo_remaining", slo_remaining, np.float64),
        "owner": of_jobs,
        "names": None if names is None else [name if isinstance(name, (int, str)) else str(name) for name in names],
    }
    more: dict[str, list[float]] = {}
    for name, values in (extra or {}).items():
        of_extra = column(name, values, np.float64)
        more[name] = [] if of_extra is None else of_extra.tolist()
    return Problem(
        kinds,
        [_whole(kind, workers[kind]) for kind in kinds],
        rows,
        columns,
        prices=[None if prices is None or kind not in prices else float(prices[kind]) for kind in kinds],
        owners=listed,
        pairs=given,
        extra=more,
    )


def _whole(kind: str, count: Any) -> int:
    """A number of workers."""
    whole = int(count)
    if whole != count or not 0 <= whole < 2**32:
        raise InputError(f"{count} workers of {kind!r}, expected a whole number, at least 0")
    return whole


def read_problem(snapshot: str | os.PathLike[str], *, throughputs: str | os.PathLike[str] = "osdi20") -> Problem:
    """The problem that a snapshot states: the path of a document, YAML or JSON, or its text, which has more than one line.

    Jobs without throughputs of their own are looked up in `throughputs` by job type: a shipped name, or a path.
    """
    text = os.fspath(snapshot)
    return Problem.read(text, "\n" in text, os.fspath(throughputs))


def allocate(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]] | Problem,
    workers: Mapping[str, int] | None = None,
    policy: AnyPolicy = "max_min_fairness_perf",
    *,
    backend: str | None = None,
    **jobs: Any,
) -> Decision:
    """Decides the shares of time that each job gets on each worker type.

    `policy` is a name (`apportion.policies()`), the path of a policy file, a `Policy`, or a function that takes a `Problem`.
    `throughputs`, `workers` and what is said of jobs are as for `problem`; in their place a `Problem` will do.

    >>> d = allocate([[4.0, 1.0], [4.0, 2.0]], {"v100": 1, "k80": 1})
    >>> d.shares.round(3).tolist(), d.certificate.optimal
    ([[0.6, 0.4], [0.4, 0.6]], True)
    """
    stated = _problem(throughputs, workers, jobs)
    return _native_policy(policy, backend).allocate(stated, True)


def explain(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]] | Problem,
    workers: Mapping[str, int] | None = None,
    policy: AnyPolicy = "max_min_fairness_perf",
    *,
    backend: str | None = None,
    **jobs: Any,
) -> Explanation:
    """Says why each job gets what it gets; arguments are those of `allocate`."""
    stated = _problem(throughputs, workers, jobs)
    decision, tree = _native_policy(policy, backend).explain(stated)
    return Explanation._of(stated, decision, tree)


def _problem(throughputs: Any, workers: Mapping[str, int] | None, jobs: dict[str, Any]) -> Problem:
    if isinstance(throughputs, Problem):
        if workers is not None or jobs:
            raise InputError("a Problem says all there is: leave out workers, and what is said of jobs")
        return throughputs
    if workers is None:
        raise InputError("no workers are given", help='such as {"v100": 36, "p100": 36, "k80": 36}')
    return problem(throughputs, workers, **jobs)


@dataclass(frozen=True)
class WorkerTypeExplanation:
    """A worker type's use and price."""

    name: str
    #: Workers in use, summed over shares.
    workers_used: float
    #: Workers there are.
    workers: float
    #: Are all of them given away, to a tolerance?
    binds: bool
    #: Change of the objective if there were one worker more; None without a program, or where its prices are not known.
    one_more: float | None


@dataclass(frozen=True)
class JobExplanation:
    """What holds one job where it is."""

    name: int | str
    #: Its share of time, over all worker types and partners.
    time: float
    #: `constraint`, `bottleneck`, `time`, `capacity`, `discount`, `free`, or `unexplained`.
    binds: str
    #: Has its demand for throughput a price?
    sets_objective: bool
    #: The policy's own constraints that hold its share, as their file has them.
    held_by: tuple[str, ...]
    #: Change of the objective per step/s that is asked of the job.
    throughput_price: float | None
    #: Change of the objective per unit of time the job had beyond all of it.
    time_price: float | None
    #: The level at which water filling fixed it, if it did, and at which step, from 1.
    level: float | None
    level_step: int | None
    #: Change of that level if there were one worker more of a type.
    level_one_more: Mapping[str, float] | None


@dataclass(frozen=True)
class Explanation:
    """Why jobs get their shares. Indexed by a job's name or position, it gives what holds that job."""

    decision: Decision
    #: How the optimum was found and why so; a rule's summary for rules.
    reason: str
    #: Why no price is given, where a program was solved and its prices are not known.
    prices_unknown: str | None
    worker_types: tuple[WorkerTypeExplanation, ...]
    jobs: tuple[JobExplanation, ...]
    #: The policy's own constraints: `text`, `subject`, and for each of their rows `price`, `slack`, `binds`, `exceeded`, `dropped`.
    constraints: tuple[Mapping[str, Any], ...]
    #: The program as CPLEX LP and free MPS text, where one was written and has only linear rows.
    lp: str | None = field(repr=False)
    mps: str | None = field(repr=False)

    def __getitem__(self, job: Hashable) -> JobExplanation:
        for of in self.jobs:
            if of.name == job:
                return of
        if isinstance(job, int) and 0 <= job < len(self.jobs):
            return self.jobs[job]
        raise KeyError(job)

    @classmethod
    def _of(cls, problem: Problem, decision: Decision, tree: dict[str, Any]) -> Explanation:
        kinds = problem.worker_types
        texts = [constraint["text"] for constraint in tree["constraints"]]

        def job(name: int | str, of: dict[str, Any]) -> JobExplanation:
            more = of["level_one_more"]
            return JobExplanation(
                name=name,
                time=of["time"],
                binds=of["binding"],
                sets_objective=of["sets_objective"],
                held_by=tuple(texts[position] for position in of["held_by_constraints"]),
                throughput_price=of["throughput_price"],
                time_price=of["time_price"],
                level=of["level"],
                level_step=of["level_step"],
                level_one_more=None if more is None else dict(zip(kinds, more)),
            )

        return cls(
            decision=decision,
            reason=tree["reason"],
            prices_unknown=tree["prices_unknown"],
            worker_types=tuple(WorkerTypeExplanation(name=kind, **of) for kind, of in zip(kinds, tree["worker_types"])),
            jobs=tuple(job(name, of) for name, of in zip(problem.names, tree["jobs"])),
            constraints=tuple(tree["constraints"]),
            lp=tree["lp"],
            mps=tree["mps"],
        )


class Session:
    """A policy and a cluster that jobs come to and go from; each decision starts from what the last one found.

    >>> session = Session({"v100": 1, "k80": 1})
    >>> session.add("a", throughput=[4.0, 1.0])
    >>> session.add("b", throughput=[4.0, 2.0])
    >>> decided = session.decide()
    >>> round(float(decided.share("b")[0]), 3)
    0.4
    """

    def __init__(
        self, workers: Mapping[str, int], policy: str | os.PathLike[str] | Policy = "max_min_fairness_perf", *, prices: Mapping[str, float] | None = None
    ) -> None:
        asked = policy if isinstance(policy, Policy) else Policy(policy)
        self._kinds = list(workers)
        empty = problem(np.empty((0, len(self._kinds))), workers, prices=prices)
        self._native = _native.Session(empty, asked._text, asked._is_text, asked._asked)
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[int, Hashable] = {}
        self._known: dict[Hashable, dict[str, Any]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def add(
        self,
        name: Hashable,
        throughput: ArrayLike | Mapping[str, float],
        *,
        scale_factor: int = 1,
        weight: float = 1.0,
        steps_remaining: float = 0.0,
        elapsed: float = 0.0,
        slo_remaining: float | None = None,
    ) -> None:
        """A job comes, with its steps/s alone on each worker type: an array, or a mapping of worker types."""
        if name in self._numbers:
            raise InputError(f"job {name!r} is there already")
        if isinstance(throughput, Mapping):
            if unknown := set(throughput) - set(self._kinds):
                raise InputError(f"unknown worker type {min(unknown)!r}, expected one of {', '.join(self._kinds)}")
            throughput = [throughput.get(kind, 0.0) for kind in self._kinds]
        known = {
            "scale_factor": scale_factor,
            "weight": weight,
            "steps_remaining": steps_remaining,
            "elapsed": elapsed,
            "slo_remaining": slo_remaining,
        }
        self._native.add(self._next, np.ascontiguousarray(throughput, dtype=np.float64), known)
        self._numbers[name], self._names[self._next], self._known[name] = self._next, name, known
        self._next += 1

    def update(self, name: Hashable, **known: Any) -> None:
        """Something of a job changes: `scale_factor`, `weight`, `steps_remaining`, `elapsed` or `slo_remaining`."""
        number = self._number(name)
        if unknown := set(known) - set(self._known[name]):
            raise TypeError(f"unknown field {min(unknown)!r}, expected one of {', '.join(self._known[name])}")
        changed = self._known[name] | known
        self._native.update(number, changed)
        self._known[name] = changed

    def remove(self, name: Hashable) -> None:
        """A job goes."""
        number = self._number(name)
        self._native.remove(number)
        del self._numbers[name], self._names[number], self._known[name]

    def decide(self) -> SessionDecision:
        """Decides on the jobs as they are."""
        decision, numbers = self._native.decide()
        return SessionDecision(decision, [self._names[number] for number in numbers.tolist()])

    def _number(self, name: Hashable) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise InputError(f"there is no job {name!r}") from None


class SessionDecision:
    """A decision on named jobs: the `decision`, and the `names` of the jobs in its rows."""

    def __init__(self, decision: Decision, names: list[Hashable]) -> None:
        self.decision = decision
        self.names = names
        self._row = {name: row for row, name in enumerate(names)}

    @property
    def shares(self) -> Floats:
        """Shares of time, [jobs × worker types], in the order of `names`."""
        return self.decision.shares

    @property
    def certificate(self) -> _native.Certificate | None:
        """The proof of the objective."""
        return self.decision.certificate

    def share(self, name: Hashable) -> Floats:
        """The shares of one job: `[worker types]`."""
        if name not in self._row:
            raise InputError(f"there is no job {name!r}")
        row: Floats = self.decision.shares[self._row[name]]
        return row
