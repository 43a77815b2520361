"""Worlds as environments of Gymnasium and PettingZoo."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import apportion as ap

gymnasium = pytest.importorskip("gymnasium")

from apportion import envs  # noqa: E402

#: Short episodes of each.
SHORT: dict[str, dict[str, Any]] = {
    "apportion/DL2-v0": {"jobs": 4, "epochs": 400},
    "apportion/DeepShare-v0": {"jobs": 12, "masked": True},
    "apportion/Elastic-v0": {"jobs": 4, "minutes_log10": [1.0, 1.5]},
    "apportion/Gangs-v0": {"jobs": 6, "slots": 5},
    "apportion/Rounds-v0": {"jobs": 4},
}
WEYL = 0x9E3779B97F4A7C15


def drawn(random: np.random.Generator, mask: np.ndarray) -> Any:
    """An action, or an action of each copy, that is allowed."""
    return (random.random(mask.shape) * mask).argmax(axis=-1)


def test_every_world_of_one_agent_has_an_id() -> None:
    assert {system for system, _ in envs.IDS.values()} == set(ap._native.systems()) - {"dual_agent"}
    assert set(SHORT) == set(envs.IDS) <= set(gymnasium.registry)


@pytest.mark.parametrize("name", SHORT)
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make(name, **SHORT[name])
    assert env.observation_space.dtype == np.float32 and env.action_space.start == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # (it draws actions without a look at masks, and says that it is given a wrapper)
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        check_env(envs.LegalActions(env.unwrapped))
        seen, info = env.reset(seed=1)
        for _ in range(50):
            seen, _, ended, cut, info = env.step(env.action_space.sample(info["action_mask"]))
            assert seen in env.observation_space
            if ended or cut:
                _, info = env.reset()


@pytest.mark.parametrize("name", SHORT)
def test_what_happens_is_a_function_of_seed_and_actions(name: str) -> None:
    def play(env: Any, seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        seen, info = env.reset(seed=seed)
        told = [seen.tobytes(), info["action_mask"].tobytes()]
        for _ in range(60):
            seen, reward, ended, cut, info = env.step(drawn(random, info["action_mask"]))
            told += [seen.tobytes(), info["action_mask"].tobytes(), reward, ended, cut, info["rounds"], info["counts"]]
            if ended or cut:
                # (np_random, seeded by reset, draws the next episode)
                seen, info = env.reset()
                told.append(seen.tobytes())
        return told

    one, other = gymnasium.make(name, **SHORT[name]), gymnasium.make(name, **SHORT[name])
    assert play(one, 3) == play(other, 3) == play(one, 3)
    assert play(one, 3) != play(one, 4)


def test_masks_are_what_may_be_done() -> None:
    env = gymnasium.make("apportion/Gangs-v0", jobs=6).unwrapped
    with pytest.raises(ap.InputError, match="to be reset first"):
        env.step(0)
    _, info = env.reset(seed=0)
    for wrong in (0.5, "1", None, np.nan, np.array([0, 1])):
        with pytest.raises(ap.InputError, match="expected a whole number"):
            env.step(wrong)
    with pytest.raises(ap.InputError, match="there is no action"):
        env.step(2**70)
    assert info["action_mask"].dtype == np.int8 and env.action_masks().dtype == np.bool_
    assert (info["action_mask"] == env.action_masks()).all()
    masked = int(info["action_mask"].argmin())
    with pytest.raises(ap.InputError, match=f"action {masked} is masked"):
        env.step(masked)
    for action in (-1, 10**6):
        with pytest.raises(ap.InputError, match="there is no action"):
            env.step(action)
    # Nothing has changed, and what is given away is a copy.
    env.action_masks()[:] = True
    assert (env.action_masks() == info["action_mask"]).all()
    random, ended = np.random.default_rng(0), False
    while not ended:
        _, _, ended, cut, info = env.step(drawn(random, info["action_mask"]))
        assert not cut
    assert not info["action_mask"].any() and not env.action_masks().any()
    with pytest.raises(ap.InputError, match="the episode is over"):
        env.step(0)


def test_an_episode_is_cut_off_at_its_limit() -> None:
    env = gymnasium.make("apportion/Gangs-v0", jobs=30, step_limit=7)
    random = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    for number in range(7):
        _, _, ended, cut, info = env.step(drawn(random, info["action_mask"]))
        assert (ended, cut) == (False, number == 6)


def test_legal_actions_are_taken_in_place_of_others() -> None:
    env = envs.LegalActions(gymnasium.make("apportion/Rounds-v0", jobs=3))
    env.reset(seed=0)
    mask = env.unwrapped.action_masks()
    for action in range(len(mask)):
        taken = env.action(np.int64(action))
        assert mask[taken] and (taken == action or not mask[action])
    for wrong in (None, np.nan, "x", 0.5, [1]):
        with pytest.raises(ap.InputError, match="action is .*, expected a whole number"):
            env.step(wrong)
    ended = False
    while not ended:
        _, _, ended, cut, _ = env.step(env.action_space.sample())
        assert not cut


def test_options_are_those_of_the_world() -> None:
    assert gymnasium.make("apportion/Gangs-v0", actor="window", slots=16).observation_space.shape == (144,)
    assert gymnasium.make("apportion/Gangs-v0", slots=np.int64(3), rates=np.array([0.5])).action_space.n == 10
    with pytest.raises(ap.InputError, match="unknown key `job`, expected one of"):
        gymnasium.make("apportion/DL2-v0", job=3)
    with pytest.raises(ap.InputError, match="rates is NaN, expected a finite number"):
        gymnasium.make("apportion/Gangs-v0", rates=[float("nan")])
    with pytest.raises(ap.InputError, match="2 agents with these options"):
        gymnasium.make("apportion/Rounds-v0", play="agents")
    with pytest.raises(ap.InputError, match="draws nothing"):
        envs.World("dl2", render_mode="human")
    for seed in (1 << 64, -1, 1.5, True, "1"):
        with pytest.raises(ap.InputError, match="seed is"):
            envs.World("dl2").reset(seed=seed)  # type: ignore[arg-type]
    for value, said in ((lambda: 1, "jobs is .*, which is no value of a field"), ({("a", 1): 2}, "a name in jobs is .*, expected text")):
        with pytest.raises(ap.InputError, match=said):
            envs.World("dl2", jobs=value)


@pytest.mark.parametrize("name", SHORT)
def test_copies_do_what_each_does_alone(name: str) -> None:
    n, seeds = 3, [5, 6, (1 << 64) - 1]
    many = gymnasium.make_vec(name, num_envs=n, vectorization_mode="vector_entry_point", **SHORT[name])
    alone = [gymnasium.make(name, **SHORT[name]).unwrapped for _ in range(n)]
    assert many.observation_space.shape == (n, *alone[0].observation_space.shape)
    random = np.random.default_rng(0)
    seen, infos = many.reset(seed=seeds)
    for copy, env in enumerate(alone):
        first, info = env.reset(seed=seeds[copy])
        assert (seen[copy] == first).all() and (infos["action_mask"][copy] == info["action_mask"]).all()
    n_ended = 0
    for _ in range(4000):
        actions = drawn(random, infos["action_mask"])
        seen, rewards, ended, cut, infos = many.step(actions)
        for copy, env in enumerate(alone):
            *expected, info = env.step(actions[copy])
            if expected[2] or expected[3]:
                n_ended += 1
                assert (infos["final_obs"][copy] == expected[0]).all() and infos["_final_obs"][copy] and infos["_final_info"][copy]
                assert (infos["final_info"]["action_mask"][copy] == info["action_mask"]).all()
                seeds[copy] = (seeds[copy] + WEYL) % (1 << 64)
                expected[0], info = env.reset(seed=seeds[copy])
            else:
                assert "final_obs" not in infos or (infos["final_obs"][copy] is None and not infos["_final_obs"][copy])
            assert (seen[copy] == expected[0]).all()
            assert (rewards[copy], ended[copy], cut[copy]) == tuple(expected[1:])
            assert (infos["action_mask"][copy] == info["action_mask"]).all()
        if n_ended >= 6:
            break
    assert n_ended >= 6
    assert (many.unwrapped.action_masks() == infos["action_mask"]).all()


def test_copies_are_reset_where_they_are_to_be() -> None:
    many = gymnasium.make_vec("apportion/Gangs-v0", num_envs=4, jobs=10)
    assert many.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    random = np.random.default_rng(0)
    first, infos = many.reset(seed=7)
    by_list, _ = many.reset(seed=[7, 8, 9, 10])
    assert (first == by_list).all() and many.np_random_seed == 7
    unseeded, infos = many.reset()
    assert not (first == unseeded).all()
    for _ in range(5):
        seen, *_, infos = many.step(drawn(random, infos["action_mask"]))
    flags = np.array([False, True, False, False])
    part, infos = many.reset(seed=7, options={"reset_mask": flags})
    assert (part[1] == first[1]).all() and (part[~flags] == seen[~flags]).all() and (infos["_action_mask"] == flags).all()
    # Without seeds, they come from the generator that the last seed made.
    assert (many.reset(seed=7)[0] == first).all()
    again = many.reset()[0]
    many.reset(seed=7)
    assert (many.reset()[0] == again).all()
    for seed in ([1, 2], -1, [0, 1, 2, 1 << 64]):
        with pytest.raises((ap.InputError, gymnasium.error.Error)):
            many.reset(seed=seed)
    with pytest.raises(ap.InputError, match="2 seeds, expected 4"):
        many.reset(seed=[1, 2])
    for seed in ([1.9, 2, 3, 4], "1234", "abcd", [True, 2, 3, 4], ["1", 2, 3, 4], 1.5, True, {1, 2, 3, 4}, (1 << 64) - 2):
        with pytest.raises(ap.InputError, match="seed is .*, expected a whole number"):
            many.reset(seed=seed)
    assert (many.reset(seed=np.array([7, 8, 9, 10]))[0] == many.reset(seed=np.int64(7))[0]).all()
    for bad in (np.zeros(4, dtype=bool), np.ones(3, dtype=bool), np.ones(4), [[True], [True, False]]):
        with pytest.raises(ap.InputError, match="reset_mask"):
            many.reset(options={"reset_mask": bad})


def test_an_action_of_a_copy_that_is_masked_changes_none() -> None:
    one, other = (gymnasium.make_vec("apportion/Gangs-v0", num_envs=3, jobs=10) for _ in range(2))
    with pytest.raises(ap.InputError, match="environment 0: it is to be reset first"):
        one.step(np.zeros(3, dtype=np.int64))
    _, infos = one.reset(seed=0)
    other.reset(seed=0)
    actions = infos["action_mask"].argmax(axis=1)
    wrong = actions.copy()
    wrong[2] = infos["action_mask"][2].argmin()
    with pytest.raises(ap.InputError, match=f"environment 2: action {wrong[2]} is masked"):
        one.step(wrong)
    for wrong, message in [(actions * 0 - 1, "no action -1"), (actions + 10**6, "there is no action"), (actions[:2], "shape")]:
        with pytest.raises(ap.InputError, match=message):
            one.step(wrong)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one.step(actions)[:4], other.step(actions)[:4]))
    with pytest.raises(ap.InputError, match="expected SAME_STEP"):
        gymnasium.make_vec("apportion/Gangs-v0", num_envs=3, autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP)
    with pytest.raises(ap.InputError, match="expected at least 1"):
        envs.VectorWorld(0, "gangs")
    for n in (-1, 1.5, "2"):
        with pytest.raises(ap.InputError, match="num_envs is"):
            envs.VectorWorld(n, "gangs")  # type: ignore[arg-type]
    largest = np.full(3, 2**64 - 1, np.uint64)
    with pytest.raises(ap.InputError, match="environment 0: there is no action 18446744073709551615, only"):
        one.step(largest)
    assert one.step(one.action_masks().argmax(axis=1).astype(np.uint64))[0].shape[0] == 3
    for truncated in (actions + 0.5, [None] * 3, None, [[1, 2], [3]], [2**70, 0, 0]):
        with pytest.raises(ap.InputError, match="expected whole numbers"):
            one.step(truncated)


def test_gymnasium_vectorizes_it_too() -> None:
    mode = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}
    several = gymnasium.make_vec("apportion/Rounds-v0", num_envs=2, vectorization_mode="sync", vector_kwargs=mode, jobs=3)
    _, infos = several.reset(seed=0)
    random = np.random.default_rng(0)
    for _ in range(50):
        # (a copy that is to begin anew takes any action)
        *_, infos = several.step(drawn(random, infos["action_mask"]))


@pytest.mark.parametrize("world", [("dual_agent", {"jobs": 3, "scale": 0.01}), ("rounds", {"jobs": 4}), ("gangs", {"jobs": 4})])
def test_agents_take_turns(world: tuple[str, dict[str, Any]]) -> None:
    api_test = pytest.importorskip("pettingzoo.test").api_test
    system, options = world
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(envs.turns(system, **options), num_cycles=500)


def test_two_agents_are_one_team() -> None:
    pytest.importorskip("pettingzoo")
    env = envs.dual_agent(jobs=3, scale=0.01)
    assert env.possible_agents == ["order_0", "placement_0"]
    for ask in (env.last, lambda: env.step(0), lambda: env.observe("order_0"), env.state):
        with pytest.raises(ap.InputError, match="to be reset first"):
            ask()

    def play(seed: int) -> list[Any]:
        env.reset(seed=seed)
        random, told, totals = np.random.default_rng(0), [], dict.fromkeys(env.possible_agents, 0.0)
        for agent in env.agent_iter():
            seen, reward, ended, cut, info = env.last()
            told += [agent, reward, ended, cut, seen["observation"].tobytes(), env.state().tobytes()]
            totals[agent] += reward
            if ended or cut:
                env.step(None)
                continue
            other = next(name for name in env.agents if name != agent)
            assert seen["action_mask"].any() and not env.observe(other)["action_mask"].any()
            env.step(drawn(random, seen["action_mask"]))
        assert env.agents == [] and totals["order_0"] == pytest.approx(totals["placement_0"])
        return told

    assert play(1) == play(1) != play(2)
    env.reset(seed=0)
    masked = int(env.observe(env.agent_selection)["action_mask"].argmin())
    for action, said in ((masked, "masked"), (None, "the episode of order_0 goes on"), (-3, "no action -3"), (0.5, "action is 0.5")):
        with pytest.raises(ap.InputError, match=said):
            env.step(action)
    with pytest.raises(ap.InputError, match="there is no agent 'nobody'"):
        env.observe("nobody")


def test_gymnasium_is_asked_for_where_it_is_missing() -> None:
    def said(code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr

    assert said("import apportion, sys; assert 'gymnasium' not in sys.modules and 'torch' not in sys.modules") == ""
    assert 'pip install "apportion[gym]"' in said("import sys; sys.modules['gymnasium'] = None; import apportion.envs")
    without = "import sys; sys.modules['{0}'] = None; import apportion.envs as e; e.{1}"
    assert 'pip install "apportion[pettingzoo]"' in said(without.format("pettingzoo", "dual_agent()"))
    assert 'pip install "apportion[sb3]"' in said(without.format("stable_baselines3", "sb3('apportion/DL2-v0', 2)"))
    assert said("import gymnasium; gymnasium.make('apportion.envs:apportion/DL2-v0', jobs=4)") == ""
    assert said("import apportion, gymnasium; gymnasium.make('apportion.envs:apportion/DL2-v0', jobs=4)") == ""
    made = "import gymnasium, apportion, sys; assert 'apportion.envs' not in sys.modules; gymnasium.make"
    assert said(f"{made}('apportion/DL2-v0', jobs=4); gymnasium.make_vec('apportion/Gangs-v0', 2)") == "", "by the ids alone"
    assert said("import sys, types; sys.modules['gymnasium'] = types.ModuleType('gymnasium'); import apportion") == "", "imported halfway"
    with pytest.raises(ap.InputError, match="unknown world 'dl3'"):
        envs.sb3("dl3", 2)


def test_worlds_are_stepped_in_a_forked_process() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("the system has no fork")
    code = """
