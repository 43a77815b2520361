"""A lease: a training script that apportion starts, stops between two steps and starts again, on any worker.

A script changes by five lines, which do nothing where apportion did not start it:

>>> batches = ["first", "second"]
>>> with lease(save=print) as run:
...     for batch in run.steps(batches):
...         print(run.step, batch)
0 first
1 second

This file needs Python 3.8 or later and nothing else, so it may be copied beside a script, as `apportion_live.py`, where the package is not
installed. What it exchanges with the process that started it is described in `docs/python.md`.
"""

from __future__ import annotations

import json
import math
import numbers
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["Lease", "LeaseError", "lease"]

Batch = TypeVar("Batch")

#: Seconds between two looks whether the job is to stop; a step that takes longer looks once.
LOOK_EVERY = 0.02
#: Seconds between two records of progress.
RECORD_EVERY = 1.0
#: Seconds that it may take to tell all ranks of a gang after which step they stop,
RELAY_SECONDS = 2.0
#: and the part of the time after which ranks are killed that it takes at most.
RELAY_PART = 0.25
#: Steps that a gang goes on for at least after its first rank was asked when all can stop.
RELAY_STEPS = 2
#: How a program ends that stopped because it was told to.
STOPPED = 143


class LeaseError(RuntimeError):
    """A lease that cannot be begun or gone on with: by the environment, by what `load` gives, or because the loader has ended."""

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        #: What to do about it, if that is known.
        self.help = help

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhelp: {self.help}" if self.help else message


def lease(
    *,
    save: Callable[[int], object],
    load: Callable[[], int | None] | None = None,
    checkpoint_every: float | None = None,
    total_steps: int | None = None,
) -> Lease:
    """A lease on the worker that this program runs on, for a `with` statement.

    `load()` brings the last checkpoint back, if there is one, and gives the number of steps that it holds (None: there is none).
    It is called when the `with` statement is entered. `save(steps)` writes a checkpoint of so many steps. It is called on every rank,
    when the program is told to stop, when it is done, and every `checkpoint_every` seconds if that is given. Ranks measure these
    seconds each by its own clock: a `save` that waits for other ranks is called by `Lease.checkpoint` instead.

    `total_steps` counts where the job was submitted without a number of steps. Steps count from the job's beginning, over all its starts.

    After the loop the `with` statement saves. If the program was told to stop, it then ends the program with exit code 143, by
    SystemExit; what follows in the script runs only when the job is done. If the block raises, nothing is saved.
    Where apportion did not start the program, neither `load` nor `save` is called.
    """
    return Lease(save=save, load=load, checkpoint_every=checkpoint_every, total_steps=total_steps)


