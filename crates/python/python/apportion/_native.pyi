"""The engine: arrays and text in and out. What users call is in the modules beside it."""

import os
from collections.abc import Callable, Hashable
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from ._explanation import Explanation, JobExplanation

__all__ = [
    "Decision",
    "Environment",
    "ObjectiveCertificate",
    "Policy",
    "Problem",
    "Program",
    "Results",
    "Session",
    "VectorEnvironment",
    "__version__",
    "_end",
    "document",
    "metrics",
    "policies",
    "read_trace",
    "simulate",
    "sweep",
    "systems",
]

_Floats = NDArray[np.float64]
_Whole = NDArray[np.int64]
_Singles = NDArray[np.float32]
_Flags = NDArray[np.bool_]

__version__: str

@final
class Problem:
    """One decision's input: a cluster, the active jobs, and their throughputs. `apportion.problem` makes one."""

    def __new__(
        cls,
        worker_types: list[str],
        workers: list[int],
        throughputs: _Floats,
        columns: dict[str, Any],
        *,
        prices: list[float | None] = ...,
        owners: list[tuple[str, float, str, str | None]] = ...,
        pairs: list[tuple[int, int, _Floats]] = ...,
        extra: dict[str, list[float]] = ...,
    ) -> Problem: ...
    @staticmethod
    def read(snapshot: str, is_text: bool, throughputs: str) -> Problem: ...
    @staticmethod
    def _of_documents(snapshot: tuple[str, str], throughputs: str, matrix: tuple[str, str] | None) -> Problem: ...
    def _with_job_types(self, job_types: list[str | None]) -> Problem: ...
    def __copy__(self) -> Problem: ...
    def __deepcopy__(self, _memo: Any, /) -> Problem: ...
    @property
    def n_jobs(self) -> int:
        """Active jobs, n."""
    @property
    def worker_types(self) -> list[str]:
        """Names of the worker types: `[K]`."""
    @property
    def workers(self) -> _Whole:
        """Workers of each type: `[K]`."""
    @property
    def prices(self) -> _Floats | None:
        """$/h of a worker of each type, `[K]`; None if one has no price."""
    @property
    def names(self) -> list[int | str]:
        """What the jobs are called: `[n]`. In a simulation, their numbers in order of arrival."""
    @property
    def throughputs(self) -> _Floats:
        """Steps/s of each job alone: [n × K]; 0 = cannot run there."""
    @property
    def job_type(self) -> list[str | None]:
        """The job type of each job, where jobs are looked up in a throughput matrix, as in simulations: `[n]`."""
    @property
    def scale_factor(self) -> _Whole:
        """Workers that each job needs at once: `[n]`."""
    @property
    def weight(self) -> _Floats:
        """Importance of each job: `[n]`."""
    @property
    def steps_remaining(self) -> _Floats:
        """Steps left of each job: `[n]`."""
    @property
    def elapsed(self) -> _Floats:
        """Seconds since each job's arrival: `[n]`."""
    @property
    def isolated_elapsed(self) -> _Floats:
        """Seconds of isolated time that each job has accumulated, for finish-time fairness: `[n]`."""
    @property
    def slo_remaining(self) -> _Floats:
        """Seconds to each job's deadline, NaN where it has none: `[n]`."""
    @property
    def owner(self) -> list[str | None]:
        """The owner of each job, if it has one: `[n]`."""
    @property
    def extra(self) -> dict[str, _Floats]:
        """Further columns by name, each `[n]`."""
    def pairs(self) -> tuple[_Whole, NDArray[np.float64]]:
        """Pairs of jobs that may share workers: positions, [m × 2], and steps/s of both on each worker type, [m × K × 2]."""

@final
class ObjectiveCertificate:
    """The objective's value with its proof, recomputed from the shares that are given, whichever solver found them."""

    @staticmethod
    def _rebuilt(state: dict[str, Any]) -> ObjectiveCertificate: ...
    def __copy__(self) -> ObjectiveCertificate: ...
    def __deepcopy__(self, _memo: Any, /) -> ObjectiveCertificate: ...
    @property
    def sense(self) -> str:
        """`maximize` or `minimize`."""
    @property
    def value(self) -> float:
        """The objective of the shares."""
    @property
    def bound(self) -> float:
        """What no allocation can beat, from dual values."""
    @property
    def gap(self) -> float:
        """The relative distance of value and bound."""
    @property
    def violation(self) -> float:
        """The largest violation of a constraint by the shares."""
    @property
    def optimal(self) -> bool:
        """Is the gap within the tolerance of certificates?"""
    @property
    def first_level_only(self) -> bool:
        """Is the optimum lexicographic? Then all this is of its first level, and nothing is certified of those above it."""
    @property
    def value_at_measured_throughputs(self) -> float | None:
        """The objective at measured throughputs, where the policy sees others."""

