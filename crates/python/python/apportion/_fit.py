"""Shares that a numerical solver left slightly outside the allocation polytope, brought into it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import AllocationError
from ._native import Problem

__all__ = ["fit"]


def fit(problem: Problem, shares: ArrayLike, *, tolerance: float = 1e-4) -> NDArray[np.float64]:
    """Brings shares of jobs alone, [jobs × worker types], into the allocation polytope, if they are outside by no more than `tolerance`.

    Shares below 0, and where a job cannot run or a type has too few workers, become 0; a job with more than all of its time, and a type
    given away more than once, are scaled down. Solvers such as SCS and ECOS end outside by 1e-8 to 1e-4.
    """
    x: NDArray[np.float64] = np.array(shares, dtype=np.float64)
    if x.shape != problem.throughputs.shape:
        raise AllocationError(f"shares have shape {x.shape}, expected {problem.throughputs.shape}: jobs × worker types")
    if not np.isfinite(x).all():
        raise AllocationError("shares are not all finite numbers")

    def check(what: str, excess: NDArray[np.float64], known: dict[str, Any]) -> None:
        if excess.size and excess.max() > tolerance:
            raise AllocationError(f"{what} by {excess.max():.3g}, more than the tolerance of {tolerance:g}", excess=float(excess.max()), **known)

    def place(excess: NDArray[np.float64]) -> dict[str, Any]:
        row, kind = np.unravel_index(int(excess.argmax()), excess.shape) if excess.size else (0, 0)
        return {"row": int(row), "worker_type": int(kind)}

    check("a share is below 0", -x, place(-x))
    scale = problem.scale_factor.astype(np.float64)
    cannot = (problem.throughputs <= 0) | (scale[:, None] > problem.workers[None, :])
    there = np.where(cannot, x, 0.0)
    check("a job has a share where it cannot run", there, place(there))
    x = np.where(cannot, 0.0, np.maximum(x, 0.0))
    time = x.sum(axis=1)
    check("a job has more than all of its time", time - 1.0, {"row": int(time.argmax()) if time.size else None})
    x /= np.maximum(time, 1.0)[:, None]
    workers = problem.workers.astype(np.float64)
    used = scale @ x
    over = used / np.maximum(workers, 1e-300) - 1.0
    check("a worker type is given away more than once", np.where(workers > 0, over, 0.0), {"worker_type": int(over.argmax())})
    x /= np.maximum(used / np.maximum(workers, 1e-300), 1.0)[None, :]
    return x
