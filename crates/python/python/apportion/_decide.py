"""One decision: throughputs in, shares of time and their proof out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from inspect import isclass
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
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
            raise InputError(f"seed is {seed!r}, expected a whole number, at least 0")
        for what, value in {"backend": backend, "refine": refine, "strategy": strategy, "semantics": semantics}.items():
            if not isinstance(value, str) and (value is not None or what == "semantics"):
                raise InputError(f"{what} is {value!r}, expected a name")
        self._asked: dict[str, Any] = {
            "backend": backend,
            "refine": refine,
            "strategy": strategy,
            "semantics": semantics,
            "seed": int(seed),
            "time_limit": None if time_limit is None else _number("time_limit", time_limit),
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


def _native_policy(policy: AnyPolicy, stated: Problem, backend: str | None = None) -> _native.Policy:
    """A policy as the engine asks it, about a problem: a function is shown the problem as it was stated, with its names."""
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
        function = _fresh(policy)
        return _native.Policy.of_function(_name_of(policy), lambda _: function(stated))
    raise TypeError(f"a policy is a name, a path, a Policy or a function, not {type(policy).__name__}")


def _fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """A policy with memory as it is before any decision: what its attribute `policy_fresh` gives, if it has one."""
    if isclass(function):
        raise InputError(f"{function.__name__} is a class, expected a function of a problem", help="an object of it, if those are")
    make = getattr(function, "policy_fresh", None)
    fresh: Callable[..., Any] = function if make is None else make()
    return fresh


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "policy_name", None) or getattr(function, "__name__", None)
    # Characters that are no text, of names of files, are not for results.
    return str(name or type(function).__name__).encode("utf-8", "replace").decode("utf-8")


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
    that is said of jobs may be a mapping of them, too. Or a DataFrame with a column for each worker type, in any order.

    What is said of jobs is `[jobs]`, or one value for all: `scale_factor` (workers at once), `weight`, `steps_remaining`,
    `elapsed` (s since arrival), `isolated_elapsed` (s), `slo_remaining` (s to the deadline, NaN = none), `owner` (a name or
    None). `owners` are `{name: {"weight": 1, "inner": "fairness" | "fifo", "parent": name}}`, parents first; owners that are not
    listed have weight 1. `prices` are $/h of a worker. `pairs` says how fast two jobs are on shared workers: their positions, or
    names, to [worker types × 2] steps/s. `extra` are columns that policy files may name.
    """
    if not isinstance(workers, Mapping):
        raise InputError(f"workers are {workers!r}, expected a mapping", help='such as {"v100": 36, "p100": 36, "k80": 36}')
    kinds = list(workers)
    if wrong := [kind for kind in kinds if not isinstance(kind, str)]:
        raise InputError(f"worker type {wrong[0]!r} is not text")
    rows, known_as = _rows(throughputs, kinds)
    n = rows.shape[0]
    names = known_as if names is None else [_name(name) for name in names]
    if names is not None and len(names) != n:
        raise InputError(f"{len(names)} names for {n} jobs")
    if names is not None and (twice := [name for name, times in Counter(names).items() if times > 1]):
        raise InputError(f"two jobs are called {twice[0]!r}")

    def column(what: str, value: Any, kind: Any) -> NDArray[Any] | None:
        if value is None:
            return None
        if isinstance(value, Mapping):
            if names is None:
                raise InputError(f"{what} is a mapping, but the jobs have no names", help="give names=…, or an array")
            value = _of_each(what, value, names)
        elif names is not None and hasattr(value, "to_dict") and set(names) == set(getattr(value, "index", ())):
            value = _of_each(what, value.to_dict(), names)  # a pandas.Series by names
        array = _array(what, value, None)
        if kind is np.int64 and array.dtype.kind == "f" and not ((array == np.round(array)) & (np.abs(array) < 2**53)).all():
            raise InputError(f"{what} has values that are not whole numbers")
        array = _array(what, np.broadcast_to(array, (n,)) if array.ndim == 0 else array, kind)
        if array.shape != (n,):
            raise InputError(f"{what} has shape {array.shape}, expected ({n},): a value for each job")
        return array

    def owner_column() -> list[str | None] | None:
        if owner is None:
            return None
        if isinstance(owner, str) or not isinstance(owner, Iterable):
            values = [owner] * n
        else:
            values = _of_each("owner", owner, names if names is not None else range(n)) if isinstance(owner, Mapping) else list(owner)
        if len(values) != n:
            raise InputError(f"{len(values)} owners for {n} jobs")
        return [None if value is None or value != value else str(value) for value in values]

    of_jobs = owner_column()
    listed = [_owner(name, of) for name, of in _mapping("owners", owners).items()]
    known = {name for name, *_ in listed}
    listed += [(name, 1.0, "fairness", None) for name in dict.fromkeys(of_jobs or []) if name is not None and name not in known]
    if unknown := [kind for kind in _mapping("prices", prices) if kind not in kinds]:
        raise InputError(f"prices: unknown worker type {unknown[0]!r}, expected one of {', '.join(kinds)}")
    position = {name: place for place, name in enumerate(range(n) if names is None else names)}
    given: dict[tuple[int, int], NDArray[Any]] = {}
    for pair, speeds in _mapping("pairs", pairs).items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"pairs: {pair!r} is no pair of jobs")
        if unknown := [job for job in pair if job not in position]:
            raise InputError(f"pair {pair!r}: there is no job {unknown[0]!r}")
        array = _array(f"pair {pair!r}", speeds, np.float64)
        if array.shape != (len(kinds), 2):
            raise InputError(f"pair {pair!r} has shape {array.shape}, expected ({len(kinds)}, 2): worker types × jobs")
        one, other = position[pair[0]], position[pair[1]]
        if (other, one) in given:
            raise InputError(f"pair {pair!r} is given in both orders")
        given[one, other] = array
    columns = {
        "scale_factor": column("scale_factor", scale_factor, np.int64),
        "weight": column("weight", weight, np.float64),
        "steps_remaining": column("steps_remaining", steps_remaining, np.float64),
        "elapsed": column("elapsed", elapsed, np.float64),
        "isolated_elapsed": column("isolated_elapsed", isolated_elapsed, np.float64),
        "slo_remaining": column("slo_remaining", slo_remaining, np.float64),
        "owner": of_jobs,
        "names": names,
    }
    more: dict[str, list[float]] = {}
    for name, values in _mapping("extra", extra).items():
        of_extra = column(name, values, np.float64)
        if of_extra is None:
            raise InputError(f"extra: {name} is None, expected a value for each job")
        more[name] = of_extra.tolist()
    return Problem(
        kinds,
        [_whole(kind, workers[kind]) for kind in kinds],
        rows,
        columns,
        prices=[None if prices is None or kind not in prices else _number(f"the price of {kind!r}", prices[kind]) for kind in kinds],
        owners=listed,
        pairs=[(*places, speeds) for places, speeds in given.items()],
        extra=more,
    )


