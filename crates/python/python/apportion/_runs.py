"""Simulations and sweeps: runs in, columns out."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from . import _native
from ._columns import Numbers, Table, flag_of, is_listed, is_set, path_of, short, text_of, whole_of, with_unit
from ._errors import InputError, ResultsError
from ._given import Given, check_numbers, document_text
from ._native import Results
from ._policy import AnyPolicy, Policy

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
        self.summary: dict[str, float | None] = Numbers(answer["summary"])
        #: Busy worker-time over worker-time, by worker type, and of `all`.
        self.utilization: dict[str, float] = answer["utilization"]
        #: The measured jobs, and what they received: `wait_s` for their first workers, `service_s` (time with workers), `preemptions`,
        #: `worker_hours_TYPE` (of workers that two jobs shared, half), `cost` ($), and the part of their time that they had workers
        #: (`share_received`) and that allocations gave them (`share_owed`). NaN for what did not come to pass.
        self.jobs = Table(answer["jobs"])
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
        """A row per round: `time_s`, `round`, `active_jobs`, `leases`."""
        return self._table("rounds")

    @property
    def leases(self) -> Table:
        """A row per lease: `time_s`, `round`, `job` and `partner` (positions in order of arrival, −1 = none), `worker_type`,
        `workers`, `servers`, and whether the workers are those of the round before (`extended`)."""
        return self._table("leases")

    @property
    def slices(self) -> Table:
        """A row per slice that ran: `start_s`, `end_s`, `job`, `partner`, `worker_type`, `workers`, `busy_s` and `overhead_s`, `steps`,
        `partner_steps`, `succeeded`. Under `semantics="gavel"`, `busy_s` is the time that the published simulator credits, at times longer
        than the slice."""
        return self._table("slices")

    @property
    def decisions(self) -> Table:
        """A row per decision of the policy: `time_s`, `jobs`, `backend`, `route`, `iterations`, `certificate` (`optimal`, `not
        proven`, None without an objective), wall `seconds` (NaN where nothing was solved)."""
        return self._table("decisions")

    @property
    def allocations(self) -> Table:
        """A row per share of a decision: `time_s`, `job`, `partner`, `worker_type`, `share`."""
        return self._table("allocations")

    def __repr__(self) -> str:
        average = self.summary["average_jct_s"]
        hours = "no job done" if average is None else f"average completion time {average / 3600:.2f} h"
        return f"<Run, {self.status}: {self.jobs.n_rows} jobs, {hours}>"


def simulate(
    policy: AnyPolicy = "max_min_fairness_perf",
    cluster: str | Mapping[str, SupportsIndex] | None = None,
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
    given up, as in a sweep: {"wall": "10min", "decision": "5s"}. A function that takes longer is given up once it has answered; rules
    that ship with apportion have no such limit.

    A policy may be a function of a `Problem`: it is called with Python's lock held, while the rest runs without it.

    >>> run = simulate("fifo", "v100=2,p100=2,k80=2", rate=0.2, jobs=20)
    >>> run.status, run.jobs.n_rows
    ('done', 20)
    """
    kept = {name: False for name in TABLES}
    if not (keep is None or isinstance(keep, str) or is_listed(keep)):
        raise InputError(f"keep is {short(keep)}, expected names of tables")
    for name in [keep] if isinstance(keep, str) else keep or ():
        if not isinstance(name, str) or name not in kept:
            raise InputError(f"keep: unknown table {short(name)}, expected one of {', '.join(TABLES)}")
        kept[name] = True
    if cluster is None:
        raise InputError("no cluster is given", help='such as "v100=36,p100=36,k80=36"')
    given = Given(is_kept=False)
    run = {"policy": given.policy(policy), **given.fields({"cluster": cluster, **fields})}
    # One point of a sweep: what is varied has one value.
    varied = {"seed": [whole_of("seed", run.pop("seed", 0), 0, 2**64 - 1)]}
    document: dict[str, Any] = {"format": "apportion/sweep-v1", "name": "run", "run": run, "axes": varied}
    if stop is not None:
        document["stop"] = _stop(stop)
    return Run(_native.simulate(document_text(document), given.native(), kept), given.is_told_apart)


