"""One decision's input, from arrays and mappings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import InputError
from ._native import Problem

__all__ = ["problem", "read_problem"]

Floats = NDArray[np.float64]


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
