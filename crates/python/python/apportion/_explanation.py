"""Why jobs get their shares."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ._native import Decision, Policy, Problem, Program

__all__ = ["Explanation", "JobExplanation", "WorkerTypeExplanation"]


class _Texts:
    """A program's texts, each written when it is first asked for, or when it is pickled."""

    def __init__(self, program: Program | None) -> None:
        self._program = program
        self._written: dict[str, str | None] = {}

    def of(self, form: str) -> str | None:
        """The text of a form: `lp`, `mps` or `cbf`."""
        if form not in self._written:
            self._written[form] = None if self._program is None else getattr(self._program, form)()
        return self._written[form]

    def __deepcopy__(self, _memo: Any) -> _Texts:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _written, ({form: self.of(form) for form in ("lp", "mps", "cbf")},)


def _written(texts: dict[str, str | None]) -> _Texts:
    """The texts of a program that is not here."""
    made = _Texts(None)
    made._written = texts
    return made


@dataclass(frozen=True)
class WorkerTypeExplanation:
    """A worker type's use and price."""

    name: str
    #: Workers in use, summed over shares.
    workers_used: float
    #: Workers there are.
    workers: float
    #: Are all of them given away, to a tolerance?
    binds: bool
    #: Change of the objective if there were one worker more; None without a program, or where its prices are not known.
    one_more: float | None


@dataclass(frozen=True)
class JobExplanation:
    """What holds one job where it is."""

    name: int | str
    #: Its share of time, over all worker types and partners.
    time: float
    #: `constraint`, `bottleneck`, `time`, `capacity`, `discount`, `free`, or `unrefined` where workers idle that would raise the objective by
    #: less than its certificate tells; `unexplained` where the program's prices do not say, as where its shares are one of several optima,
    #: or, without a program, where of each worker type fewer workers idle than the job needs at once.
    binds: str
    #: Has its demand for throughput a price?
    sets_objective: bool
    #: The policy's own constraints that hold its share, as their file has them.
    held_by: tuple[str, ...]
    #: Change of the objective per step/s that is asked of the job.
    throughput_price: float | None
    #: Change of the objective per unit of time the job had beyond all of it.
    time_price: float | None
    #: The level at which water filling fixed it, if it did, and at which step, from 1.
    level: float | None
    level_step: int | None
    #: Change of that level if there were one worker more of a type.
    level_one_more: Mapping[str, float | None] | None


@dataclass(frozen=True)
class Explanation:
    """Why jobs get their shares. Indexed by a job's name, which is its position where it has no other, it gives what holds that job.

    Pickled, it holds the texts of its program, which are written for that.
    """

    decision: Decision
    #: The form of the policy's program, and why it has that form; that there is none, for rules.
    reason: str
    #: Why no price is given, where a program was solved and its prices are not known.
    prices_unknown: str | None
    #: Data of jobs that one worker more would change, too, and that the prices of workers hold.
    held: tuple[str, ...]
    worker_types: tuple[WorkerTypeExplanation, ...]
    jobs: tuple[JobExplanation, ...]
    #: The policy's own constraints: `text`, `subject` (`job`, `worker_type` or `cluster`), and for each of their rows `price`, `slack`, `binds`, `exceeded`, `dropped`.
    constraints: tuple[Mapping[str, Any], ...]
    _texts: _Texts = field(repr=False, compare=False)

    @property
    def lp(self) -> str | None:
        """The program as CPLEX LP, where one was solved and has only linear rows. It is written when it is first asked for."""
        return self._texts.of("lp")

    @property
    def mps(self) -> str | None:
        """The program as free MPS, where one was solved and has only linear rows. It is written when it is first asked for."""
        return self._texts.of("mps")

    @property
    def cbf(self) -> str | None:
        """The program as CBF, which has cones, too, where one was solved. It is written when it is first asked for."""
        return self._texts.of("cbf")

    def __getitem__(self, job: Hashable) -> JobExplanation:
        # (what names a job may be no number and no text, and is then called by its text)
        for name in (job, str(job)):
            for of in self.jobs:
                if of.name == name:
                    return of
            if isinstance(job, (int, str)):
                break
        raise KeyError(f"there is no job {job!r}; explanation.jobs has them by position")

    def __iter__(self) -> Iterator[JobExplanation]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    @classmethod
    def _asked(cls, policy: Policy, problem: Problem) -> Explanation:
        decision, tree = policy.explain(problem)
        return cls._of(problem, decision, tree)

    @classmethod
    def _of(cls, problem: Problem, decision: Decision, tree: dict[str, Any]) -> Explanation:
        kinds = problem.worker_types
        texts = [constraint["text"] for constraint in tree["constraints"]]

        def job(name: int | str, of: dict[str, Any]) -> JobExplanation:
            more = of["level_one_more"]
            return JobExplanation(
                name=name,
                time=of["time"],
                binds=of["binding"],
                sets_objective=of["sets_objective"],
                held_by=tuple(texts[position] for position in of["held_by_constraints"]),
                throughput_price=of["throughput_price"],
                time_price=of["time_price"],
                level=of["level"],
                level_step=of["level_step"],
                level_one_more=None if more is None else dict(zip(kinds, more)),
            )

        return cls(
            decision=decision,
            reason=tree["reason"],
            prices_unknown=tree["prices_unknown"],
            held=tuple(tree["held"]),
            worker_types=tuple(WorkerTypeExplanation(name=kind, **of) for kind, of in zip(kinds, tree["worker_types"])),
            jobs=tuple(job(name, of) for name, of in zip(problem.names, tree["jobs"])),
            constraints=tuple(tree["constraints"]),
            _texts=_Texts(tree["program"]),
        )