def _rows(throughputs: Any, kinds: list[str]) -> tuple[Floats, list[int | str] | None]:
    """Throughputs as an array, and what the jobs are called, if that is said."""
    names: list[int | str] | None = None

    def check(place: str, known: Iterable[Any]) -> None:
        if unknown := [kind for kind in known if kind not in kinds]:
            raise InputError(f"{place}: unknown worker type {unknown[0]!r}, expected one of {', '.join(kinds)}")

    if isinstance(throughputs, Mapping):
        names = [_name(name) for name in throughputs]
        for job, row in throughputs.items():
            if not isinstance(row, Mapping):
                raise InputError(f"job {job!r}: throughputs are {row!r}, expected a mapping of worker types to steps/s")
            check(f"job {job!r}", row)
        throughputs = [[row.get(kind, 0.0) for kind in kinds] for row in throughputs.values()]
    elif (columns := getattr(throughputs, "columns", None)) is not None:
        check("throughputs", columns)
        if missing := [kind for kind in kinds if kind not in columns]:
            raise InputError(f"throughputs have no column {missing[0]!r}")
        if (index := getattr(throughputs, "index", None)) is not None:
            names = [_name(name) for name in index]
        throughputs = np.column_stack([_array("throughputs", throughputs[kind], np.float64) for kind in kinds])
    rows = _array("throughputs", throughputs, np.float64)
    if rows.size == 0 and rows.ndim == 1:
        rows = rows.reshape(0, len(kinds))
    if rows.ndim != 2 or rows.shape[1] != len(kinds):
        raise InputError(f"throughputs have shape {rows.shape}, expected (jobs, {len(kinds)}): a column for each of {', '.join(kinds)}")
    return rows, names


def _array(what: str, value: Any, kind: Any) -> NDArray[Any]:
    """An array of numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise ValueError("complex numbers")
        return np.ascontiguousarray(array, dtype=kind) if kind is not None else array
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: expected numbers, not {_short(value)}") from error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _number(what: str, value: Any) -> float:
    """One number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {_short(value)}, expected a number") from None


def _mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """A mapping, empty for None."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise InputError(f"{what}: expected a mapping, not {_short(value)}")


def _of_each(what: str, value: Mapping[Any, Any], names: Iterable[Any]) -> list[Any]:
    """A mapping's values, in the order of names."""
    if missing := [name for name in names if name not in value]:
        raise InputError(f"{what} has nothing for job {missing[0]!r}")
    return [value[name] for name in names]


def _name(name: Any) -> int | str:
    """What a job is called: a whole number or text."""
    plain = name.item() if isinstance(name, np.generic) else name
    return plain if isinstance(plain, int) and -(2**63) <= plain < 2**63 else str(plain)


