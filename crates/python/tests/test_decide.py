"""One decision: arrays in, shares and their proof out."""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import apportion as ap

ROOT = Path(__file__).resolve().parents[3]
SNAPSHOT = ROOT / "examples" / "snapshot.yaml"
T = [[4.0, 1.0], [4.0, 2.0]]
WORKERS = {"v100": 1, "k80": 1}


def command() -> str:
    """The `apportion` command built beside this package, or a skip."""
    built = os.environ.get("APPORTION_COMMAND") or shutil.which("apportion", path=str(ROOT / "target" / "debug"))
    if not built:
        pytest.skip("the command is not built: cargo build")
    return built


def test_the_shares_are_certified() -> None:
    d = ap.allocate(T, WORKERS)
    assert d.shares.shape == (2, 2) and d.shares.sum(axis=0) == pytest.approx([1, 1])
    assert d.throughput == pytest.approx((d.shares * T).sum(axis=1))
    assert d.certificate is not None and d.certificate.optimal and d.certificate.sense == "maximize"
    assert d.certificate.value == pytest.approx(d.certificate.bound)
    assert d.solve is not None and d.solve["strategy"] == "singles"
    assert d.dropped == [] and d.pairs.shape == (0, 2) and d.pair_shares.shape == (0, 2)


def test_numbers_are_those_of_the_command() -> None:
    for policy in ["max_min_fairness_perf", "max_min_fairness_water_filling_perf", "finish_time_fairness_perf", "fifo", "max_min_fairness_packed"]:
        said = subprocess.run(
            [command(), "allocate", "--format", "json", "--policy", policy, str(SNAPSHOT)], capture_output=True, text=True, check=True
        )
        answer = json.loads(said.stdout)
        problem = ap.read_problem(SNAPSHOT)
        d = ap.allocate(problem, policy=policy)
        rows = {tuple(row["jobs"]): list(row["shares"].values()) for row in answer["allocation"]}
        ours = {(name,): row.tolist() for name, row in zip(problem.names, d.shares) if row.any()}
        for (one, other), row in zip(d.pairs.tolist(), d.pair_shares.tolist()):
            if any(row):
                ours[(problem.names[one], problem.names[other])] = row
        assert ours == rows, policy
        if d.certificate is not None:
            assert d.certificate.value == answer["objective"]["value"] and d.certificate.bound == answer["objective"]["bound"], policy


BLIND = """format: apportion/snapshot-v1
cluster: {a100: 2, t4: 2}
jobs:
  - {id: 1, steps_remaining: 1000, throughput: {a100: 10, t4: 0}}
  - {id: 2, steps_remaining: 1000, throughput: {a100: 10, t4: 5}}
  - {id: 3, steps_remaining: 1000, throughput: {a100: 8, t4: 2}}
"""
FAR_APART = """format: apportion/snapshot-v1
cluster: {v100: 1, k80: 1}
jobs:
  - {id: high, weight: 1.0e12, throughput: {v100: 4, k80: 1}}
  - {id: low, weight: 1, throughput: {v100: 4, k80: 1}}
"""


@pytest.mark.parametrize(("snapshot", "policy"), [(BLIND, "min_total_duration"), (BLIND, "max_min_fairness"), (FAR_APART, "proportional_fairness")])
def test_idle_workers_are_used_as_by_the_command(tmp_path: Path, snapshot: str, policy: str) -> None:
    path = tmp_path / "snapshot.yaml"
    path.write_text(snapshot)
    problem = ap.read_problem(path)
    said = subprocess.run([command(), "allocate", "--format", "json", "--policy", policy, str(path)], capture_output=True, text=True, check=True)
    answer = json.loads(said.stdout)
    asked = ap.Policy(policy)
    for d in [asked.allocate(problem), ap.allocate(problem, policy=policy), ap.explain(problem, policy=policy).decision]:
        assert d.throughput.tolist() == list(answer["effective_throughput"].values())
        assert d.certificate is not None and d.solve is not None
        assert d.certificate.value_at_measured_throughputs == answer["objective"].get("value_at_measured_throughputs")
        assert d.solve["exchanged"] == answer["solve"]["exchanged"]