class Study:
    """The results of a sweep, in a folder: the same as `apportion sweep` keeps."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: Where they are.
        self.folder = Path(path_of("folder", folder))
        self._results = Results(self.folder)
        #: A row per run: its value on each axis, `status`, `reason`, `capacity` (jobs/h), those of `apportion.metrics()` that sweeps keep
        #: (NaN = none), wall `seconds`, `digest`.
        self.runs = Table(self._results.runs())

    def __reduce__(self) -> tuple[Any, ...]:
        return Study, (self.folder,)

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

    @property
    def allocations(self) -> Table:
        """The shares of every decision of the runs that kept them (`keep_allocations=True`), a row per share: the run's value on each
        axis, `from_s` and `until_s` (the instant of the decision and that of the next), `job` and `partner` (positions in order of
        arrival, −1 = none), `worker_type`, `share`, and the `digest` of the run."""
        table = Table(self._results.allocations())
        if not table.n_rows:
            help = "sweep(…, keep_allocations=True) keeps them; runs that are done are not run again"
            raise InputError("no run of these results has kept its allocations", help=help)
        return table

    def to_pandas(self) -> Any:
        """The runs as a `pandas.DataFrame`."""
        return self.runs.to_pandas()

    def to_polars(self) -> Any:
        """The runs as a `polars.DataFrame`."""
        return self.runs.to_polars()

    def means(self, metric: str = "average_jct_s") -> Table:
        """Mean and standard deviation (n − 1) of a metric over seeds, a row per point of the other axes.

        A point whose seeds do not all have a value has no mean: `n` of `of` seeds do, and `mean` is NaN. Seeds and points are those that
        the sweep asked for, also where it was stopped before their runs were made.
        """
        metric = with_unit(metric, self.runs) or metric
        self._unit_and_label(metric)
        others = [axis for axis in self.axes if axis != "seed"]
        asked = dict(zip(self.axes, self._results.asked()))
        groups: dict[tuple[Any, ...], list[float]] = {point: [] for point in itertools.product(*(asked[axis] for axis in others))}
        points = list(zip(*(self.runs[axis].tolist() for axis in others))) if others else [()] * self.runs.n_rows
        for point, value in zip(points, self.runs[metric].astype(np.float64).tolist()):
            groups.setdefault(point, []).append(value)
        expected = len(asked.get("seed", [0]))
        columns: dict[str, list[Any]] = {axis: [] for axis in others}
        columns |= {"mean": [], "std": [], "n": [], "of": []}
        # (an axis that looks for its values has more than were asked for)
        places = [{value: place for place, value in enumerate(dict.fromkeys(values))} for values in zip(*groups)]
        in_order = sorted(groups, key=lambda point: [place[value] for place, value in zip(places, point)])
        for point, of_seeds in ((point, groups[point]) for point in in_order):
            known = np.array([value for value in of_seeds if not np.isnan(value)])
            whole = len(known) == expected
            for axis, value in zip(others, point):
                columns[axis].append(value)
            columns["mean"].append(float(known.mean()) if whole else np.nan)
            columns["std"].append(float(known.std(ddof=1)) if whole and len(known) > 1 else np.nan)
            columns["n"].append(len(known))
            columns["of"].append(expected)
        return Table(columns)

    def _unit_and_label(self, metric: Any) -> tuple[str, str]:
        """The unit and the label of a metric that the runs have."""
        known = {name: (unit, label) for name, unit, label, *_ in _native.metrics() if name in self.runs}
        if not isinstance(metric, str) or metric not in known:
            raise InputError(f"unknown metric {short(metric)}, expected one of {', '.join(known)}")
        return known[metric]

    def plot(self, metric: str = "average_jct_s", *, x: str = "rate", by: str = "policy", ax: Any = None) -> Any:
        """Draws a metric against an axis, a line per value of another, with matplotlib; gives its `Axes`.

        Points are means over seeds with their standard deviation. Where a seed has no value, a hollow mark at the bottom says so.
        """
        import matplotlib.pyplot

        metric = with_unit(metric, self.runs) or metric
        unit, label = self._unit_and_label(metric)
        for axis in (x, by):
            if axis not in self.axes:
                raise InputError(f"{axis!r} is not varied, expected one of {', '.join(self.axes)}")
        if rest := [axis for axis in self.axes if axis not in (x, by, "seed")]:
            raise InputError(f"{rest[0]!r} is varied, too: its values would be drawn over each other", help="draw one value at a time from to_pandas()")
        ax = matplotlib.pyplot.gca() if ax is None else ax
        scale, shown = {"s": (1 / 3600, "h"), "1": (1.0, ""), "$": (1.0, "$")}.get(unit, (1.0, ""))
        table = self.means(metric)
        try:
            of_x = table[x].astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"x is {x!r}, whose values are not numbers", help=f"by={x!r} draws a line for each of them") from None
        for number, series in enumerate(dict.fromkeys(table[by].tolist())):
            here = np.array([value == series for value in table[by].tolist()])
            order = np.argsort(of_x[here])
            places = of_x[here][order]
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
        target = Path(path_of("path", path))
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
    keep_allocations: bool = False,
    retry: bool = False,
    progress: Callable[[int, int, list[str], str], None] | None = None,
    **fields: Any,
) -> Study:
    """Runs many simulations on all cores, and keeps each in the folder `out` as it ends: a sweep that was stopped goes on.

    `study` is a shipped sweep's name, the path of a sweep file, or a document's text. Or the sweep is made of arguments: `policies`,
    `rates` (jobs/h) and `seeds` are its axes, more are in `axes` ({field: values}), and `fields` are those of every run, as for
    `simulate`. `stop` is when a run is not made or not finished ({"saturated": True, "wall": "10min"}). `progress` is called with runs
    ended, runs to be made, the values on each axis, and the status. `keep_jobs` keeps the jobs for `Study.jobs`, and `keep_allocations`
    the shares of every decision for `Study.allocations`. `name` is that of the folder if it is not given: a sweep whose folder was renamed
    or copied goes on by the name that it had.

    A policy may be a function; its results are kept under its attribute `policy_version`, or else under its text and what it reads:
    defaults, what it closes over, and functions, numbers and text of its module. It must not depend on anything else that changes.
    """
    given = Given(is_kept=True)
    kept = {"keep_jobs": keep_jobs, "keep_allocations": keep_allocations}
    making = _making(out, quick=quick, only=only, threads=threads, retry=retry, **kept)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {short(progress)}, expected a function")
    if study is not None:
        if policies != () or rates is not None or seeds is not None or axes or fields or stop or name:
            raise InputError("a study has axes and fields of its own", help="leave out the study, or what it says")
        text = path_of("study", study)
        return _swept(given, making, progress, text, None)
    if quick:
        raise InputError("quick is of a study that has a quick form", help="leave it out")
    document: dict[str, Any] = {
        "format": "apportion/sweep-v1",
        "name": re.sub("[^A-Za-z0-9._-]+", "_", Path(making["out"]).resolve().name)[:100] or "sweep",
        "run": given.fields(fields),
        "axes": _varied(given, policies, {"rate": rates, "seed": seeds}, axes),
    }
    fixed = {**document["run"], **document["axes"]}
    if "policy" not in fixed:
        raise InputError("no policies are given", help="policies=[...]; apportion.policies() names those that ship")
    if "cluster" not in fixed:
        raise InputError("no cluster is given", help="cluster={'v100': 36, 'p100': 36, 'k80': 36}")
    if name is not None:
        document["name"] = text_of("name", name)
    if stop is not None:
        document["stop"] = _stop(stop)
    return _swept(given, making, progress, document_text(document), document["name"])


def _swept(given: Given, making: dict[str, Any], progress: Any, study: str, name: str | None) -> Study:
    """Makes the runs of a study, a name, a path or a text, which arguments were made into where it has a `name` that they can change.

    Where the folder has results of another study, the error says how to go on.
    """
    folder = making["out"]
    try:
        _native.sweep(study, name is not None or "\n" in study, given.native(), making, progress)
    except ResultsError as error:
        if "of another study" not in error.args[0]:
            raise
        raise ResultsError(error.args[0], help=_of_another(folder, name)) from None
    return Study(folder)


def _of_another(folder: Path, name: str | None) -> str:
    """What to do where a folder has results of another study than that of this name."""
    elsewhere = "another out=… keeps these results elsewhere"
    try:
        kept = Results(folder).name
    except ResultsError:
        return elsewhere
    if name is None:
        return elsewhere
    if kept == name:
        return f"{elsewhere}; a folder keeps the axes and the other fields that it began with"
    return f"name={kept!r} goes on with them, if they are of this sweep and the folder was renamed or copied; {elsewhere}"


def _making(out: Any, *, only: Any, threads: Any, **flags: Any) -> dict[str, Any]:
    """How a sweep is made, as the engine takes it."""
    folder = path_of("out", out)
    if not folder:
        raise InputError("out is empty, expected a folder")
    checked = {name: flag_of(name, value) for name, value in flags.items()}
    if not (isinstance(only, str) or is_listed(only)):
        raise InputError(f"only is {short(only)}, expected a list of axis=value")
    listed = [text_of("only", str(value)) for value in ([only] if isinstance(only, str) else only)]
    n_threads = None if threads is None else whole_of("threads", threads, 1, 2**16)
    return {"out": Path(folder), "only": listed, "threads": n_threads, **checked}


def _varied(given: Given, policies: Any, numbers: Mapping[str, Any], axes: Any) -> dict[str, Any]:
    """The axes of a sweep: of policies, of rates and seeds, and those that are named. Each is given once."""
    varied: dict[str, Any] = {}
    if isinstance(policies, (str, os.PathLike, Policy)) or callable(policies):
        policies = [policies]
    if not is_listed(policies) or isinstance(policies, Mapping) or is_set(policies):
        raise InputError(f"policies are {short(policies)}, expected a list of policies")
    if listed := [given.policy(policy) for policy in policies]:
        varied["policy"] = listed
    for axis, values in numbers.items():
        if values is None:
            continue
        is_text = axis == "rate" and isinstance(values, (str, Mapping))
        varied[axis] = values if is_text else [_plain(value) for value in _listed(f"{axis}s", values)]
        check_numbers(f"{axis}s", varied[axis])
    if not (axes is None or isinstance(axes, Mapping)):
        raise InputError(f"axes are {short(axes)}, expected a mapping of fields to values")
    for axis, values in (axes or {}).items():
        if axis in varied:
            argument = {"policy": "policies", "rate": "rates", "seed": "seeds"}[axis]
            raise InputError(f"axes: {axis!r} is given twice, by {argument} and in axes", help="leave one of them out")
        if not isinstance(values, (str, Mapping)):
            values = [given.field(axis, value) for value in _listed(f"axes: {axis}", values)]
        varied[text_of("a name in axes", axis)] = values
    return varied


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _stop(stop: Any) -> dict[str, Any]:
    """When runs are given up."""
    if not isinstance(stop, Mapping):
        raise InputError(f"stop is {short(stop)}, expected a mapping", help='such as {"wall": "10min", "decision": "5s"}')
    check_numbers("stop", stop)
    return dict(stop)


def _listed(what: str, values: Any) -> list[Any]:
    """The values of an axis."""
    if not is_listed(values):
        one = values.item() if isinstance(values, (np.generic, np.ndarray)) else values
        counted = f", or range({one!r})" if what == "seeds" and isinstance(one, int) else ""
        raise InputError(f"{what}: {short(values)} is one value, expected several", help=f"[{one!r}]{counted}")
    if is_set(values) or isinstance(values, Mapping):
        raise InputError(f"{what}: {short(values)} has no order, expected a list")
    return list(values)


def metrics() -> Table:
    """The numbers of `Run.summary`: `name`, `unit` in results, `label`, `meaning`, and which value is `better`."""
    rows = _native.metrics()
    names = ("name", "unit", "label", "meaning", "better")
    return Table({name: [row[place] for row in rows] for place, name in enumerate(names)})
