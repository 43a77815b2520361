"""The worlds of the learned schedulers as environments to train agents in.

Import this module, or `apportion` after Gymnasium, and Gymnasium knows `apportion/DL2-v0`, `DeepShare-v0`, `Elastic-v0`, `Gangs-v0` and
`Rounds-v0`; without an import, `gymnasium.make("apportion.envs:apportion/DL2-v0")` does both. Options of a world (docs/formats.md, "training: `world`") are
keyword arguments. `sb3` gives the same to stable-baselines3, `dual_agent` and `turns` give several agents to PettingZoo.

A step that the action mask forbids raises `InputError`, and nothing has changed. What knows no masks, such as Gymnasium's `check_env`,
can be given `LegalActions(env)`.

>>> import gymnasium
>>> env = gymnasium.make("apportion/Gangs-v0", jobs=10)
>>> seen, info = env.reset(seed=0)
>>> seen.dtype, bool(info["action_mask"].any())
(dtype('float32'), True)
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._columns import is_set, numbers, short, whole_of
from ._errors import InputError
from ._export import Exported, export_policy, export_weights
from ._given import world_text
from ._ids import IDS, register

try:
    import gymnasium
    from gymnasium.utils import seeding
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError('apportion.envs needs Gymnasium: pip install "apportion[gym]"') from error

if TYPE_CHECKING:
    from ._sb3 import VecWorlds
    from ._turns import Turns

__all__ = [
    "IDS",
    "Exported",
    "LegalActions",
    "VectorWorld",
    "World",
    "dual_agent",
    "export_policy",
    "export_weights",
    "sb3",
    "turns",
]

_Seen = NDArray[np.float32]
_Flags = NDArray[np.bool_]
_Masks = NDArray[np.int8]

#: Seeds are drawn below this.
_SEEDS = 1 << 63
#: What to do about an action that is masked.
_ALLOWED = 'info["action_mask"] says which are allowed; apportion.envs.LegalActions(env) takes the next allowed one in its place'


def _one_agent(system: str, world: str) -> tuple[_native.Environment, tuple[_Seen, _Seen, int]]:
    """A world of one agent, with what it sees and may do."""
    native = _native.Environment(system, world)
    spaces = native.spaces()
    if len(spaces) != 1:
        message = f"`{system}` has {len(spaces)} agents with these options, expected one"
        raise InputError(message, help="agents in turn: apportion.envs.turns")
    return native, spaces[0]


def _seed(seed: int) -> int:
    return whole_of("seed", seed, 0, (1 << 64) - 1)


class World(gymnasium.Env[_Seen, np.int64]):
    """A world of one agent.

    `made_of` is the name of the world with its options, as text. `info` holds `action_mask` (1 = may be taken; all 0 after the end), and after a step `rounds`, the rounds that passed in it, and
    `counts`, whether there is something to learn from it: it is false where the action could not be carried out.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, system: str, *, render_mode: str | None = None, **world: Any) -> None:
        if render_mode is not None:
            raise InputError(f"render_mode is {render_mode!r}, but a world draws nothing", help="leave it out")
        self.render_mode = None
        self.made_of = _world_of(system, world)
        self._native, (low, high, n_actions) = _one_agent(*self.made_of)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Discrete(n_actions)
        self._mask: _Flags = np.zeros(n_actions, dtype=np.bool_)
        self._is_begun = False
        self._is_closed = False

    def close(self) -> None:
        """Ends the world: what is asked of it afterwards is a `gymnasium.error.ClosedEnvironmentError`."""
        self._is_closed = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[_Seen, dict[str, Any]]:
        """Begins the episode of a seed, the same as in `apportion train`; without a seed, one that `np_random` draws."""
        check_open(self, self._is_closed)
        given = None if seed is None else _seed(seed)
        super().reset(seed=given)
        self._native.reset(int(self.np_random.integers(_SEEDS)) if given is None else given)
        self._is_begun = True
        seen, self._mask = self._native.observe()
        return seen, {"action_mask": self._mask.astype(np.int8)}

    def step(self, action: np.int64 | int) -> tuple[_Seen, float, bool, bool, dict[str, Any]]:
        """Carries an action out. Before `reset`, and where the mask forbids it, that is an `InputError`."""
        check_open(self, self._is_closed)
        if not self._is_begun:
            raise InputError("the world is to be reset first")
        number = _action(action)
        if number < len(self._mask) and not self._mask[number] and self._mask.any():
            raise InputError(f"action {number} is masked", help=_ALLOWED)
        reward, rounds, counts, terminated, truncated = self._native.step(number)
        seen, mask = self._native.observe()
        if terminated or truncated:
            mask[:] = False
        self._mask = mask
        return seen, reward, terminated, truncated, {"action_mask": mask.astype(np.int8), "rounds": rounds, "counts": counts}

    def action_masks(self) -> _Flags:
        """Which actions may be taken now: `[actions]`."""
        check_open(self, self._is_closed)
        return self._mask.copy()


