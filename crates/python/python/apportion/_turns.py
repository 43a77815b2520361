"""Worlds of several agents as PettingZoo takes them; `apportion.envs.turns` makes one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv

from . import _native
from ._columns import short
from ._errors import InputError
from .envs import _SEEDS, _action, _seed, check_open

__all__ = ["Turns"]

#: What the agents of worlds with two are called.
_NAMES = ("order_0", "placement_0")


# (PettingZoo has no annotations)
class Turns(AECEnv):  # type: ignore[misc, unused-ignore]
    """A world whose agents act in turn, as one team: every agent is given the reward of every action.

    An observation is a dictionary of `observation` and `action_mask` (1 = may be taken). That of an agent whose turn it is not is what
    it saw last, and its mask is all 0.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "apportion_v0", "is_parallelizable": False}

    def __init__(self, system: str, native: _native.Environment) -> None:
        super().__init__()
        self._native = native
        self._is_closed = False
        self._random, _ = seeding.np_random()
        spaces = native.spaces()
        self.metadata = {**type(self).metadata, "name": f"{system}_v0"}
        self.render_mode = None
        self.possible_agents: list[str] = list(_NAMES) if len(spaces) == 2 else [f"agent_{k}" for k in range(len(spaces))]
        self.agents: list[str] = []
        self.action_spaces: dict[str, gymnasium.spaces.Discrete[np.int64]] = {}
        self.observation_spaces: dict[str, gymnasium.spaces.Dict] = {}
        for agent, (low, high, n_actions) in zip(self.possible_agents, spaces):
            self.action_spaces[agent] = gymnasium.spaces.Discrete(n_actions)
            mask = gymnasium.spaces.Box(0, 1, (n_actions,), dtype=np.int8)
            seen = gymnasium.spaces.Box(low, high, dtype=np.float32)
            self.observation_spaces[agent] = gymnasium.spaces.Dict({"observation": seen, "action_mask": mask})
        self._seen: dict[str, NDArray[np.float32]] = {}
        self._mask: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.state_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(native.state()),), dtype=np.float32)

    def observation_space(self, agent: str) -> gymnasium.spaces.Dict:
        """What an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Discrete[np.int64]:
        """What an agent may do."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begins the episode of a seed; without a seed, of one that is drawn."""
        check_open(self, self._is_closed)
        given = None if seed is None else _seed(seed)
        if given is not None:
            self._random, _ = seeding.np_random(given)
        self._native.reset(int(self._random.integers(_SEEDS)) if given is None else given)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._seen = {agent: np.zeros(self._length(agent), dtype=np.float32) for agent in self.agents}
        self._look()

    def _length(self, agent: str) -> int:
        shape = self.observation_spaces[agent]["observation"].shape
        return shape[0] if shape else 0

    def _look(self) -> None:
        """Gives the turn to the agent that acts next, and shows it the world."""
        self.agent_selection = self.possible_agents[self._native.agent]
        self._seen[self.agent_selection], self._mask = self._native.observe()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """What an agent sees, and which of its actions it may take. Before `reset` that is an `InputError`."""
        self._check_begun()
        if agent not in self.possible_agents:
            raise InputError(f"there is no agent {short(agent)}, expected one of {', '.join(self.possible_agents)}")
        is_next = agent == self.agent_selection and not (self.terminations[agent] or self.truncations[agent])
        mask = self._mask.astype(np.int8) if is_next else np.zeros(int(self.action_spaces[agent].n), dtype=np.int8)
        return {"observation": self._seen[agent].copy(), "action_mask": mask}

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What the agent whose turn it is sees, its reward, whether its episode is over or cut off, and what else is known."""
        self._check_begun()
        of_agent: tuple[Any, float, bool, bool, dict[str, Any]] = super().last(observe)
        return of_agent

    def _check_begun(self) -> None:
        check_open(self, self._is_closed)
        if not self._seen:
            raise InputError("the world is to be reset first")

    def state(self) -> NDArray[np.float32]:
        """All that the agents know together, for a critic. Before `reset` that is an `InputError`."""
        self._check_begun()
        return self._native.state()

    def step(self, action: int | np.integer[Any] | None) -> None:
        """Carries the action of the agent out whose turn it is: None where its episode is over. Before `reset` that is an `InputError`."""
        self._check_begun()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise InputError(f"action is None, but the episode of {agent} goes on")
        reward, rounds, counts, terminated, truncated = self._native.step(_action(action))
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, reward)
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.infos = {agent: {"rounds": rounds, "counts": counts} for agent in self.agents}
        self._look()
        self._accumulate_rewards()

    def render(self) -> None:
        """A world draws nothing."""

    def close(self) -> None:
        """Ends the world: what is asked of it afterwards is a `gymnasium.error.ClosedEnvironmentError`."""
        self._is_closed = True
