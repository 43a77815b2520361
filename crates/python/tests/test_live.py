"""A lease, held by programs of their own against what starts them, played here: it writes `control.json` and reads `progress.json`.

Programs have the file alone, copied, and Python's own modules. Most are led step by step: they say a line and wait for one.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "crates" / "python" / "python" / "apportion" / "live.py"
EXAMPLE = ROOT / "examples" / "live" / "train.py"
#: Nothing but Python's own modules.
ALONE = ["-I", "-S", "-B"]
#: More than anything here takes; a test that waits for so long has failed.
PATIENCE = 60.0

#: What programs begin with. `led` passes batches on one by one, as it is told to.
PREAMBLE = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import apportion_live
from apportion_live import lease
apportion_live.LOOK_EVERY = 0

def say(*words):
    print(*words, flush=True)

def told():
    return sys.stdin.readline().strip()

def load():
    try:
        with open(os.path.join(os.environ["APPORTION_CHECKPOINTS"], "steps")) as file:
            return int(file.read())
    except FileNotFoundError:
        return None

def save(steps):
    say("save", steps)
    if run.rank == 0:
        with open(os.path.join(os.environ["APPORTION_CHECKPOINTS"], "steps"), "w") as file:
            file.write(str(steps))
"""

#: A step for each line that it is given.
LED = """
with lease(save=save, load=load) as run:
    for batch in run.steps(range(4)):
        say("step", run.step, batch)
        told()
say("after")
"""


def module() -> ModuleType:
    """The file as a module of this process."""
    spec = importlib.util.spec_from_file_location("apportion_live", FILE)
    assert spec is not None and spec.loader is not None
    live = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(live)
    return live


class Shim:
    """What starts the ranks of a job, each in a folder of its own."""

    def __init__(self, folder: Path, total_steps: int | None = None) -> None:
        self.folder = folder
        self.total_steps = total_steps
        self.incarnation = 0
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir()
        self.started: list[Program] = []

    def start(
        self, text: str, rank: int = 0, ranks: int = 1, how: Iterable[str] = ALONE, arguments: Iterable[str] = (), **more: Any
    ) -> Program:
        if rank == 0:
            self.incarnation += 1
        folder = self.folder / f"{self.incarnation}-{rank}"
        lease = folder / "lease"
        lease.mkdir(parents=True)
        shutil.copy(FILE, folder / "apportion_live.py")
        script = folder / "train.py"
        script.write_text(text, encoding="utf-8")
        environment = {
            **os.environ,
            "APPORTION_LEASE": str(lease),
            "APPORTION_JOB": "job",
            "APPORTION_INCARNATION": str(self.incarnation),
            "APPORTION_CHECKPOINTS": str(self.checkpoints),
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": str(rank),
        }
        if self.total_steps is not None:
            environment["APPORTION_TOTAL_STEPS"] = str(self.total_steps)
        environment.update(more.pop("environment", {}))
        pipe = subprocess.PIPE
        options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True, "cwd": folder, **more}
        process = subprocess.Popen([sys.executable, *how, str(script), *arguments], env=environment, **options)
        self.started.append(Program(process, lease))
        return self.started[-1]

    def lead(self, text: str = LED, **more: Any) -> Program:
        """A program with the preamble."""
        return self.start(PREAMBLE + text, **more)

    def gang(self, text: str, ranks: int, **more: Any) -> list[Program]:
        return [self.start(text, rank, ranks, **more) for rank in range(ranks)]


