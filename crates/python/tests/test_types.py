"""The annotations: complete, and true to what is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]


def run(*arguments: str) -> str:
    said = subprocess.run([sys.executable, "-m", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
    return said.stdout + said.stderr if said.returncode else ""


def test_annotations_are_complete() -> None:
    pytest.importorskip("mypy")
    assert run("mypy") == ""


def test_the_stub_is_what_is_built() -> None:
    pytest.importorskip("mypy")
    assert run("mypy.stubtest", "apportion._native", "--mypy-config-file", "pyproject.toml") == ""


def test_annotations_take_numbers_of_numpy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "used.py"
    script.write_text(
        """import numpy as np
import apportion as ap
workers = {"v100": np.int64(3)}
p = ap.problem([[1.0]], workers, weight=2)
ap.allocate([[1.0]], workers), ap.explain([[1.0]], workers), ap.Session(workers)
ap.simulate("fifo", workers, rate=1.0)
"""
    )
    assert run("mypy", "--strict", str(script)) == ""
    script.write_text("import apportion as ap\nap.problem([[1.0]], {}, wieght=2)\n")
    assert "wieght" in run("mypy", "--strict", str(script)), "what is no argument is told by annotations, too"