@final
class Decision:
    """Shares of time, with their evidence."""

    @staticmethod
    def _rebuilt(state: dict[str, Any], solve: dict[str, Any] | None) -> Decision: ...
    def __copy__(self) -> Decision: ...
    def __deepcopy__(self, _memo: Any, /) -> Decision: ...
    @property
    def policy(self) -> str:
        """The policy's name."""
    @property
    def shares(self) -> _Floats:
        """Share of time of each job alone on each worker type: [n × K]."""
    @property
    def pairs(self) -> _Whole:
        """Positions of the jobs that share workers: [m × 2]."""
    @property
    def pair_shares(self) -> _Floats:
        """Share of time of each pair on each worker type: [m × K]."""
    @property
    def throughput(self) -> _Floats:
        """Effective throughput of each job in steps/s, under measured throughputs: `[n]`."""
    @property
    def levels(self) -> _Floats | None:
        """The normalized level of each job, where the policy has levels: `[n]`."""
    @property
    def dropped(self) -> list[int]:
        """Positions of the jobs of which a droppable constraint, such as a deadline, was given up."""
    @property
    def violation(self) -> float:
        """The largest violation of the allocation polytope that was found and accepted."""
    @property
    def certificate(self) -> ObjectiveCertificate | None:
        """The proof of the objective; None for rules, which have none."""
    @property
    def solve(self) -> dict[str, Any] | None:
        """How it was solved: strategy and reason, backend, wall seconds, size, …; None for rules."""
    @overload
    def explain(self) -> Explanation:
        """Why each job gets what it gets: an `Explanation`, or its entry of the job of this name or position."""
    @overload
    def explain(self, job: Hashable) -> JobExplanation:
        """Why each job gets what it gets: an `Explanation`, or its entry of the job of this name or position."""

@final
class Program:
    """A program that was solved, which is written out when it is asked for."""

    def lp(self) -> str | None:
        """The program as CPLEX LP; none if it has other rows than linear ones."""
    def mps(self) -> str | None:
        """The program as free MPS; none if it has other rows than linear ones."""
    def cbf(self) -> str:
        """The program as CBF, which has cones, too."""

@final
class Policy:
    def __new__(cls, name_or_text: str, is_text: bool, asked: dict[str, Any]) -> Policy: ...
    @staticmethod
    def of_function(name: str, function: Callable[[Problem], Any], stated: Problem) -> Policy: ...
    @property
    def name(self) -> str: ...
    def allocate(self, problem: Problem, fresh: bool) -> Decision: ...
    def explain(self, problem: Problem) -> tuple[Decision, dict[str, Any]]: ...
    def state(self) -> str: ...
    def restore(self, state: str) -> None: ...

@final
class Session:
    def __new__(cls, problem: Problem, name_or_text: str, is_text: bool, asked: dict[str, Any]) -> Session: ...
    def add(self, id: int, throughput: _Floats, known: dict[str, Any], called: str) -> None: ...
    def update(self, id: int, known: dict[str, Any], called: str) -> None: ...
    def remove(self, id: int) -> None: ...
    def decide(self, called: Callable[[int], str]) -> tuple[Decision, _Whole]: ...

@final
class Results:
    def __new__(cls, folder: str | os.PathLike[str]) -> Results: ...
    @property
    def name(self) -> str: ...
    @property
    def axes(self) -> list[str]: ...
    def asked(self) -> list[list[Any]]: ...
    def runs(self) -> dict[str, Any]: ...
    def jobs(self) -> dict[str, Any]: ...
    def allocations(self) -> dict[str, Any]: ...
    def page(self, baseline: str | None) -> str: ...

@final
class Environment:
    def __new__(cls, name: str, world: str) -> Environment: ...
    def spaces(self) -> list[tuple[_Singles, _Singles, int]]: ...
    @property
    def agent(self) -> int: ...
    @property
    def step_limit(self) -> int | None: ...
    def reset(self, seed: int) -> None: ...
    def observe(self) -> tuple[_Singles, _Flags]: ...
    def state(self) -> _Singles: ...
    def step(self, action: int) -> tuple[float, int, bool, bool, bool]: ...

@final
class VectorEnvironment:
    def __new__(cls, name: str, world: str, n: int) -> VectorEnvironment: ...
    def reset(self, seeds: NDArray[np.uint64], begins: _Flags) -> tuple[_Singles, _Flags]: ...
    def step(
        self, actions: _Whole
    ) -> tuple[tuple[_Singles, _Flags], _Singles, _Flags, _Flags, _Singles | None, NDArray[np.uint32], _Flags]: ...

def _end() -> None: ...
def policies() -> list[tuple[str, str]]:
    """Names of the policies there are, each with what it is for, in a line."""

def document(name_or_path: str) -> str:
    """The text of a policy's document."""

def systems() -> list[str]: ...
def metrics() -> list[list[str]]: ...
def simulate(document: str, given: dict[str, Any], keep: dict[str, bool]) -> dict[str, Any]: ...
def sweep(
    name_or_document: str,
    is_text: bool,
    given: dict[str, Any],
    making: dict[str, Any],
    progress: Callable[[int, int, list[str], str], None] | None,
) -> None: ...
def read_trace(path: str, reading: dict[str, Any]) -> dict[str, Any]: ...
