"""Traces of jobs: from files, from clusters' logs, and from arrays."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _native
from ._columns import Table
from ._errors import InputError

__all__ = ["Trace", "read", "table"]

#: The columns of a trace, in the order of its file.
COLUMNS = ("id", "job_type", "scale_factor", "total_steps", "arrival", "weight", "slo", "entity")


class Trace(Table):
    """Jobs in order of arrival: `id`, `job_type`, `scale_factor`, `total_steps`, `arrival` (s), `weight`, `slo` (s from arrival, NaN =
    none), `entity` (None = none). It is a table, and what `simulate(trace=…)` takes."""

    def __init__(self, columns: Mapping[str, Any], report: Mapping[str, Any] | None = None) -> None:
        super().__init__(columns)
        self._report = dict(report or {})

    def report(self) -> dict[str, Any]:
        """What became of a cluster's log: `rows_read`, how many rows were `left_out` for which reason, `doubts` with how often each was
        met, jobs `cut` to the largest scale factor, and the first `complaints`. Empty for traces."""
        return dict(self._report)

    def to_csv(self) -> str:
        """The trace as apportion's CSV."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = [name for name in COLUMNS if name in self]
        writer.writerow(names)
        for row in range(self.n_rows):
            writer.writerow([_cell(self[name][row]) for name in names])
        return file.getvalue()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as apportion's CSV."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(self.to_csv())


def _listed(values: Any) -> list[Any] | None:
    """A column's values; None for one value of all jobs."""
    return None if isinstance(values, str) or not isinstance(values, Iterable) else list(values)


def _cell(value: Any) -> str:
    """A value as the CSV has it: numbers in full, nothing for none."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


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
    """Reads a trace: apportion's CSV, Gavel's form, or with `form` a cluster's log: `sacct`, `philly`, `helios`, `pai`, `acme`, `spot-gpu`,
    `openb`, `kueue`, or the normalized `log`.

    With `throughputs`, a shipped name or a path, job types are checked against the matrix; a log's jobs are taken for jobs of it by
    `rules`, a path, and drawn by `seed`. Times of a log that name no zone are of `zone`; only jobs that arrive in `window`, such as
    `7d..21d`, are taken. `job_table` is PAI's table of jobs.
    """
    reading = {
        "form": form,
        "throughputs": None if throughputs is None else os.fspath(throughputs),
        "sort": sort,
        "seed": seed,
        "skip_unreadable": skip_unreadable,
        "rules": None if rules is None else os.fsdecode(rules),
        "zone": zone,
        "window": window,
        "job_table": None if job_table is None else os.fsdecode(job_table),
    }
    answer = _native.read_trace(os.fsdecode(path), reading)
    return Trace(answer["jobs"], answer["report"])


def table(**columns: Any) -> Trace:
    """A trace from columns: `job_type`, `total_steps` and `arrival`, and if you like the others of `Trace`; `owner` is `entity`.

    >>> trace = table(job_type=["ResNet-50 (batch size 64)"] * 2, total_steps=[1000, 2000], arrival=[0, 60])
    >>> trace.n_rows
    2
    """
    if "owner" in columns and "entity" not in columns:
        columns["entity"] = columns.pop("owner")
    if unknown := set(columns) - set(COLUMNS):
        raise InputError(f"unknown column {min(unknown)!r}, expected one of {', '.join(COLUMNS)}")
    for name in ("job_type", "total_steps", "arrival"):
        if name not in columns:
            raise InputError(f"a trace needs the column {name!r}")
    listed = {name: _listed(values) for name, values in columns.items()}
    n = max((len(values) for values in listed.values() if values is not None), default=1)
    plain: dict[str, Any] = {"id": list(range(n)), "scale_factor": [1] * n, "weight": [1.0] * n}
    for name, values in listed.items():
        of_all = [columns[name]] * n if values is None else values
        if len(of_all) != n:
            raise InputError(f"{name} has {len(of_all)} values for {n} jobs")
        plain[name] = [value.item() if isinstance(value, np.generic) else value for value in of_all]
        for row, value in enumerate(plain[name]):
            if _cell(value) == "" and name in ("job_type", "total_steps", "arrival"):
                raise InputError(f"job {row}: {name} is {value}")
    return Trace({name: plain[name] for name in COLUMNS if name in plain})
