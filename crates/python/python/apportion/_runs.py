"""Simulations and sweeps: runs in, columns out."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._columns import Table
from ._errors import InputError
from ._native import Results
from ._policy import AnyPolicy, Policy, _fresh, _name_of
from ._versions import version_of

__all__ = ["Run", "Study", "metrics", "simulate", "sweep"]

#: The tables of a simulation that may be kept, beside its jobs.
TABLES = ("rounds", "leases", "slices", "decisions", "allocations")


class Run:
    """One simulation.

    `status` is `done`, or why it was given up (`reason` says more): the numbers are then of the jobs that are done.
    """

    def __init__(self, answer: dict[str, Any], is_told_apart: bool) -> None:
        #: `done`, `timeout`, `livelock`, `starved`, `growing`, …
        self.status: str = answer["status"]
        #: Why it is not done.
        self.reason: str | None = answer["reason"]
        #: Wall time, in s.
        self.seconds: float = answer["seconds"]
        #: The run's identity: SHA-256 of all that its result depends on. None for a function that cannot be told from others.
        self.digest: str | None = answer["digest"] if is_told_apart else None
        #: Names of the worker types, in the order of tables' numbers.
        self.worker_types: list[str] = answer["worker_types"]
        #: Its numbers by name (`apportion.metrics()` says what each is); None where one means nothing.
        self.summary: dict[str, float | None] = answer["summary"]
        #: Busy worker-time over worker-time, by worker type, and of `all`.
        self.utilization: dict[str, float] = answer["utilization"]
        #: The measured jobs, and what they received: `wait` for their first workers, `service` (time with workers), `preemptions`,
        #: `worker_hours_TYPE` (of workers that two jobs shared, half), `cost` ($), and the part of their time that they had workers
        #: (`share_received`) and that allocations gave them (`share_owed`). Times in s; NaN for what did not come to pass.
        self.jobs = Table(_first(answer["jobs"], "name"))
        self._tables: dict[str, Table | None] = {
            name: None if answer[name] is None else Table(self._named(answer[name])) for name in TABLES
        }

    def _named(self, columns: dict[str, Any]) -> dict[str, Any]:
        if "worker_type" in columns:
            columns["worker_type"] = np.asarray(self.worker_types, dtype=object)[columns["worker_type"]]
        return columns

    def _table(self, name: str) -> Table:
        table = self._tables[name]
        if table is None:
            raise InputError(f"{name} were not kept", help=f"simulate(…, keep=({name!r},))")
        return table

    @property
    def rounds(self) -> Table:
        """A row per round: `time` (s), `round`, `active_jobs`, `leases`."""
        return self._table("rounds")

    @property
    def leases(self) -> Table:
        """A row per lease: `time`, `round`, `job` and `partner` (positions in order of arrival, −1 = none), `worker_type`,
        `workers`, `servers`, and whether the workers are those of the round before (`extended`)."""
        return self._table("leases")

    @property
    def slices(self) -> Table:
        """A row per slice that ran: `start`, `end`, `job`, `partner`, `worker_type`, `workers`, `busy` and `overhead` (s), `steps`,
        `partner_steps`, `succeeded`."""
        return self._table("slices")

    @property
    def decisions(self) -> Table:
        """A row per decision of the policy: `time`, `jobs`, `backend`, `route`, `iterations`, `certificate` (`optimal`, `not
        proven`, None without an objective), wall `seconds` (NaN where nothing was solved)."""
        return self._table("decisions")

    @property
    def allocations(self) -> Table:
        """A row per share of a decision: `time`, `job`, `partner`, `worker_type`, `share`."""
        return self._table("allocations")

    def __repr__(self) -> str:
        average = self.summary["average_jct"]
        hours = "no job done" if average is None else f"average completion time {average / 3600:.2f} h"
        return f"<Run, {self.status}: {self.jobs.n_rows} jobs, {hours}>"


def _first(columns: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: columns[name], **columns}


def simulate(
    policy: AnyPolicy = "max_min_fairness_perf",
    cluster: str | Mapping[str, int] | None = None,
    *,
    keep: Iterable[str] | None = TABLES,
    stop: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """Simulates one cluster over time.

    `fields` are those of a sweep's `run:` (docs/formats.md), with or without their group: `trace` (a path, a shipped name, or a
    table of `apportion.traces`), or `rate` (jobs/h), or `static` (jobs at time 0); `jobs`, `seed`, `throughputs`, `semantics`,
    `measure`, `generator`, `round_length`, `preemption_cost`, `prices`, … `keep` names the tables that are kept, beside the
    jobs, of `rounds`, `leases`, `slices`, `decisions`, `allocations`. `stop` is when it is
    given up, as in a sweep: {"wall": "10min", "decision": "5s"}.

    A policy may be a function of a `Problem`: it is called with Python's lock held, while the rest runs without it.

    >>> run = simulate("fifo", "v100=2,p100=2,k80=2", rate=0.2, jobs=20)
    >>> run.status, run.jobs.n_rows
    ('done', 20)
    """
    kept = {name: False for name in TABLES}
    for name in [keep] if isinstance(keep, str) else keep or ():
        if name not in kept:
            raise InputError(f"keep: unknown table {name!r}, expected one of {', '.join(TABLES)}")
        kept[name] = True
    if cluster is None:
        raise InputError("no cluster is given", help='such as "v100=36,p100=36,k80=36"')
    given = _Given(is_kept=False)
    run = {"policy": given.policy(policy), "cluster": cluster, **given.fields(fields)}
    # One point of a sweep: what is varied has one value.
    varied = {"seed": [run.pop("seed", 0)]}
    document: dict[str, Any] = {"format": "apportion/sweep-v1", "name": "run", "run": run, "axes": varied}
    if stop:
        document["stop"] = dict(stop)
    return Run(_native.simulate(_text(document), given.native(), kept), given.is_told_apart)


def _text(document: Mapping[str, Any]) -> str:
    """A document as text with a value a line, so that what is wrong can be said of an argument."""
    return json.dumps(document, default=_plain, indent=1)


def _plain(value: Any) -> Any:
    """numpy's scalars and arrays, paths and ranges as JSON has them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (range, tuple, set)):
        return list(value)
    raise InputError(f"{value!r} is no value of a run's field")


