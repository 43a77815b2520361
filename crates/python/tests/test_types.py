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
