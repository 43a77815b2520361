"""What functions answer, and `fit` is given: shares of jobs, read by the names of worker types where they have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._columns import Floats, by_labels, check_collected, is_column, is_set, is_table, numbers, short
from ._errors import InputError
from ._native import Problem

__all__ = ["read", "row_of", "shares_of_jobs"]

#: The positions of the jobs in each row, and shares of time, [rows × worker types].
Rows = tuple["list[tuple[int, ...]] | None", Floats]


def read(problem: Problem, answer: Any) -> Rows:
    """The shares that a policy's function gave, and whose they are: positions of one job or two for each row; None for row i of job i.

    An answer is an array, [jobs × worker types], a table with a column for each worker type, or a mapping of jobs, or pairs of jobs, to
    shares by worker type. Jobs are called by their names, or by their positions where no name is a whole number. What is none of these
    is an `InputError`.
    """
    return _read(problem, answer, "a policy returned")


def shares_of_jobs(problem: Problem, shares: Any) -> Floats:
    """Shares of jobs alone, [jobs × worker types], in all the forms that `read` takes; jobs that a mapping leaves out have none."""
    members, rows = _read(problem, shares, "shares are")
    if members is None:
        return rows
    x = np.zeros((problem.n_jobs, len(problem.worker_types)))
    for of, row in zip(members, rows):
        if len(of) > 1:
            raise InputError(f"shares are of the pair {of}, expected shares of jobs alone")
        x[of[0]] = row
    return x


def _read(problem: Problem, answer: Any, said: str) -> Rows:
    kinds = problem.worker_types
    what = "shares" if said == "shares are" else "the shares that a policy returned"
    shape = (problem.n_jobs, len(kinds))
    if answer is None:
        raise InputError(f"{said} None, expected shares (jobs × worker types)")
    if isinstance(answer, Mapping):
        return _of_mapping(problem, answer, said)
    if is_table(answer):
        check_collected(what, answer)
        return None, _of_table(problem, answer, said, what)
    if is_set(answer):
        raise InputError(f"{said} a set, which has no order, expected shares (jobs × worker types)")
    array = numbers(what, answer)
    if array.shape != shape:
        raise InputError(f"{said} an array of shape {list(array.shape)}, expected {list(shape)}: jobs × worker types")
    return None, array


def _of_table(problem: Problem, table: Any, said: str, what: str) -> Floats:
    """A DataFrame's shares, by the names of its columns and rows; those that are only counted are taken by position."""
    kinds = problem.worker_types
    index = getattr(table, "index", None)
    rows = range(problem.n_jobs) if index is None else by_labels(f"{said} a table", list(index), problem.names, problem.n_jobs)
    columns = by_labels(f"{said} a table", list(table.columns), kinds, len(kinds), row="worker type", part="columns")
    listed = list(table.columns)
    by_kind = [numbers(what, table[listed[place]]) for place in columns]
    array: Floats = np.column_stack(by_kind) if by_kind else np.zeros((problem.n_jobs, 0))
    if array.shape != (problem.n_jobs, len(kinds)):
        raise InputError(f"{said} a table of shape {list(array.shape)}, expected {[problem.n_jobs, len(kinds)]}: jobs × worker types")
    return np.ascontiguousarray(array[list(rows)])


def _of_mapping(problem: Problem, answer: Mapping[Any, Any], said: str) -> Rows:
    kinds = problem.worker_types
    named: dict[int | str, int] = {name: place for place, name in enumerate(problem.names)}
    if not any(isinstance(name, int) for name in named):
        named |= {place: place for place in range(problem.n_jobs)}
    members: list[tuple[int, ...]] = []
    said_of: set[frozenset[int | None]] = set()
    rows = np.zeros((len(answer), len(kinds)))
    for number, (key, shares) in enumerate(answer.items()):
        jobs = key if isinstance(key, tuple) and len(key) == 2 else (key,)
        places = tuple(_position(job, named) for job in jobs)
        if None in places or len(set(places)) < len(places):
            raise InputError(
                f"a policy gave shares to {short(key)}, expected a job's name, or two of them",
                help="problem.names has the names; a job is called by its position where no name is a whole number",
            )
        if (of := frozenset(places)) in said_of:
            help = "a job's position calls it as its name does, and pairs have no order"
            raise InputError(f"a policy gave shares to {short(key)} twice", help=help)
        said_of.add(of)
        members.append(tuple(place for place in places if place is not None))
        rows[number] = row_of(shares, kinds, "a policy", "one combination")
    return members, rows


def _position(job: Any, named: Mapping[int | str, int]) -> int | None:
    """The position of the job that a mapping's key calls."""
    if isinstance(job, (bool, np.bool_)) or not isinstance(job, (str, int, np.integer)):
        return None
    return named.get(job if isinstance(job, str) else int(job))


def row_of(shares: Any, kinds: list[str], policy: str, combination: str) -> Floats:
    """The shares of one job or pair on each worker type; messages call the policy and the combination as is said here."""
    listed = shares
    if isinstance(shares, Mapping):
        if unknown := [kind for kind in shares if kind not in kinds]:
            of = f"shares of worker type {short(unknown[0])} to {combination}"
            raise InputError(f"{policy} gave {of}, expected one of {', '.join(kinds)}")
        listed = [shares.get(kind, 0.0) for kind in kinds]
    elif is_column(shares):
        places = by_labels(f"{policy} gave shares to {combination}", list(shares.index), kinds, len(kinds), row="worker type")
        values = shares.to_numpy()
        listed = [values[place] for place in places]

    def said() -> str:
        return f"{policy} gave {short(shares)} to {combination}, expected a share on each of {len(kinds)} worker types"

    if is_set(shares):
        raise InputError(said())
    row = numbers("shares", listed, message=said)
    if row.shape != (len(kinds),):
        raise InputError(said())
    return row