class _Given:
    """What runs are given in place of files: functions, texts of policies, and tables of jobs."""

    def __init__(self, *, is_kept: bool) -> None:
        #: Are results kept, and so must functions be told apart from others of their name?
        self._is_kept = is_kept
        #: Is each function's text known?
        self.is_told_apart = True
        self._functions: dict[str, dict[str, Any]] = {}
        self._policies: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def native(self) -> dict[str, Any]:
        """The same for the engine."""
        return {"functions": self._functions, "policies": list(self._policies.values()), "texts": self._texts}

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of runs as a document has them."""
        return {name: self.field(name, value) for name, value in fields.items()}

    def field(self, name: str, value: Any) -> Any:
        """One value of a field: tables of jobs, and throughputs, are given by their text."""
        from .traces import Trace

        if isinstance(value, Trace):
            return self._given("trace", value.to_csv())
        if name == "trace" and hasattr(value, "columns"):
            raise InputError("trace is a table of another kind", help="apportion.traces.table(job_type=…, total_steps=…, arrival=…) makes one")
        if name != "throughputs" or isinstance(value, (str, os.PathLike)):
            return value
        if hasattr(value, "to_dict") and hasattr(value, "index"):
            value = value.to_dict("index")  # a pandas.DataFrame of a row for each job type
        if not isinstance(value, Mapping) or not all(isinstance(row, Mapping) for row in value.values()):
            message = f"throughputs are {type(value).__name__}, expected a name, a path, or steps/s by job type and worker type"
            raise InputError(message, help='such as {"bert": {"v100": 4.0, "k80": 0.5}, ("bert", 2): {"v100": 7.6}}')
        return self._given("throughputs", _matrix(value))

    def _given(self, what: str, text: str) -> str:
        name = f"<{what} {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
        self._texts[name] = text
        return name

    def policy(self, policy: AnyPolicy) -> str:
        """A policy as a document names it."""
        if isinstance(policy, (str, os.PathLike)):
            text = os.fspath(policy)
            return self.policy(Policy(text)) if "\n" in text else text
        if isinstance(policy, Policy):
            plain = Policy.__init__.__kwdefaults__ or {}
            if own := [name for name, value in policy._asked.items() if value != plain.get(name)]:
                raise InputError(f"a run has {own[0]} as a field of its own", help=f"leave it out of Policy, and give {own[0]}=… to the run")
            if not policy._is_text:
                return policy._text
            self._check_name(policy.name, self._policies.get(policy.name) in (None, policy._text))
            self._policies[policy.name] = policy._text
            return policy.name
        if not callable(policy):
            raise TypeError(f"a policy is a name, a path, a Policy or a function, not {type(policy).__name__}")
        name = _name_of(policy)
        if inspect.isclass(policy):
            _fresh(policy)
        known = self._functions.get(name)
        self._check_name(name, known is None or known["policy"] is policy)
        version = version_of(policy)
        if version is None and self._is_kept:
            raise InputError(
                f"results of {name!r} could not be told from those of another function: its text, or what it closes over, cannot be read",
                help="set its attribute policy_version to a text that changes when it does",
            )
        self.is_told_apart &= version is not None
        plain = {"shuffled": False, "skip_zero_priority": False}
        asked = getattr(policy, "policy_rules", {})
        if not isinstance(asked, Mapping) or not set(asked) <= set(plain):
            raise InputError(f"{name}: policy_rules are {asked!r}, expected a mapping of {', '.join(plain)}")
        rules = {rule: bool(asked.get(rule, False)) for rule in plain}
        pairs = bool(getattr(policy, "policy_pairs", False))
        if version is not None and (pairs or rules != plain):
            version += f"\n{rules} pairs={pairs}"
        asks = policy if self._is_kept else _fresh(policy)
        self._functions[name] = {"policy": policy, "callable": asks, "pairs": pairs, "rules": rules, "version": version or ""}
        return name

    def _check_name(self, name: str, is_one: bool) -> None:
        """Refuses a name of two policies."""
        if not is_one or (name in self._functions and name in self._policies):
            raise InputError(f"two policies are called {name!r}", help="set the attribute policy_name of a function")
        if name in _shipped():
            raise InputError(f"{name!r} is the name of a policy that ships with apportion", help="set the attribute policy_name of a function")


def _matrix(rows: Mapping[Any, Mapping[str, float]]) -> str:
    """Throughputs as a document: by job type, or job type and scale factor, and by worker type."""
    kinds = list(dict.fromkeys(kind for row in rows.values() for kind in row))

    def listed(key: Any, row: Mapping[str, float]) -> dict[str, Any]:
        job_type, scale_factor = key if isinstance(key, tuple) else (key, 1)
        return {"job_type": str(job_type), "scale_factor": scale_factor, "consolidated": [row.get(kind, 0.0) for kind in kinds]}

    document = {"format": "apportion/throughputs-v1", "name": "given", "unit": "steps/s", "worker_types": kinds}
    return _text({**document, "rows": [listed(key, row) for key, row in rows.items()]})


@lru_cache(maxsize=1)
def _shipped() -> frozenset[str]:
    return frozenset(name for name, _ in _native.policies())


class Study:
    """The results of a sweep, in a folder: the same as `apportion sweep` keeps."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: Where they are.
        self.folder = Path(folder)
        self._results = Results(self.folder)
        #: A row per run: its value on each axis, `status`, `reason`, `capacity` (jobs/h), each of `apportion.metrics()` (NaN = none),
        #: wall `seconds`, `digest`.
        self.runs = Table(self._results.runs())

    @property
    def name(self) -> str:
        """The sweep's name."""
        return self._results.name

    @property
    def axes(self) -> list[str]:
        """What is varied, the first slowest."""
        return self._results.axes

    @property
    def jobs(self) -> Table:
        """The measured jobs of the runs that kept them (`keep_jobs=True`), with the `digest` of their run and what they received, as
        in `Run.jobs`. In results of older versions that is NaN, and −1 preemptions."""
        return Table(self._results.jobs())

    def to_pandas(self) -> Any:
        """The runs as a `pandas.DataFrame`."""
        return self.runs.to_pandas()

    def to_polars(self) -> Any:
        """The runs as a `polars.DataFrame`."""
        return self.runs.to_polars()

    def means(self, metric: str = "average_jct") -> Table:
        """Mean and standard deviation (n − 1) of a metric over seeds, a row per point of the other axes.

        A point whose seeds do not all have a value has no mean: `n` of `of` seeds do, and `mean` is NaN.
        """
        if metric not in (names := [name for name, *_ in _native.metrics()]):
            raise InputError(f"unknown metric {metric!r}, expected one of {', '.join(names)}")
        others = [axis for axis in self.axes if axis != "seed"]
        values = self.runs[metric].astype(np.float64)
        groups: dict[tuple[Any, ...], list[float]] = {}
        for row in range(self.runs.n_rows):
            groups.setdefault(tuple(self.runs[axis][row] for axis in others), []).append(values[row])
        expected = len(set(self.runs["seed"].tolist())) if "seed" in self.axes else 1
        columns: dict[str, list[Any]] = {axis: [] for axis in others}
        columns |= {"mean": [], "std": [], "n": [], "of": []}
        for point, of_seeds in groups.items():
            known = np.array([value for value in of_seeds if not np.isnan(value)])
            whole = len(known) == expected
            for axis, value in zip(others, point):
                columns[axis].append(value)
            columns["mean"].append(float(known.mean()) if whole else np.nan)
            columns["std"].append(float(known.std(ddof=1)) if whole and len(known) > 1 else np.nan)
            columns["n"].append(len(known))
            columns["of"].append(expected)
        return Table(columns)

    def plot(self, metric: str = "average_jct", *, x: str = "rate", by: str = "policy", ax: Any = None) -> Any:
        """Draws a metric against an axis, a line per value of another, with matplotlib; gives its `Axes`.

        Points are means over seeds with their standard deviation. Where a seed has no value, a hollow mark at the bottom says so.
        """
        import matplotlib.pyplot

        known = {name: (unit, label) for name, unit, label, *_ in _native.metrics()}
        if metric not in known:
            raise InputError(f"unknown metric {metric!r}, expected one of {', '.join(known)}")
        for axis in (x, by):
            if axis not in self.axes:
                raise InputError(f"{axis!r} is not varied, expected one of {', '.join(self.axes)}")
        if rest := [axis for axis in self.axes if axis not in (x, by, "seed")]:
            raise InputError(f"{rest[0]!r} is varied, too: its values would be drawn over each other", help="draw one value at a time from to_pandas()")
        ax = matplotlib.pyplot.gca() if ax is None else ax
        unit, label = known[metric]
        scale, shown = {"s": (1 / 3600, "h"), "1": (1.0, ""), "$": (1.0, "$")}.get(unit, (1.0, ""))
        table = self.means(metric)
        for number, series in enumerate(dict.fromkeys(table[by].tolist())):
            here = np.array([value == series for value in table[by].tolist()])
            order = np.argsort(table[x][here].astype(np.float64))
            places = table[x][here].astype(np.float64)[order]
            mean, std = table["mean"][here][order] * scale, table["std"][here][order] * scale
            color = f"C{number % 10}"
            ax.errorbar(places, mean, yerr=np.nan_to_num(std), marker="o", capsize=2, color=color, label=str(series))
            missing = np.isnan(mean)
            if missing.any():
                ax.plot(places[missing], np.zeros(missing.sum()), "o", mfc="none", color=color, clip_on=False, transform=ax.get_xaxis_transform())
        ax.set_xlabel("arrival rate (jobs/h)" if x == "rate" else x)
        ax.set_ylabel(f"{label} ({shown})" if shown else label)
        ax.legend()
        return ax

    def report(self, path: str | os.PathLike[str], *, baseline: str | None = None) -> Path:
        """Writes the page about the results, one HTML file that needs no network; gives its path."""
        text = self._results.page(baseline)
        target = Path(path)
        target.write_text(text, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {os.fspath(self.folder)!r}: {self.runs.n_rows} runs>"


def sweep(
    study: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    policies: AnyPolicy | Sequence[AnyPolicy] = (),
    rates: Any = None,
    seeds: Iterable[int] | None = None,
    axes: Mapping[str, Any] | None = None,
    stop: Mapping[str, Any] | None = None,
    name: str | None = None,
    quick: bool = False,
    only: Iterable[str] = (),
    threads: int | None = None,
    keep_jobs: bool = False,
    retry: bool = False,
    progress: Callable[[int, int, list[str], str], None] | None = None,
    **fields: Any,
) -> Study:
    """Runs many simulations on all cores, and keeps each in the folder `out` as it ends: a sweep that was stopped goes on.

    `study` is a shipped sweep's name, the path of a sweep file, or a document's text. Or the sweep is made of arguments: `policies`,
    `rates` (jobs/h) and `seeds` are its axes, more are in `axes` ({field: values}), and `fields` are those of every run, as for
    `simulate`. `stop` is when a run is not made or not finished ({"saturated": True, "wall": "10min"}). `progress` is called with runs
    ended, runs to be made, the values on each axis, and the status.

    A policy may be a function; its results are kept under its attribute `policy_version`, or else under its text and what it reads:
    defaults, what it closes over, and functions, numbers and text of its module. It must not depend on anything else that changes.
    """
    given = _Given(is_kept=True)
    if not os.fspath(out):
        raise InputError("out is empty, expected a folder")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= 2**16):
        raise InputError(f"threads is {threads!r}, expected a whole number from 1 to {2**16}")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}, expected a function")
    making = {
        "out": Path(out),
        "quick": quick,
        "only": [only] if isinstance(only, str) else [str(value) for value in only],
        "threads": None if threads is None else int(threads),
        "keep_jobs": keep_jobs,
        "retry": retry,
    }
    if study is not None:
        if policies != () or rates is not None or seeds is not None or axes or fields or stop or name:
            raise InputError("a study has axes and fields of its own", help="leave out the study, or what it says")
        text = os.fspath(study)
        _native.sweep(text, "\n" in text, given.native(), making, progress)
        return Study(out)
    varied: dict[str, Any] = {}
    if isinstance(policies, (str, os.PathLike, Policy)) or callable(policies):
        policies = [policies]
    if policies:
        varied["policy"] = [given.policy(policy) for policy in policies]
    if rates is not None:
        varied["rate"] = rates if isinstance(rates, (str, Mapping)) else np.atleast_1d(_listed("rates", rates)).tolist()
    if seeds is not None:
        varied["seed"] = _listed("seeds", seeds)
    for axis, values in (axes or {}).items():
        if not isinstance(values, (str, Mapping)):
            values = [given.field(axis, value) for value in _listed(f"axes: {axis}", values)]
        varied[axis] = values
    document: dict[str, Any] = {
        "format": "apportion/sweep-v1",
        "name": name or re.sub("[^A-Za-z0-9._-]+", "_", Path(out).resolve().name)[:100] or "sweep",
        "run": given.fields(fields),
        "axes": varied,
    }
    if stop:
        document["stop"] = dict(stop)
    _native.sweep(_text(document), True, given.native(), making, progress)
    return Study(out)


def _listed(what: str, values: Any) -> list[Any]:
    """The values of an axis."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{what}: {values!r} is one value, expected several", help=f"[{values!r}], or range({values!r})")
    return list(values)


def metrics() -> Table:
    """The numbers of a run: `name`, `unit` in results, `label`, `meaning`, and which value is `better`."""
    rows = _native.metrics()
    names = ("name", "unit", "label", "meaning", "better")
    return Table({name: [row[place] for row in rows] for place, name in enumerate(names)})
