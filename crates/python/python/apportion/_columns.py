"""Tables as columns of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table"]


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