def test_parameters_stand_behind_the_name_of_a_policy() -> None:
    # Two jobs on one worker, one hour and four hours left: what an hour of it is worth is 1 against 1/4 to the power of 0, and 1 against 4 of 2.
    def throughput(policy: str) -> list[float]:
        decided = ap.allocate(np.array([[1.0], [1.0]]), {"v100": 1}, policy, steps_remaining=[3600.0, 14400.0])
        return decided.throughput.tolist()

    assert throughput("completion_rate:floor=0") == pytest.approx([1.0, 0.0])
    # With the floor, the other job has a quarter of the half that is its isolated share.
    assert throughput("completion_rate") == pytest.approx([0.875, 0.125])
    assert throughput("completion_rate:exponent=2") == pytest.approx([0.125, 0.875])
    assert ap.Policy("completion_rate:exponent=2.0").name == "completion_rate:exponent=2"
    with pytest.raises(ap.InputError, match="expected a number from -2 to 2"):
        ap.Policy("completion_rate:exponent=3")


def test_a_problem_says_what_it_was_made_of() -> None:
    p = ap.problem(
        {"a": {"v100": 4.0}, "b": {"v100": 4.0, "k80": 2.0}},
        {"v100": 4, "k80": 1},
        scale_factor={"a": 2, "b": 1},
        weight=2.0,
        steps_remaining=[1, 2],
        slo_remaining=[np.nan, 60],
        owner=["x", None],
        owners={"x": {"weight": 3}},
        prices={"v100": 2.0, "k80": 0.5},
        extra={"mine": [1, 2]},
        pairs={("a", "b"): [[1.0, 1.5], [0.0, 0.0]]},
    )
    assert p.names == ["a", "b"] and p.worker_types == ["v100", "k80"] and p.workers.tolist() == [4, 1]
    assert p.throughputs.tolist() == [[4, 0], [4, 2]] and p.scale_factor.tolist() == [2, 1] and p.weight.tolist() == [2, 2]
    assert p.steps_remaining.tolist() == [1, 2] and p.owner == ["x", None] and p.extra["mine"].tolist() == [1, 2]
    assert np.isnan(p.slo_remaining[0]) and p.slo_remaining[1] == 60
    assert p.prices is not None and p.prices.tolist() == [2, 0.5]
    assert p.pairs()[0].shape == (0, 2), "jobs of other scale factors do not share workers"
    alike = ap.problem(T, WORKERS, pairs={(1, 0): [[1.0, 1.5], [0.0, 0.0]]})
    positions, speeds = alike.pairs()
    assert positions.tolist() == [[0, 1]] and speeds[0, 0].tolist() == [1.5, 1.0]


def test_pairs_share_workers() -> None:
    pairs = {(0, 1): [[3.0, 3.0], [0.9, 1.8]]}
    d = ap.allocate(T, WORKERS, "max_min_fairness_packed", pairs=pairs)
    assert d.pairs.tolist() == [[0, 1]]
    assert d.pair_shares[0].max() > 0.5
    assert d.throughput.min() > ap.allocate(T, WORKERS).throughput.min()


def test_explain_says_what_binds() -> None:
    e = ap.explain(T, WORKERS)
    assert e[0].binds in ("bottleneck", "time", "capacity") and e.jobs[1].time == pytest.approx(1)
    assert [kind.name for kind in e.worker_types] == ["v100", "k80"] and all(kind.binds for kind in e.worker_types)
    more = ap.allocate(T, {"v100": 2, "k80": 1})
    assert e.worker_types[0].one_more is not None and e.worker_types[0].one_more > 0
    assert more.certificate is not None and e.decision.certificate is not None
    assert more.certificate.value > e.decision.certificate.value
    assert e.held == ("equal_share_throughput",)
    assert e.lp is not None and e.lp.lstrip("\\ ").lower().count("subject to") == 1
    assert e.cbf is not None and "\nOBJSENSE\n" in e.cbf
    capped = "format: apportion/policy-v1\nname: capped\nsummary: half of the time\nkind: program\nmaximize: sum_over_jobs(throughput)\nfor_each_job: [time_on(v100) <= 0.5]\n"
    e = ap.explain([[4.0]], {"v100": 1}, capped)
    assert e[0].held_by == ("time_on(v100) <= 0.5",) and e.constraints[0]["binds"] == [True]
    with pytest.raises(KeyError):
        e["nobody"]
    named = ap.explain([[4, 1], [1, 2], [3, 3]], WORKERS, names=[5, 0, 1])
    assert [named[name].name for name in (5, 0, 1)] == [5, 0, 1] == [job.name for job in named] and len(named) == 3
    with pytest.raises(KeyError, match="by position"):
        named[2]


