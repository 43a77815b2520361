"""What messages say: jobs by their names, numbers in short, rows and columns of what was given."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap

WORKERS = {"v100": 1, "p100": 1, "k80": 1}
JOBS: dict[Any, dict[str, float]] = {7: {"v100": 4.0}, 0: {"v100": 3.0}, 3: {"p100": 1.0}}
TYPES: dict[str, Any] = {"job_type": ["bert"] * 2, "total_steps": [4000, 7600], "arrival": [0, 5]}
OWN = {"bert": {"v100": 4.0, "k80": 0.5}}


def share(*rows: list[float]) -> Any:
    return lambda p: np.array(rows)


@pytest.mark.parametrize(
    ("fields", "said", "position"),
    [
        ({"weight": {7: 1, 0: 1, 3: -1}}, "^job 3: weight is -1", 2),
        ({"scale_factor": {7: 9, 0: 1, 3: 1}}, "^job 7 can run on no worker type", 0),
        ({"scale_factor": {7: 1, 0: 1, 3: 0}}, "^job 3: scale_factor is 0", 2),
        ({"steps_remaining": {7: 1, 0: 1, 3: 0}, "policy": "min_total_duration_perf"}, "of job 3, expected", 2),
        ({"policy": share([1, 1, 0], [0, 0, 0], [0, 0, 0])}, "job 7 is given 2 of its time", None),
        ({"policy": lambda p: {(7, 0): [0.5, 0, 0]}}, "job 7 with job 0 cannot run on worker type 'v100'", None),
        ({"policy": share([1, 0, 0], [1, 0, 0], [0, 0, 0])}, "2 workers of type 'v100' are given away", None),
    ],
)
def test_jobs_are_called_by_their_names(fields: dict[str, Any], said: str, position: int | None) -> None:
    with pytest.raises(ap.ApportionError, match=said) as raised:
        ap.allocate(JOBS, WORKERS, **fields)
    assert position is None or getattr(raised.value, "job") == position


def test_jobs_without_names_are_called_by_their_positions() -> None:
    with pytest.raises(ap.InputError, match="^the job at position 1: weight is -1"):
        ap.allocate([[1.0, 1, 1]] * 2, WORKERS, weight=[1, -1])
    with pytest.raises(ap.AllocationError, match="the job at position 0 is given more than all of its time by 1"):
        ap.fit(ap.problem([[1.0, 1, 1]] * 2, WORKERS), [[1, 1, 0], [0, 0, 0]])
    with pytest.raises(ap.AllocationError, match="job 7 has a share where it cannot run"):
        ap.fit(ap.problem(JOBS, WORKERS), [[0, 1, 0], [0, 0, 0], [0, 0, 0]])


def test_a_session_calls_jobs_by_their_names() -> None:
    session = ap.Session(WORKERS, "min_total_duration_perf")
    for name in ("x", 1):
        session.add(name, [1, 1, 1], steps_remaining=5)
    session.remove("x")
    with pytest.raises(ap.InputError, match="^job 1: weight is -1"):
        session.update(1, weight=-1)
    with pytest.raises(ap.InputError, match="^job 'y': weight is -1"):
        session.add("y", [1, 1, 1], weight=-1)
    session.add("z", [1, 1, 1])
    with pytest.raises(ap.InputError, match="of job 'z', expected"):
        session.decide()


def test_a_simulation_calls_jobs_by_their_numbers() -> None:
    def greedy(p: ap.Problem) -> Any:
        return np.array([[1.0 if name == 2 else 0.01] * len(p.workers) for name in p.names])

    with pytest.raises(ap.AllocationError, match="job 2 is given 3 of its time"):
        ap.simulate(greedy, {"v100": 64, "p100": 64, "k80": 64}, rate=2.0, jobs=6, seed=1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workers": {"v100": 2**32}}, "4294967296 workers of 'v100', expected a whole number from 0 to 10000000"),
        ({"workers": {"v100": "1"}}, "is '1', which is text"),
        ({"scale_factor": 2**40}, "scale_factor is 1099511627776, expected a whole number from 1"),
        ({"scale_factor": np.array([2**63], "u8")}, r"scale_factor is 9.22337203685478e\+18"),
        ({"weight": 1e300}, "weight is 1e300, expected"),
        ({"weight": 1e-300}, "weight is 1e-300, expected"),
        ({"throughputs": [[-1e300]]}, "throughput is -1e300"),
        ({"elapsed": -1e300}, "elapsed is -1e300"),
        ({"owner": "x", "owners": {"x": {"weight": -1e300}}}, "weight is -1e300"),
        ({"names": ["\ud800"]}, "a job's name is '.ud800', which is no text"),
        ({"owner": "\ud800"}, "an owner is"),
        ({"owners": {1: {"weight": 1}}}, "the name of an owner is 1, expected text"),
        ({"extra": {1: [1.0]}}, "a name in extra is 1, expected text"),
        ({"names": 5}, "names are 5, expected a list"),
        ({"workers": {"\ud800": 1}}, "a worker type is"),
        ({"throughputs": {1: {"v100": 1}, "1": {"v100": 1}}, "names": ["a"]}, "1 names for 2 jobs"),
    ],
)
def test_what_is_said_of_arguments_is_true_and_short(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said) as raised:
        ap.problem(**{"throughputs": [[1.0]], "workers": {"v100": 1}, **fields})
    assert len(str(raised.value)) < 200


def test_options_of_policies_are_named() -> None:
    for field, value, said in [("time_limit", 1e300, "time_limit is 1e300"), ("semantics", "\ud800", "semantics is")]:
        with pytest.raises(ap.InputError, match=said):
            ap.Policy("max_min_fairness_perf", **{field: value})  # type: ignore[arg-type]
    asked: list[tuple[Any, str]] = [
        (lambda: ap.problem([[1.0]], {"v100": 1}, prices={"v100": np.complex128(1 + 2j)}), "the price of 'v100' is .*, expected a number"),
        (lambda: ap.Session({"v100": 1}).add("a", [1], elapsed=np.timedelta64(2**40, "ns")), "elapsed is .*, expected a number"),  # type: ignore[arg-type]
        (lambda: ap.simulate("fifo", {"v100": 1}, keep=[["x"]]), r"unknown table \['x'\]"),  # type: ignore[list-item]
        (lambda: ap.document(5), "name_or_path is 5"),  # type: ignore[arg-type]
        (lambda: ap.read_problem(5), "snapshot is 5"),  # type: ignore[arg-type]
        (lambda: ap.allocate([[1.0]], {"v100": 1}, 5), "policy is 5"),  # type: ignore[arg-type]
        (lambda: ap.Study(None), "folder is None"),  # type: ignore[arg-type]
    ]
    for ask, said in asked:
        with pytest.raises(ap.InputError, match=said):
            ask()
    assert ap.allocate([[1.0]], {"v100": 1}, backend="default").certificate is not None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rate": float("nan")}, "rate is NaN, expected a finite number"),
        ({"rate": float("inf")}, "rate is inf"),
        ({"rate": 1e300}, "rate: 1e300 jobs/h, expected"),
        ({"seed": -1}, "^seed is -1"),
        ({"seed": 1.5}, "^seed is 1.5"),
        ({"cluster": {"v100": 2, "k80": -1}}, "-1 workers of 'k80'"),
        ({"stop": 5}, "stop is 5, expected a mapping"),
        ({"keep": 5}, "keep is 5"),
        ({"throughputs": {("a", "b", "c"): {"v100": 1}}}, "expected a job type, or a job type and a scale factor"),
        ({"throughputs": {"bert": {"v100": 1.0, "k80": -1}}}, "throughput of job type 'bert' on worker type 'k80' is -1"),
        ({"throughputs": {"bert": {"v100": float("nan")}}}, "job type 'bert' on worker type 'v100' is NaN"),
    ],
)
def test_fields_of_runs_are_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.simulate("fifo", **{"cluster": WORKERS, "rate": 0.2, "jobs": 3, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"arrival": [5, 0]}, "row 1: arrival is 0, before that of the row above it, 5"),
        ({"scale_factor": [1.5, 1]}, "^row 0: scale_factor is 1.5, expected a whole number"),
        ({"scale_factor": [1, 0]}, "^row 1: scale_factor is 0"),
        ({"total_steps": [1, -1]}, "row 1: total_steps is -1"),
        ({"weight": 0}, "row 0: weight is 0"),
        ({"slo": [-1, None]}, "row 0: slo is -1"),
        ({"id": [1, 1]}, "row 1: id is 1, as in row 0"),
        ({"arrival": np.array([0, 5], "m8[s]")}, "row 0: arrival is"),
        ({"job_type": ["a\nb", "bert"]}, "row 0: job_type is"),
        ({"job_type": ["\ud800", "bert"]}, "row 0: job_type is"),
        ({"arrival": [[0], [5]]}, "row 0: arrival is"),
        ({"total_steps": [1, 1e308]}, "row 1: total_steps is 1e.308, expected a number from 1e-100 to 1e15"),
        ({"total_steps": [1, 1e-200]}, "row 1: total_steps is 1e-200"),
        ({"arrival": [0, 1e300]}, "row 1: arrival is 1e.300, expected a number from 0 to 1e15"),
        ({"weight": [1, 1e300]}, "row 1: weight is 1e.300"),
        ({"slo": [0, None]}, "row 0: slo is 0, expected a number from 1e-100"),
        ({"scale_factor": [1, 10_000_001]}, "row 1: scale_factor is 10000001, expected a whole number from 1 to 10000000"),
        ({"job_type": ["bert", ""]}, "row 1: job_type is '', which is empty"),
        ({"id": ["", "c"]}, "row 0: id is '', which is empty"),
        ({"id": ["c", "a "]}, "row 1: id is 'a ', with blanks around it"),
        ({"id": [" a", "a"]}, "row 0: id is ' a', with blanks around it"),
        ({"entity": ["x", " x"]}, "row 1: entity is ' x', with blanks around it"),
        ({"entity": ["x", ""]}, "row 1: entity is '', which is empty"),
        ({"id": ["a\tb", "c"]}, "row 0: id is .*control characters"),
        ({"id": ["1", 1]}, "row 1: id is 1, as in row 0"),
        ({"arrival": [5, 0], "weight": [1, 0], "sort": True}, "row 1: weight is 0"),
        ({"sizes": ["1 2", "2 1"]}, "row 1: sizes is '2 1', expected ascending numbers of workers"),
        ({"sizes": [None, "1 x"]}, "row 1: sizes is '1 x'"),
        ({"sizes": "2 4"}, "row 0: the scale factor 1 is not among the sizes, '2 4'"),
    ],
)
def test_a_table_is_spoken_of_by_rows_and_columns(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said) as raised:
        ap.traces.table(**TYPES | fields)
    assert "apportion trace" not in str(raised.value) and raised.value.line is None


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    columns: dict[str, Any] = {
        "id": ['"a"', "a,b"],
        "total_steps": [Fraction(1, 3), 10**15],
        "weight": [1e-100, 1e15],
        "slo": [None, 1],
        "entity": [5, None],
    }
    trace = ap.traces.table(**TYPES | columns)
    trace.write(path)
    again = ap.traces.read(path)
    assert again["id"].tolist() == columns["id"] and again["entity"].tolist() == ["5", None]
    assert again["total_steps"].tolist() == [1 / 3, 1e15] and again["weight"].tolist() == [1e-100, 1e15]
    assert np.isnan(again["slo"][0]) and again["slo"][1] == 1
    again["weight"][1] = 1e16
    with pytest.raises(ap.InputError, match="row 1: weight is 1e.16"):
        again.write(tmp_path / "other.csv")
    assert not (tmp_path / "other.csv").exists()
    whole = ap.traces.Trace({"job_type": ["bert"], "total_steps": [1.0], "arrival": [0.0], "scale_factor": np.array([2.0])})
    whole.write(path)
    assert ap.traces.read(path)["scale_factor"].tolist() == [2]


def test_sizes_of_jobs_are_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    trace = ap.traces.table(**TYPES | {"sizes": [[1, 2, 4], None], "arrival": [5, 0], "sort": True})
    assert trace["sizes"].tolist() == [None, "1 2 4"]
    trace.write(path)
    again = ap.traces.read(path)
    assert again["sizes"].tolist() == [None, "1 2 4"]
    again.write(path)
    assert path.read_text().splitlines()[2].endswith(",1 2 4")


def test_a_trace_is_spoken_of_by_rows_in_runs() -> None:
    run: dict[str, Any] = {"cluster": {"v100": 2, "k80": 1}, "throughputs": OWN}
    trace = ap.traces.table(**TYPES | {"scale_factor": [1.0, 1.0]})
    assert ap.simulate("fifo", trace=trace, **run).summary["n_jobs"] == 2
    with pytest.raises(ap.InputError, match="^trace, row 1: .*bart") as raised:
        ap.simulate("fifo", trace=ap.traces.table(**TYPES | {"job_type": ["bert", "bart"]}), **run)
    assert raised.value.line is None and "<trace" not in str(raised.value)
    trace["arrival"][1] = -1
    with pytest.raises(ap.InputError, match="row 1: arrival is -1"):
        ap.simulate("fifo", trace=trace, **run)
    turned = ap.traces.table(**TYPES | {"arrival": [5, 0]}, sort=True)
    assert turned["arrival"].tolist() == [0, 5] and turned["total_steps"].tolist() == [7600, 4000]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"window": "1h..2d"}, "window is for a cluster's log"),
        ({"rules": "/nope"}, "rules is for a cluster's log"),
        ({"zone": "Nowhere/X"}, "zone is for a cluster's log"),
        ({"job_table": "/nope"}, "job_table is for a cluster's log"),
        ({"seed": 3}, "seed is for a cluster's log"),
        ({"skip_unreadable": True}, "skip_unreadable is for a cluster's log"),
        ({"form": "sacct", "sort": True}, "sort is for a trace"),
        ({"form": "sacct", "throughputs": "osdi20", "job_table": "x"}, "only the form `pai` has one"),
        ({"form": "sacct", "seed": -1}, "seed is -1"),
        ({"form": "sacct", "zone": 5}, "zone is 5, expected text"),
        ({"form": 5}, "form is 5"),
        ({"throughputs": 5}, "throughputs is 5"),
    ],
)
def test_arguments_that_a_form_does_not_use_are_refused(fields: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    ap.traces.table(**TYPES).write(path)
    with pytest.raises(ap.InputError, match=said):
        ap.traces.read(path, **fields)
    assert ap.traces.read(path, sort=True).n_rows == 2


def test_forms_of_logs_are_listed() -> None:
    with pytest.raises(ap.InputError, match="expected one of") as raised:
        ap.traces.read("x", form="nope")
    names = str(raised.value).split("expected one of ")[1].replace("`", "").split(", ")
    assert len(names) > 9 and all(f"`{name}`" in str(ap.traces.read.__doc__) for name in names)


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"rate": [0.1]}, "'rate' is given twice, by rates"),
        ({"policy": ["srtf"]}, "'policy' is given twice, by policies"),
        ({"seed": [5]}, "'seed' is given twice, by seeds"),
        ([1], r"axes are \[1\], expected a mapping"),
    ],
)
def test_axes_are_given_once(axes: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.sweep(policies=["fifo"], rates=[0.2], seeds=[0], axes=axes, jobs=3, cluster=WORKERS, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_an_axis_of_a_picture_is_of_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = ap.sweep(policies=["fifo", "srtf"], rates=[0.2], seeds=[0], jobs=3, cluster=WORKERS, out=tmp_path / "s")
    with pytest.raises(ap.InputError, match="x is 'policy', whose values are not numbers"):
        study.plot(x="policy", by="rate")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"cluster": "v100=2"}, "no policies are given.*apportion.policies"),
        ({"policies": "fifo"}, "no cluster is given.*cluster={'v100': 36"),
        ({"policies": "fifo", "cluster": "v100=2", "quick": True}, "quick is of a study that has a quick form"),
        ({"policies": "fifo", "cluster": "v100=2,v100=3", "rates": [1]}, "worker type `v100` is named twice"),
        ({"policies": "fifo", "cluster": "v100=2", "rates": 0.2}, r"rates: 0.2 is one value, expected several\s*.*\[0.2\]$"),
        ({"policies": "fifo", "cluster": "v100=2", "seeds": 2}, r"or range\(2\)"),
    ],
)
def test_what_a_sweep_lacks_is_said_by_its_arguments(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ap.InputError) as raised:
        ap.sweep(out=tmp_path / "out", jobs=5, **arguments)
    assert re.search(said, f"{raised.value} {raised.value.help}", re.DOTALL), f"{raised.value} {raised.value.help}"


def test_rows_of_a_table_are_counted_alike_everywhere() -> None:
    gang: dict[str, Any] = {"job_type": ["LM (batch size 20)"] * 2, "total_steps": [9, 9], "scale_factor": [1, 8]}
    with pytest.raises(ap.InputError, match="^workload.trace: trace, row 1: job `1`"):
        ap.simulate("fifo", {"v100": 2, "p100": 2, "k80": 2}, trace=ap.traces.table(arrival=[0, 1], **gang))
    unknown: dict[str, Any] = {"job_type": ["LM (batch size 20)"] * 2 + ["nope"] * 2, "total_steps": [9] * 4}
    with pytest.raises(ap.InputError, match=r"^trace, row 2: .*\(1 more like it, the last in row 3\)"):
        ap.simulate("fifo", {"v100": 2, "p100": 2, "k80": 2}, trace=ap.traces.table(arrival=[0, 1, 2, 3], **unknown))


def test_limits_that_are_named_are_those_that_hold(tmp_path: Path) -> None:
    with pytest.raises(ap.InputError, match="from 0 to 10000000$"):
        ap.allocate([[1.0]], {"a": 10_000_001})
    with pytest.raises(ap.InputError, match="a character of code 0"):
        ap.sweep(out="a\0b", policies="fifo", cluster="v100=1", jobs=1, rates=[1])
