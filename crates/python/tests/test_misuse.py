"""Arguments that are wrong, or not what they look like: said so, and never taken for something else."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap

T = [[4.0, 1.0], [4.0, 2.0]]
WORKERS = {"v100": 1, "k80": 1}
RUN: dict[str, Any] = {"cluster": WORKERS, "rate": 0.2, "jobs": 3}


def half(p: ap.Problem) -> np.ndarray:
    """Half of the time at most, an equal part of every worker."""
    return np.where(p.throughputs > 0, np.minimum(0.5 / len(p.workers), 1 / p.n_jobs), 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"throughputs": [[1.0, 2.0], [1.0]]}, "throughputs: expected numbers"),
        ({"throughputs": [["a", "b"]] * 2}, "throughputs: expected numbers"),
        ({"throughputs": [[1j, 1.0]] * 2}, "throughputs: expected numbers"),
        ({"throughputs": {"a": [1, 2]}}, "job 'a': throughputs are"),
        ({"throughputs": {"a": {"v100": 1.0, 3: 1.0}}}, "unknown worker type 3"),
        ({"workers": ["v100", "k80"]}, "expected a mapping"),
        ({"workers": "v100=1,k80=1"}, "expected a mapping"),
        ({"workers": {1: 1, 2: 1}}, "worker type 1 is not text"),
        ({"workers": {}}, "workers name no worker type"),
        ({"workers": {}, "throughputs": np.ones((3, 3))}, "workers name no worker type"),
        ({"workers": {"v100": None, "k80": 1}}, "expected a number"),
        ({"workers": {"v100": np.nan, "k80": 1}}, "whole number"),
        ({"workers": {"v100": "1", "k80": 1}}, "whole number"),
        ({"scale_factor": 1e30}, "position 0: scale_factor is 1e.30, expected a whole number"),
        ({"steps_remaining": "x"}, "steps_remaining: expected numbers"),
        ({"names": ["a", "a"]}, "two jobs are called 'a'"),
        ({"names": ["a", "b"], "weight": {"a": 1}}, "nothing for job 'b'"),
        ({"names": ["a", "b"], "owner": {"a": "x"}}, "owner has nothing for job 'b'"),
        ({"owner": ["x", "y"], "owners": {"x": 1}}, "owner 'x': expected a mapping"),
        ({"owner": ["x", "y"], "owners": {"x": {"wieght": 2}}}, "unknown field 'wieght'"),
        ({"owner": ["x", "y"], "owners": {"x": {"weight": "heavy"}}}, "weight is 'heavy'"),
        ({"prices": [1, 2]}, "prices: expected a mapping"),
        ({"prices": {"v100": "dear"}}, "'dear', expected a number"),
        ({"pairs": [(0, 1)]}, "pairs: expected a mapping"),
        ({"pairs": {"ab": T}}, "no pair of jobs"),
        ({"pairs": {(0.5, 1): T}}, "there is no job 0.5"),
        ({"pairs": {(-1, 0): T}}, "there is no job -1"),
        ({"pairs": {(0, 1): T, (1, 0): T}}, "both orders"),
        ({"pairs": {(0, 1): [["a", "b"]] * 2}}, "expected numbers"),
        ({"extra": {"mine": None}}, "mine is None"),
        ({"wieght": 1}, "did you mean weight?"),
        ({"throughputs": None}, "throughputs are None, expected steps/s"),
        ({"throughputs": np.array(3.0)}, "throughputs are array.3.., expected steps/s"),
        ({"prices": {"v100": 1.0, "k80": np.nan}}, "the price of `k80` is NaN"),
        ({"scale_factor": np.nan}, "scale_factor is NaN"),
    ],
)
def test_what_is_wrong_with_a_problem_is_said(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.problem(**{"throughputs": T, "workers": WORKERS, **fields})


def test_frames_are_read_by_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k80": [1.0, 2.0], "v100": [4.0, 4.0]}, index=["a", "b"])
    p = ap.problem(frame, WORKERS, weight=pandas.Series({"b": 5.0, "a": 2.0}))
    assert p.throughputs.tolist() == T and p.names == ["a", "b"] and p.weight.tolist() == [2.0, 5.0]
    assert ap.problem(frame, WORKERS, weight=frame["k80"].to_numpy()).weight.tolist() == [1, 2]
    with pytest.raises(ap.InputError, match="unknown worker type 'x'"):
        ap.problem(frame.assign(x=1), WORKERS)
    with pytest.raises(ap.InputError, match="no column 'v100'"):
        ap.problem(frame[["k80"]], WORKERS)
    polars = pytest.importorskip("polars")
    assert ap.problem(polars.DataFrame({"k80": [1.0, 2.0], "v100": [4.0, 4.0]}), WORKERS).throughputs.tolist() == T


def test_one_value_is_of_all_jobs() -> None:
    assert ap.problem(T, WORKERS, owner="ab").owner == ["ab", "ab"]
    assert ap.problem(T, WORKERS, owner=[np.nan, "x"]).owner == [None, "x"]
    assert ap.problem([], WORKERS).n_jobs == 0 and ap.allocate([], WORKERS).shares.shape == (0, 2)
    assert ap.problem(T, WORKERS, names=list(np.array([3, 4]))).names == [3, 4]


def test_a_function_sees_the_problem_as_it_was_stated() -> None:
    seen: list[Any] = []

    def seeing(p: ap.Problem) -> np.ndarray:
        seen.append(p)
        return half(p)

    p = ap.problem(T, WORKERS, names=["a", "b"])
    ap.allocate(p, policy=seeing)
    ap.explain(p, policy=seeing)
    assert seen == [p, p] and seen[0].names == ["a", "b"]


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    classes: list[Any] = [dict, ap.Session]
    for wrong in classes:
        with pytest.raises(ap.InputError, match="is a class"):
            ap.allocate(T, WORKERS, wrong)
        with pytest.raises(ap.InputError, match="is a class"):
            ap.sweep(policies=[wrong], seeds=[0], out=tmp_path / "s", **RUN)
    with pytest.raises(ap.InputError, match="not a function"):
        ap.Session(WORKERS, half)  # type: ignore[arg-type]
    wrong_options: dict[str, Any] = {"seed": -1, "backend": 3, "semantics": None, "time_limit": "long"}
    for field, value in wrong_options.items():
        with pytest.raises(ap.InputError, match=field):
            ap.Policy("max_min_fairness_perf", **{field: value})

    flags: list[tuple[str, Any, str]] = [
        ("policy_rules", {"shuffle": True}, "policy_rules are"),
        ("policy_rules", {"shuffled": "no"}, "policy_rules of 'mine': shuffled is 'no', expected True or False"),
        ("policy_rules", {"skip_zero_priority": 1}, "policy_rules of 'mine': skip_zero_priority is 1"),
        ("policy_pairs", "no", "policy_pairs of 'mine' is 'no', expected True or False"),
    ]
    for attribute, value, said in flags:
        mine = having(attribute, value)
        with pytest.raises(ap.InputError, match=said):
            ap.simulate(mine, **RUN)
        with pytest.raises(ap.InputError, match=said):
            ap.sweep(policies=[mine], seeds=[0], out=tmp_path / "s", **RUN)
    assert ap.simulate(having("policy_pairs", np.bool_(False)), **RUN).status == "done"
    for ask in (lambda: ap.traces.read("jobs.csv", sort="no"), lambda: ap.traces.table(sort="no", job_type=["x"], total_steps=[1], arrival=[0])):  # type: ignore[arg-type]
        with pytest.raises(ap.InputError, match="sort is 'no', expected True or False"):
            ask()


def having(attribute: str, value: Any) -> Any:
    """A policy with an attribute."""

    def mine(p: ap.Problem) -> np.ndarray:
        return half(p)

    setattr(mine, attribute, value)
    mine.policy_version = "1"  # type: ignore[attr-defined]
    return mine


@pytest.mark.parametrize(
    ("fresh", "said"),
    [
        (5, "policy_fresh of 'mine' is 5, expected a method"),
        ("x", "policy_fresh of 'mine' is 'x', expected a method"),
        (lambda p: half, "policy_fresh of 'mine' takes arguments"),
        (lambda: None, "policy_fresh of 'mine' gave None, expected a function of a problem"),
        (lambda: dict, "policy_fresh of 'mine' gave <class 'dict'>"),
    ],
)
def test_what_gives_no_fresh_policy_is_refused_by_its_name(fresh: Any, said: str, tmp_path: Path) -> None:
    mine = having("policy_fresh", fresh)
    with pytest.raises(ap.InputError, match=said):
        ap.allocate(T, WORKERS, mine)
    with pytest.raises(ap.InputError, match=said):
        ap.simulate(mine, **RUN)
    with pytest.raises(ap.InputError, match=said):
        ap.sweep(policies=[mine, "fifo"], seeds=[0], out=tmp_path / "s", **RUN)


def test_an_array_without_an_axis_is_one_value(tmp_path: Path) -> None:
    def swept(**fields: Any) -> ap.Study:
        return ap.sweep(**{"policies": ["fifo"], "rates": [0.2], "out": tmp_path / "s", "cluster": WORKERS, **fields})

    for fields, said, help in (
        ({"rates": np.array(0.1)}, r"rates: array\(0.1\) is one value, expected several", "[0.1]"),
        ({"seeds": np.array(3)}, r"seeds: array\(3\) is one value", "[3], or range(3)"),
        ({"axes": {"jobs": np.array(3)}}, r"axes: jobs: array\(3\) is one value", "[3]"),
        ({"policies": np.array("fifo")}, "policies are array", None),
        ({"only": np.array("seed=1")}, "only is array", None),
    ):
        with pytest.raises(ap.InputError, match=said) as raised:
            swept(**fields)  # type: ignore[arg-type]
        assert raised.value.help == help
    with pytest.raises(ap.InputError, match="keep is array"):
        ap.simulate("fifo", **RUN, keep=np.array("jobs"))  # type: ignore[arg-type]


def test_kinds_of_callables_decide(tmp_path: Path) -> None:
    class Halving:
        def __call__(self, p: ap.Problem) -> np.ndarray:
            return half(p)

    partial = functools.partial(lambda part, p: part * half(p), 0.5)
    partial.policy_name, partial.policy_version = "quarter", "1"  # type: ignore[attr-defined]
    for policy in (Halving(), partial, lambda p: half(p)):
        assert ap.simulate(policy, **RUN).status == "done"
    assert ap.sweep(policies=partial, seeds=range(2), out=tmp_path / "s", **RUN).runs["policy"].tolist() == ["quarter"] * 2
    assert ap.sweep(policies="fifo", seeds=range(2), out=tmp_path / "t", **RUN).runs["policy"].tolist() == ["fifo"] * 2


def test_a_session_goes_on_after_a_wrong_job() -> None:
    session = ap.Session(WORKERS)
    session.add("a", [4.0, 1.0])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"throughput": [1.0]}, "shape"),
        ({"throughput": "xx"}, "expected numbers"),
        ({"throughput": [1, 1], "scale_factor": 1.5}, "scale_factor is 1.5"),
        ({"throughput": [1, 1], "weight": None}, "weight is None"),
        ({"throughput": [1, 1], "weight": 0}, "weight is 0"),
        ({"throughput": [1, 1], "weight": 1e300}, "job 'b': weight is 1e300, expected a number from"),
        ({"throughput": [1, 1e16]}, "job 'b': throughput is 1e16 steps/s, expected 0, or a number from"),
        ({"throughput": [1e300, 1]}, "throughput is 1e300"),
        ({"throughput": [1, 5e-324]}, "throughput is 5e-324"),
    ]
    for fields, said in wrong:
        with pytest.raises(ap.InputError, match=said):
            session.add("b", **fields)
    with pytest.raises(ap.InputError, match="weight"):
        session.update("a", weight=-1)
    with pytest.raises(ap.InputError, match="weight is 1e300"):
        session.update("a", weight=1e300)
    session.add("b", [4.0, 2.0], slo_remaining=np.nan)
    assert len(session) == 2 and session.decide().shares.sum() == pytest.approx(2)


def test_a_session_is_shared_by_threads() -> None:
    session, failed = ap.Session(WORKERS), []

    def come(name: int) -> None:
        try:
            session.add(name, [4.0, 1.0])
            session.decide()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=come, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and session.decide().shares.shape == (8, 2)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seeds": 3}, r"\[3\], or range\(3\)"),
        ({"seeds": [0.5]}, "0.5"),
        ({"rates": "auto", "seeds": [0], "rate": None}, "rate"),
        ({"axes": {"round_length": 360}}, "one value"),
        ({"threads": 0}, "threads is 0"),
        ({"progress": 3}, "expected a function"),
        ({"out": ""}, "out is empty"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_said(fields: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ap.InputError, match=said):
        ap.sweep(policies=["fifo"], **{"seeds": [0], "out": tmp_path / "s", **RUN, **fields})
    assert not (tmp_path / "s").exists()


def test_a_folder_may_be_called_anything(tmp_path: Path) -> None:
    for name in ("a é b", "\udcff"):
        try:
            (tmp_path / name).mkdir()
        except (OSError, UnicodeError):
            continue  # a file system that has no such names
        assert ap.sweep(policies=["fifo"], seeds=[0], out=tmp_path / name, **RUN).runs.n_rows == 1


def test_tables_may_be_named_singly() -> None:
    run = ap.simulate("fifo", keep="leases", **RUN)
    assert run.leases.n_rows > 0
    assert ap.simulate("fifo", keep=None, **RUN).jobs.n_rows == 3


def test_columns_of_traces_are_checked() -> None:
    columns: dict[str, Any] = {"job_type": ["ResNet-18 (batch size 16)"] * 2, "total_steps": [10, 20], "arrival": [0, 1]}
    assert ap.traces.table(**columns | {"total_steps": np.int64(5)})["total_steps"].tolist() == [5, 5]
    assert ap.traces.table(**columns | {"job_type": "ResNet-18 (batch size 16)"}).n_rows == 2
    assert ap.traces.table(**columns | {"arrival": (place for place in range(2))}).n_rows == 2
    for field, value in {"arrival": [0, np.nan], "total_steps": None, "job_type": [None, "x"]}.items():
        with pytest.raises(ap.InputError, match=field):
            ap.traces.table(**columns | {field: value})


def test_parts_of_a_problem_are_checked_where_they_are_given_singly() -> None:
    columns = dict.fromkeys(("scale_factor", "weight", "steps_remaining", "elapsed", "isolated_elapsed", "slo_remaining", "owner", "names"))
    with pytest.raises(ap.InputError, match="columns have no 'scale_factor'"):
        ap.Problem(["a"], [1], np.ones((1, 1)), {})
    for workers in ([-1], [2**70]):
        with pytest.raises(ap.InputError, match="expected whole numbers from 0"):
            ap.Problem(["a"], workers, np.ones((1, 1)), columns)


def test_what_holds_itself_is_no_value_of_a_field() -> None:
    endless: dict[str, Any] = {}
    endless["more"] = endless
    with pytest.raises(ap.InputError, match="generator holds itself"):
        ap.simulate("fifo", generator=endless, **RUN)


def test_a_session_says_what_it_holds() -> None:
    session = ap.Session(WORKERS)
    session.add("a", [4.0, 1.0])
    assert repr(session) == "<Session of 'max_min_fairness_perf' with 1 jobs on v100, k80>"
    assert repr(session.decide()).startswith("<SessionDecision on 1 jobs: <Decision of `max_min_fairness_perf`")
