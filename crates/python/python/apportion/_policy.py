"""Policies: names, files, documents and functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from inspect import isclass, signature
from typing import Any, Union

import numpy as np

from . import _native
from ._columns import path_of, short, text_of
from ._errors import InputError
from ._explanation import Explanation
from ._native import Decision, Problem
from ._problem import _number

__all__ = ["AnyPolicy", "Policy", "PolicyFunction", "check_fresh", "document", "fresh", "not_a_policy"]

#: A policy that is a function: what it gets is the problem, what it gives are shares, [jobs × worker types], or a mapping of
#: jobs, or pairs of jobs, by their names, to the shares of that job or pair, `[worker types]`.
PolicyFunction = Callable[[Problem], Any]


class Policy:
    """A policy by its name, the path of its file, or the text of its document, and what it is asked beyond that.

    A text is told from a name by having more than one line. `backend` (`default` chooses one), `strategy` and `time_limit` (in s) are for policies
    that are programs, `refine` chooses among several optima (`utilization`, `water_filling`, `interior`, `none`), `semantics` is
    `corrected` or `gavel`, and `seed` is that of rules that draw.

    >>> Policy("max_min_fairness_perf").name
    'max_min_fairness_perf'
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        backend: str | None = None,
        refine: str | None = None,
        strategy: str | None = None,
        semantics: str = "corrected",
        seed: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self._text = path_of("a policy", name)
        self._is_text = "\n" in self._text
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
            raise InputError(f"seed is {short(seed)}, expected a whole number from 0 to 2**64 - 1")
        backend = None if backend == "default" else backend
        for what, value in {"backend": backend, "refine": refine, "strategy": strategy, "semantics": semantics}.items():
            if not isinstance(value, str) and (value is not None or what == "semantics"):
                raise InputError(f"{what} is {short(value)}, expected a name")
            if value is not None:
                text_of(what, value)
        self._asked: dict[str, Any] = {
            "backend": backend,
            "refine": refine,
            "strategy": strategy,
            "semantics": semantics,
            "seed": int(seed),
            "time_limit": None if time_limit is None else _number("time_limit", time_limit),
        }
        self._native = _native.Policy(self._text, self._is_text, self._asked)

    @property
    def name(self) -> str:
        """The name in its document."""
        return self._native.name

    def allocate(self, problem: Problem, *, fresh: bool = True) -> Decision:
        """Decides on a problem. Some rules remember what they gave: they do here, too, if not `fresh`."""
        return self._native.allocate(problem, fresh)

    def explain(self, problem: Problem) -> Explanation:
        """Says why each job gets what it gets."""
        return Explanation._asked(self._native, problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._text, self._asked, self._native.state())

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


def _again(text: str, asked: dict[str, Any], state: str) -> Policy:
    """The policy of a name, a path or a text, with what another knew from its decisions."""
    policy = Policy(text, **asked)
    policy._native.restore(state)
    return policy


AnyPolicy = Union[str, "os.PathLike[str]", Policy, PolicyFunction]


@lru_cache(maxsize=64)
def _named(name: str, backend: str | None) -> Policy:
    return Policy(name, backend=backend)


def _native_policy(policy: AnyPolicy, stated: Problem, backend: str | None = None) -> _native.Policy:
    """A policy as the engine asks it, about a problem: a function is shown the problem as it was stated, with its names."""
    if backend is not None:
        text_of("backend", backend)
    if isinstance(policy, (str, os.PathLike)):
        name = path_of("policy", policy)
        # A file may change between two calls.
        built = Policy(name, backend=backend) if os.path.exists(name) else _named(name, backend)
        return built._native
    if backend is not None:
        raise InputError("backend is for a policy by name", help="Policy(…, backend=…) has one of its own")
    if isinstance(policy, Policy):
        return policy._native
    if callable(policy):
        function = fresh(policy)
        return _native.Policy.of_function(_name_of(policy), function, stated)
    raise not_a_policy(policy)


def not_a_policy(policy: Any) -> InputError:
    """Why this is no policy."""
    return InputError(f"policy is {short(policy)}, expected a name, a path, a Policy or a function")


def document(name_or_path: str | os.PathLike[str]) -> str:
    """The text of a policy's document, of a name or a path. If there is none, it is an `InputError`."""
    return _native.document(path_of("name_or_path", name_or_path))


def check_fresh(function: Callable[..., Any]) -> None:
    """Refuses a policy that is a class, or of which the attribute `policy_fresh` is nothing to be called without arguments."""
    if isclass(function):
        raise InputError(f"{function.__name__} is a class, expected a function of a problem", help="an object of it, if those are")
    make = getattr(function, "policy_fresh", None)
    if make is None:
        return
    expected = "expected a method without arguments that gives the policy as it is before any decision"
    if not callable(make):
        raise InputError(f"policy_fresh of {_name_of(function)!r} is {short(make)}, {expected}")
    try:
        signature(make).bind()
    except ValueError:
        # What is not written in Python may not say what it takes.
        return
    except TypeError as error:
        raise InputError(f"policy_fresh of {_name_of(function)!r} takes arguments ({error}), {expected}") from None


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """A policy with memory as it is before any decision: what its attribute `policy_fresh` gives, if it has one."""
    check_fresh(function)
    make = getattr(function, "policy_fresh", None)
    if make is None:
        return function
    given: Callable[..., Any] = make()
    if isclass(given) or not callable(given):
        raise InputError(f"policy_fresh of {_name_of(function)!r} gave {short(given)}, expected a function of a problem")
    return given


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "policy_name", None) or getattr(function, "__name__", None)
    # Characters that are no text, of names of files, are not for results.
    return str(name or type(function).__name__).encode("utf-8", "replace").decode("utf-8")
