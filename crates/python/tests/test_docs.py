"""The Python of the pages, run in their order, and the examples of the modules.

A page's blocks share one namespace and one folder. A `text` block right after one is what it prints, `…` being anything. A block whose
fence says `needs=NAME,…` is skipped where a module of that name is missing, or, for a name in capitals, where that environment variable is.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import os
import pkgutil
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import apportion

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "docs" / "python.md", ROOT / "crates" / "python" / "README.md"]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A block of Python, and what it prints if the page says so."""

    page: Path
    line: int
    code: str
    needs: list[str]
    prints: str | None = None


@dataclass
class Place:
    """Where a page's blocks run: what they have named, their folder, and how many have run."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    done: int = 0


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for fence in FENCE.finditer(text):
        kind, *marks = fence["info"].split() or [""]
        if kind == "python":
            needs = [name for mark in marks for name in mark.removeprefix("needs=").split(",")]
            found.append(Block(page, text[: fence.start()].count("\n") + 1, fence["text"], needs))
        elif kind == "text" and found and end and not text[end : fence.start()].strip():
            found[-1].prints = fence["text"]
        end = fence.end() if kind == "python" else 0
    return found


ALL = {page: blocks(page) for page in PAGES}
CASES = [pytest.param(page, number, id=f"{page.name}:{block.line}") for page in PAGES for number, block in enumerate(ALL[page])]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Place]:
    return {page: Place(tmp_path_factory.mktemp(page.stem)) for page in PAGES}


def missing(block: Block) -> str | None:
    for name in block.needs:
        if name.isupper() and not os.environ.get(name):
            return f"the environment variable {name} is not set"
        if not name.isupper() and importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return None


def run(block: Block, place: Place) -> None:
    # As many lines before the code as before it in the page, for the places that errors name. A page draws and is not looked at.
    code = compile("\n" * block.line + block.code, str(block.page), "exec", dont_inherit=True)
    os.environ.setdefault("MPLBACKEND", "Agg")
    printed = io.StringIO()
    before = Path.cwd()
    os.chdir(place.folder)
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, place.names)
    finally:
        os.chdir(before)
    if block.prints is not None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        expected = block.prints.replace("…", "...")
        assert doctest.OutputChecker().check_output(expected, printed.getvalue().replace("…", "..."), options), printed.getvalue()


@pytest.mark.parametrize(("page", "number"), CASES)
def test_a_page_runs(page: Path, number: int, places: dict[Path, Place]) -> None:
    place = places[page]
    for block in ALL[page][place.done : number]:
        # Of a test run by itself: what the page says before.
        if missing(block) is None:
            run(block, place)
    place.done = number + 1
    block = ALL[page][number]
    if reason := missing(block):
        pytest.skip(reason)
    run(block, place)


def test_pages_have_blocks() -> None:
    assert len(ALL[PAGES[0]]) > 10 and len(ALL[PAGES[1]]) > 0


MODULES = ["apportion", *(f"apportion.{of.name}" for of in pkgutil.iter_modules(apportion.__path__) if of.name != "_native")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_modules_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name}: {error}")
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
    assert name in sys.modules
