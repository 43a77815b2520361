"""Agents trained with stable-baselines3 and torch, and what becomes of them: skipped where these are not installed."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap
from test_decide import command

torch = pytest.importorskip("torch", reason="torch is not installed")
stable_baselines3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
sb3_contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")

import gymnasium  # noqa: E402

from apportion import envs  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "train.py"
WINDOW: dict[str, Any] = {"actor": "window", "slots": 16}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def dense(*sizes: int, between: Any = torch.nn.Tanh) -> Any:
    """A network of random weights."""
    torch.manual_seed(sum(sizes))
    layers: list[Any] = []
    for n_in, n_out in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(n_in, n_out), between()]
    return torch.nn.Sequential(*layers[:-1])


def played(env: Any, network: Any, seed: int) -> float:
    """What an episode returns where the most probable action is taken."""
    seen, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        with torch.no_grad():
            logits = network(torch.from_numpy(seen)[None])[0].numpy()
        action = np.where(info["action_mask"] == 1, logits, -np.inf).argmax()
        seen, reward, ended, cut, info = env.step(action)
        assert not cut
        total += reward
    return total


def test_stable_baselines_finds_nothing_wrong() -> None:
    from stable_baselines3.common.env_checker import check_env

    for name in envs.IDS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(envs.LegalActions(gymnasium.make(name).unwrapped))


def test_copies_are_those_of_gymnasium() -> None:
    many = gymnasium.make_vec("apportion/Gangs-v0", num_envs=3, jobs=8, step_limit=40)
    worlds = envs.sb3("apportion/Gangs-v0", 3, seed=5, jobs=8, step_limit=40)
    expected, infos = many.reset(seed=5)
    assert (worlds.reset() == expected).all()
    random, n_cut, n_ended = np.random.default_rng(0), 0, 0
    for _ in range(200):
        masks = np.stack(worlds.env_method("action_masks"))
        assert (masks == infos["action_mask"]).all()
        actions = (random.random(masks.shape) * masks).argmax(axis=1)
        seen, rewards, done, told = worlds.step(actions)
        expected, expected_rewards, ended, cut, infos = many.step(actions)
        assert (seen == expected).all() and (rewards == expected_rewards.astype(np.float32)).all() and (done == (ended | cut)).all()
        for copy in range(3):
            assert told[copy]["TimeLimit.truncated"] == cut[copy]
            assert ("terminal_observation" in told[copy]) == done[copy]
            if done[copy]:
                assert (told[copy]["terminal_observation"] == infos["final_obs"][copy]).all()
        n_cut, n_ended = n_cut + int(cut.sum()), n_ended + int(ended.sum())
    assert n_cut > 0 and n_ended > 0
    assert worlds.reset().shape == expected.shape
    assert worlds.env_is_wrapped(gymnasium.Wrapper) == [False] * 3 and len(worlds.get_attr("spec", indices=[1])) == 1
    assert worlds.get_attr("action_masks", indices=1)[0]().any()
    for refused in (lambda: worlds.get_attr("x"), lambda: worlds.set_attr("x", 1), lambda: worlds.env_method("x")):
        with pytest.raises(AttributeError):
            refused()


def test_a_training_learns_and_can_be_made_again() -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.vec_env import VecMonitor

    def trained() -> tuple[Any, Any]:
        worlds = VecMonitor(envs.sb3("apportion/DL2-v0", 8, jobs=8, epochs=400))
        assert is_masking_supported(worlds) and get_action_masks(worlds).shape == (8, 61)
        model = sb3_contrib.MaskablePPO("MlpPolicy", worlds, n_steps=64, batch_size=128, seed=3, device="cpu")
        return model.learn(2048), worlds

    (one, worlds), (other, _) = trained(), trained()
    assert one.num_timesteps == 2048 and len(one.ep_info_buffer) > 0
    mine, theirs = one.policy.state_dict(), other.policy.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    action, _ = one.predict(worlds.reset(), action_masks=get_action_masks(worlds))
    assert get_action_masks(worlds)[np.arange(8), action].all()


def test_learners_without_masks_are_given_legal_actions() -> None:
    env = envs.LegalActions(gymnasium.make("apportion/Rounds-v0", jobs=4))
    stable_baselines3.PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu").learn(128)


@pytest.mark.parametrize("between", [torch.nn.Tanh, torch.nn.ReLU])
def test_a_policy_does_in_the_simulator_what_its_network_does_in_the_world(tmp_path: Path, between: Any) -> None:
    window, cells = dense(144, 32, 24, 49, between=between), dense(41, 24, 12, between=between)
    alone = gymnasium.make("apportion/Gangs-v0", rates=[0.45], workers=4, jobs=30, **WINDOW)
    inside = gymnasium.make("apportion/Rounds-v0", rates=[0.4], workers=8, per_server=2, jobs=15)
    servers = {"servers": {"v100": 2, "p100": 2, "k80": 2}, "multi_worker": True}
    runs: list[tuple[str, Any, Any, str, dict[str, Any]]] = [
        ("window", window, alone, "v100=4,p100=4,k80=4", {"rate": 0.45, "jobs": 30}),
        ("cells", cells, inside, "v100=8,p100=8,k80=8", {"rate": 0.4, "jobs": 15, **servers}),
    ]
    for actor, network, env, cluster, run in runs:
        mine = envs.export_policy(network, tmp_path / f"{actor}.safetensors", actor=actor)
        assert mine.checked_by == ("numpy", "apportion") and mine.policy == tmp_path / f"{actor}.yaml"
        for seed in (0, 5):
            hours = ap.simulate(mine.policy, cluster, seed=seed, **run).summary["average_jct_s"]
            assert hours is not None and played(env, network, seed) == pytest.approx(-hours / 3600, rel=1e-6)


#: Which of DL2's job types Gavel's are like, by their models.
LIKE = {
    "ResNet-18": "resnext-110",
    "ResNet-50": "resnet-50",
    "CycleGAN": "vgg-16",
    "A3C": "cnn-text-classification",
    "Recommendation": "dssm",
    "LM": "wlm",
    "Transformer": "seq2seq",
}


def resizable(n: int) -> ap.traces.Trace:
    """Jobs of two types that may have one, two or four workers, one every ten minutes."""
    types = ["LM (batch size 10)", "Transformer (batch size 256)"]
    steps = np.random.default_rng(0).integers(20_000, 400_000, n)
    return ap.traces.table(
        job_type=[types[job % 2] for job in range(n)],
        total_steps=steps.tolist(),
        arrival=[600 * job for job in range(n)],
        sizes=["1 2 4"] * n,
    )


def test_networks_of_worlds_of_resizable_jobs_are_rows_of_a_sweep(tmp_path: Path) -> None:
    def trained(name: str, **world: Any) -> Any:
        worlds = envs.sb3(name, 2, seed=0, **world)
        return sb3_contrib.MaskablePPO("MlpPolicy", worlds, n_steps=32, batch_size=64, seed=0, device="cpu").learn(64)

    mine = [
        envs.export_policy(trained("apportion/DL2-v0", jobs=8), tmp_path / "dl2.safetensors", actor="dl2", job_types=LIKE),
        envs.export_policy(trained("apportion/DL2-v0", observation="released"), tmp_path / "old.safetensors", actor="dl2", job_types=LIKE),
        envs.export_policy(trained("apportion/Elastic-v0", workers=4, jobs=8), tmp_path / "columns.safetensors", actor="elastic"),
        envs.export_policy(trained("apportion/Elastic-v0", sight="pairs", window=6), tmp_path / "pairs.safetensors", actor="elastic"),
        envs.export_policy(dense(13, 8, 1), tmp_path / "scorer.safetensors", actor="elastic"),
    ]
    assert [one.checked_by for one in mine] == [("numpy", "apportion")] * len(mine)
    policies = [*(one.policy for one in mine), "elastic", "max_min_fairness_perf"]
    table = ap.sweep(policies=policies, trace=resizable(12), cluster="v100=4,p100=4,k80=4", out=tmp_path / "beside")
    assert table.to_pandas()["status"].tolist() == ["done"] * len(policies)
    hours = dict(zip(table.means("average_jct_s")["policy"], table.means("average_jct_s")["mean"]))
    assert len({hours[str(one.policy)] for one in mine}) == len(mine), "each decides otherwise"
    run = ap.simulate(mine[0].policy, "v100=4,p100=4,k80=4", trace=resizable(12))
    assert {1, 4} <= set(run.leases["workers"].tolist()), "jobs grow"
    # The command plays the same.
    said = [command(), "simulate", "--policy", str(mine[0].policy), "--trace", "t.csv", "--cluster", "v100=4,p100=4,k80=4", "--format", "json"]
    resizable(12).write(tmp_path / "t.csv")
    told = json.loads(subprocess.run(said, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert told["average_jct_s"] == run.summary["average_jct_s"] == hours[str(mine[0].policy)]


def test_a_network_of_another_world_than_the_actors_is_refused(tmp_path: Path) -> None:
    def model(name: str, **world: Any) -> Any:
        return sb3_contrib.MaskablePPO("MlpPolicy", envs.sb3(name, 1, seed=0, **world), n_steps=32, seed=0, device="cpu")

    path, dl2 = tmp_path / "x.safetensors", model("apportion/DL2-v0")
    with pytest.raises(ap.InputError, match="trained in the world dl2, whose networks are not of the actor window") as raised:
        envs.export_policy(dl2, path, actor="window")
    assert raised.value.help == "actor='dl2'; export_weights writes it for its own world"
    with pytest.raises(ap.InputError, match="the world deepshare") as raised:
        envs.export_policy(model("apportion/DeepShare-v0"), path, actor="cells")
    assert raised.value.help == "export_weights writes it for its own world"
    alone = sb3_contrib.MaskablePPO("MlpPolicy", gymnasium.make("apportion/Gangs-v0"), n_steps=32, seed=0, device="cpu")
    with pytest.raises(ap.InputError, match="the world gangs"):
        envs.export_policy(alone, path, actor="elastic")
    with pytest.raises(ap.InputError, match="this actor needs `job_types`"):
        envs.export_policy(dl2, path, actor="dl2")
    with pytest.raises(ap.InputError, match="`resnet` is no job type of DL2's"):
        envs.export_policy(dl2, path, actor="dl2", job_types={"ResNet-50": "resnet"})
    with pytest.raises(ap.InputError, match="rounds know no epochs"):
        envs.export_policy(model("apportion/DL2-v0", observation="paper"), path, actor="dl2", job_types=LIKE)
    with pytest.raises(ap.InputError, match="`sight: pairs` or `window`"):
        envs.export_policy(model("apportion/Elastic-v0", sight="kept_pairs", window=4), path, actor="elastic")
    with pytest.raises(ap.InputError, match="makes 12 numbers of 55, as in no world of the actor elastic"):
        envs.export_policy(dense(55, 12), path, actor="elastic")
    with pytest.raises(ap.InputError, match="expected 61 of 260 for the actor dl2"):
        envs.export_policy(dense(261, 61), path, actor="dl2", job_types=LIKE)
    assert list(tmp_path.iterdir()) == []
    # Job types of throughputs of one's own are not those that apportion tries it on.
    mine = envs.export_policy(dl2, path, actor="dl2", job_types={"bert": "seq2seq"})
    assert mine.checked_by == ("numpy",)
    with pytest.raises(ap.ApportionError, match="which of DL2's job types `LM .batch size 10.` is like: add it"):
        ap.simulate(mine.policy, "v100=4,p100=4,k80=4", trace=resizable(4))


def test_what_is_written_is_the_network(tmp_path: Path) -> None:
    scorer = dense(13, 8, 1)
    for actor in ("pairs", "values"):
        mine = envs.export_policy(scorer, tmp_path / f"{actor}.safetensors", actor=actor, name=f"my {actor}: 1", asked="rounds")
        assert mine.checked_by == ("numpy", "apportion")
        assert ap.Policy(mine.policy).name == f"my {actor}: 1" and "asked: rounds\n" in mine.policy.read_text()
        jobs = {"steps_remaining": [1e5, 1e5]}
        assert ap.allocate([[4.0, 1.0], [4.0, 2.0]], {"v100": 1, "k80": 1}, str(mine.policy), **jobs).shares.sum() > 0
    assert envs.export_weights(dense(260, 8, 61), tmp_path / "dl2.safetensors", "dl2", jobs=20) == ("numpy",)


def test_the_command_makes_the_same_of_a_saved_model(tmp_path: Path) -> None:
    model = sb3_contrib.MaskablePPO("MlpPolicy", envs.sb3("apportion/Gangs-v0", 2, **WINDOW), seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    envs.export_policy(model, tmp_path / "mine.safetensors", actor="window")
    imported = tmp_path / "imported.safetensors"
    subprocess.run([command(), "policies", "import-sb3", str(tmp_path / "model.zip"), "--out", str(imported)], check=True, capture_output=True)

    def read(path: Path) -> tuple[dict[str, Any], bytes]:
        content = path.read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        return json.loads(json.loads(content[8:end])["__metadata__"]["apportion"]), content[end:]

    (mine, numbers), (theirs, expected) = read(tmp_path / "mine.safetensors"), read(imported)
    for field in ("format", "contents", "network", "tensors_digest", "crate_version", "n_decisions"):
        assert mine[field] == theirs[field], field
    assert sorted(mine) == sorted(theirs) and numbers == expected


def test_a_network_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"

    def refused(message: str, module: Any, where: Any = path, **fields: Any) -> None:
        with pytest.raises(ap.InputError, match=message):
            envs.export_policy(module, where, **fields)
        assert not path.exists()

    refused("unknown actor 'pair'", dense(13, 1), actor="pair")
    refused("ends in .onnx or .safetensors", dense(13, 1), tmp_path / "x.pt", actor="pairs")
    refused("makes 2 numbers of 13, expected 1 of 13 for the actor pairs", dense(13, 2), actor="pairs")
    refused("makes 49 numbers of 145, expected 49 of 144 for the actor window", dense(145, 49), actor="window")
    refused("1 modules, expected 2 for the actor agents", dense(13, 1), actor="agents")
    refused("takes linear layers with tanh between them", dense(13, 4, 1, between=torch.nn.ReLU), actor="pairs")
    refused("ELU is not linear layers", dense(41, 4, 12, between=torch.nn.ELU), actor="cells")
    refused("no linear layer", torch.nn.Tanh(), actor="pairs")
    endless = dense(13, 1)
    torch.nn.init.constant_(endless[0].bias, float("inf"))
    refused("not finite", endless, actor="pairs")
    with pytest.raises(TypeError, match="not int"):
        envs.export_policy(3, path, actor="pairs")
    with pytest.raises(ap.InputError, match="makes 60 numbers of 260, expected 61 of 260 for the world dl2"):
        envs.export_weights(dense(260, 60), path, "dl2")


def test_a_field_that_policies_do_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ap.InputError, match="x.yaml:7:1: unknown key `chosen`"):
        envs.export_policy(dense(13, 1), tmp_path / "x.safetensors", actor="pairs", chosen="sampled")
    for name in ("a b\nc: d", ""):
        with pytest.raises(ap.InputError, match="name is .*, expected a line of text"):
            envs.export_policy(dense(13, 1), tmp_path / "x.safetensors", actor="pairs", name=name)
    assert list(tmp_path.iterdir()) == [], "nothing of it is left"
    written = envs.export_policy(dense(13, 1), tmp_path / "x.safetensors", actor="pairs")
    before = written.weights.read_bytes()
    with pytest.raises(ap.InputError) as raised:
        envs.export_policy(dense(13, 8, 1), tmp_path / "x.safetensors", actor="pairs", chosen="sampled")
    assert written.weights.read_bytes() == before and raised.value.source == str(written.policy)


def test_onnx_files_are_held_against_the_module(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    two = [dense(972, 8, 49, between=torch.nn.ELU), dense(1299, 8, 25, between=torch.nn.ELU)]
    for actor, module in [("pairs", dense(13, 8, 1, between=torch.nn.GELU)), ("window", dense(9 * 4, 8, 13)), ("agents", two)]:
        mine = envs.export_policy(module, tmp_path / f"{actor}.onnx", actor=actor)
        # By apportion, too, in builds that read such files.
        assert mine.checked_by[0] == "onnxruntime" and mine.checked_by[1:] in ((), ("apportion",))
        session = onnxruntime.InferenceSession(mine.weights, providers=["CPUExecutionProvider"])
        ports = [(port.name, port.shape) for port in session.get_inputs() + session.get_outputs()]
        assert ports[0][0] == "observation" and all(len(shape) == 2 and not isinstance(shape[1], str) for _, shape in ports)
        assert sorted(path.name for path in tmp_path.glob(f"{actor}*")) == [f"{actor}.onnx", f"{actor}.yaml"]


def test_the_whole_loop(tmp_path: Path) -> None:
    """The example: an agent is trained, becomes a policy, and is swept beside linear programs."""
    code = f"import sys; sys.path.insert(0, {str(EXAMPLE.parent)!r}); import train; train.main('mine', 8192)"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "mine.yaml, checked by numpy and apportion\n"
    means = ap.Study(tmp_path / "mine").means("average_jct_s")
    hours = {(policy, rate): mean / 3600 for policy, rate, mean in zip(means["policy"], means["rate"], means["mean"])}
    assert len(hours) == 15 and not np.isnan(list(hours.values())).any()
    for rate in (0.3, 0.45, 0.6):
        # So much is learned from 8,192 decisions: more than chance knows.
        assert hours["mine.yaml", rate] < hours["random_gangs", rate]
