"""One decision's input, from arrays and mappings."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._columns import (
    Floats,
    by_labels,
    check_collected,
    check_flat,
    is_column,
    is_listed,
    is_set,
    is_table,
    name_of,
    no_column,
    numbers,
    path_of,
    short,
    text_of,
)
from ._errors import InputError
from ._native import Problem

__all__ = ["check_names", "problem", "read_problem"]

#: The most workers of a type, and the most that a job needs at once.
WORKERS_MAX = 2**32 - 1
# The most workers of one type.
WORKERS_OF_TYPE_MAX = 10_000_000
#: What is said of jobs in numbers.
_NUMBERS = ("weight", "steps_remaining", "elapsed", "isolated_elapsed", "slo_remaining")


_P = ParamSpec("_P")


def _told(function: Callable[_P, Problem]) -> Callable[_P, Problem]:
    """The function, which says of an argument that it does not have which one is near."""

    @wraps(function)
    def asked(*args: _P.args, **known: _P.kwargs) -> Problem:
        check_names([name for name in known if name not in ("throughputs", "workers")])
        return function(*args, **known)

    return asked


def check_names(given: Iterable[str], of_policies: Iterable[str] = ()) -> None:
    """Refuses what nothing can be said of jobs by; `of_policies` are names that a `Policy` has."""
    if unknown := [name for name in given if name not in _OF_JOBS]:
        name = unknown[0]
        near = get_close_matches(name, _OF_JOBS, 1)
        help = f"Policy(…, {name}=…) has it" if name in of_policies else f"did you mean {near[0]}?" if near else None
        raise InputError(f"unknown argument {name!r}, expected one of {', '.join(_OF_JOBS)}", help=help)


@_told
def problem(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]],
    workers: Mapping[str, SupportsIndex],
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
    that is said of jobs may be a mapping of them, too. Or a DataFrame with a column for each worker type, in any order; the jobs
    are called by its index. A Series is taken by its index, which is the jobs' names or their positions, and arrays by position.

    What is said of jobs is `[jobs]`, or one value for all: `scale_factor` (workers at once), `weight`, `steps_remaining`,
    `elapsed` (s since arrival), `isolated_elapsed` (s), `slo_remaining` (s to the deadline, NaN = none), `owner` (a name or
    None). `owners` are `{name: {"weight": 1, "inner": "fairness" | "fifo", "parent": name}}`, parents first; owners that are not
    listed have weight 1. `prices` are $/h of a worker. `pairs` says how fast two jobs are on shared workers: their positions, or
    names, to [worker types × 2] steps/s. `extra` are columns that policy files may name.
    """
    kinds = _kinds(workers)
    rows, known_as = _rows(throughputs, kinds)
    jobs = _Jobs(rows.shape[0], known_as if names is None else _names(names, rows.shape[0]))
    of_jobs = jobs.owners(owner)
    listed = [_owner(name, of) for name, of in _mapping("owners", owners).items()]
    known = {name for name, *_ in listed}
    listed += [(name, 1.0, "fairness", None) for name in dict.fromkeys(of_jobs or []) if name is not None and name not in known]
    columns: dict[str, Any] = {"scale_factor": jobs.scale_factor(scale_factor), "owner": of_jobs, "names": jobs.names}
    given = (weight, steps_remaining, elapsed, isolated_elapsed, slo_remaining)
    columns |= {name: jobs.column(name, value) for name, value in zip(_NUMBERS, given)}
    more: dict[str, list[float]] = {}
    for name, values in _mapping("extra", extra).items():
        of_extra = jobs.column(text_of("a name in extra", name), values)
        if of_extra is None:
            raise InputError(f"extra: {name} is None, expected a value for each job")
        more[name] = of_extra.tolist()
    return Problem(
        kinds,
        [_whole(kind, workers[kind]) for kind in kinds],
        rows,
        columns,
        prices=_prices(prices, kinds),
        owners=listed,
        pairs=jobs.pairs(pairs, kinds),
        extra=more,
    )


#: What may be said of jobs.
_OF_JOBS = [name for name, parameter in inspect.signature(problem).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]