def _owner(name: str, of: Any) -> tuple[str, float, str, str | None]:
    """An owner of jobs: its name, weight, inner rule and parent."""
    known = _mapping(f"owner {name!r}", of)
    if unknown := [field for field in known if field not in ("weight", "inner", "parent")]:
        raise InputError(f"owner {name!r}: unknown field {unknown[0]!r}, expected one of weight, inner, parent")
    return name, _number(f"owner {name!r}: weight", known.get("weight", 1.0)), str(known.get("inner", "fairness")), known.get("parent")


def _whole(kind: str, count: Any) -> int:
    """A number of workers."""
    number = np.nan if isinstance(count, str) else _number(f"the number of workers of {kind!r}", count)
    if number != np.floor(number) or not 0 <= number < 2**32:
        raise InputError(f"{count} workers of {kind!r}, expected a whole number, at least 0")
    return int(number)


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
    ([[0.5, 0.5], [0.5, 0.5]], True)
    """
    stated = _problem(throughputs, workers, jobs)
    return _native_policy(policy, stated, backend).allocate(stated, True)


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
    decision, tree = _native_policy(policy, stated, backend).explain(stated)
    return Explanation._of(stated, decision, tree)


def _problem(throughputs: Any, workers: Mapping[str, int] | None, jobs: dict[str, Any]) -> Problem:
    if isinstance(throughputs, Problem):
        if workers is not None or jobs:
            raise InputError("a Problem says all there is: leave out workers, and what is said of jobs")
        return throughputs
    known = problem.__kwdefaults__ or {}
    if unknown := [name for name in jobs if name not in known]:
        name = unknown[0]
        near = get_close_matches(name, known, 1)
        of_policy = name in (Policy.__init__.__kwdefaults__ or {})
        help = f"Policy(…, {name}=…) has it" if of_policy else f"did you mean {near[0]}?" if near else None
        raise InputError(f"unknown argument {name!r}, expected one of {', '.join(known)}", help=help)
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
    #: `constraint`, `bottleneck`, `time`, `capacity`, `discount` or `free`; `unexplained` where the program's prices do not say, as where
    #: its shares are one of several optima.
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
    """Why jobs get their shares. Indexed by a job's name, which is its position where it has no other, it gives what holds that job."""

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
        raise KeyError(f"there is no job {job!r}; explanation.jobs has them by position")

    def __iter__(self) -> Iterator[JobExplanation]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

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
    >>> decided.share("b").round(3).tolist()
    [0.5, 0.5]
    """

    def __init__(
        self, workers: Mapping[str, int], policy: str | os.PathLike[str] | Policy = "max_min_fairness_perf", *, prices: Mapping[str, float] | None = None
    ) -> None:
        if not isinstance(policy, (str, os.PathLike, Policy)):
            raise InputError("a session's policy is a program, not a function", help="allocate asks a function")
        asked = policy if isinstance(policy, Policy) else Policy(policy)
        empty = problem([], workers, prices=prices)
        self._kinds = list(workers)
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
            if unknown := [kind for kind in throughput if kind not in self._kinds]:
                raise InputError(f"unknown worker type {unknown[0]!r}, expected one of {', '.join(self._kinds)}")
            throughput = [throughput.get(kind, 0.0) for kind in self._kinds]
        speeds = _array("throughput", throughput, np.float64)
        if speeds.shape != (len(self._kinds),):
            raise InputError(f"throughput has shape {speeds.shape}, expected ({len(self._kinds)},): a number for each worker type")
        known = {
            "scale_factor": scale_factor,
            "weight": weight,
            "steps_remaining": steps_remaining,
            "elapsed": elapsed,
            "slo_remaining": slo_remaining,
        }
        self._native.add(self._next, speeds, _known(known))
        self._numbers[name], self._names[self._next], self._known[name] = self._next, name, known
        self._next += 1

    def update(self, name: Hashable, **known: Any) -> None:
        """Something of a job changes: `scale_factor`, `weight`, `steps_remaining`, `elapsed` or `slo_remaining`."""
        number = self._number(name)
        if unknown := set(known) - set(self._known[name]):
            raise TypeError(f"unknown field {min(unknown)!r}, expected one of {', '.join(self._known[name])}")
        changed = self._known[name] | known
        self._native.update(number, _known(changed))
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


def _known(of: dict[str, Any]) -> dict[str, Any]:
    """What is known of a session's job, as the engine takes it."""
    scale_factor = of["scale_factor"]
    if isinstance(scale_factor, str) or (whole := _number("scale_factor", scale_factor)) != np.floor(whole) or not 0 <= whole < 2**32:
        raise InputError(f"scale_factor is {scale_factor!r}, expected a whole number of workers, at least 1")
    numbers = {name: None if value is None and name == "slo_remaining" else _number(name, value) for name, value in of.items()}
    return {**numbers, "scale_factor": int(whole)}


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
