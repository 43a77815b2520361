"""Worlds as stable-baselines3 takes them; `apportion.envs.sb3` makes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from .envs import VectorWorld

__all__ = ["VecWorlds"]


# (stable-baselines3 need not be installed where the annotations are checked)
class VecWorlds(VecEnv):  # type: ignore[misc, unused-ignore]
    """Copies of a world of one agent: a `VecEnv`."""

    def __init__(self, worlds: VectorWorld) -> None:
        self._worlds = worlds
        self.made_of = worlds.made_of
        self._actions: NDArray[Any] = np.zeros(worlds.num_envs, dtype=np.int64)
        super().__init__(worlds.num_envs, worlds.single_observation_space, worlds.single_action_space)

    def reset(self) -> NDArray[np.float32]:
        """Begins an episode in each copy, of the seeds that `seed` said, if it did."""
        seen, _ = self._worlds.reset(seed=None if None in self._seeds else self._seeds)
        self._reset_seeds()
        self._reset_options()
        return seen

    def step_async(self, actions: NDArray[Any]) -> None:
        """Takes the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Carries them out."""
        seen, rewards, terminated, truncated, infos = self._worlds.step(self._actions)
        told: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(cut)} for cut in truncated]
        ended = terminated | truncated
        for copy in np.flatnonzero(ended):
            told[copy]["terminal_observation"] = infos["final_obs"][copy]
        return seen, rewards.astype(np.float32), ended, told

    def close(self) -> None:
        """Ends the copies: what is asked of them afterwards is a `gymnasium.error.ClosedEnvironmentError`."""
        self._worlds.close()

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions may be taken now: [copies × actions]."""
        return self._worlds.action_masks()

    def _numbers(self, indices: int | Iterable[int] | None) -> list[int]:
        return [int(copy) for copy in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of each copy."""
        numbers = self._numbers(indices)
        if attr_name == "action_masks":
            return [lambda copy=copy: self._worlds.action_masks()[copy] for copy in numbers]
        known = {
            "render_mode": None,
            "spec": self._worlds.spec,
            "action_space": self._worlds.single_action_space,
            "observation_space": self._worlds.single_observation_space,
        }
        if attr_name not in known:
            raise AttributeError(f"copies of a world have no attribute {attr_name!r}")
        return [known[attr_name]] * len(numbers)

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Refuses: copies of a world have no attributes to be set."""
        raise AttributeError(f"copies of a world have no attribute {attr_name!r} to be set")

    def env_method(self, method_name: str, *args: Any, indices: int | Iterable[int] | None = None, **kwargs: Any) -> list[Any]:
        """Calls a method of each copy; `action_masks` is the only one."""
        numbers = self._numbers(indices)
        if method_name != "action_masks":
            raise AttributeError(f"copies of a world have no method {method_name!r}")
        masks = self._worlds.action_masks()
        return [masks[copy] for copy in numbers]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """No copy is wrapped."""
        return [False] * len(self._numbers(indices))

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """A world draws nothing."""
        return [None] * self._worlds.num_envs