class Program:
    """One rank."""

    def __init__(self, process: subprocess.Popen[str], lease: Path) -> None:
        self.process = process
        self.lease = lease
        self.patience = threading.Timer(PATIENCE, process.kill)
        self.patience.start()

    def tell(self, stop: Any) -> None:
        self.write(json.dumps({"stop": stop}))

    def write(self, text: str) -> None:
        (self.lease / "control.tmp").write_text(text, encoding="utf-8")
        (self.lease / "control.tmp").replace(self.lease / "control.json")

    def withdraw(self) -> None:
        (self.lease / "control.json").unlink()

    @property
    def progress(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.lease / "progress.json").read_text(encoding="utf-8"))
        assert list(read) == ["version", "steps", "checkpointed", "first", "seconds", "state", "proposed"] and read["version"] == 1
        return read

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first progress seen of which this holds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                if holds(progress := self.progress):
                    return progress
            assert self.process.poll() is None, self.end()
            time.sleep(0.002)
        raise AssertionError(f"waited for {PATIENCE} s")

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self, steps: int = 1) -> str:
        """Ends so many steps; the line said then."""
        said = ""
        for _ in range(steps):
            self.send("go")
            said = self.line()
        return said

    def send(self, line: str) -> None:
        """A line to the program itself."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, list[str], str]:
        """Its exit code, the lines it still said, and its standard error."""
        # (not `communicate`, which passes over what `line` has read ahead)
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        out = self.process.stdout.read()
        error = self.process.stderr.read() if self.process.stderr is not None else ""
        return self.process.wait(), out.splitlines(), error


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[Shim]:
    shim = Shim(tmp_path, total_steps=10)
    yield shim
    for program in shim.started:
        program.patience.cancel()
        with program.process:
            program.process.kill()


def of(progress: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(progress[name] for name in names)


def test_the_file_needs_nothing_but_an_old_python(shim: Shim) -> None:
    ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 8))
    names = "sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    assert shim.lead(f"say({names})").end() == (0, ["['__main__', 'apportion_live']"], "")


def test_the_package_has_it_and_imports_it_when_it_is_asked_for() -> None:
    pytest.importorskip("apportion", reason="apportion is not installed", exc_type=ImportError)
    if importlib.util.find_spec("apportion.live") is None:
        pytest.skip("the apportion that is installed has no `live` yet")
    code = "import sys, apportion; assert 'apportion.live' not in sys.modules; print(apportion.live.lease.__module__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "apportion.live", said.stderr


def test_its_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APPORTION_LEASE", raising=False)
    failed, tried = doctest.testmod(module())
    assert tried >= 2 and failed == 0


@pytest.mark.parametrize("batches", [[], ["a", "b", "c"], (batch for batch in "abc")], ids=["none", "list", "generator"])
def test_outside_it_does_nothing(batches: Iterable[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("APPORTION_LEASE", raising=False)
    monkeypatch.setenv("APPORTION_TOTAL_STEPS", "10")
    monkeypatch.setenv("RANK", "not a number")
    monkeypatch.chdir(tmp_path)

    def never(*steps: int) -> int:
        raise AssertionError(steps)

    seen = []
    with module().lease(save=never, load=never, checkpoint_every=1e-9, total_steps=7) as run:
        for batch in run.steps(batches):
            seen.append((run.step, batch))
            run.checkpoint()
    assert seen in ([], [(0, "a"), (1, "b"), (2, "c")]) and run.step == len(seen) and run.rank == 0
    assert list(tmp_path.iterdir()) == []


def test_a_job_goes_round_its_loader_until_it_is_done(shim: Shim) -> None:
    job = shim.lead()
    seen = [job.line()] + [job.go() for _ in range(9)]
    assert seen == [f"step {step} {step % 4}" for step in range(10)]
    assert of(job.progress, "state", "checkpointed", "first", "proposed") == ("running", 0, 0, None)
    assert job.go() == "save 10"
    assert job.end() == (0, ["after"], "")
    assert of(job.progress, "state", "steps", "checkpointed") == ("done", 10, 10)


def test_a_job_stops_after_the_running_step_and_resumes(shim: Shim) -> None:
    job = shim.lead()
    assert job.line() == "step 0 0" and job.go(3) == "step 3 3"
    job.tell("now")
    assert job.go() == "save 4"
    assert job.end() == (143, [], "")
    assert of(job.progress, "state", "steps", "checkpointed", "first") == ("stopped", 4, 4, 0)

    job = shim.lead()
    assert job.line() == "step 4 0"
    progress = job.until(lambda progress: progress["state"] == "running")
    assert of(progress, "steps", "checkpointed", "first", "seconds") == (4, 4, 4, 0)
    assert job.go(5) == "step 9 1" and job.go() == "save 10"
    assert job.end() == (0, ["after"], "")
    assert of(job.progress, "state", "steps", "checkpointed", "first") == ("done", 10, 10, 4)

    job = shim.lead()
    assert job.end() == (0, ["save 10", "after"], ""), "nothing is left to do"


def test_a_job_that_is_told_before_its_first_step_does_none(shim: Shim) -> None:
    held = "import time\nwhile not os.path.exists(os.environ['APPORTION_LEASE'] + '/control.json'): time.sleep(0.001)\n"
    job = shim.lead(held + LED)
    job.tell("now")
    assert job.end() == (143, ["save 0"], "")
    assert of(job.progress, "state", "steps", "seconds") == ("stopped", 0, 0)


def test_a_job_stops_after_the_step_that_it_is_told(shim: Shim) -> None:
    job = shim.lead()
    assert job.line() == "step 0 0"
    job.tell({"after": 3})
    assert job.go(2) == "step 2 2" and job.go() == "save 3"
    assert job.end() == (143, [], "") and job.progress["steps"] == 3

    job = shim.lead()
    assert job.line() == "step 3 0"
    job.tell({"after": 2})
    assert job.go() == "save 4", "2 steps were done long ago"
    assert job.end() == (143, [], "")


def test_a_word_that_is_withdrawn_is_forgotten(shim: Shim) -> None:
    job = shim.lead()
    assert job.line() == "step 0 0"
    job.tell({"after": 2})
    assert job.go() == "step 1 1"
    job.withdraw()
    assert job.go(3) == "step 4 0"
    job.tell({"after": 10})
    assert job.go(6) == "save 10"
    assert job.end() == (0, ["after"], ""), "done, and told to stop then"


def test_the_first_rank_proposes_a_step_and_goes_on(shim: Shim) -> None:
    shim.total_steps = 10**6
    job = shim.lead("apportion_live.RELAY_SECONDS = 1e-9\n" + LED, ranks=3)
    assert job.line() == "step 0 0"
    job.tell("propose")
    assert job.go() == "step 1 1" and job.progress["proposed"] is None, "one step says little of the speed"
    assert job.go() == "step 2 2"
    assert of(job.progress, "proposed", "steps", "state") == (4, 2, "running")
    assert job.go() == "step 3 3" and job.progress["proposed"] == 4
    assert job.go() == "step 4 0" and job.progress["proposed"] == 6, "what has passed is no step that all can stop after"
    job.tell({"after": 6})
    assert job.go() == "step 5 1" and job.go() == "save 6"
    assert job.end() == (143, [], "")
    assert of(job.progress, "state", "steps", "checkpointed") == ("stopped", 6, 6)


def test_a_proposal_that_is_not_wanted_any_more_is_forgotten(shim: Shim) -> None:
    job = shim.lead("apportion_live.RELAY_STEPS = 5\napportion_live.RELAY_SECONDS = 1e-9\n" + LED)
    job.line()
    job.tell("propose")
    assert job.go(2) == "step 2 2" and job.progress["proposed"] == 7
    job.withdraw()
    assert job.go() == "step 3 3"
    job.tell("propose")
    assert job.go() == "step 4 0" and job.progress["proposed"] == 9
    assert job.go(5) == "step 9 1" and job.progress["proposed"] == 10, "the last step there is"


FREE = """
import time
apportion_live.LOOK_EVERY = 0.02
with lease(save=save, load=load) as run:
    say("loaded", run.step)
    told()
    for batch in run.steps(range(7)):
        time.sleep(0.004)