def test_a_decision_explains_itself() -> None:
    d = ap.allocate(T, WORKERS)
    e = ap.explain(T, WORKERS)
    assert d.explain() == e or [job.binds for job in d.explain()] == [job.binds for job in e]
    assert d.explain(1) == e[1] and (d.explain().decision.shares == d.shares).all()
    with pytest.raises(KeyError):
        d.explain(len(T))
    # A rule that remembers what it gave knows it still when it has been asked why.
    policy = ap.Policy("gandiva")
    problem = ap.problem(T, WORKERS, pairs={(0, 1): [[3.0, 3.0], [0.9, 1.8]]})
    policy.allocate(problem)
    known = policy._native.state()
    policy.explain(problem)
    assert policy._native.state() == known
    own = ap.allocate(T, WORKERS, lambda p: np.full(p.throughputs.shape, 0.1))
    for other in (pickle.loads(pickle.dumps(d)), own):
        with pytest.raises(ap.InputError, match="apportion.explain"):
            other.explain()


def test_a_session_gives_what_a_decision_from_scratch_gives() -> None:
    random = np.random.default_rng(1)
    session = ap.Session({"v100": 4, "k80": 4}, "max_min_fairness_perf")
    rows: dict[str, list[float]] = {}
    for step in range(60):
        if rows and random.random() < 0.4:
            gone = sorted(rows)[int(random.integers(len(rows)))]
            session.remove(gone)
            del rows[gone]
        else:
            rows[f"job {step}"] = (random.random(2) + 0.1).tolist()
            session.add(f"job {step}", rows[f"job {step}"])
        if not rows:
            continue
        decided = session.decide()
        whole = ap.allocate(np.array([rows[str(name)] for name in decided.names]), {"v100": 4, "k80": 4})
        assert decided.certificate is not None and whole.certificate is not None
        assert decided.certificate.optimal and decided.certificate.value == pytest.approx(whole.certificate.value, rel=1e-6)
    session.add("x", {"v100": 1.0})
    with pytest.raises(ap.InputError, match="is there already"):
        session.add("x", [1.0, 1.0])
    with pytest.raises(ap.InputError, match="no job"):
        session.remove("y")
    with pytest.raises(ap.InputError, match="weight"):
        session.update("x", weight=-1)
    session.update("x", weight=2)
    assert len(session.decide().share("x")) == 2
    for refused in ("fifo", "max_min_fairness_packed"):
        with pytest.raises(ap.InputError, match="session") as raised:
            ap.Session(WORKERS, refused)
        assert raised.value.help is not None and "allocate decides by it" in raised.value.help