class Lease:
    """What `lease` gives: the job's steps, and what this program knows of its place among the ranks."""

    def __init__(
        self,
        *,
        save: Callable[[int], object],
        load: Callable[[], int | None] | None = None,
        checkpoint_every: float | None = None,
        total_steps: int | None = None,
    ) -> None:
        if not callable(save) or not (load is None or callable(load)):
            raise TypeError("save and load are functions: save(steps), and load() or None")
        if checkpoint_every is not None and not (isinstance(checkpoint_every, numbers.Real) and checkpoint_every > 0):
            raise ValueError(f"checkpoint_every is {checkpoint_every!r}, expected a number of seconds above 0")
        if total_steps is not None and operator.index(total_steps) < 0:
            raise ValueError(f"total_steps is {total_steps!r}, expected a number of steps")
        folder = os.environ.get("APPORTION_LEASE")
        # (absolute: a script may change its folder)
        self._folder = os.path.abspath(folder) if folder else None
        known = {name: _whole(name, self._folder is not None) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "APPORTION_TOTAL_STEPS")}
        #: The number of this process in its gang, from 0. Rank 0 is the one that usually writes checkpoints.
        self.rank: int = known["RANK"] or 0
        #: How many processes the gang has.
        self.world_size: int = known["WORLD_SIZE"] or 1
        #: The number of this process among those of the gang on its server.
        self.local_rank: int = known["LOCAL_RANK"] or 0
        #: Steps that the job has in all; None where that is not known.
        self.total_steps: int | None = known["APPORTION_TOTAL_STEPS"]
        if self.total_steps is None and total_steps is not None:
            self.total_steps = operator.index(total_steps)
        grace = _number(os.environ.get("APPORTION_GRACE")) if folder else math.inf
        self._relay = min(RELAY_SECONDS, RELAY_PART * grace)
        self._user_save = save
        self._user_load = load
        self._checkpoint_every = math.inf if checkpoint_every is None else float(checkpoint_every)
        self._is_open = False
        self._said: set[str] = set()

        self._step = 0
        self._first = 0
        self._checkpointed = 0
        self._saved = -1
        self._state = "starting"
        # The step after which it was told to stop, -inf for any; whether it did; whether it was asked for one, and the one proposed.
        self._stop_after = math.inf
        self._is_stopped = False
        self._is_asked = False
        self._proposed: int | None = None

        # Times of the monotonic clock. The time that the steps of this start took is `_last_step` - `_origin`: where no steps were
        # run for a while, both move on by as much.
        self._origin = 0.0
        self._last_step = 0.0
        self._next_look = -math.inf
        self._next_record = math.inf
        self._next_checkpoint = math.inf
        # Whichever of these comes first, and the step at which the loop may have to end: until then a step costs two comparisons.
        self._wake = -math.inf
        self._end = math.inf if self.total_steps is None else self.total_steps
        # Steps and seconds at the last two records, for the speed of late.
        self._recent = [(0, 0.0), (0, 0.0)]

    @property
    def step(self) -> int:
        """Steps done since the job's beginning, over all its starts. In the loop's first round after `load`, as many as it gave."""
        return self._step

    def __enter__(self) -> Lease:
        self._is_open = True
        if self._folder is not None:
            if self._user_load is not None:
                self._first = _loaded(self._user_load())
            self._step = self._checkpointed = self._first
            self._record()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_open = False
        if self._folder is None or kind is not None:
            return
        if not self._is_stopped:
            self._checkpoint("done")
            return
        if self._saved == self._step:
            # It was told to stop while it saved in passing.
            self._state = "stopped"
            self._record()
        else:
            self._checkpoint("stopped")
        raise SystemExit(STOPPED)

    def steps(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """The loader's batches, until the job has all its steps or is told to stop; a step is done when the next batch is asked for.

        The loader is gone through as often as that takes, so it is a list, a DataLoader or the like; a generator must not end before the
        job does. Where the number of steps is not known, and outside apportion, it is gone through once. A loop that ends by `break` is
        the end of the job, with a checkpoint; the step that it was in does not count.

        A step costs 0.2 µs, and 0.1 µs outside apportion, the loader apart (by timeit, CPython 3.11 on a virtual machine). Every 20 ms
        one step looks for word to stop, which takes 5 µs, or 20 µs where there is some; every second one records progress, in 1 ms.
        """
        if not self._is_open:
            raise LeaseError("the lease is not held", help="call `steps` inside of `with lease(…) as run:`")
        return self._passed_on(loader) if self._folder is None else self._leased(loader)

    def checkpoint(self) -> None:
        """Asks for a checkpoint when the running step is done; outside apportion it does nothing.

        Where all ranks ask in the same step, `save` is called on all after the same step, and may wait for them.
        """
        if self._folder is not None:
            self._next_checkpoint = self._wake = -math.inf

    def _passed_on(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        for batch in loader:
            yield batch
            self._step += 1

    def _leased(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        clock = monotonic
        is_waiting = True
        while not self._is_over(clock()):
            before = self._step
            for batch in loader:
                if is_waiting:
                    is_waiting = False
                    self._start(clock())
                yield batch
                self._step += 1
                self._last_step = now = clock()
                if (self._step >= self._end or now >= self._wake) and self._is_over(now):
                    return
            if self._step == before and (self.total_steps is not None or self._step == 0):
                raise self._no_batch(isinstance(loader, Iterator))
            if self.total_steps is None:
                return

    def _no_batch(self, is_used_up: bool) -> LeaseError:
        of = "" if self.total_steps is None else f" of {self.total_steps}"
        if self._step == self._first and not is_used_up:
            return LeaseError(f"the loader is empty, after {self._step} steps{of}", help="give `steps` a loader with at least one batch")
        return LeaseError(
            f"the loader ended after {self._step} steps{of}, and has no batch when it is gone through again",
            help="give `steps` what can be gone through many times, such as a list or a DataLoader, or a generator that does not end",
        )

    def _start(self, now: float) -> None:
        """The first batch of a loop is there: from here on its steps take time."""
        self._go_on(now)
        if self._next_checkpoint == math.inf:
            self._next_checkpoint = now + self._checkpoint_every
        # Looks after the first step, which is often slow and says little of the speed.
        self._wake = -math.inf
        if self._state != "running":
            self._state = "running"
            self._record()
            self._next_record = now + RECORD_EVERY

    def _go_on(self, now: float) -> None:
        """Leaves the time since the last step out of what is measured."""
        self._origin += now - self._last_step
        self._last_step = now

    def _is_over(self, now: float) -> bool:
        """Between two steps: does what is due, and says whether the loop ends here."""
        if self._has_ended(now):
            return True
        if self._step == self._first + 1:
            self._recent = [(self._step, self._seconds())] * 2
        if self._is_asked and self._step >= max(self._first + 2, self._proposed or 0):
            self._propose()
        if now >= self._next_checkpoint:
            self._checkpoint("running")
            now = self._last_step
            if self._has_ended(now):
                return True
        if now >= self._next_record:
            self._record()
            self._recent = [self._recent[1], (self._step, self._seconds())]
            self._next_record = now + RECORD_EVERY
        self._wake = min(self._next_look, self._next_record, self._next_checkpoint)
        return False

    def _has_ended(self, now: float) -> bool:
        """Has the job all its steps, or is it to stop here?"""
        if now >= self._next_look:
            self._look()
            self._next_look = now + LOOK_EVERY
        if self.total_steps is not None and self._step >= self.total_steps:
            return True
        self._is_stopped = self._is_stopped or self._step >= self._stop_after
        return self._is_stopped

    def _propose(self) -> None:
        """Says after which step all ranks can stop: far enough ahead that they hear of it before, at the speed of late.

        If that step passes before they were told, it proposes another.
        """
        steps, seconds = self._recent[0]
        rate = (self._step - steps) / max(self._seconds() - seconds, 1e-6)
        ahead = self._step + max(RELAY_STEPS, math.ceil(self._relay * rate))
        self._proposed = ahead if self.total_steps is None else min(ahead, self.total_steps)
        self._record()

    def _seconds(self) -> float:
        return self._last_step - self._origin

    def _checkpoint(self, then: str) -> None:
        """Saves after the step that was done last, and records that it did and which state comes next."""
        self._state = "saving"
        self._record()
        self._user_save(self._step)
        self._checkpointed = self._saved = self._step
        self._state = then
        self._record()
        now = monotonic()
        self._go_on(now)
        self._next_record = now + RECORD_EVERY
        self._next_checkpoint = now + self._checkpoint_every

    def _look(self) -> None:
        """Reads what the process that started this one wants of it."""
        try:
            with open(os.path.join(str(self._folder), "control.json"), "rb") as file:
                stop = _stop(json.loads(file.read()))
        except FileNotFoundError:
            stop = None
        except OSError as error:
            self._say("control", f"control.json cannot be read, and is passed over: {error}")
            return
        except (ValueError, RecursionError) as error:
            self._say("control", f"control.json is not understood, and is passed over: {error}")
            return
        self._is_asked = stop == "propose"
        if stop is None:
            self._proposed = None
        self._stop_after = math.inf if stop is None or stop == "propose" else -math.inf if stop == "now" else stop
        self._end = min(math.inf if self.total_steps is None else self.total_steps, self._stop_after)

    def _record(self) -> None:
        """Writes progress down, in whole or not at all. Training goes on if that fails."""
        progress = {
            "version": 1,
            "steps": self._step,
            "checkpointed": self._checkpointed,
            "first": self._first,
            "seconds": round(self._seconds(), 6),
            "state": self._state,
            "proposed": self._proposed,
        }
        path = os.path.join(str(self._folder), "progress.json")
        try:
            with open(path + ".new", "w", encoding="ascii") as file:
                file.write(json.dumps(progress) + "\n")
            os.replace(path + ".new", path)
        except OSError as error:
            self._say("progress", f"progress cannot be recorded, and training goes on: {error}")

    def _say(self, about: str, message: str) -> None:
        """A line on standard error, once for each subject; if that fails, too, there is nobody to tell.

        Past the buffer of `sys.stderr`: what cannot be written from there makes Python end with exit code 120.
        """
        if about in self._said:
            return
        self._said.add(about)
        try:
            os.write(sys.stderr.fileno(), f"apportion: {message}\n".encode(errors="backslashreplace"))
        except (AttributeError, OSError, ValueError):
            pass


def _stop(control: Any) -> Any:
    """What a control.json says: None for nothing, "now", "propose", or the step to stop after."""
    stop = control.get("stop") if isinstance(control, dict) else control
    if isinstance(control, dict) and (stop is None or stop in ("now", "propose")):
        return stop
    after = stop.get("after") if isinstance(control, dict) and isinstance(stop, dict) else None
    if type(after) is not int:
        raise ValueError(f"{json.dumps(control)[:100]} says nothing of `stop` that is known here")
    return after


def _number(text: str | None) -> float:
    """A number of seconds above 0; infinite where there is none."""
    try:
        number = float(text or "inf")
    except ValueError:
        return math.inf
    return number if number > 0 else math.inf


def _whole(name: str, is_checked: bool) -> int | None:
    """A whole number of the environment; None where there is none, or one that is wrong and not checked."""
    text = os.environ.get(name)
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number >= 0:
        return number
    if is_checked:
        raise LeaseError(f"the environment variable {name} is {text!r}, expected a whole number", help=f"set {name} right, or unset it")
    return None


def _loaded(steps: Any) -> int:
    """What `load` gave, as a number of steps."""
    try:
        number = 0 if steps is None else operator.index(steps)
    except TypeError:
        number = -1
    if number < 0 or isinstance(steps, bool):
        raise LeaseError(
            f"load() gave {steps!r}, expected a number of steps",
            help="return the number of steps that the checkpoint holds, which save(steps) was given, or None if there is none",
        )
    return number