say("after", run.step)
"""


def test_three_ranks_stop_after_the_same_step_and_go_on_from_there(shim: Shim) -> None:
    shim.total_steps = 1_000_000

    def start(steps: int) -> list[Program]:
        gang = shim.gang(PREAMBLE + FREE, 3)
        assert [rank.line() for rank in gang] == [f"loaded {steps}"] * 3
        for rank in gang:
            rank.send("go")
        return gang

    gang = start(0)
    gang[0].tell("propose")
    proposed = gang[0].until(lambda progress: progress["proposed"] is not None)
    assert proposed["proposed"] >= proposed["steps"] + 2
    for rank in gang:
        rank.tell({"after": proposed["proposed"]})
    assert [rank.end() for rank in gang] == [(143, [f"save {proposed['proposed']}"], "")] * 3
    for rank in gang:
        assert of(rank.progress, "state", "steps", "checkpointed") == ("stopped", proposed["proposed"], proposed["proposed"])

    shim.total_steps = proposed["proposed"] + 5
    gang = start(proposed["proposed"])
    assert [rank.end() for rank in gang] == [(0, [f"save {shim.total_steps}", f"after {shim.total_steps}"], "")] * 3
    for rank in gang:
        assert of(rank.progress, "state", "steps", "first") == ("done", shim.total_steps, proposed["proposed"])
        assert rank.progress["seconds"] >= 5 * 0.004


def test_progress_comes_while_steps_are_done(shim: Shim) -> None:
    began = time.monotonic()
    shim.total_steps = None
    job = shim.lead("apportion_live.RECORD_EVERY = 0.01\n" + FREE.replace("range(7)", "iter(int, 1)"))
    job.send("go")
    progress = job.until(lambda progress: progress["steps"] >= 20)
    assert 20 * 0.004 <= progress["seconds"] <= time.monotonic() - began
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == (-signal.SIGTERM, ["loaded 0"], ""), "signals do what they do without a lease"
    assert job.progress["state"] == "running" and job.progress["checkpointed"] == 0


def test_progress_of_a_job_that_is_killed_is_whole(shim: Shim) -> None:
    job = shim.lead()
    job.line()
    job.go(2)
    job.process.kill()
    job.end()
    assert of(job.progress, "state", "checkpointed") == ("running", 0)
    assert [path.name for path in job.lease.iterdir()] == ["progress.json"]


def test_control_that_is_damaged_is_passed_over(shim: Shim) -> None:
    job = shim.lead()
    assert job.line() == "step 0 0"
    damaged = ["", '{"stop"', "[" * 100_000, '"now"', '{"stop": "tomorrow"}', '{"stop": {"after": true}}', '{"stop": {"after": 2.5}}', "{}"]
    for number, text in enumerate(damaged, start=1):
        job.write(text)
        assert job.go() == f"step {number} {number % 4}"
    job.tell("now")
    assert job.go() == f"save {len(damaged) + 1}"
    code, _, said = job.end()
    assert code == 143 and said.count("\n") == 1 and said.startswith("apportion: control.json is not understood")


@pytest.mark.parametrize("is_stderr_full", [False, True])
def test_a_full_disk_does_not_end_the_training(shim: Shim, is_stderr_full: bool) -> None:
    text = """