def test_a_session_measures_finish_time_fairness_against_what_is_stated() -> None:
    policy, random = "finish_time_fairness_perf", np.random.default_rng(3)
    session = ap.Session({"v100": 4, "k80": 4}, policy)
    rows: dict[int, list[float]] = {}
    known: dict[int, dict[str, float]] = {}

    def stated(job: int) -> dict[str, float]:
        return {"steps_remaining": 1e6 / (job + 1), "elapsed": 3600.0 * job, "isolated_elapsed": float(random.random() * 3600 * job)}

    for job in range(14):
        rows[job], known[job] = (random.random(2) + 0.1).tolist(), stated(job)
        session.add(job, rows[job], **known[job])  # type: ignore[arg-type]
        known[job // 2] = {**stated(job), "steps_remaining": known[job // 2]["steps_remaining"] / 2}
        session.update(job // 2, **known[job // 2])
        decided = session.decide()
        columns = {field: [known[name][field] for name in decided.names] for field in known[job]}  # type: ignore[index]
        whole = ap.allocate([rows[name] for name in decided.names], {"v100": 4, "k80": 4}, policy, **columns)  # type: ignore[index]
        assert decided.certificate is not None and whole.certificate is not None
        assert decided.certificate.value == pytest.approx(whole.certificate.value, rel=1e-6)
    session.add("x", [1.0, 1.0])
    with pytest.raises(ap.InputError, match="needs `steps_remaining` of job 'x'"):
        session.decide()


def test_the_policies_of_sessions_are_those_that_the_page_lists() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    listed = re.findall("`([a-z_]+)`", page.split("of those that ship ")[1].split(". For the others")[0])

    def is_taken(name: str) -> bool:
        try:
            ap.Session(WORKERS, name)
        except ap.InputError as error:
            if error.help is not None:
                # What is said to decide in its place does.
                jobs = {"steps_remaining": 1e6, "pairs": {(0, 1): T}, "prices": {"v100": 2.0, "k80": 1.0}}
                assert ap.allocate(T, WORKERS, name, **jobs).shares.shape == (2, 2)
            return False
        return True

    assert listed == [name for name, _ in ap.policies() if is_taken(name)]


def test_a_function_is_a_policy() -> None:
    def equal(p: ap.Problem) -> np.ndarray:
        return np.minimum(1 / len(p.workers), p.workers / (p.scale_factor[:, None] * p.n_jobs))

    d = ap.allocate(T, WORKERS, equal)
    assert d.policy == "equal" and d.shares.tolist() == [[0.5, 0.5], [0.5, 0.5]] and d.certificate is None and d.solve is None
    d = ap.allocate(T, WORKERS, lambda p: {0: [1, 0], 1: [0, 1]})
    assert d.shares.tolist() == [[1, 0], [0, 1]]
    d = ap.allocate(T, WORKERS, lambda p: {(0, 1): [1, 0]}, pairs={(0, 1): [[3.0, 2.0], [0.0, 0.0]]})
    assert d.throughput.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("answer", "error", "said", "known"),
    [
        (lambda p: np.ones((2, 2)), ap.AllocationError, "the job at position 0 is given 2 of its time", {"row": 0, "excess": 1.0}),
        (lambda p: [[1.0, 0], [1.0, 0]], ap.AllocationError, "2 workers of type 'v100'", {"worker_type": 0, "excess": 1.0}),
        (lambda p: [[-0.5, 0], [0, 0]], ap.AllocationError, "share -0.5", {"row": 0, "worker_type": 0, "excess": 0.5}),
        (lambda p: {(0, 1): [1, 0]}, ap.AllocationError, "cannot run", {"row": 0, "worker_type": 0}),
        (lambda p: [[float("nan"), 0], [0, 0]], ap.AllocationError, "NaN", {"row": 0}),
        (lambda p: None, ValueError, "returned None", {}),
        (lambda p: np.ones(3), ValueError, r"shape \[3\], expected \[2, 2\]", {}),
        (lambda p: {5: [0, 0]}, ValueError, "gave shares to 5", {}),
        (lambda p: {0: [0, 0, 0]}, ValueError, r"gave \[0, 0, 0\] to one combination", {}),
        (lambda p: "shares", ap.InputError, "expected numbers, not 'shares'", {}),
        (lambda p: 1 / 0, ZeroDivisionError, "division", {}),
    ],
)
def test_a_function_that_answers_wrongly_is_told_so(answer, error, said, known) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said) as raised:
        ap.allocate(T, WORKERS, answer)
    for name, value in known.items():
        assert getattr(raised.value, name) == pytest.approx(value)


def test_errors_know_their_place(tmp_path: Path) -> None:
    with pytest.raises(ap.InputError, match="did you mean `max_min_fairness`") as raised:
        ap.allocate(T, WORKERS, "max_min_fairnes")
    assert raised.value.help and isinstance(raised.value, ValueError)
    path = tmp_path / "mine.yaml"
    path.write_text("format: apportion/policy-v1\nname: mine\nsummary: x\nkind: program\nmaximize: min_over_jobs(thruput)\n")
    with pytest.raises(ap.InputError) as raised:
        ap.allocate(T, WORKERS, path)
    assert raised.value.line == 5 and raised.value.source == str(path) and raised.value.column == 25
    with pytest.raises(ap.InputError, match="weight is -1") as raised:
        ap.allocate(T, WORKERS, weight=[1, -1])
    assert raised.value.job == 1
    with pytest.raises(ap.InputError, match="steps_remaining"):
        ap.allocate(T, WORKERS, "makespan_perf" if "makespan_perf" in dict(ap.policies()) else "min_total_duration_perf")
    slo = "format: apportion/policy-v1\nname: slow\nsummary: x\nkind: program\nmaximize: sum_over_jobs(throughput)\nfor_each_job: [throughput >= 100 * equal_share_throughput]\n"
    with pytest.raises(ap.InfeasibleError, match="no allocation keeps"):
        ap.allocate(T, WORKERS, slo)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"throughputs": [1.0, 2.0]}, r"shape \(2,\), expected \(jobs, 2\)"),
        ({"throughputs": [[1.0]]}, r"shape \(1, 1\)"),
        ({"throughputs": [[np.nan, 1.0]]}, "throughput is NaN"),
        ({"throughputs": [[0.0, 0.0]]}, "can run on no worker type"),
        ({"scale_factor": [1.5, 1]}, "position 0: scale_factor is 1.5, expected a whole number"),
        ({"scale_factor": [0, 1]}, "scale_factor is 0"),
        ({"scale_factor": [1, 2, 3]}, r"shape \(3,\), expected \(2,\)"),
        ({"workers": {"v100": -1, "k80": 1}}, "-1 workers"),
        ({"workers": {"v100": 0, "k80": 0}}, "no workers"),
        ({"prices": {"a100": 1.0}}, "unknown worker type 'a100'"),
        ({"prices": {"v100": 0.0}}, "the price of `v100` is 0"),
        ({"pairs": {(0, 2): [[1, 1], [1, 1]]}}, r"pair \(0, 2\)"),
        ({"weight": {"a": 1}}, "the jobs have no names"),
        ({"backend": "cplex"}, "cplex"),
        ({"weights": [1, 2]}, "did you mean weight"),
        ({"refine": "none"}, r"Policy\(…, refine=…\)"),
        ({"weight": [1e308, 1e-308]}, "weight is 1e308|weight is 1000"),
        ({"throughputs": [[1e-200, 1.0]]}, "throughput is 1e-200"),
    ],
)
def test_wrong_arguments_are_refused(arguments, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ap.InputError, match=said):
        ap.allocate(**{"throughputs": T, "workers": WORKERS, **arguments})