class _Jobs:
    """The jobs that something is said of: how many they are, and their names, if they have any."""

    def __init__(self, n: int, names: list[int | str] | None) -> None:
        self.n = n
        self.names = names

    def called(self, position: int) -> str:
        """What messages call a job."""
        return f"the job at position {position}" if self.names is None else f"job {self.names[position]!r}"

    def values(self, what: str, value: Any) -> Any:
        """What is said of jobs, in their order: a mapping by their names, a Series by its index, all else as it is."""
        if is_set(value):
            raise InputError(f"{what} is a set, which has no order, expected a value for each job")
        if isinstance(value, Mapping):
            if self.names is None:
                raise InputError(f"{what} is a mapping, but the jobs have no names", help="give names=…, or an array")
            return _of_each(what, value, self.names)
        if is_table(value):
            raise no_column(what, value)
        if is_column(value):
            listed = value.to_numpy()
            return [listed[place] for place in by_labels(what, list(value.index), self.names, self.n)]
        return value

    def column(self, what: str, value: Any) -> Floats | None:
        """Numbers of jobs: `[n]`, from one for all or one for each; None if nothing is said."""
        if value is None:
            return None
        array = numbers(what, self.values(what, value))
        array = np.ascontiguousarray(np.broadcast_to(array, (self.n,))) if np.ndim(value) == 0 and array.size == 1 else array
        if array.shape != (self.n,):
            raise InputError(f"{what} has shape {array.shape}, expected ({self.n},): a value for each job")
        return array

    def scale_factor(self, value: Any) -> NDArray[np.int64] | None:
        """Workers that jobs need at once: `[n]`."""
        array = self.column("scale_factor", value)
        if array is None:
            return None
        if (wrong := ~((array == np.floor(array)) & (array >= 1) & (array <= WORKERS_MAX))).any():
            job = int(wrong.argmax())
            message = f"{self.called(job)}: scale_factor is {_brief(array[job])}, expected a whole number from 1 to {WORKERS_MAX}"
            raise InputError(message, job=job)
        return array.astype(np.int64)

    def owners(self, value: Any) -> list[str | None] | None:
        """The owner of each job, if it has one: `[n]`."""
        if value is None:
            return None
        value = self.values("owner", value)
        if isinstance(value, np.ndarray) and value.ndim == 0 and not isinstance(value, np.ma.MaskedArray):
            value = value.item()
        check_flat("owner", value, self.n)
        listed = list(value) if is_listed(value) else [value] * self.n
        if len(listed) != self.n:
            raise InputError(f"{len(listed)} owners for {self.n} jobs")
        return [None if _is_none(one) else name_of("an owner", one) for one in listed]

    def pairs(self, value: Any, kinds: list[str]) -> list[tuple[int, int, Floats]]:
        """Speeds of two jobs on shared workers: their positions, and [worker types × 2] steps/s."""
        position = {name: place for place, name in enumerate(range(self.n) if self.names is None else self.names)}
        given: dict[tuple[int, int], Floats] = {}
        for pair, speeds in _mapping("pairs", value).items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InputError(f"pairs: {short(pair)} is no pair of jobs")
            names = [job if job in position else _name(job) for job in pair]
            if unknown := [job for job, name in zip(pair, names) if name not in position]:
                raise InputError(f"pair {short(pair)}: there is no job {short(unknown[0])}")
            array = numbers(f"pair {short(pair)}", speeds)
            if array.shape != (len(kinds), 2):
                raise InputError(f"pair {short(pair)} has shape {array.shape}, expected ({len(kinds)}, 2): worker types × jobs")
            one, other = position[names[0]], position[names[1]]
            if (other, one) in given:
                raise InputError(f"pair {short(pair)} is given in both orders")
            given[one, other] = array
        return [(*places, speeds) for places, speeds in given.items()]


def _kinds(workers: Any) -> list[str]:
    """The names of worker types."""
    if not isinstance(workers, Mapping):
        raise InputError(f"workers are {short(workers)}, expected a mapping", help='such as {"v100": 36, "p100": 36, "k80": 36}')
    if not workers:
        raise InputError("workers name no worker type", help='such as {"v100": 36, "p100": 36, "k80": 36}')
    if wrong := [kind for kind in workers if not isinstance(kind, str)]:
        raise InputError(f"worker type {short(wrong[0])} is not text")
    return [text_of("a worker type", kind) for kind in workers]


def _names(names: Any, n: int) -> list[int | str]:
    """What jobs are called, no two alike."""
    if isinstance(names, (str, bytes, Mapping)) or is_set(names) or is_table(names) or not isinstance(names, Iterable):
        raise InputError(f"names are {short(names)}, expected a list of {n} names")
    check_flat("names", names, n)
    listed = [_name(name) for name in names]
    if len(listed) != n:
        raise InputError(f"{len(listed)} names for {n} jobs")
    return _apart(listed)


def _apart(names: list[int | str]) -> list[int | str]:
    """Refuses two jobs of one name."""
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(f"two jobs are called {short(twice[0])}")
    return names


def _is_none(value: Any) -> bool:
    """Is it None, NaN, or pandas' NA?"""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    differs = value != value
    return isinstance(differs, (bool, np.bool_)) and bool(differs)


def _prices(prices: Any, kinds: list[str]) -> list[float | None]:
    """$/h of a worker of each type, where it is said."""
    known = _mapping("prices", prices)
    if unknown := [kind for kind in known if kind not in kinds]:
        raise InputError(f"prices: unknown worker type {short(unknown[0])}, expected one of {', '.join(kinds)}")
    return [_number(f"the price of {kind!r}", known[kind]) if kind in known else None for kind in kinds]