import resource
apportion_live.RECORD_EVERY = 0
with lease(save=lambda steps: say("save", steps)) as run:
    for batch in run.steps([1, 2, 3]):
        if run.step == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        if run.step == 8:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    with contextlib.ExitStack() as stack:
        more: dict[str, Any] = {}
        if is_stderr_full:
            if not Path("/dev/full").exists():
                pytest.skip("there is no /dev/full")
            more["stderr"] = stack.enter_context(open("/dev/full", "w"))
        job = shim.lead(text, **more)
        code, said, error = job.end()
    assert (code, said) == (0, ["save 10"])
    assert is_stderr_full or (error.count("\n") == 1 and error.startswith("apportion: progress cannot be recorded"))
    assert of(job.progress, "state", "steps") == ("done", 10), "as soon as there is room"


def test_a_folder_that_is_gone_does_not_end_the_training(shim: Shim) -> None:
    job = shim.lead(environment={"APPORTION_LEASE": str(shim.folder / "gone")})
    job.line()
    assert job.go(10) == "save 10"
    code, said, error = job.end()
    assert (code, said, error.count("\n")) == (0, ["after"], 1)


def test_a_block_that_raises_saves_nothing(shim: Shim) -> None:
    job = shim.lead(LED.replace("told()", "1 / (2 - run.step)"))
    code, said, error = job.end()
    assert code == 1 and said == ["step 0 0", "step 1 1", "step 2 2"] and "ZeroDivisionError" in error
    assert of(job.progress, "state", "checkpointed") == ("running", 0)


