"""Decisions on jobs that are added and removed, each from where the last one ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Mapping
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from . import _native
from ._columns import Floats, by_labels, is_column, numbers, short, whole_of
from ._errors import InputError
from ._native import Decision
from ._policy import Policy
from ._problem import WORKERS_MAX, _number, problem

__all__ = ["Session", "SessionDecision"]


class Session:
    """A policy and a cluster that jobs come to and go from; each decision starts from what the last one found.

    Its policy is a program in which each job has workers of its own and keeps its constraints; docs/python.md lists those that ship.
    Threads may share one: what they ask of it is done one after another. It cannot be copied or pickled, since a solver's state is not.

    >>> session = Session({"v100": 1, "k80": 1})
    >>> session.add("a", throughput=[4.0, 1.0])
    >>> session.add("b", throughput=[4.0, 2.0])
    >>> decided = session.decide()
    >>> decided.share("b").round(3).tolist()
    [0.5, 0.5]
    """

    def __init__(
        self, workers: Mapping[str, SupportsIndex], policy: str | os.PathLike[str] | Policy = "max_min_fairness_perf", *, prices: Mapping[str, float] | None = None
    ) -> None:
        if not isinstance(policy, (str, os.PathLike, Policy)):
            raise InputError(f"policy is {short(policy)}: a session's policy is a program, not a function", help="allocate asks a function")
        asked = policy if isinstance(policy, Policy) else Policy(policy)
        empty = problem([], workers, prices=prices)
        self._policy = asked.name
        self._kinds = list(workers)
        self._native = _native.Session(empty, asked._text, asked._is_text, asked._asked)
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[int, Hashable] = {}
        self._known: dict[Hashable, dict[str, Any]] = {}
        self._next = 0
        #: Held while something is asked: names and numbers of jobs change together. (a name's hash may ask, too)
        self._lock = threading.RLock()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Session cannot be copied or pickled: it holds a solver's state; make another, and add its jobs")

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<Session of {self._policy!r} with {len(self)} jobs on {', '.join(self._kinds)}>"

    def add(
        self,
        name: Hashable,
        throughput: ArrayLike | Mapping[str, float],
        *,
        scale_factor: int = 1,
        weight: float = 1.0,
        steps_remaining: float = 0.0,
        elapsed: float = 0.0,
        isolated_elapsed: float = 0.0,
        slo_remaining: float | None = None,
    ) -> None:
        """A job comes, with its steps/s alone on each worker type: an array, or a mapping of worker types.

        `elapsed` is s since its arrival, `slo_remaining` s to its deadline. `isolated_elapsed` (s) is what finish-time fairness measures
        against: the time that the steps done so far would have taken with 1/n of the cluster alone. A session counts none of them:
        `update` says what they are now.
        """
        _hashed(name)
        speeds = self._speeds(throughput)
        known = {
            "scale_factor": scale_factor,
            "weight": weight,
            "steps_remaining": steps_remaining,
            "elapsed": elapsed,
            "isolated_elapsed": isolated_elapsed,
            "slo_remaining": slo_remaining,
        }
        with self._lock:
            if name in self._numbers:
                raise InputError(f"job {name!r} is there already")
            self._native.add(self._next, speeds, _known(known), f"job {name!r}")
            self._numbers[name], self._names[self._next], self._known[name] = self._next, name, known
            self._next += 1

    def _speeds(self, throughput: Any) -> Floats:
        """Steps/s of one job on each worker type: `[K]`."""
        if isinstance(throughput, Mapping):
            if unknown := [kind for kind in throughput if kind not in self._kinds]:
                raise InputError(f"unknown worker type {short(unknown[0])}, expected one of {', '.join(self._kinds)}")
            throughput = [throughput.get(kind, 0.0) for kind in self._kinds]
        elif is_column(throughput):
            values = throughput.to_numpy()
            places = by_labels("throughput", list(throughput.index), self._kinds, len(self._kinds), row="worker type")
            throughput = [values[place] for place in places]
        speeds = numbers("throughput", throughput)
        if speeds.shape != (len(self._kinds),):
            raise InputError(f"throughput has shape {speeds.shape}, expected ({len(self._kinds)},): a number for each worker type")
        return speeds

    def update(self, name: Hashable, **known: Any) -> None:
        """Something of a job changes: `scale_factor`, `weight`, `steps_remaining`, `elapsed`, `isolated_elapsed` or `slo_remaining`."""
        with self._lock:
            number = self._number(name)
            if unknown := set(known) - set(self._known[name]):
                raise InputError(f"unknown field {min(unknown)!r}, expected one of {', '.join(self._known[name])}")
            changed = self._known[name] | known
            self._native.update(number, _known(changed), f"job {name!r}")
            self._known[name] = changed

    def remove(self, name: Hashable) -> None:
        """A job goes."""
        with self._lock:
            number = self._number(name)
            self._native.remove(number)
            del self._numbers[name], self._names[number], self._known[name]

    def decide(self) -> SessionDecision:
        """Decides on the jobs as they are."""
        with self._lock:
            decision, jobs = self._native.decide(lambda number: f"job {self._names[number]!r}")
            return SessionDecision(decision, [self._names[number] for number in jobs.tolist()])

    def _number(self, name: Hashable) -> int:
        _hashed(name)
        try:
            return self._numbers[name]
        except KeyError:
            raise InputError(f"there is no job {name!r}") from None


def _known(of: dict[str, Any]) -> dict[str, Any]:
    """What is known of a session's job, as the engine takes it."""
    scale_factor = whole_of("scale_factor", of["scale_factor"], 1, WORKERS_MAX)
    known = {name: None if value is None and name == "slo_remaining" else _number(name, value) for name, value in of.items()}
    return {**known, "scale_factor": scale_factor}


def _hashed(name: Any) -> None:
    """Refuses a name that no mapping can hold."""
    try:
        hash(name)
    except TypeError:
        raise InputError(f"name is {short(name)}, expected text, a number, or what else can be hashed") from None


class SessionDecision:
    """A decision on named jobs: the `decision`, and the `names` of the jobs in its rows."""

    def __init__(self, decision: Decision, names: list[Hashable]) -> None:
        self.decision = decision
        self.names = names
        self._row = {name: row for row, name in enumerate(names)}

    def __repr__(self) -> str:
        return f"<SessionDecision on {len(self.names)} jobs: {self.decision!r}>"

    @property
    def shares(self) -> Floats:
        """Shares of time, [jobs × worker types], in the order of `names`."""
        return self.decision.shares

    @property
    def certificate(self) -> _native.ObjectiveCertificate | None:
        """The proof of the objective."""
        return self.decision.certificate

    def share(self, name: Hashable) -> Floats:
        """The shares of one job: `[worker types]`."""
        _hashed(name)
        if name not in self._row:
            raise InputError(f"there is no job {name!r}")
        row: Floats = self.decision.shares[self._row[name]]
        return row
