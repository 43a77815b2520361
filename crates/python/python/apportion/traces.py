"""Traces of jobs: from files, from clusters' logs, and from arrays."""

from __future__ import annotations

import csv
import io
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from . import _native
from ._columns import (
    Table,
    by_labels,
    flag_of,
    is_column,
    is_listed,
    is_set,
    is_table,
    name_of,
    no_column,
    path_of,
    short,
    text_of,
    whole_of,
)
from ._errors import InputError
from ._problem import WORKERS_OF_TYPE_MAX, _is_none, _number

__all__ = ["Trace", "read", "table"]

#: The columns of a trace, in the order of its file.
COLUMNS = ("id", "job_type", "scale_factor", "total_steps", "arrival", "weight", "slo", "entity", "sizes")

#: The largest number that is believed, of whatever unit, and the least above 0: those of the engine.
_LARGEST, _LEAST = 1e15, 1e-100


class Trace(Table):
    """Jobs in order of arrival: `id`, `job_type`, `scale_factor`, `total_steps`, `arrival` (s), `weight`, `slo` (s from arrival, NaN =
    none), `entity` (None = none), and where a job has them `sizes`, the numbers of workers that it may be given, as text such as
    "1 2 4" (None = its scale factor alone). It is a table, and what `simulate(trace=…)` takes."""

    def __init__(self, columns: Mapping[str, Any], report: Mapping[str, Any] | None = None) -> None:
        super().__init__(columns)
        self._report = dict(report or {})

    def report(self) -> dict[str, Any]:
        """What became of a cluster's log: `rows_read`, how many rows were `left_out` for which reason, `doubts` with how often each was
        met, jobs `cut` to the largest scale factor, and the first `complaints`. Empty for traces."""
        return dict(self._report)

    def check(self) -> None:
        """Refuses jobs that are none, with an `InputError` that says which row and column: rows count from 0."""
        self._check_values()
        self._check_order()

    def _check_values(self) -> None:
        """Refuses values that are none of their column, and two jobs of one id."""
        for name in ("job_type", "total_steps", "arrival"):
            if name not in self:
                raise InputError(f"a trace needs the column {name!r}")
        for name, column in self.items():
            of = _CHECKS.get(name)
            for row, value in enumerate(column if of else ()):
                assert of is not None
                of(f"row {row}: {name}", value)
        seen: dict[str, int] = {}
        for row, name in enumerate(self["id"].tolist() if "id" in self else []):
            if (first := seen.setdefault(str(name), row)) != row:
                raise InputError(f"row {row}: id is {short(name)}, as in row {first}")
        of_jobs = self["scale_factor"].tolist() if "scale_factor" in self else [1] * self.n_rows
        for row, sizes in enumerate(self["sizes"].tolist() if "sizes" in self else []):
            if not _is_none(sizes) and int(of_jobs[row]) not in map(int, sizes.split()):
                raise InputError(f"row {row}: the scale factor {of_jobs[row]} is not among the sizes, {short(sizes)}")

    def _check_order(self) -> None:
        """Refuses jobs that are not in order of arrival."""
        arrivals = self["arrival"].tolist()
        for row in range(1, len(arrivals)):
            if arrivals[row] < arrivals[row - 1]:
                message = f"row {row}: arrival is {short(arrivals[row])}, before that of the row above it, {short(arrivals[row - 1])}"
                raise InputError(message, help="table(…, sort=True) sorts the rows by arrival")

    def to_csv(self) -> str:
        """The trace as apportion's CSV. What could not be read back is refused, as by `check`."""
        self.check()
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = [name for name in COLUMNS if name in self]
        writer.writerow(names)
        for row in range(self.n_rows):
            writer.writerow([_cell(name, self[name][row]) for name in names])
        return file.getvalue()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as apportion's CSV. What could not be read back is refused, as by `check`, and nothing is written."""
        text = self.to_csv()
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(text)


def _is_text(what: str, value: Any) -> None:
    """Refuses what is no text of one line, and text that a trace's reader would cut: blanks around it, or nothing at all."""
    if _is_none(value):
        raise InputError(f"{what} is {short(value)}, expected text of one line")
    text = name_of(what, value)
    if not text.strip():
        raise InputError(f"{what} is {short(value)}, which is empty, expected text")
    if not text.isprintable() and any(unicodedata.category(character) == "Cc" for character in text):
        raise InputError(f"{what} is {short(value)}, expected text of one line without control characters")
    if text != text.strip():
        raise InputError(f"{what} is {short(value)}, with blanks around it", help=".strip() takes them off")


