"""What runs are given from Python: documents of arguments, and functions, policies and tables in place of files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from . import _native
from ._columns import check_collected, flag_of, is_set, is_table, path_of, short, text_of, whole_of
from ._errors import InputError
from ._policy import AnyPolicy, Policy, _name_of, check_fresh, fresh, not_a_policy
from ._problem import WORKERS_MAX, _number, _whole
from ._versions import version_of

__all__ = ["Given", "check_numbers", "document_text", "world_text"]


def document_text(document: Mapping[str, Any]) -> str:
    """A document as text with a value a line, so that what is wrong can be said of an argument."""
    return json.dumps(document, default=_plain, indent=1)


def world_text(world: Mapping[str, Any]) -> str:
    """The options of a world as text."""
    for name, value in world.items():
        check_numbers(name, value)
    return document_text(world)


def _plain(value: Any) -> Any:
    """numpy's scalars and arrays, paths and ranges as JSON has them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (range, tuple)):
        return list(value)
    raise InputError(f"{short(value)} is no value of a field")


def check_numbers(what: str, value: Any) -> None:
    """Refuses numbers that a document does not hold, text that is none, and what holds itself."""
    try:
        _check_numbers(what, value)
    except RecursionError:
        raise InputError(f"{what} holds itself, or too many values within one another") from None


def _check_numbers(what: str, value: Any) -> None:
    if isinstance(value, str):
        text_of(what, value)
    elif isinstance(value, (float, np.floating)) and not np.isfinite(value):
        raise InputError(f"{what} is {short(value)}, expected a finite number")
    elif isinstance(value, Mapping):
        for name, of in value.items():
            _check_numbers(f"{what}: {text_of(f'a name in {what}', name)}", of)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fO" and not isinstance(value, np.ma.MaskedArray):
        _check_numbers(what, value.tolist())
    elif isinstance(value, (list, tuple)):
        for of in value:
            _check_numbers(what, of)
    elif is_set(value):
        raise InputError(f"{what} is a set, which has no order, expected a list")
    elif not _is_plain(value):
        help = "functions are taken as policies only" if callable(value) else None
        raise InputError(f"{what} is {short(value)}, which is no value of a field", help=help)


def _is_plain(value: Any) -> bool:
    """Is it a value that a document may have, or an array or a path that stands for one?"""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "biufUO" and not isinstance(value, np.ma.MaskedArray)
    return value is None or isinstance(value, (int, float, range, os.PathLike))