def test_a_save_that_raises_is_no_checkpoint(shim: Shim) -> None:
    job = shim.lead("def save(steps):\n    raise OSError('no room')\n" + LED)
    assert job.line() == "step 0 0"
    job.tell("now")
    assert job.go() == ""
    code, _, error = job.end()
    assert code == 1 and "no room" in error
    assert of(job.progress, "state", "steps", "checkpointed") == ("saving", 1, 0)


def test_a_loop_that_the_job_leaves_is_its_end(shim: Shim) -> None:
    job = shim.lead(LED.replace("told()", "\n        if run.step == 3: break"))
    assert job.end() == (0, [f"step {step} {step}" for step in range(4)] + ["save 3", "after"], "")
    assert of(job.progress, "state", "steps", "checkpointed") == ("done", 3, 3)


def test_the_example_ends_as_if_it_had_not_been_stopped(shim: Shim) -> None:
    shim.total_steps = 60
    text = EXAMPLE.read_text(encoding="utf-8")
    how: dict[str, Any] = {"how": ["-B"], "arguments": ["--seconds", "0.002", "--checkpoint-every", "0.05"]}
    # (a copy beside the script; the package, were it installed, would be the other)
    text = text.replace("from apportion.live", "from apportion_live")
    once = shim.start(text, **how).end()
    assert once[0] == 0 and once[1][0].startswith("rank 0: 60 steps, weight 0.45")
    for left in shim.checkpoints.iterdir():
        left.unlink()
    job = shim.start(text, **how)
    job.until(lambda progress: progress["state"] == "running")
    job.tell({"after": 20})
    assert job.end() == (143, [], "")
    assert json.loads((shim.checkpoints / "checkpoint.json").read_text())["steps"] == 20
    assert shim.start(text, **how).end() == once