import os, warnings, numpy as np
warnings.simplefilter("ignore")
from apportion import envs
def step():
    worlds = envs.VectorWorld(4, "dl2")
    worlds.reset(seed=0)
    worlds.step(worlds.action_masks().argmax(axis=1))
step()
child = os.fork()
if child == 0:
    step()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert said.stdout.strip() == "0"


def test_a_closed_world_is_not_played_on() -> None:
    env = envs.World("gangs", jobs=3)
    many = envs.VectorWorld(2, "gangs", jobs=3)
    for world, action in ((env, 0), (many, np.zeros(2, dtype=np.int64))):
        world.reset(seed=0)
        world.close()
        world.close()
        for ask in (world.reset, world.action_masks, lambda world=world, action=action: world.step(action)):
            with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="after a call to `close"):
                ask()
    pytest.importorskip("pettingzoo")
    turns = envs.dual_agent(jobs=3)
    turns.reset(seed=0)
    turns.close()
    for ask in (turns.reset, lambda: turns.step(0), turns.last, turns.state, lambda: turns.observe("order_0")):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            ask()


def test_a_masked_action_is_refused_with_what_to_do() -> None:
    for name in SHORT:
        env = gymnasium.make(name, **SHORT[name]).unwrapped
        while (mask := env.reset()[1]["action_mask"]).all():
            pass
        with pytest.raises(ap.InputError, match=f"action {mask.argmin()} is masked") as raised:
            env.step(int(mask.argmin()))
        assert raised.value.help is not None and "apportion.envs.LegalActions(env) takes" in raised.value.help
        envs.LegalActions(env).step(mask.argmin())
    many = envs.VectorWorld(2, "apportion/Rounds-v0", jobs=4)
    masks = many.reset(seed=0)[1]["action_mask"]
    with pytest.raises(ap.InputError, match="environment 0: action .* is masked") as raised:
        many.step(masks.argmin(axis=1))
    assert raised.value.help is not None and "LegalActions" not in raised.value.help


