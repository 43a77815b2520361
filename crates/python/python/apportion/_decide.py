"""One decision: throughputs in, shares of time and their proof out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from ._errors import InputError
from ._explanation import Explanation
from ._native import Decision, Problem
from ._policy import AnyPolicy, Policy, _native_policy
from ._problem import check_names, problem

__all__ = ["allocate", "explain"]


def allocate(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]] | Problem,
    workers: Mapping[str, SupportsIndex] | None = None,
    policy: AnyPolicy = "max_min_fairness_perf",
    *,
    backend: str | None = None,
    **jobs: Any,
) -> Decision:
    """Decides the shares of time that each job gets on each worker type.

    `policy` is a name (`apportion.policies()`), the path of a policy file, a `Policy`, or a function that takes a `Problem`.
    `throughputs`, `workers` and what is said of jobs are as for `problem`; in their place a `Problem` will do.

    >>> d = allocate([[4.0, 1.0], [4.0, 2.0]], {"v100": 1, "k80": 1})
    >>> d.shares.round(3).tolist(), d.certificate.optimal
    ([[0.5, 0.5], [0.5, 0.5]], True)
    """
    stated = _problem(throughputs, workers, jobs)
    return _native_policy(policy, stated, backend).allocate(stated, True)


def explain(
    throughputs: ArrayLike | Mapping[Any, Mapping[str, float]] | Problem,
    workers: Mapping[str, SupportsIndex] | None = None,
    policy: AnyPolicy = "max_min_fairness_perf",
    *,
    backend: str | None = None,
    **jobs: Any,
) -> Explanation:
    """Says why each job gets what it gets; arguments are those of `allocate`."""
    stated = _problem(throughputs, workers, jobs)
    return Explanation._asked(_native_policy(policy, stated, backend), stated)


def _problem(throughputs: Any, workers: Mapping[str, SupportsIndex] | None, jobs: dict[str, Any]) -> Problem:
    if isinstance(throughputs, Problem):
        if workers is not None or jobs:
            raise InputError("a Problem says all there is: leave out workers, and what is said of jobs")
        return throughputs
    check_names(jobs, Policy.__init__.__kwdefaults__ or {})
    if workers is None:
        raise InputError("no workers are given", help='such as {"v100": 36, "p100": 36, "k80": 36}')
    return problem(throughputs, workers, **jobs)