def _is_text_or_none(what: str, value: Any) -> None:
    if not _is_none(value):
        _is_text(what, value)


def _is_number(least: float, *, may_lack: bool = False) -> Callable[[str, Any], None]:
    """Refuses what is no number from `least` to the largest that is believed."""

    def check(what: str, value: Any) -> None:
        if may_lack and _is_none(value):
            return
        number = np.nan if isinstance(value, (bool, np.bool_, np.datetime64, np.timedelta64)) or _is_none(value) else _number(what, value)
        if not least <= number <= _LARGEST:
            raise InputError(f"{what} is {short(value)}, expected a number from {least:g} to 1e15")

    return check


def _is_scale_factor(what: str, value: Any) -> None:
    whole_of(what, value, 1, WORKERS_OF_TYPE_MAX)


def _is_sizes(what: str, value: Any) -> None:
    """Refuses what are no numbers of workers, ascending and separated by blanks."""
    if _is_none(value):
        return
    parts = value.split() if isinstance(value, str) else []
    sizes = [int(part) for part in parts if part.isdecimal() and part.isascii()]
    are_ascending = all(one < other for one, other in zip([0, *sizes], sizes))
    if not sizes or len(sizes) < len(parts) or not are_ascending or sizes[-1] > WORKERS_OF_TYPE_MAX:
        raise InputError(f"{what} is {short(value)}, expected ascending numbers of workers, such as '1 2 4'")


#: What the values of each column are, checked one by one.
_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "id": _is_text,
    "job_type": _is_text,
    "scale_factor": _is_scale_factor,
    "total_steps": _is_number(_LEAST),
    "arrival": _is_number(0),
    "weight": _is_number(_LEAST),
    "slo": _is_number(_LEAST, may_lack=True),
    "entity": _is_text_or_none,
    "sizes": _is_sizes,
}


def _cell(column: str, value: Any) -> str:
    """A value as the CSV has it: numbers in full, nothing for none."""
    if _is_none(value):
        return ""
    if column == "scale_factor":
        return str(int(value))
    is_number = column in ("total_steps", "arrival", "weight", "slo") and not isinstance(value, (int, np.integer))
    return repr(float(value)) if is_number else str(value)


def read(
    path: str | os.PathLike[str],
    *,
    form: str | None = None,
    throughputs: str | os.PathLike[str] | None = None,
    sort: bool = False,
    seed: int = 0,
    skip_unreadable: bool = False,
    rules: str | os.PathLike[str] | None = None,
    zone: str | None = None,
    window: str | None = None,
    job_table: str | os.PathLike[str] | None = None,
) -> Trace:
    """Reads a trace: apportion's CSV or Gavel's form, which are told apart, or with `form` a cluster's log: `sacct`, `philly`, `helios`,
    `pai`, `acme`, `spot-gpu`, `openb`, `kueue`, or the normalized `log`. Of `dlrm`, `gpu-2026` and `supercloud` it says why they are not
    read.

    With `throughputs`, a shipped name or a path, job types are checked against the matrix. Jobs of a trace that are not in order of
    arrival are refused, unless `sort` sorts them. The other arguments are for logs alone, and refused without `form`: a log's jobs are
    taken for jobs of the matrix by `rules`, a path, and drawn by `seed`; rows that are not understood are refused, unless
    `skip_unreadable` leaves them out. Times that name no zone are of `zone`; only jobs that arrive in `window`, such as `7d..21d`, are
    taken, in order of arrival. `job_table` is PAI's table of jobs.
    """
    sort, skip_unreadable = flag_of("sort", sort), flag_of("skip_unreadable", skip_unreadable)
    of_logs = {
        "seed": seed != 0,
        "skip_unreadable": skip_unreadable,
        "rules": rules is not None,
        "zone": zone is not None,
        "window": window is not None,
        "job_table": job_table is not None,
    }
    if form is None and (given := [name for name, is_given in of_logs.items() if is_given]):
        raise InputError(f"{given[0]} is for a cluster's log, and a trace has none", help="form=… says which kind of log it is")
    if form is not None and sort:
        raise InputError("sort is for a trace: the jobs of a log are in order of arrival as it is", help="leave it out")
    reading = {
        "form": None if form is None else text_of("form", form),
        "throughputs": None if throughputs is None else path_of("throughputs", throughputs),
        "sort": sort,
        "seed": whole_of("seed", seed, 0, 2**64 - 1),
        "skip_unreadable": skip_unreadable,
        "rules": None if rules is None else path_of("rules", rules),
        "zone": None if zone is None else text_of("zone", zone),
        "window": None if window is None else text_of("window", window),
        "job_table": None if job_table is None else path_of("job_table", job_table),
    }
    answer = _native.read_trace(path_of("path", path), reading)
    return Trace(answer["jobs"], answer["report"])


