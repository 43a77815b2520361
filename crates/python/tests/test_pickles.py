"""Copies, pickles and the texts of `help`: what Python does with any object."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap

ROOT = Path(__file__).resolve().parents[3]
T = [[4.0, 1.0], [4.0, 2.0]]
WORKERS = {"v100": 1, "k80": 1}
COLUMNS = ("workers", "throughputs", "scale_factor", "weight", "steps_remaining", "elapsed", "isolated_elapsed", "slo_remaining")


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def are_alike(one: ap.Problem, other: ap.Problem) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("names", "worker_types", "owner", "job_type"):
        assert getattr(one, name) == getattr(other, name)
    for mine, theirs in zip(one.pairs(), other.pairs()):
        np.testing.assert_array_equal(mine, theirs)
    assert {name: of.tolist() for name, of in one.extra.items()} == {name: of.tolist() for name, of in other.extra.items()}
    assert (one.prices is None) == (other.prices is None)


def test_a_problem_is_pickled(tmp_path: Path) -> None:
    owners = {"x": {"weight": 3, "inner": "fifo"}, "y": {"parent": "x"}}
    columns: dict[str, Any] = {"weight": [1, 2], "slo_remaining": [np.nan, 60], "extra": {"mine": [1, 2]}, "steps_remaining": [10, 20]}
    p = ap.problem(T, WORKERS, names=["a", 7], owner=["y", None], owners=owners, pairs={("a", 7): [[3.0, 3.0], [0.9, 1.8]]}, **columns)
    for problem in (p, ap.problem(T, WORKERS), ap.problem([], WORKERS), ap.problem(T, WORKERS, prices={"v100": 2.0, "k80": 1.0})):
        are_alike(again(problem), problem)
    for policy in ("max_min_fairness_packed", "max_min_fairness_perf"):
        assert ap.allocate(again(p), policy=policy).shares.tolist() == ap.allocate(p, policy=policy).shares.tolist()
    read = ap.read_problem(ROOT / "examples" / "snapshot.yaml")
    are_alike(again(read), read)
    assert ap.allocate(again(read)).shares.tolist() == ap.allocate(read).shares.tolist()
    assert copy.copy(p) is p and copy.deepcopy([p])[0] is p
    seen: list[ap.Problem] = []

    def keeping(problem: ap.Problem) -> Any:
        seen.append(problem)
        return np.zeros(problem.throughputs.shape)

    ap.simulate(keeping, {"v100": 2, "k80": 2}, rate=2.0, jobs=4, stop={"rounds": 3})
    of_simulation = next(problem for problem in seen if problem.n_jobs)
    assert of_simulation.job_type[0] is not None
    are_alike(again(of_simulation), of_simulation)


def test_answers_are_pickled() -> None:
    d = ap.allocate(T, WORKERS, "max_min_fairness_packed", pairs={(0, 1): [[3.0, 3.0], [0.9, 1.8]]})
    other = again(d)
    for name in ("shares", "pairs", "pair_shares", "throughput"):
        np.testing.assert_array_equal(getattr(d, name), getattr(other, name))
    assert repr(other) == repr(d) and other.solve == d.solve and other.policy == d.policy and other.violation == d.violation
    assert d.certificate is not None and again(d.certificate).bound == d.certificate.bound and again(d.certificate).optimal
    assert copy.deepcopy(d) is d and copy.copy(d.certificate) is not None
    rule = ap.allocate(T, WORKERS, "fifo")
    assert again(rule).certificate is None and again(rule).solve is None
    why = ap.explain(T, WORKERS)
    assert again(why)[1] == why[1] and copy.deepcopy(why).reason == why.reason


def test_a_policy_is_pickled_with_what_it_knows(tmp_path: Path) -> None:
    policy = ap.Policy("max_min_fairness_perf", time_limit=60)
    assert again(policy).allocate(ap.problem(T, WORKERS)).shares.tolist() == policy.allocate(ap.problem(T, WORKERS)).shares.tolist()
    assert again(policy)._asked == policy._asked and copy.deepcopy(policy).name == policy.name
    study = ap.sweep(policies=["fifo"], seeds=[0], out=tmp_path / "s", cluster=WORKERS, rate=0.2, jobs=3)
    assert again(study).runs["digest"].tolist() == study.runs["digest"].tolist()


def test_a_session_is_not_copied() -> None:
    session = ap.Session(WORKERS)
    for ask in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a Session cannot be copied or pickled"):
            ask(session)


class Slow(str):
    """A name that lets other threads come between."""

    def __hash__(self) -> int:
        threading.Event().wait(0.0005)
        return super().__hash__()


def test_names_of_a_session_are_kept_apart_between_threads() -> None:
    session, failed = ap.Session(WORKERS), []

    def come(thread: int) -> None:
        try:
            for number in range(20):
                session.add(Slow(f"{thread} {number}"), [4.0, 1.0])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=come, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(session) == 80 and session.decide().shares.shape == (80, 2)


def test_help_says_what_the_annotations_say() -> None:
    stub = Path(ap.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    shown = {"Problem": ap.Problem, "Decision": ap.Decision, "ObjectiveCertificate": ap.ObjectiveCertificate}
    for of in ast.parse(stub).body:
        if not isinstance(of, ast.ClassDef) or of.name not in shown:
            continue
        for member in of.body:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_") and member.name != "read":
                said = inspect.getdoc(getattr(shown[of.name], member.name))
                assert said and said == ast.get_docstring(member), f"{of.name}.{member.name}"
