"""Simulations and sweeps: runs in, columns out."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap
from test_decide import command

CLUSTER = "v100=2,p100=2,k80=2"
SMALL: dict[str, Any] = {"cluster": {"v100": 2, "p100": 2, "k80": 2}, "rate": 0.4, "jobs": 25}


def water(p: ap.Problem) -> np.ndarray:
    """An equal share of every worker type."""
    return np.where(p.throughputs > 0, np.minimum(1 / len(p.workers), p.workers / (p.scale_factor[:, None] * p.n_jobs)), 0)


def test_a_simulation_is_that_of_the_command() -> None:
    for policy in ["fifo", "max_min_fairness_perf", "max_min_fairness_packed", "deepshare"]:
        said = subprocess.run(
            [command(), "simulate", "--policy", policy, "--cluster", CLUSTER, "--rate", "0.4", "--jobs", "25", "--seed", "3", "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        theirs = json.loads(said.stdout)
        run = ap.simulate(policy, CLUSTER, rate=0.4, jobs=25, seed=3)
        assert run.status == "done" and run.reason is None
        assert run.summary["average_jct_s"] == theirs["average_jct_s"], policy
        assert run.summary["makespan_s"] == theirs["makespan_s"]
        assert run.jobs["jct_s"].tolist() == [job["jct_s"] for job in theirs["jobs"]]
        assert run.digest == theirs["digest"]


def test_tables_agree_with_one_another() -> None:
    run = ap.simulate("max_min_fairness_packed", **SMALL)
    assert run.jobs.n_rows == 25 and run.summary["n_jobs"] == 25
    assert run.jobs["jct_s"].mean() == pytest.approx(run.summary["average_jct_s"])
    # What jobs received: workers for no longer than they were there, and half of those that two of them shared.
    jobs = run.jobs
    assert (jobs["wait_s"] >= 0).all() and (jobs["service_s"] <= jobs["jct_s"] + 1e-6).all()
    assert (jobs["share_received"] <= 1 + 1e-9).all() and (jobs["share_owed"] <= 1 + 1e-9).all()
    hours = sum(jobs[f"worker_hours_{name}"] for name in run.worker_types)
    whole = jobs["service_s"] * jobs["scale_factor"] / 3600
    assert (hours <= whole + 1e-9).all() and (hours >= whole / 2 - 1e-9).all() and (hours < whole - 1e-9).any()
    assert run.rounds["leases"].sum() == run.leases.n_rows == run.summary["leases"]
    assert run.decisions.n_rows == run.summary["solves"] and set(run.decisions["certificate"]) == {"optimal"}
    assert set(run.leases["worker_type"]) <= set(run.worker_types) == {"v100", "p100", "k80"}
    assert (run.leases["partner"] >= 0).any()
    for instant in np.unique(run.allocations["time_s"]):
        here = run.allocations["time_s"] == instant
        alone = here & (run.allocations["partner"] < 0)
        for job in np.unique(run.allocations["job"][alone]):
            assert run.allocations["share"][alone & (run.allocations["job"] == job)].sum() <= 1 + 1e-6
    busy = (run.slices["busy_s"] * run.slices["workers"]).sum()
    assert 0 < busy < run.summary["makespan_s"] * 6
    few = ap.simulate("fifo", keep=["rounds"], **SMALL)
    assert few.rounds.n_rows > 0
    with pytest.raises(ap.InputError, match="leases were not kept"):
        few.leases
    with pytest.raises(ap.InputError, match="unknown table"):
        ap.simulate("fifo", keep=["lease"], **SMALL)


def test_tables_go_to_pandas_and_polars() -> None:
    run = ap.simulate("fifo", **SMALL)
    pandas = pytest.importorskip("pandas")
    frame = run.jobs.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 25 and list(frame.columns)[0] == "name"
    polars = pytest.importorskip("polars")
    assert isinstance(run.leases.to_polars(), polars.DataFrame)
    assert run.leases.to_polars().height == run.leases.n_rows


def test_a_function_decides_in_a_simulation() -> None:
    asked: list[int] = []

    def counted(p: ap.Problem) -> np.ndarray:
        asked.append(p.n_jobs)
        assert len(set(p.names)) == p.n_jobs
        return water(p)

    run = ap.simulate(counted, **SMALL)
    assert run.status == "done" and len(asked) > 10
    # Nothing is asked of a function about no jobs.
    assert min(asked) >= 1 and len(asked) <= run.summary["solves"]


def test_what_a_function_raises_comes_out(tmp_path: Path) -> None:
    class Mine(Exception):
        pass

    def failing(p: ap.Problem) -> np.ndarray:
        if p.n_jobs > 2:
            raise Mine("three")
        return water(p)

    with pytest.raises(Mine, match="three"):
        ap.simulate(failing, **SMALL)
    study = ap.sweep(policies=[failing, "fifo"], seeds=[0], out=tmp_path / "failing", **SMALL)
    frame = dict(zip(study.runs["policy"], zip(study.runs["status"], study.runs["reason"])))
    assert frame["fifo"] == ("done", None)
    assert frame["failing"][0] == "failed" and "Mine: three" in frame["failing"][1]
    with pytest.raises(ap.AllocationError) as raised:
        ap.simulate(lambda p: np.ones(p.throughputs.shape), **SMALL)
    if sys.version_info >= (3, 11):
        assert any("simulated hours" in note for note in raised.value.__notes__)


def test_a_function_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    # (a nanosecond is too short for any)
    run = ap.simulate(water, **SMALL, stop={"decision": 1e-9})
    assert run.status == "timeout" and run.reason is not None and "`water` answered too late" in run.reason
    assert ap.simulate(water, **SMALL, stop={"decision": "1h"}).status == "done"
    study = ap.sweep(policies=[water], seeds=[0], out=tmp_path / "slow", stop={"decision": 1e-9}, **SMALL)
    assert study.runs["status"].tolist() == ["timeout"]


def test_a_simulation_that_gets_nowhere_says_so() -> None:
    run = ap.simulate("max_min_fairness_perf", {"v100": 1}, static=2, preemption_cost=360)
    assert run.status == "livelock" and run.reason
    nothing = ap.simulate(lambda p: np.zeros(p.throughputs.shape), "v100=1", static=1)
    assert nothing.status in ("starved", "done")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rat": 1.0}, "rat"),
        ({"rate": -1.0, "jobs": 5}, "rate"),
        ({"rate": 1.0, "static": 5}, "static|rate"),
        ({"rate": 1.0, "jobs": 5, "throughputs": "osdi21"}, "osdi21"),
        ({"trace": "nowhere.csv"}, "nowhere.csv"),
        ({"rate": 1.0, "jobs": 5, "semantics": "gavell"}, "gavell"),
        ({"rate": 1.0, "jobs": 5, "cluster": "v101=1"}, "v101"),
        ({"rate": 1.0, "jobs": 5, "seed": -1}, "seed|-1"),
        ({"rate": object(), "jobs": 5}, "no value"),
    ],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.simulate("fifo", **{"cluster": CLUSTER, **fields})


def test_a_trace_from_columns(tmp_path: Path) -> None:
    trace = ap.traces.table(
        id=["a", "b,c", 'd "e"'],
        job_type=["ResNet-50 (batch size 64)"] * 3,
        total_steps=[10_000, 20_000, 30_000],
        arrival=np.array([1000.0, 1060.5, 1120.25]),
        scale_factor=[1, 2, 1],
    )
    run = ap.simulate("max_min_fairness_perf", CLUSTER, trace=trace)
    assert run.jobs["name"].tolist() == ["a", "b,c", 'd "e"'] and run.jobs["arrival_s"].tolist() == [1000.0, 1060.5, 1120.25]
    assert run.leases["time_s"].min() >= 1000
    trace.write(tmp_path / "jobs.csv")
    again = ap.traces.read(tmp_path / "jobs.csv", throughputs="osdi20")
    assert again["arrival"].tolist() == trace["arrival"].tolist() and again["id"].tolist() == trace["id"].tolist()
    assert again.report() == {}
    assert ap.simulate("max_min_fairness_perf", CLUSTER, trace=trace).digest == run.digest
    of_file = ap.simulate("max_min_fairness_perf", CLUSTER, trace=tmp_path / "jobs.csv")
    assert of_file.jobs["jct_s"].tolist() == run.jobs["jct_s"].tolist()
    with pytest.raises(ap.InputError) as raised:
        ap.traces.read(__file__)
    assert raised.value.line == 1
    with pytest.raises(ap.InputError, match="arrival"):
        ap.traces.table(job_type=["x"], total_steps=[1])


def test_a_sweep_is_kept_and_goes_on(tmp_path: Path) -> None:
    made: list[tuple[int, int]] = []

    def one(seeds: list[int]) -> ap.Study:
        made.clear()
        return ap.sweep(
            policies=["fifo", water],
            rates=[0.2, 0.4],
            seeds=seeds,
            out=tmp_path / "study",
            cluster=SMALL["cluster"],
            jobs=10,
            progress=lambda done, of, values, status: made.append((done, of)),
        )

    assert one([0]).runs.n_rows == 4 and made[-1] == (4, 4)
    study = one([0])
    assert made == [] and study.runs.n_rows == 4 and study.axes == ["policy", "rate", "seed"]
    study = one([0, 1])
    assert len(made) == 4 and study.runs.n_rows == 8 and set(study.runs["status"]) == {"done"}
    table = study.means("average_jct_s")
    assert table.n_rows == 4 and table["n"].tolist() == [2] * 4
    rows = (study.runs["policy"] == "water") & (study.runs["rate"].astype(float) == 0.2)
    at = (table["policy"] == "water") & (table["rate"].astype(float) == 0.2)
    assert table["mean"][at][0] == pytest.approx(study.runs["average_jct_s"][rows].mean())
    alone = ap.simulate(water, rate=0.2, seed=1, cluster=SMALL["cluster"], jobs=10)
    of_sweep = study.runs["average_jct_s"][rows & (study.runs["seed"].astype(int) == 1)]
    assert of_sweep.tolist() == [alone.summary["average_jct_s"]]
    page = study.report(tmp_path / "page.html")
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert ap.Study(tmp_path / "study").runs.n_rows == 8


def test_allocations_are_those_that_the_command_shows(tmp_path: Path) -> None:
    study = ap.sweep(policies=["max_min_fairness_packed", "max_min_fairness"], seeds=[0, 1], out=tmp_path / "kept", keep_allocations=True, **SMALL)
    shares = study.allocations
    said = subprocess.run(
        [command(), "results", "show", str(tmp_path / "kept"), "--allocations", "--format", "csv"], capture_output=True, text=True, check=True
    )
    theirs = list(csv.DictReader(said.stdout.splitlines()))
    assert list(shares) == [*theirs[0], "digest"] and shares.n_rows == len(theirs) > 100
    for name in ("policy", "worker_type"):
        assert shares[name].tolist() == [row[name] for row in theirs]
    assert shares["seed"].tolist() == [int(row["seed"]) for row in theirs]
    assert shares["job"].tolist() == [int(row["job"]) for row in theirs]
    assert shares["partner"].tolist() == [int(row["partner"] or -1) for row in theirs]
    assert (shares["partner"] >= 0).any()
    for name in ("from_s", "until_s", "share"):
        assert shares[name] == pytest.approx(np.array([float(row[name]) for row in theirs]), abs=1e-4)
    assert set(shares["digest"]) == set(study.runs["digest"])
    without = ap.sweep(policies=["fifo"], seeds=[0], out=tmp_path / "without", **SMALL)
    with pytest.raises(ap.InputError, match="no run of these results has kept its allocations"):
        without.allocations


def test_a_mean_is_of_all_its_seeds(tmp_path: Path) -> None:
    study = ap.sweep(
        policies=["fifo"], seeds=range(2), axes={"rate": [0.2, 50.0]}, out=tmp_path / "s", stop={"saturated": True}, cluster=SMALL["cluster"], jobs=5
    )
    assert sorted(study.runs["status"]) == ["done", "done", "saturated", "saturated"]
    table = study.means()
    assert np.isnan(table["mean"]).sum() == 1 and sorted(table["n"].tolist()) == [0, 2]
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = study.plot()
    assert ax.get_ylabel().endswith("(h)")
    with pytest.raises(ap.InputError, match="unknown metric"):
        study.plot("jct")


def test_a_seed_without_a_number_leaves_no_mean(tmp_path: Path) -> None:
    first = {seed: ap.simulate("fifo", seed=seed, **SMALL).jobs["job_type"][0] for seed in range(8)}
    other = next(seed for seed in first if first[seed] != first[0])

    def choosy(p: ap.Problem) -> np.ndarray:
        if p.names[0] == 0 and p.job_type[0] != first[0]:
            raise RuntimeError("not this one")
        return water(p)

    study = ap.sweep(policies=[choosy, "fifo"], seeds=[0, other], out=tmp_path / "s", **SMALL)
    table = study.means()
    of = {name: row for row, name in enumerate(table["policy"])}
    assert (table["n"][of["choosy"]], table["of"][of["choosy"]]) == (1, 2)
    assert np.isnan(table["mean"][of["choosy"]]) and np.isnan(table["std"][of["choosy"]])
    values = study.runs["average_jct_s"][study.runs["policy"] == "fifo"]
    assert table["mean"][of["fifo"]] == pytest.approx(values.sum() / 2)
    assert table["std"][of["fifo"]] == pytest.approx(abs(values[0] - values[1]) / np.sqrt(2)), "of n - 1"


def test_other_results_are_not_mixed_in(tmp_path: Path) -> None:
    ap.sweep(policies=["fifo"], seeds=[0], out=tmp_path / "s", **SMALL)
    with pytest.raises(ap.ResultsError, match=f"other fixed fields: `jobs` is {SMALL['jobs']} there, 3 now"):
        ap.sweep(policies=["fifo"], seeds=[0], out=tmp_path / "s", **{**SMALL, "jobs": 3})
    with pytest.raises(ap.ResultsError):
        ap.Study(tmp_path / "nothing")


def test_results_of_a_function_are_kept_under_its_text(tmp_path: Path) -> None:
    def build(share: float) -> Any:
        def mine(p: ap.Problem) -> np.ndarray:
            return water(p) * share

        return mine

    def run(policy: Any) -> int:
        made: list[int] = []
        ap.sweep(policies=[policy], seeds=[0], out=tmp_path / "s", progress=lambda done, *_: made.append(done), **SMALL)
        return len(made)

    assert [run(build(1.0)), run(build(1.0)), run(build(0.5)), run(build(1.0))] == [1, 0, 1, 0]
    versioned = build(1.0)
    versioned.policy_version = "2"
    assert [run(versioned), run(versioned)] == [1, 0]
    unreadable = build(1.0)
    unreadable.__defaults__ = (threading.Lock(),)
    with pytest.raises(ap.InputError, match="policy_version"):
        run(unreadable)
    with pytest.raises(ap.InputError, match="two policies are called"):
        ap.sweep(policies=[build(1.0), build(0.5)], seeds=[0], out=tmp_path / "t", **SMALL)


def test_shipped_sweeps_and_documents_run(tmp_path: Path) -> None:
    study = ap.sweep("quick", out=tmp_path / "quick", only=["seed=0", "policy=fifo", "rate=0.1"])
    assert study.runs.n_rows == 1
    text = f"format: apportion/sweep-v1\nname: mine\nrun: {{cluster: {{v100: 2}}, rate: 0.1, jobs: 3}}\naxes: {{policy: [fifo, isolated]}}\n"
    assert ap.sweep(text, out=tmp_path / "mine").runs.n_rows == 2
    with pytest.raises(ap.InputError) as raised:
        ap.sweep("format: apportion/sweep-v1\nname: mine\nrun: {}\naxes: {policy: [fifoo]}\n", out=tmp_path / "x")
    assert "fifoo" in str(raised.value) or "cluster" in str(raised.value)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are heard in the main thread")
def test_an_interrupt_is_heard(tmp_path: Path) -> None:
    def later() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    # (a process that was started in the background may ignore it)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for begin in (
        lambda: ap.simulate("max_min_fairness_perf", "v100=36,p100=36,k80=36", rate=6, jobs=200_000, keep=[]),
        lambda: ap.sweep(policies=["isolated"], seeds=range(4), out=tmp_path / "s", cluster="v100=36,p100=36,k80=36", rate=6, jobs=200_000),
    ):
        threading.Thread(target=later).start()
        since = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            begin()
        assert time.monotonic() - since < 30
    assert ap.Study(tmp_path / "s").runs.n_rows == 0


def test_an_error_in_progress_ends_the_sweep(tmp_path: Path) -> None:
    def told(*_: Any) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ap.sweep(policies=["fifo", "isolated"], seeds=range(500), out=tmp_path / "s", progress=told, threads=1, **SMALL)
    assert 1 <= ap.Study(tmp_path / "s").runs.n_rows < 1000


def test_threads_may_run_at_once() -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ap.simulate(water, **SMALL).summary["average_jct_s"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and len(set(answers)) == 1


def test_metrics_have_units() -> None:
    table = ap.metrics()
    assert set(ap.simulate("fifo", **SMALL).summary) == set(table["name"])
    assert "average_jct_s" in table["name"] and dict(zip(table["name"], table["unit"]))["average_jct_s"] == "s"


def test_names_without_units_are_read_with_a_warning(tmp_path: Path) -> None:
    run = ap.simulate("fifo", **SMALL)
    for table, names in (
        (run.jobs, ("arrival", "completion", "jct", "slo", "wait", "service")),
        (run.slices, ("start", "end", "busy", "overhead")),
        (run.rounds, ("time",)),
        (run.leases, ("time",)),
        (run.decisions, ("time",)),
        (run.allocations, ("time",)),
    ):
        for name in names:
            assert name not in list(table)
            with pytest.warns(DeprecationWarning, match=f"'{name}' is '{name}_s' now"):
                assert np.array_equal(table[name], table[f"{name}_s"], equal_nan=True)
    summary = run.summary
    with pytest.warns(DeprecationWarning, match="'average_jct' is 'average_jct_s' now"):
        assert summary["average_jct"] == summary["average_jct_s"]
    with pytest.raises(KeyError, match="average"):
        summary["average"]
    fields = {name: value for name, value in SMALL.items() if name not in ("rate", "seed")}
    study = ap.sweep(policies=["fifo"], rates=[SMALL["rate"]], seeds=[0], out=tmp_path / "s", **fields)
    with pytest.warns(DeprecationWarning, match="'makespan' is 'makespan_s' now"):
        assert study.runs["makespan"].tolist() == study.runs["makespan_s"].tolist()
    with pytest.warns(DeprecationWarning):
        assert study.means("p99_jct")["mean"].tolist() == study.means("p99_jct_s")["mean"].tolist()


def test_throughputs_are_given_as_they_are() -> None:
    speeds = {"bert": {"v100": 4.0, "k80": 0.5}, ("bert", 2): {"v100": 7.6}, "lstm": {"k80": 2.0}}
    trace = ap.traces.table(job_type=["bert", "bert", "lstm"], scale_factor=[1, 2, 1], total_steps=[400, 760, 200], arrival=[0, 0, 0])
    run = ap.simulate("fifo_perf", {"v100": 3, "k80": 1}, trace=trace, throughputs=speeds)
    assert run.jobs["jct_s"].tolist() == [100, 100, 100]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"v100": [4.0, 0.0], "k80": [0.5, 2.0]}, index=["bert", "lstm"])
    assert ap.simulate("fifo_perf", {"v100": 1, "k80": 1}, throughputs=frame, trace=ap.traces.table(
        job_type=["lstm"], total_steps=[200], arrival=[0])).jobs["jct_s"].tolist() == [100]
    with pytest.raises(ap.InputError, match="throughputs are ndarray"):
        ap.simulate("fifo", {"v100": 1}, static=1, throughputs=np.ones((2, 2)))
    with pytest.raises(ap.InputError, match="years alone"):
        endless = ap.traces.table(job_type=["lstm"], total_steps=[1e15], arrival=[0])
        ap.simulate("fifo", {"k80": 1}, trace=endless, throughputs=speeds)


def test_tables_without_rows_have_their_columns() -> None:
    run = ap.simulate("max_min_fairness_perf", ideal=True, **SMALL)
    assert run.leases.n_rows == 0 and "worker_type" in run.leases and "job" in run.leases
    rule = ap.simulate(water, **SMALL)
    assert set(rule.decisions["certificate"]) == {None} and np.isnan(rule.decisions["seconds"]).all()


def test_a_policy_sees_job_types() -> None:
    seen: set[str | None] = set()

    def looking(p: ap.Problem) -> np.ndarray:
        seen.update(p.job_type)
        return water(p)

    ap.simulate(looking, **SMALL)
    assert seen and all(isinstance(name, str) for name in seen)


SETTINGS = {"share": 1.0}


class Base:
    def part(self) -> float:
        return SETTINGS["share"]


class Shares(Base):
    """A policy that is an object."""

    policy_name = "shares"

    def __call__(self, p: ap.Problem) -> np.ndarray:
        return water(p) * self.part()


def test_results_follow_what_a_policy_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    from apportion._versions import version_of

    policy = Shares()
    first = version_of(policy)
    assert first is not None and first == version_of(Shares())
    monkeypatch.setitem(SETTINGS, "share", 0.5)
    assert version_of(policy) != first, "a value that a base class reads"
    monkeypatch.undo()
    policy.extra = 1  # type: ignore[attr-defined]
    assert version_of(policy) != first, "an attribute"
    one, other = (lambda p: water(p) * 1.0), (lambda p: water(p) + 1.0)
    assert version_of(one) != version_of(other), "two functions of one line"

    def reads(p: ap.Problem) -> Any:
        return SETTINGS, water(p)

    before = version_of(reads)
    monkeypatch.setitem(SETTINGS, "share", 0.25)
    assert version_of(reads) != before, "a mapping of the module"
    reads.attribute = 3  # type: ignore[attr-defined]
    assert version_of(reads) != version_of(one)
    import functools

    def weighted(p: ap.Problem, weight: float) -> Any:
        return water(p) * weight

    assert version_of(functools.partial(weighted, weight=0.5)) != version_of(functools.partial(weighted, weight=1.0))


def test_a_sweep_that_was_stopped_knows_what_it_was_asked(tmp_path: Path) -> None:
    def told(*_: Any) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ap.sweep(policies=["fifo", "isolated"], rates=[0.2, 0.4], seeds=range(100), out=tmp_path / "s", progress=told, threads=1, cluster=SMALL["cluster"], jobs=3)
    table = ap.Study(tmp_path / "s").means()
    assert table["policy"].tolist() == ["fifo", "fifo", "isolated", "isolated"] and table["rate"].tolist() == [0.2, 0.4] * 2
    assert table["of"].tolist() == [100] * 4 and 1 <= table["n"].sum() < 400 and 0 in table["n"]
    assert np.isnan(table["mean"]).tolist() == (table["n"] < 100).tolist()
    assert table["rate"].dtype == np.float64 and np.log10(table["rate"]).max() < 0
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("matplotlib.figure")
    ax = ap.Study(tmp_path / "s").plot(ax=matplotlib.figure.Figure().subplots())
    hollow = [line for line in ax.get_lines() if line.get_markerfacecolor() == "none"]
    assert sum(len(line.get_xdata()) for line in hollow) == np.isnan(table["mean"]).sum()
    with pytest.raises(ap.InputError, match="unknown metric"):
        ap.Study(tmp_path / "s").plot(["average_jct_s"])  # type: ignore[arg-type]


def test_a_folder_that_was_copied_is_gone_on_with_by_its_name(tmp_path: Path) -> None:
    made: list[int] = []
    fields: dict[str, Any] = {"policies": ["fifo"], "cluster": CLUSTER, "rates": [0.4], "jobs": 3, "progress": lambda *_: made.append(1)}
    ap.sweep(out=tmp_path / "first", seeds=[0], **fields)
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    with pytest.raises(ap.ResultsError, match="`first`, not `second`") as raised:
        ap.sweep(out=tmp_path / "second", seeds=[0, 1], **fields)
    assert "name='first' goes on with them" in str(raised.value.help) and len(made) == 1
    study = ap.sweep(out=tmp_path / "second", name="first", seeds=[0, 1], **fields)
    assert study.runs.n_rows == 2 and len(made) == 2, "what was there is not made again"
    others: list[dict[str, Any]] = [fields | {"jobs": 4}, fields | {"axes": {"preemption_cost": [0, 30]}}]
    for other in others:
        with pytest.raises(ap.ResultsError, match="of another study") as raised:
            ap.sweep(out=tmp_path / "first", seeds=[0], **other)
        assert str(raised.value.help).startswith("another out=…") and "name=" not in str(raised.value.help)
    document = "format: apportion/sweep-v1\nname: mine\nrun: {cluster: 'v100=2', rate: 1, jobs: 1}\naxes: {policy: [fifo]}\n"
    with pytest.raises(ap.ResultsError, match="of another study") as raised:
        ap.sweep(document, out=tmp_path / "first")
    assert raised.value.help == "another out=… keeps these results elsewhere"


def test_a_function_is_a_policy_wherever_policies_are_named(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"cluster": CLUSTER, "rates": [0.4], "seeds": [0], "jobs": 3}
    study = ap.sweep(axes={"policy": ["fifo", water]}, out=tmp_path / "axes", **fields)
    assert study.runs["policy"].tolist() == ["fifo", "water"] and set(study.runs["status"]) == {"done"}
    assert ap.sweep(policy=water, out=tmp_path / "field", **fields).runs["status"].tolist() == ["done"]
    with pytest.raises(ap.InputError, match="policy is 5, expected a name"):
        ap.sweep(axes={"policy": [5]}, out=tmp_path / "wrong", **fields)
    with pytest.raises(ap.InputError, match="round_length is <function .*no value of a field") as raised:
        ap.sweep(axes={"policy": ["fifo"], "round_length": [water]}, out=tmp_path / "wrong", **fields)
    assert raised.value.help == "functions are taken as policies only"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prices": {("v100", 1): 2.0}}, "a name in prices is .*, expected text"),
        ({"rate": 1j}, "rate is 1j, which is no value"),
        ({"jobs": b"3"}, "jobs is b'3', which is no value"),
        ({"measure": np.ma.masked_array([0, 3], mask=[True, False])}, "measure is .*, which is no value"),
        ({"measure": {0, 3}}, "measure is a set, which has no order"),
    ],
)
def test_what_no_field_holds_is_said_of_the_field(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.simulate("fifo", **{**SMALL, **fields})


def test_what_is_wrong_with_a_folder_of_results_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ap.ResultsError, match="holds no results") as raised:
        ap.Study(tmp_path)
    assert raised.value.help == "sweep(…, out=…) writes them"
    (tmp_path / "results.sqlite").write_text("hello" * 100)
    for ask in (lambda: ap.Study(tmp_path), lambda: ap.sweep(policies="fifo", cluster=CLUSTER, rates=[0.4], jobs=3, out=tmp_path)):
        with pytest.raises(ap.ResultsError, match="is not a results file of apportion") as raised:
            ask()
        assert "another out=… of sweep" in str(raised.value.help)
    (tmp_path / "file").write_text("")
    with pytest.raises(ap.ResultsError, match=r"cannot make the folder .*file: .+"):
        ap.sweep(policies="fifo", cluster=CLUSTER, rates=[0.4], jobs=3, out=tmp_path / "file")