def table(*, sort: bool = False, **columns: Any) -> Trace:
    """A trace from columns: `job_type`, `total_steps` and `arrival` (s), and if you like the others of `Trace`; `owner` is `entity`.

    A column is a list or an array, or one value for all jobs; a mapping of jobs' ids, which are 0, 1, … where none are given; or a Series,
    whose index is 0, 1, …, or the same in all columns. Jobs that are not in order of arrival are refused, unless `sort` sorts them; what
    else is wrong is an `InputError`, too, with its row, from 0, and column.

    >>> trace = table(job_type=["ResNet-50 (batch size 64)"] * 2, total_steps=[1000, 2000], arrival=[0, 60])
    >>> trace.n_rows
    2
    """
    sort = flag_of("sort", sort)
    if "owner" in columns and "entity" not in columns:
        columns["entity"] = columns.pop("owner")
    if unknown := set(columns) - set(COLUMNS):
        raise InputError(f"unknown column {min(unknown)!r}, expected one of {', '.join(COLUMNS)}")
    for name in ("job_type", "total_steps", "arrival"):
        if name not in columns:
            raise InputError(f"a trace needs the column {name!r}")
    plain = _of_one_length(columns)
    for name, values in plain.items():
        plain[name] = [value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value for value in values]
        if name == "scale_factor":
            plain[name] = [int(value) if isinstance(value, float) and value.is_integer() else value for value in plain[name]]
        elif name == "entity":
            plain[name] = [None if _is_none(value) else value for value in plain[name]]
        elif name == "sizes":
            plain[name] = [" ".join(map(str, value)) if isinstance(value, (list, tuple)) else value for value in plain[name]]
    trace = Trace({name: plain[name] for name in COLUMNS if name in plain})
    # Rows are counted as they are given, and sorted thereafter.
    trace._check_values()
    if "entity" in plain:
        trace = Trace({**trace, "entity": [None if owner is None else str(owner) for owner in plain["entity"]]})
    if sort:
        order = sorted(range(trace.n_rows), key=lambda row: float(trace["arrival"][row]))
        return Trace({name: column[order] for name, column in trace.items()})
    trace._check_order()
    return trace


def _of_one_length(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns as lists, those that are the same for all jobs with them."""
    listed = {name: _listed(name, values) for name, values in columns.items() if not isinstance(values, Mapping)}
    lengths = [len(values) for values in listed.values() if values is not None]
    lengths += [len(values) for values in columns.values() if isinstance(values, Mapping)]
    n = max(lengths, default=1)
    plain: dict[str, list[Any]] = {"id": list(range(n)), "scale_factor": [1] * n, "weight": [1.0] * n}
    for name, values in listed.items():
        one = columns[name]
        of_all = [one[()] if isinstance(one, np.ndarray) else one] * n if values is None else values
        if len(of_all) != n:
            raise InputError(f"{name} has {len(of_all)} values for {n} jobs")
        plain[name] = of_all
    _check_indices(columns, n)
    for name, values in columns.items():
        if isinstance(values, Mapping):
            places = by_labels(name, list(values), plain["id"], n, part="keys")
            ordered = list(values.values())
            plain[name] = [ordered[place] for place in places]
    return plain


def _listed(name: str, values: Any) -> list[Any] | None:
    """A column's values; None for one value of all jobs."""
    if is_set(values):
        raise InputError(f"{name} is a set, which has no order, expected a list")
    if is_table(values):
        raise no_column(name, values)
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name}: masked values, expected plain ones")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        return None if values.ndim == 0 else _refused(name, values)
    return list(values) if is_listed(values) else None


def _refused(name: str, values: Any) -> list[Any]:
    raise InputError(f"{name} has shape {values.shape}, expected one value for each job")


def _check_indices(columns: Mapping[str, Any], n: int) -> None:
    """Refuses Series whose values are of other rows than those of the columns beside them."""
    indices = {name: list(values.index) for name, values in columns.items() if is_column(values)}
    lists = (list, tuple, range, np.ndarray)
    are_alone = not any(isinstance(values, (*lists, Mapping, Iterator)) for values in columns.values())
    first = next(iter(indices.values()), None)
    for name, index in indices.items():
        if index != (first if are_alone else list(range(n))):
            expected = "that of the other columns" if are_alone else f"0 to {n - 1}, as of the lists beside it"
            raise InputError(f"{name}: its index is {short(index)}, expected {expected}", help=f"{name}.to_numpy() is taken by position")
