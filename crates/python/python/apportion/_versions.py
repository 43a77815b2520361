"""What results of a function are kept under: its text, and all that it reads."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
import sysconfig
from collections.abc import Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

__all__ = ["version_of"]

#: Where modules are that are no part of a user's own code: they change with what is installed.
_INSTALLED = tuple(
    os.path.join(os.path.realpath(path), "")
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def version_of(function: Any) -> str | None:
    """The attribute `policy_version` of a function, or else its text and the values that it reads, as text; None where these cannot be
    read.

    Read are defaults, attributes, what it closes over, and globals, of the functions and classes of the user's own that it calls, too; of a
    module of the user's own that it reads, the whole file. Code that is installed counts by its name.
    """
    given = getattr(function, "policy_version", None)
    if given is not None:
        return str(given)
    try:
        return "\n".join(_texts(function, {}))
    except Exception:  # whatever a value raises when it is pickled
        return None


def _texts(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """The parts of a value's identity. What was `seen` is held, so that its number is not given to another."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, ModuleType):
        yield _module(value)
    elif isinstance(value, functools.partial):
        yield from _all([value.func, value.args, value.keywords], seen)
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _texts(value.__func__, seen)
    elif isinstance(value, property):
        yield from _all([value.fget, value.fset], seen)
    elif inspect.ismethod(value):
        yield from _all([value.__func__, value.__self__], seen)
    elif inspect.isfunction(value):
        yield from _function(value, seen)
    elif inspect.isclass(value):
        yield from _class(value, seen)
    elif callable(getattr(value, "__wrapped__", None)):
        yield from _texts(value.__wrapped__, seen)
    elif isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections", "types"):
        yield from _all([part for item in value.items() for part in item], seen)
    elif type(value) in (list, tuple):
        yield f"{type(value).__name__} of {len(value)}"
        yield from _all(value, seen)
    elif _is_own(type(value)):
        yield from _texts(type(value), seen)
        yield from _all([getattr(value, "__dict__", None), _slots(value)], seen)
    elif inspect.isbuiltin(value):
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest()


def _all(values: Any, seen: dict[int, Any]) -> Iterator[str]:
    for value in values:
        if value is None or isinstance(value, (bool, int, float, str)):
            yield repr(value)
        else:
            yield from _texts(value, seen)


def _slots(value: Any) -> list[Any]:
    names = [name for of in type(value).__mro__ for name in getattr(of, "__slots__", ())]
    return [getattr(value, name) for name in names if name not in ("__dict__", "__weakref__") and hasattr(value, name)]


def _function(function: Any, seen: dict[int, Any]) -> Iterator[str]:
    if not _is_own(function):
        yield f"{function.__module__}.{function.__qualname__}"
        return
    code = function.__code__
    # (two functions of one line have one text)
    yield f"{inspect.getsource(function)}{hashlib.sha256(code.co_code).hexdigest()}"
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _all([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *cells], seen)
    attributes = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    yield from _all([attributes, getattr(function, "__wrapped__", None)], seen)
    names = list(dict.fromkeys(_names(code)))
    yield repr(names)
    yield from _all([function.__globals__[name] for name in names if name in function.__globals__], seen)


def _class(of: type, seen: dict[int, Any]) -> Iterator[str]:
    if not _is_own(of):
        yield f"{of.__module__}.{of.__qualname__}"
        return
    yield inspect.getsource(of)
    yield from _all([base for base in of.__mro__[1:] if _is_own(base)], seen)
    for name, value in vars(of).items():
        is_code = inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod, property))
        if is_code or not (name.startswith("__") or inspect.isdatadescriptor(value)):
            yield from _all([value], seen)


def _module(module: ModuleType) -> str:
    path = getattr(module, "__file__", None)
    if path is None or not _is_own_file(path):
        return module.__name__
    with open(path, "rb") as file:
        return f"{module.__name__} {hashlib.sha256(file.read()).hexdigest()}"


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function's code reads, in order, those of functions inside it included, and its constants."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)


def _is_own(value: Any) -> bool:
    """Is a function or a class of the user's own code?"""
    try:
        return _is_own_file(inspect.getfile(value))
    except (TypeError, OSError):
        # What was typed has no file.
        return getattr(value, "__module__", None) == "__main__"


def _is_own_file(path: str) -> bool:
    place = os.path.realpath(path)
    return not place.startswith(_INSTALLED) and not place.startswith(os.path.dirname(os.path.realpath(__file__)))