def _rows(throughputs: Any, kinds: list[str]) -> tuple[Floats, list[int | str] | None]:
    """Throughputs as an array, and what the jobs are called, if that is said."""
    names: list[int | str] | None = None

    def check(place: str, known: Iterable[Any]) -> None:
        if unknown := [kind for kind in known if kind not in kinds]:
            raise InputError(f"{place}: unknown worker type {short(unknown[0])}, expected one of {', '.join(kinds)}")

    if throughputs is None or is_set(throughputs) or is_column(throughputs):
        raise InputError(f"throughputs are {short(throughputs)}, expected steps/s of each job on each worker type")
    if isinstance(throughputs, Mapping):
        names = _apart([_name(name) for name in throughputs])
        for job, row in throughputs.items():
            if not isinstance(row, Mapping):
                raise InputError(f"job {job!r}: throughputs are {short(row)}, expected a mapping of worker types to steps/s")
            check(f"job {job!r}", row)
        throughputs = [[row.get(kind, 0.0) for kind in kinds] for row in throughputs.values()]
    elif is_table(throughputs):
        check_collected("throughputs", throughputs)
        check("throughputs", throughputs.columns)
        if missing := [kind for kind in kinds if kind not in throughputs.columns]:
            raise InputError(f"throughputs have no column {missing[0]!r}")
        if (twice := Counter(list(throughputs.columns)).most_common(1)) and twice[0][1] > 1:
            raise InputError(f"throughputs have two columns {twice[0][0]!r}")
        if (index := getattr(throughputs, "index", None)) is not None:
            names = _apart([_name(name) for name in index])
        throughputs = np.column_stack([numbers("throughputs", throughputs[kind]) for kind in kinds])
    rows = numbers("throughputs", throughputs)
    if rows.ndim == 0:
        raise InputError(f"throughputs are {short(throughputs)}, expected steps/s of each job on each worker type")
    if rows.size == 0 and rows.ndim == 1:
        rows = rows.reshape(0, len(kinds))
    if rows.ndim != 2 or rows.shape[1] != len(kinds):
        raise InputError(f"throughputs have shape {rows.shape}, expected (jobs, {len(kinds)}): a column for each of {', '.join(kinds)}")
    return rows, names


def _number(what: str, value: Any) -> float:
    """One number: not complex, a time, masked or text."""
    if isinstance(value, (str, bytes, np.complexfloating, np.datetime64, np.timedelta64, np.ma.MaskedArray)):
        raise InputError(f"{what} is {short(value)}, expected a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {short(value)}, expected a number") from None


def _mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """A mapping, empty for None."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise InputError(f"{what}: expected a mapping, not {short(value)}")


def _of_each(what: str, value: Mapping[Any, Any], names: Sequence[Any]) -> list[Any]:
    """A mapping's values, in the order of names."""
    known = value if all(name in value for name in names) else {_name(name): of for name, of in value.items()}
    if missing := [name for name in names if name not in known]:
        raise InputError(f"{what} has nothing for job {missing[0]!r}")
    return [known[name] for name in names]


def _name(name: Any) -> int | str:
    """What a job is called: a whole number or text."""
    plain = name.item() if isinstance(name, np.generic) else name
    if isinstance(plain, int) and -(2**63) <= plain < 2**63:
        return plain
    # Rows of a table with several levels are called by tuples.
    return text_of("a job's name", str(plain)) if isinstance(plain, tuple) else name_of("a job's name", plain)


def _owner(name: Any, of: Any) -> tuple[str, float, str, str | None]:
    """An owner of jobs: its name, weight, inner rule and parent."""
    known = _mapping(f"owner {short(name)}", of)
    if unknown := [field for field in known if field not in ("weight", "inner", "parent")]:
        raise InputError(f"owner {short(name)}: unknown field {short(unknown[0])}, expected one of weight, inner, parent")
    weight = _number(f"owner {short(name)}: weight", known.get("weight", 1.0))
    parent = known.get("parent")
    inner = text_of(f"owner {short(name)}: inner", known.get("inner", "fairness"))
    return text_of("the name of an owner", name), weight, inner, None if parent is None else text_of(f"owner {name!r}: parent", parent)


def _brief(number: float) -> str:
    """A number in a message, without `.0`."""
    return "NaN" if np.isnan(number) else f"{number:.15g}"


def _whole(kind: str, count: Any) -> int:
    """A number of workers."""
    if isinstance(count, (str, bytes)):
        raise InputError(f"the number of workers of {kind!r} is {short(count)}, which is text, expected a whole number")
    number = _number(f"the number of workers of {kind!r}", count)
    if number != np.floor(number) or not 0 <= number <= WORKERS_OF_TYPE_MAX:
        raise InputError(f"{short(count)} workers of {kind!r}, expected a whole number from 0 to {WORKERS_OF_TYPE_MAX}")
    return int(number)


def read_problem(snapshot: str | os.PathLike[str], *, throughputs: str | os.PathLike[str] = "osdi20") -> Problem:
    """The problem that a snapshot states: the path of a document, YAML or JSON, or its text, which has more than one line.

    Jobs without throughputs of their own are looked up in `throughputs` by job type: a shipped name, or a path.
    """
    text = path_of("snapshot", snapshot)
    return Problem.read(text, "\n" in text, path_of("throughputs", throughputs))