def check_open(world: Any, is_closed: bool) -> None:
    """Refuses a world that was closed."""
    if is_closed:
        raise gymnasium.error.ClosedEnvironmentError(f"Trying to operate on `{type(world).__name__}`, after a call to `close()`.")


def _whole_action(action: Any) -> int:
    """A whole number, whether there is such an action or not."""
    try:
        return operator.index(action)
    except TypeError:
        raise InputError(f"action is {short(action)}, expected a whole number") from None


def _action(action: Any) -> int:
    number = _whole_action(action)
    if not 0 <= number < 1 << 63:
        raise InputError(f"there is no action {short(number)}")
    return number


class LegalActions(gymnasium.ActionWrapper[_Seen, np.int64, np.int64], gymnasium.utils.RecordConstructorArgs):
    """Takes the next action that is allowed in place of one that is not, for what knows no masks. After the last comes the first."""

    def __init__(self, env: gymnasium.Env[_Seen, np.int64]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.ActionWrapper.__init__(self, env)

    def action(self, action: np.int64) -> np.int64:
        """The action that is taken for this one."""
        number = _whole_action(action)
        mask: _Flags = self.get_wrapper_attr("action_masks")()
        if not mask.any():
            return action
        number %= len(mask)
        return np.int64((number + int(np.roll(mask, -number).argmax())) % len(mask))


class VectorWorld(gymnasium.vector.VectorEnv[_Seen, NDArray[np.int64], NDArray[Any]]):
    """Many copies of a world of one agent, stepped on all cores.

    A copy whose episode ends begins the next in the same step (`AutoresetMode.SAME_STEP`): the observation is then the first of the
    next, and `infos` hold the last as `final_obs`. The next episode's seed is that of the one before plus 0x9E3779B97F4A7C15,
    modulo 2^64. If an action is not allowed, `InputError` says in which copy, and no copy has changed.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
    _MODES: ClassVar[tuple[object, ...]] = (gymnasium.vector.AutoresetMode.SAME_STEP, gymnasium.vector.AutoresetMode.SAME_STEP.value)

    def __init__(
        self, num_envs: int, system: str, *, autoreset_mode: Any = _MODES[0], render_mode: str | None = None, **world: Any
    ) -> None:
        if autoreset_mode not in self._MODES:
            raise InputError(f"autoreset_mode is {autoreset_mode!r}, expected SAME_STEP", help='others: vectorization_mode="sync"')
        if render_mode is not None:
            raise InputError(f"render_mode is {render_mode!r}, but a world draws nothing", help="leave it out")
        num_envs = whole_of("num_envs", num_envs, 1, 2**31) if num_envs != 0 else 0
        self.made_of = _world_of(system, world)
        _, (low, high, n_actions) = _one_agent(*self.made_of)
        self._native = _native.VectorEnvironment(*self.made_of, num_envs)
        self.num_envs = num_envs
        self.render_mode = None
        self.single_observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._masks: _Flags = np.zeros((num_envs, n_actions), dtype=np.bool_)
        self._rows = np.arange(num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Seen, dict[str, Any]]:
        """Begins an episode in each copy: copy i that of `seed` + i, or of seed[i]; without a seed, one that `np_random` draws.

        `options={"reset_mask": flags}` begins episodes only where the flag is set; the others go on as they are.
        """
        check_open(self, self.closed)
        given = self._seeds_of(seed)
        begins = self._begins((options or {}).get("reset_mask"))
        if (first := next((one for one in given if one is not None), None)) is not None:
            self._np_random, self._np_random_seed = seeding.np_random(first)
        drawn = self.np_random.integers(_SEEDS, size=self.num_envs) if None in given else np.zeros(self.num_envs, dtype=np.int64)
        seeds = np.array([int(other) if one is None else one for one, other in zip(given, drawn)], dtype=np.uint64)
        seen, self._masks = self._native.reset(seeds, begins)
        return seen, {"action_mask": self._masks.astype(np.int8), "_action_mask": begins}

    def _seeds_of(self, seed: Any) -> list[int | None]:
        """The seed of each copy; None where it is drawn."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, np.ndarray) and seed.ndim == 0:
            seed = seed.item()
        if isinstance(seed, (str, bytes, Mapping)) or is_set(seed) or not isinstance(seed, Iterable):
            first = _seed(seed)
            return [_seed(first + copy) for copy in range(self.num_envs)]
        given = [None if one is None else _seed(one) for one in seed]
        if len(given) != self.num_envs:
            raise InputError(f"{len(given)} seeds, expected {self.num_envs}")
        return given

    def _begins(self, flags: Any) -> _Flags:
        if flags is None:
            return np.ones(self.num_envs, dtype=np.bool_)

        def said() -> str:
            return f"reset_mask is {short(flags)}, expected {self.num_envs} flags, at least one of them set"

        begins = numbers("reset_mask", flags, None, message=said)
        if begins.shape != (self.num_envs,) or begins.dtype != np.bool_ or not begins.any():
            raise InputError(said())
        return begins.copy()

    def step(self, actions: NDArray[np.int64]) -> tuple[_Seen, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Carries one action of each copy out."""
        check_open(self, self.closed)
        taken = self._checked(actions)
        (seen, self._masks), rewards, terminated, truncated, last, rounds, counts = self._native.step(taken)
        infos: dict[str, Any] = {"action_mask": self._masks.astype(np.int8), "rounds": rounds, "counts": counts}
        infos |= {f"_{name}": np.ones(self.num_envs, dtype=np.bool_) for name in ("action_mask", "rounds", "counts")}
        if last is not None:
            ended = terminated | truncated
            final = np.full(self.num_envs, None, dtype=object)
            for copy in np.flatnonzero(ended):
                final[copy] = last[copy].copy()
            infos |= {"final_obs": final, "_final_obs": ended, "_final_info": ended.copy()}
            infos["final_info"] = {"action_mask": np.zeros(self._masks.shape, dtype=np.int8), "_action_mask": ended.copy()}
        return seen, rewards.astype(np.float64), terminated, truncated, infos

    def _checked(self, given: Any) -> NDArray[np.int64]:
        """The actions, one of each copy. Refuses what any copy would refuse, before one is stepped."""

        def said() -> str:
            return f"actions are {short(given)}, expected whole numbers from 0 to {n_actions - 1}"

        n_actions = self._masks.shape[1]
        plain = numbers("actions", given, None, message=said)
        if plain.dtype.kind not in "iu":
            raise InputError(said())
        if plain.shape != (self.num_envs,):
            raise InputError(f"actions have shape {plain.shape}, expected ({self.num_envs},)")
        is_known = (plain >= 0) & (plain < n_actions)
        if not is_known.all():
            copy = int(is_known.argmin())
            raise InputError(f"environment {copy}: there is no action {plain[copy]}, only {n_actions}")
        # Numbers are looked at as they are given, since those that are too large for this type would become others in it.
        actions: NDArray[np.int64] = np.require(plain, np.int64, ["C", "A", "E"])
        is_allowed = self._masks[self._rows, actions]
        if not is_allowed.all():
            copy = int(is_allowed.argmin())
            if not self._masks.any():
                raise InputError(f"environment {copy}: it is to be reset first")
            raise InputError(f"environment {copy}: action {actions[copy]} is masked", help='infos["action_mask"] says which are allowed')
        return actions

    def action_masks(self) -> _Flags:
        """Which actions may be taken now: [copies × actions]."""
        check_open(self, self.closed)
        return self._masks.copy()


def _world_of(id_or_system: Any, world: dict[str, Any]) -> tuple[str, str]:
    """The world of an id or a name, with its options as text."""
    if not isinstance(id_or_system, str):
        raise InputError(f"world is {short(id_or_system)}, expected one of {', '.join([*IDS, *_native.systems()])}")
    if id_or_system in IDS:
        system, usual = IDS[id_or_system]
        return system, world_text({**usual, **world})
    if id_or_system in _native.systems():
        return id_or_system, world_text(world)
    raise InputError(f"unknown world {id_or_system!r}, expected one of {', '.join([*IDS, *_native.systems()])}")


def sb3(id_or_system: str, n: int, *, seed: int | None = None, **world: Any) -> VecWorlds:
    """`n` copies of a world of one agent for stable-baselines3: a `VecEnv`, stepped on all cores.

    Its `infos` have `terminal_observation` and `TimeLimit.truncated`, and MaskablePPO of sb3-contrib gets its masks from it. Returns
    and lengths of episodes are logged if it is wrapped in stable-baselines3's `VecMonitor`.
    """
    _world_of(id_or_system, world)
    try:
        from ._sb3 import VecWorlds
    except ImportError as error:
        raise ImportError('apportion.envs.sb3 needs stable-baselines3: pip install "apportion[sb3]"') from error
    worlds = VecWorlds(VectorWorld(n, id_or_system, **world))
    if seed is not None:
        worlds.seed(seed)
    return worlds


def turns(id_or_system: str, **world: Any) -> Turns:
    """A world whose agents act in turn, as a PettingZoo `AECEnv`: `dual_agent`, or `rounds`, which is played by two agents unless
    `play="cells"` says otherwise, as the id `apportion/Rounds-v0` does. A world of one agent has one that acts at every turn."""
    system, options = _world_of(id_or_system, world)
    try:
        from ._turns import Turns
    except ImportError as error:
        raise ImportError('agents in turn need PettingZoo: pip install "apportion[pettingzoo]"') from error
    return Turns(system, _native.Environment(system, options))


def dual_agent(**world: Any) -> Turns:
    """The dual-agent scheduler's world as a PettingZoo `AECEnv`: `order_0` says which job is next, `placement_0` gives it servers."""
    return turns("dual_agent", **world)


register(gymnasium)
