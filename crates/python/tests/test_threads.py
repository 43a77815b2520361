"""Threads: how deep they may call, and what becomes of them when the interpreter ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import apportion as ap

CLUSTER = "v100=8,p100=8,k80=8"
SLOW = """
import threading, time, numpy as np, apportion as ap
begun = threading.Event()
def slow(p):
    begun.set()
    time.sleep(0.001)  # (lets go of the lock, and wants it again while the interpreter ends)
    return np.zeros(p.throughputs.shape)
slow.policy_version = "1"
def decide():
    while True:
        ap.allocate(np.ones((2, 2)), {"v100": 1, "k80": 1}, slow)
def simulate():
    ap.simulate(slow, "v100=8,p100=8,k80=8", rate=2, jobs=20_000)
def sweep():
    ap.sweep(policies=[slow], seeds=range(20), out="kept", cluster="v100=8,p100=8,k80=8", rate=2, jobs=20_000)
threading.Thread(target=%s, daemon=True).start()
assert begun.wait(60)
"""


def recursive(p: ap.Problem) -> object:
    """A policy that asks itself."""
    return ap.allocate(p, policy=recursive).shares


def test_a_policy_that_asks_itself_is_a_recursion_error(tmp_path: Path) -> None:
    with pytest.raises(RecursionError):
        ap.allocate([[1.0]], {"v100": 1}, recursive)
    with pytest.raises(RecursionError):
        ap.simulate(recursive, CLUSTER, rate=0.3, jobs=3)
    study = ap.sweep(policies=[recursive], seeds=[0], out=tmp_path / "s", cluster=CLUSTER, rate=0.3, jobs=3)
    assert study.runs["status"].tolist() == ["failed"] and "RecursionError" in study.runs["reason"][0]


@pytest.mark.parametrize("work", ["decide", "simulate", "sweep"])
def test_the_interpreter_ends_while_a_function_runs(work: str, tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", SLOW % work], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    if work == "sweep":
        assert ap.Study(tmp_path / "kept").runs.n_rows == 0, "what was broken off is no result"