class Given:
    """What runs are given in place of files: functions, texts of policies, and tables of jobs."""

    def __init__(self, *, is_kept: bool) -> None:
        #: Are results kept, and so must functions be told apart from others of their name?
        self._is_kept = is_kept
        #: Is each function's text known?
        self.is_told_apart = True
        self._functions: dict[str, dict[str, Any]] = {}
        self._policies: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def native(self) -> dict[str, Any]:
        """The same for the engine."""
        return {"functions": self._functions, "policies": list(self._policies.values()), "texts": self._texts}

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of runs as a document has them."""
        return {name: self.field(name, value) for name, value in fields.items()}

    def field(self, name: str, value: Any) -> Any:
        """One value of a field: tables of jobs, and throughputs, are given by their text."""
        from .traces import Trace

        if isinstance(value, Trace):
            return self._given("trace", value.to_csv())
        if name == "trace" and is_table(value):
            raise InputError("trace is a table of another kind", help="apportion.traces.table(job_type=…, total_steps=…, arrival=…) makes one")
        if name == "cluster" and isinstance(value, Mapping):
            return {text_of("a worker type", kind): _whole(kind, count) for kind, count in value.items()}
        if name == "policy":
            return self.policy(value)
        if name != "throughputs" or isinstance(value, (str, os.PathLike)):
            check_numbers(name, value)
            return value
        check_collected("throughputs", value)
        if is_table(value) and hasattr(value, "to_dict") and hasattr(value, "index"):
            value = _of_rows(value)
        if not isinstance(value, Mapping) or not all(isinstance(row, Mapping) for row in value.values()):
            message = f"throughputs are {type(value).__name__}, expected a name, a path, or steps/s by job type and worker type"
            raise InputError(message, help='such as {"bert": {"v100": 4.0, "k80": 0.5}, ("bert", 2): {"v100": 7.6}}')
        return self._given("throughputs", _matrix(value))

    def _given(self, what: str, text: str) -> str:
        name = f"<{what} {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
        self._texts[name] = text
        return name

    def policy(self, policy: AnyPolicy) -> str:
        """A policy as a document names it."""
        if isinstance(policy, (str, os.PathLike)):
            text = text_of("policy", path_of("policy", policy))
            return self.policy(Policy(text)) if "\n" in text else text
        if isinstance(policy, Policy):
            plain = Policy.__init__.__kwdefaults__ or {}
            if own := [name for name, value in policy._asked.items() if value != plain.get(name)]:
                raise InputError(f"a run has {own[0]} as a field of its own", help=f"leave it out of Policy, and give {own[0]}=… to the run")
            if not policy._is_text:
                return policy._text
            self._check_name(policy.name, self._policies.get(policy.name) in (None, policy._text))
            self._policies[policy.name] = policy._text
            return policy.name
        if not callable(policy):
            raise not_a_policy(policy)
        name = _name_of(policy)
        check_fresh(policy)
        known = self._functions.get(name)
        self._check_name(name, known is None or known["policy"] is policy)
        version = version_of(policy)
        if version is None and self._is_kept:
            raise InputError(
                f"results of {name!r} could not be told from those of another function: its text, or what it closes over, cannot be read",
                help="set its attribute policy_version to a text that changes when it does",
            )
        self.is_told_apart &= version is not None
        plain = {"shuffled": False, "skip_zero_priority": False}
        asked = getattr(policy, "policy_rules", {})
        if not isinstance(asked, Mapping) or not set(asked) <= set(plain):
            raise InputError(f"{name}: policy_rules are {asked!r}, expected a mapping of {', '.join(plain)}")
        rules = {rule: flag_of(f"policy_rules of {name!r}: {rule}", asked.get(rule, False)) for rule in plain}
        pairs = flag_of(f"policy_pairs of {name!r}", getattr(policy, "policy_pairs", False))
        if version is not None and (pairs or rules != plain):
            version += f"\n{rules} pairs={pairs}"
        asks = policy if self._is_kept else fresh(policy)
        self._functions[name] = {"policy": policy, "callable": asks, "pairs": pairs, "rules": rules, "version": version or ""}
        return name

    def _check_name(self, name: str, is_one: bool) -> None:
        """Refuses a name of two policies."""
        if not is_one or (name in self._functions and name in self._policies):
            raise InputError(f"two policies are called {name!r}", help="set the attribute policy_name of a function")
        if name in _shipped():
            raise InputError(f"{name!r} is the name of a policy that ships with apportion", help="set the attribute policy_name of a function")


def _of_rows(table: Any) -> dict[Any, Any]:
    """A DataFrame's rows by job type."""
    rows = dict(zip(list(table.index), table.to_dict("records")))
    if len(rows) < len(table.index):
        raise InputError("throughputs have two rows of one job type")
    return rows


def _matrix(rows: Mapping[Any, Mapping[str, float]]) -> str:
    """Throughputs as a document: by job type, or job type and scale factor, and by worker type."""
    kinds = list(dict.fromkeys(text_of("a worker type of throughputs", kind) for row in rows.values() for kind in row))
    listed: dict[tuple[str, int], dict[str, Any]] = {}
    for key, row in rows.items():
        if isinstance(key, tuple) and len(key) != 2:
            raise InputError(f"throughputs of {short(key)}: expected a job type, or a job type and a scale factor")
        job_type, scale_factor = key if isinstance(key, tuple) else (key, 1)
        known = text_of("a job type of throughputs", str(job_type)), whole_of(f"the scale factor of {short(key)}", scale_factor, 1, WORKERS_MAX)
        if known in listed:
            raise InputError(f"throughputs of job type {known[0]!r} at scale factor {known[1]} are given twice")
        speeds = [_speed(f"throughput of job type {known[0]!r} on worker type {kind!r}", row.get(kind, 0.0)) for kind in kinds]
        listed[known] = {"job_type": known[0], "scale_factor": known[1], "consolidated": speeds}
    document = {"format": "apportion/throughputs-v1", "name": "given", "unit": "steps/s", "worker_types": kinds}
    return document_text({**document, "rows": list(listed.values())})


def _speed(what: str, value: Any) -> float:
    """Steps/s, 0 where a job cannot run."""
    speed = _number(what, value)
    if not 0 <= speed < np.inf:
        raise InputError(f"{what} is {short(speed)}, expected a finite number of steps/s, at least 0")
    return speed


@lru_cache(maxsize=1)
def _shipped() -> frozenset[str]:
    return frozenset(name for name, _ in _native.policies())
