"""Columns of values: what is taken for one, and tables of numpy arrays."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError

__all__ = [
    "Floats",
    "Numbers",
    "Table",
    "by_labels",
    "check_collected",
    "check_flat",
    "flag_of",
    "is_column",
    "is_listed",
    "is_set",
    "is_table",
    "name_of",
    "no_column",
    "numbers",
    "path_of",
    "short",
    "text_of",
    "whole_of",
    "with_unit",
]

Floats = NDArray[np.float64]


def with_unit(name: Any, names: Iterable[str]) -> str | None:
    """The name that a number in seconds has now, `average_jct_s`, of its name before, `average_jct`, with a warning; else None."""
    now = f"{name}_s"
    if not isinstance(name, str) or now not in names:
        return None
    warnings.warn(f"{name!r} is {now!r} now, with its unit", DeprecationWarning, stacklevel=3)
    return now


class Numbers(dict[str, "float | None"]):
    """Numbers by name; those in seconds by their names before, too."""

    def __missing__(self, name: str) -> float | None:
        now = with_unit(name, self)
        if now is None:
            raise KeyError(name)
        return self[now]


class Table(Mapping[str, NDArray[Any]]):
    """Columns of one length, by name: a mapping of names to numpy arrays."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns: dict[str, NDArray[Any]] = {}
        for name, column in columns.items():
            self._columns[name] = column if isinstance(column, np.ndarray) else _array(column)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self._columns[name]
        except KeyError:
            now = with_unit(name, self._columns)
            if now is not None:
                return self._columns[now]
            raise KeyError(f"no column {name!r}, expected one of {', '.join(self._columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return next((len(column) for column in self._columns.values()), 0)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`."""
        import pandas

        return pandas.DataFrame(self._columns)

    def to_polars(self) -> Any:
        """The same as a `polars.DataFrame`."""
        import polars

        plain = {
            name: column.tolist() if column.dtype == object else column
            for name, column in self._columns.items()
        }
        return polars.DataFrame(plain, strict=False)

    def __repr__(self) -> str:
        return f"<Table of {self.n_rows} rows: {', '.join(self._columns)}>"


def _array(values: list[Any]) -> NDArray[Any]:
    """A list as an array: of one type if all values are of one, else of objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int} or kinds <= {float, int} or kinds <= {bool}:
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def short(value: Any) -> str:
    """A value in a message: no more than forty characters of it, in one line."""
    plain = value.item() if isinstance(value, np.generic) else value
    text = "NaN" if isinstance(plain, float) and np.isnan(plain) else " ".join(line.strip() for line in repr(plain).splitlines())
    return text if len(text) <= 40 else f"{text[:40]}…"


def is_set(value: Any) -> bool:
    """Is it a set, whose values have no order?"""
    return isinstance(value, (set, frozenset))


def is_listed(value: Any) -> bool:
    """Are these several values, one after another? Text, and an array without an axis, are one."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "shape", None) != ()


def is_column(value: Any) -> bool:
    """Is it a column with names for its values, as a `pandas.Series` is?"""
    return hasattr(value, "index") and not callable(value.index) and hasattr(value, "to_numpy") and not hasattr(value, "columns")


def is_lazy(value: Any) -> bool:
    """Is it a table that has no values before it is collected, as a `polars.LazyFrame` is? It is asked for none of its columns."""
    return hasattr(type(value), "collect") and hasattr(type(value), "collect_schema")


def is_table(value: Any) -> bool:
    """Is it a table of columns, as a `pandas.DataFrame` or a `polars.DataFrame` is?"""
    return is_lazy(value) or (hasattr(value, "columns") and hasattr(value, "__getitem__"))


def check_collected(what: str, table: Any) -> None:
    """Refuses a table that has no values yet."""
    if is_lazy(table):
        raise InputError(f"{what}: a {type(table).__name__}, which has no values yet, expected a DataFrame", help=".collect() gives one")


def no_column(what: str, table: Any) -> InputError:
    """What is said of a table in the place of a column."""
    return InputError(f"{what} is a table, expected one column", help=f"such as table{'.collect()' if is_lazy(table) else ''}['name']")


#: What messages say of labels, by where they are.
_HAS = {"index": "its index has", "columns": "its columns have", "keys": "its keys have"}


def by_labels(
    what: str, labels: Sequence[Any], names: Sequence[Hashable] | None, n: int, *, row: str = "job", part: str = "index"
) -> list[int]:
    """Where the value of each of `n` rows is, whose `labels` are the rows' names, or their positions from 0.

    Labels that are neither are an `InputError` that says which is missing or unknown. They are an `index`, `columns` or `keys`.
    """
    plain = [_plain(label) for label in labels]
    known: Sequence[Hashable] = range(n) if names is None else [_plain(name) for name in names]
    for of in (known, range(n)):
        if len(plain) == n and set(plain) == set(of):
            places = {label: place for place, label in enumerate(plain)}
            return [places[label] for label in of]
    has, wanted = _HAS[part], ", ".join(str(name) for name in islice(known, 8)) + (", …" if n > 8 else "")
    help = f"expected one for each {row}: {wanted or 'there is none'}"
    if len(plain) == n:
        help = "a list is taken by position" if part == "keys" else "an array is taken by position: .to_numpy() gives one"
    if twice := [label for label, times in Counter(plain).items() if times > 1]:
        raise InputError(f"{what}: {has} {short(twice[0])} more than once", help=help)
    if unknown := [label for label in plain if label not in set(known)]:
        raise InputError(f"{what}: {has} {short(unknown[0])}, which is no {row}", help=help)
    missing = next((name for name in known if name not in set(plain)), None)
    raise InputError(f"{what}: {has} nothing for {row} {short(missing)}", help=help)


def _plain(label: Any) -> Hashable:
    """A label as jobs and worker types are called: a whole number, or text."""
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def numbers(what: str, value: Any, kind: Any = np.float64, *, message: Callable[[], str] | None = None) -> NDArray[Any]:
    """An array of numbers: not masked, complex, times or text. `kind` is the type that it is to have; None: any that numbers have.

    `message` gives what is said of another value; it is asked for then only, since a value in words takes longer than a decision.
    """
    parts = value if isinstance(value, (list, tuple)) else ()
    if any(isinstance(part, np.ma.MaskedArray) for part in (value, *parts)):
        raise InputError(f"{what}: masked values, expected plain numbers", help="filled() puts numbers in their place")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "cmMUSV" or (array.dtype.kind == "O" and any(isinstance(one, (str, bytes)) for one in array.flat)):
            raise ValueError("no numbers")
        if kind is None and array.dtype.kind != "O":
            return array
        # (values in a file, or a field of a record, may lie where a processor does not read numbers)
        return np.require(array, kind or np.float64, ["C", "A", "E"])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(message() if message else f"{what}: expected numbers, not {short(value)}") from error


def whole_of(what: str, value: Any, least: int, most: int) -> int:
    """A whole number of a range."""
    is_whole = isinstance(value, (int, np.integer)) or (isinstance(value, (float, np.floating)) and float(value).is_integer())
    if isinstance(value, (bool, np.bool_)) or not is_whole or not least <= int(value) <= most:
        raise InputError(f"{what} is {short(value)}, expected a whole number from {least} to {most}")
    return int(value)


def flag_of(what: str, value: Any) -> bool:
    """True or False: not a number, nor text such as "no"."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} is {short(value)}, expected True or False")
    return bool(value)


def text_of(what: str, value: Any) -> str:
    """Text that can be written to a file."""
    if not isinstance(value, str):
        raise InputError(f"{what} is {short(value)}, expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} is {value!a}, which is no text: half a character") from None
    return value


def name_of(what: str, value: Any) -> str:
    """What something is called, in text: a number may stand for a name, several values or bytes may not."""
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(plain, (bytes, bytearray)) or (isinstance(plain, Iterable) and not isinstance(plain, str)):
        raise InputError(f"{what} is {short(plain)}, expected a name")
    return text_of(what, str(plain))


def check_flat(what: str, value: Any, n: int) -> None:
    """Refuses an array of names that has holes, or another shape than one value for each of `n` jobs."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{what}: masked values, expected plain ones", help="filled() puts values in their place")
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise InputError(f"{what}: an array of shape {value.shape}, expected ({n},): a value for each job")


def path_of(what: str, value: Any) -> str:
    """A path, a name, or a text."""
    try:
        if "\0" in (path := os.fsdecode(os.fsencode(value))):
            raise InputError(f"{what} is {short(value)}, which has a character of code 0")
        return path
    except TypeError:
        raise InputError(f"{what} is {short(value)}, expected text or a path") from None
    except UnicodeEncodeError:
        raise InputError(f"{what} is {value!a}, which is no text: half a character") from None