def test_no_jobs_are_an_answer() -> None:
    d = ap.allocate(np.empty((0, 2)), WORKERS)
    assert d.shares.shape == (0, 2) and d.throughput.shape == (0,)


def test_fit_brings_shares_into_the_polytope() -> None:
    p = ap.problem([[4.0, 0.0], [4.0, 2.0]], WORKERS)
    near = ap.fit(p, [[0.50001, 1e-9], [0.50001, 0.5]])
    assert ap.allocate(p, policy=lambda _: near).shares.sum(axis=0)[0] == pytest.approx(1)
    assert near[0, 1] == 0
    for far in ([[1.1, 0], [0, 0]], [[0.6, 0], [0.6, 0]], [[-0.1, 0], [0, 0]], [[0, 0.1], [0, 0]], [[np.nan, 0], [0, 0]]):
        with pytest.raises(ap.AllocationError):
            ap.fit(p, far)


def test_memory_is_flat_over_many_calls() -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not say how much memory is resident")

    def resident() -> int:
        gc.collect()
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1])

    rows = np.random.default_rng(0).random((20, 2)) + 0.1

    def many(n: int) -> None:
        for _ in range(n):
            ap.allocate(rows, {"v100": 4, "k80": 4}, lambda p: np.zeros(p.throughputs.shape))
            ap.allocate(rows, {"v100": 4, "k80": 4}, "proportional").shares

    many(1000)
    before = resident()
    many(10_000)
    assert resident() - before < 4096, "KiB"


def test_texts_of_a_program_are_written_when_they_are_asked_for() -> None:
    why = ap.explain(T, WORKERS)
    assert why._texts._written == {}
    again = pickle.loads(pickle.dumps(why))
    assert why.lp is not None and "maximize" in why.lp and why.mps is not None and why.cbf is not None
    assert (again.lp, again.mps, again.cbf) == (why.lp, why.mps, why.cbf)
    rule = ap.explain(T, WORKERS, "fifo")
    assert (rule.lp, rule.mps, rule.cbf) == (None, None, None)


def test_shares_of_many_jobs_fit_in_little_memory() -> None:
    n = 4000
    p = ap.problem(np.ones((n, 2)), {"v100": n, "k80": n})
    tracemalloc.start()
    x = ap.fit(p, np.full((n, 2), 0.50001))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20 and x.sum(axis=1) == pytest.approx(np.ones(n))
    assert ap.fit(ap.problem([], WORKERS), np.zeros((0, 2))).shape == (0, 2)


def test_pairs_are_those_that_were_given() -> None:
    n = 2000
    rows = np.ones((n, 2))
    assert [of.shape for of in ap.problem(rows, WORKERS).pairs()] == [(0, 2), (0, 2, 2)]
    p = ap.problem(rows, WORKERS, pairs={(n - 1, 3): [[1.0, 2.0], [0.0, 0.0]], (0, 1): [[0.0, 0.0], [3.0, 4.0]], (5, 6): [[0.0, 0.0]] * 2})
    positions, speeds = p.pairs()
    assert positions.tolist() == [[0, 1], [3, n - 1]] and speeds.tolist() == [[[0, 0], [3, 4]], [[2, 1], [0, 0]]]
