"""The scripts in `examples/`, run as their users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
#: How a PNG file begins.
PNG = b"\x89PNG\r\n\x1a\n"


def test_a_study_makes_its_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    script = EXAMPLES / "study.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 60

    def run() -> str:
        said = subprocess.run(
            [sys.executable, str(script), "pictures"],
            cwd=tmp_path,
            env={**os.environ, "MPLBACKEND": "Agg"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        return said.stdout

    table = run()
    assert "shortest_first" in table and "fifo_perf" in table and "nan" not in table.lower()
    for name in ("averages.png", "leases.png"):
        picture = (tmp_path / "pictures" / name).read_bytes()
        assert picture.startswith(PNG) and len(picture) > 10_000
    assert run() == table, "what is kept is not made again, and the same"
