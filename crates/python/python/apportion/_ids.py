"""The ids of the worlds, and how Gymnasium learns of them."""

from __future__ import annotations

from typing import Any

__all__ = ["IDS", "register"]

#: What each id stands for: the world, and the options that are given where no others are.
IDS: dict[str, tuple[str, dict[str, Any]]] = {
    "apportion/DL2-v0": ("dl2", {}),
    "apportion/DeepShare-v0": ("deepshare", {}),
    "apportion/Elastic-v0": ("elastic", {}),
    "apportion/Gangs-v0": ("gangs", {}),
    "apportion/Rounds-v0": ("rounds", {"play": "cells"}),
}


def register(gymnasium: Any) -> None:
    """Makes the ids known to Gymnasium, which imports `apportion.envs` where one of them is made."""
    for name, (system, usual) in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="apportion.envs:World",
                vector_entry_point="apportion.envs:VectorWorld",
                kwargs={"system": system, **usual},
            )