class Clock:
    """A clock of this process, by which everything takes as long as is said."""

    def __init__(self, live: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.now = 1000.0
        self.live = live
        self.folder = folder
        self.saves: list[int] = []
        self.recorded: list[dict[str, Any]] = []
        self.looks = 0
        monkeypatch.setattr(live, "monotonic", lambda: self.now)
        monkeypatch.setenv("APPORTION_LEASE", str(folder))
        monkeypatch.delenv("APPORTION_TOTAL_STEPS", raising=False)
        for name in ("_record", "_look"):
            monkeypatch.setattr(live.Lease, name, self.counted(name, getattr(live.Lease, name)))

    def counted(self, name: str, method: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(lease: Any) -> None:
            method(lease)
            if name == "_look":
                self.looks += 1
            else:
                self.recorded.append(json.loads((self.folder / "progress.json").read_text(encoding="utf-8")))

        return call

    def takes(self, seconds: float) -> None:
        self.now += seconds

    def save(self, steps: int) -> None:
        self.takes(7)
        self.saves.append(steps)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    return Clock(module(), monkeypatch, tmp_path)


def test_only_steps_are_measured(clock: Clock) -> None:
    class Loader:
        def __iter__(self) -> Iterator[int]:
            clock.takes(10)
            yield 0
            clock.takes(0.25)
            yield 1

    def load() -> int:
        clock.takes(100)
        return 5

    with clock.live.lease(save=clock.save, load=load, checkpoint_every=20, total_steps=8) as run:
        for _ in run.steps(Loader()):
            clock.takes(0.5)
        clock.takes(50)
    assert clock.saves == [8]
    # Three steps, the second after a quarter of a second, the third after the loader began anew.
    assert of(clock.recorded[-1], "steps", "first", "seconds") == (8, 5, 0.5 + 0.75 + 10.5)
    states = [progress["state"] for progress in clock.recorded]
    assert states[:2] == ["starting", "running"] and states[-2:] == ["saving", "done"]


def test_looks_and_records_are_few(clock: Clock) -> None:
    with clock.live.lease(save=clock.save, total_steps=10_000) as run:
        for _ in run.steps(range(10_000)):
            clock.takes(0.001)
    assert clock.looks <= 10 / 0.02 + 2
    assert len(clock.recorded) <= 10 + 4
    assert clock.recorded[-1]["seconds"] == pytest.approx(10)


def test_a_proposal_follows_the_speed_of_late(clock: Clock) -> None:
    with clock.live.lease(save=clock.save, total_steps=10_000) as run:
        for _ in run.steps(range(10_000)):
            clock.takes(30 if run.step == 0 else 0.2 if run.step < 100 else 0.01)
            if run.step == 1000:
                (clock.folder / "control.json").write_text('{"stop": "propose"}')
            if run.step == 1100:
                break
    proposed = [progress for progress in clock.recorded if progress["proposed"]][0]
    assert proposed["steps"] + 195 <= proposed["proposed"] <= proposed["steps"] + 205


@pytest.mark.parametrize("first_takes", [30, 0.001])
def test_a_proposal_leaves_the_first_step_out(first_takes: float, clock: Clock) -> None:
    (clock.folder / "control.json").write_text('{"stop": "propose"}')
    with clock.live.lease(save=clock.save, load=lambda: 500, total_steps=10_000) as run:
        for _ in run.steps(range(10_000)):
            clock.takes(first_takes if run.step == 500 else 0.01)
            if run.step == 510:
                break
    proposed = [progress for progress in clock.recorded if progress["proposed"]][0]
    assert proposed["steps"] + 195 <= proposed["proposed"] <= proposed["steps"] + 205


def test_a_script_may_change_its_folder(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clock.folder.parent)
    monkeypatch.setenv("APPORTION_LEASE", clock.folder.name)
    with clock.live.lease(save=clock.save, total_steps=3) as run:
        os.chdir("/")
        assert len(list(run.steps([0]))) == 3
    assert clock.recorded[-1]["state"] == "done"


def test_checkpoints_in_passing(clock: Clock) -> None:
    with clock.live.lease(save=clock.save, checkpoint_every=3, total_steps=10) as run:
        for _ in run.steps(range(10_000)):
            clock.takes(1)
            if run.step == 7:
                run.checkpoint()
    assert clock.saves == [3, 6, 8, 10], "every three seconds of training, when asked for, and in the end"
    assert clock.recorded[-1]["seconds"] == 10
    after = [progress["state"] for progress, before in zip(clock.recorded[1:], clock.recorded) if before["state"] == "saving"]
    assert after == ["running", "running", "running", "done"]
    assert [progress["checkpointed"] for progress in clock.recorded if progress["state"] == "saving"] == [0, 3, 6, 8]


def test_a_job_that_is_told_while_it_saves_does_no_more(clock: Clock) -> None:
    def save(steps: int) -> None:
        clock.save(steps)
        (clock.folder / "control.json").write_text('{"stop": "now"}')

    with pytest.raises(SystemExit) as stopped, clock.live.lease(save=save, checkpoint_every=3, total_steps=10) as run:
        for _ in run.steps(range(10_000)):
            clock.takes(1)
    assert stopped.value.code == 143 and clock.saves == [3]
    assert of(clock.recorded[-1], "state", "steps", "checkpointed") == ("stopped", 3, 3)


def test_without_a_number_of_steps_the_loader_ends_the_job(clock: Clock) -> None:
    seen = []
    with clock.live.lease(save=clock.save) as run:
        for epoch in range(2):
            for batch in run.steps("ab"):
                seen.append((epoch, batch))
                clock.takes(1)
            clock.takes(100)
    assert seen == [(0, "a"), (0, "b"), (1, "a"), (1, "b")] and clock.saves == [4]
    assert of(clock.recorded[-1], "state", "steps", "seconds") == ("done", 4, 4), "what is between the loops is no step"


def test_the_number_of_steps_that_was_submitted_counts(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPORTION_TOTAL_STEPS", "3")
    with clock.live.lease(save=clock.save, total_steps=5) as run:
        assert len(list(run.steps([0]))) == 3 and list(run.steps([0])) == []
    assert clock.saves == [3]


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ([], "the loader is empty, after 0 steps of 5\nhelp: .*at least one batch"),
        ((batch for batch in "abc"), "the loader ended after 3 steps of 5.*\nhelp: .*a list or a DataLoader"),
        (iter(()), "the loader ended after 0 steps of 5.*\nhelp"),
    ],
    ids=["empty", "generator", "iterator"],
)
def test_a_loader_that_ends_too_early_is_said(loader: Iterable[Any], said: str, clock: Clock) -> None:
    with pytest.raises(clock.live.LeaseError, match=said), clock.live.lease(save=clock.save, total_steps=5) as run:
        for _ in run.steps(loader):
            clock.takes(1)
    assert clock.saves == [] and clock.recorded[-1]["state"] in ("starting", "running")


def test_what_is_wrong_is_said(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, LeaseError = clock.live.lease, clock.live.LeaseError
    with pytest.raises(TypeError, match="functions"):
        lease(save=None)
    with pytest.raises(TypeError, match="functions"):
        lease(save=print, load=3)
    wrong: list[Any] = [0, -1, float("nan"), "1h"]
    for every in wrong:
        with pytest.raises(ValueError, match="checkpoint_every is"):
            lease(save=print, checkpoint_every=every)
    with pytest.raises(ValueError, match="total_steps is -1"):
        lease(save=print, total_steps=-1)
    for given in ("x", -1, 2.5, True):
        with pytest.raises(LeaseError, match=r"load\(\) gave"), lease(save=print, load=lambda: given):
            pass
    run = lease(save=lambda steps: None)
    with pytest.raises(LeaseError, match="not held\nhelp"):
        run.steps([])
    with run:
        pass
    with pytest.raises(LeaseError, match="not held\nhelp"):
        run.steps([])
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(LeaseError, match="RANK is 'first'.*\nhelp"):
        lease(save=print)


# (without torch's optimizers and DistributedDataParallel, which take seconds to import)
TORCH = """
import os
import torch
import torch.distributed as distributed
from apportion_live import lease

torch.set_num_threads(1)
distributed.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
checkpoint = os.path.join(os.environ["APPORTION_CHECKPOINTS"], "model.pt")

def load():
    if not os.path.exists(checkpoint):
        return None
    saved = torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    return saved["steps"]

def save(steps):
    if run.rank == 0:
        torch.save({"steps": steps, "model": model.state_dict()}, checkpoint)
    distributed.barrier()

data = torch.utils.data.TensorDataset(torch.randn(64, 4))
with lease(save=save, load=load) as run:
    for (batch,) in run.steps(torch.utils.data.DataLoader(data, batch_size=8)):
        model.zero_grad()
        model(batch).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad)
                parameter -= 0.01 * parameter.grad
distributed.destroy_process_group()
print("after", run.step)
"""


def test_a_gang_of_torch_stops_and_resumes(shim: Shim) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    shim.total_steps = 10**9

    def start() -> list[Program]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}
        return shim.gang(TORCH, 2, how=["-B"], environment=where)

    gang = start()
    gang[0].until(lambda progress: progress["state"] == "running")
    gang[0].tell("propose")
    after = gang[0].until(lambda progress: progress["proposed"] is not None)["proposed"]
    for rank in gang:
        rank.tell({"after": after})
    for rank in gang:
        assert rank.end()[:2] == (143, [])
        assert of(rank.progress, "state", "steps", "checkpointed") == ("stopped", after, after)
    shim.total_steps = after + 3
    gang = start()
    for rank in gang:
        assert rank.end()[:2] == (0, [f"after {after + 3}"])
        assert of(rank.progress, "state", "first") == ("done", after)