def test_worlds_are_made_by_ids_and_by_names_and_by_nothing_else() -> None:
    pytest.importorskip("pettingzoo")
    assert envs.World("apportion/Rounds-v0", jobs=4).action_space == envs.World("rounds", play="cells", jobs=4).action_space
    assert envs.VectorWorld(2, "apportion/Gangs-v0").num_envs == 2
    assert envs.turns("apportion/Rounds-v0").possible_agents == ["agent_0"] and len(envs.turns("rounds").possible_agents) == 2
    makers: list[Any] = [envs.turns, envs.World, lambda world: envs.VectorWorld(2, world), lambda world: envs.sb3(world, 2)]
    for make in makers:
        for wrong, said in ((5, "world is 5, expected one of"), (None, "world is None"), ("apportion/Round-v0", "unknown world")):
            with pytest.raises(ap.InputError, match=said):
                make(wrong)


@pytest.mark.parametrize(("jobs", "said"), [("x", 'the text "x"'), (-1, "`-1`"), (1.5, "`1.5`"), ([2], "a list"), (None, "empty")])
def test_jobs_of_the_world_of_two_agents_are_told_from_what_is_none(jobs: Any, said: str) -> None:
    pytest.importorskip("pettingzoo")
    with pytest.raises(ap.InputError, match=f"`jobs` is {said}, expected a whole number above 0"):
        envs.dual_agent(jobs=jobs)
    with pytest.raises(ap.InputError, match="`jobs.from` is the text"):
        envs.dual_agent(jobs={"from": "x", "to": 5})
    assert envs.dual_agent(jobs={"from": 2, "to": 5}).possible_agents == ["order_0", "placement_0"]
