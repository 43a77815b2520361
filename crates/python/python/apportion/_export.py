"""Networks trained elsewhere, as policies."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import os
import re
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._columns import short, text_of
from ._errors import ApportionError, InputError
from ._given import world_text
from ._runs import simulate

__all__ = ["Exported", "export_policy", "export_weights"]

_Floats = NDArray[np.float32]
_Network = Callable[[_Floats], _Floats]

#: What the networks of an actor see and give, where this is always the same.
_SIZES = {"pairs": (13, 1), "values": (13, 1), "cells": (41, 12)}
_ACTORS = ("window", *_SIZES, "agents", "elastic", "dl2")
#: The actors that networks trained in a world are of.
_OF_WORLD = {
    "gangs": ("window", "pairs", "values"),
    "rounds": ("cells", "agents"),
    "elastic": ("elastic",),
    "dl2": ("dl2",),
}

#: What YAML does not read as text.
_NOT_TEXT = ("true", "false", "null", "yes", "no", "on", "off")

#: Observations on which networks are compared, and how far they may be apart, as a part of the largest number.
_N_COMPARED = 64
_TOLERANCE = 1e-4


class Exported(NamedTuple):
    """What `export_policy` has written."""

    #: The policy's file, used by its path wherever the name of a policy is.
    policy: Path
    #: The network's file, which the policy names.
    weights: Path
    #: What has been run on the files: `numpy` or `onnxruntime`, whose numbers are those of the module, and `apportion`, which has read
    #: both files and simulated a few jobs.
    checked_by: tuple[str, ...]


class _Layer(NamedTuple):
    """A layer of a dense network: [outputs × inputs], and [outputs]."""

    weight: _Floats
    bias: _Floats


def export_policy(
    module: Any,
    path: str | os.PathLike[str],
    *,
    actor: str,
    name: str | None = None,
    summary: str | None = None,
    **fields: Any,
) -> Exported:
    """Writes a network as a policy of `kind: learned`: its weights at `path`, and beside them the policy's file, ending in `.yaml`.

    `module` is a torch module from what an actor sees to logits, [batch × numbers seen] → [batch × logits], or a model of
    stable-baselines3 or sb3-contrib with an `MlpPolicy`; for the actor `agents`, two modules, the ordering agent's first. What actors
    see is said in policies/README.md. Agents trained in `apportion/Gangs-v0` with `actor="window"` are of the actor `window`, those of
    `apportion/Rounds-v0` of `cells`, those of `apportion/Elastic-v0` of `elastic`, and those of `apportion/DL2-v0` of `dl2`, which asks
    for `job_types`: which of DL2's job types each job type of the workload is like. `fields` are further ones of the policy's file:
    `asked`, `choice`, `colocation`, `job_types`.

    A path that ends in `.safetensors` takes dense layers with tanh or, but for `pairs` and `values`, with ReLU between them; every build
    of apportion reads it. One that ends in `.onnx` takes any module; builds with the feature `onnx` read it.

    The file is held against the module on random observations, and apportion plays with it, as far as it can be read here: see
    `Exported.checked_by`.
    """
    if actor not in _ACTORS:
        raise InputError(f"unknown actor {actor!r}, expected one of {', '.join(_ACTORS)}")
    if name is not None and not (text_of("name", name).isprintable() and name.strip()):
        raise InputError(f"name is {short(name)}, expected a line of text")
    spec = _trained_in(module, actor)
    modules = _modules(module)
    _check_actor(actor, [_sizes(one) for one in modules])
    weights = Path(path)
    document = {
        "format": "apportion/policy-v1",
        "name": weights.stem if name is None else name,
        "summary": summary or f"a network trained elsewhere, for the actor {actor}",
        "kind": "learned",
        "actor": actor,
        "weights": weights.name,
        **fields,
    }
    policy = weights.with_suffix(".yaml")
    with _whole_or_not(weights, policy) as (new_weights, new_policy):
        checked = _write(modules, new_weights, actor, {"exported_for": actor, **spec}, module)
        new_policy.write_text("".join(f"{field}: {_scalar(value)}\n" for field, value in document.items()), encoding="utf-8")
        checked += _played(new_policy)
    return Exported(policy, weights, checked)


def _trained_in(module: Any, actor: str) -> dict[str, Any]:
    """The world of a model of stable-baselines3, as files of weights say it where rounds are seen by its options; refuses another actor's."""
    env: Any = getattr(module, "env", None)
    while hasattr(env, "venv"):
        env = env.venv
    first = (getattr(env, "envs", None) or [env])[0]
    made_of = getattr(getattr(first, "unwrapped", first), "made_of", None)
    if made_of is None:
        return {}
    system, options = made_of
    if actor not in (actors := _OF_WORLD.get(system, ())):
        message = f"the network was trained in the world {system}, whose networks are not of the actor {actor}"
        elsewhere = "export_weights writes it for its own world"
        raise InputError(message, help=f"actor={' or '.join(map(repr, actors))}; {elsewhere}" if actors else elsewhere)
    return {"system": system, "world": json.loads(options)} if system in ("elastic", "dl2") else {}


@contextmanager
def _whole_or_not(*paths: Path) -> Iterator[list[Path]]:
    """Files to be written in place of these in one folder, which they take the place of unless something is wrong with one."""
    folder = paths[0].parent
    if not folder.is_dir():
        raise InputError(f"{os.fspath(folder)} is no folder, and is to hold {paths[0].name}")
    with TemporaryDirectory(prefix=".exported-", dir=folder) as beside:
        new = [Path(beside, path.name) for path in paths]
        try:
            yield new
        except InputError as error:
            # (what was written is gone: places are those that were asked for)
            made, asked = os.fspath(Path(beside, "_"))[:-1], os.fspath(Path(folder, "_"))[:-1]
            error.args = tuple(said.replace(made, asked) for said in error.args)
            error.source = error.source and error.source.replace(made, asked)
            raise
        for one, path in zip(new, paths):
            os.replace(one, path)


def _scalar(value: Any) -> str:
    """A value as YAML has it: plain if it can be read as nothing else, else quoted as JSON quotes it."""
    is_plain = isinstance(value, str) and re.fullmatch(r"[a-z][a-z_/-]*[a-z](-v1|\.[a-z]+)?", value) and value not in _NOT_TEXT
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


def export_weights(module: Any, path: str | os.PathLike[str], system: str, **world: Any) -> tuple[str, ...]:
    """Writes a network trained in one of the worlds for `apportion world SYSTEM --weights PATH`, which plays it there.

    For modules, paths and checks see `export_policy`; the module's numbers are those of the world's spaces. Of files that end in
    `.safetensors` the options of the world are kept, and the network is played with them. Gives what the file was checked by.
    """
    modules = _modules(module)
    spaces = _native.Environment(system, world_text(world)).spaces()
    _check_sizes(f"world {system}", [_sizes(one) for one in modules], [(len(low), n_actions) for low, _, n_actions in spaces])
    spec = {"system": system, "world": json.loads(world_text(world))}
    with _whole_or_not(Path(path)) as (weights,):
        return _write(modules, weights, "window", spec, module)


def _modules(given: Any) -> list[Any]:
    """The networks of all agents, for deciding."""
    return [_module(one) for one in (given if isinstance(given, (list, tuple)) else [given])]


def _write(modules: list[Any], weights: Path, actor: str, spec: dict[str, Any], given: Any) -> tuple[str, ...]:
    """Writes networks as a file of weights, and says what it was checked by."""
    sizes = [_sizes(one) for one in modules]
    if weights.suffix == ".onnx":
        _write_onnx(modules, sizes, weights)
        return _check_onnx(modules, sizes, weights)
    if weights.suffix != ".safetensors":
        raise InputError(f"path is {os.fspath(weights)!r}, expected one that ends in .onnx or .safetensors")
    layers, activation = _dense(modules, actor)
    weights.write_bytes(_safetensors(layers, activation, actor, spec, n_decisions=int(getattr(given, "num_timesteps", 0))))
    return _compare(modules[0], sizes[0], lambda seen: _forward(layers, activation, seen), "numpy", weights)


def _module(given: Any) -> Any:
    """A copy of a module, for deciding; of a model of stable-baselines3, of its actor."""
    torch = _torch()
    given = getattr(given, "policy", given)
    if hasattr(given, "action_net"):
        extractor = getattr(given, "pi_features_extractor", None) or given.features_extractor
        hidden = getattr(given.mlp_extractor, "policy_net", None)
        if hidden is None:
            raise InputError(f"{type(given).__name__} is no MlpPolicy", help="give a torch module from what is seen to logits")
        given = torch.nn.Sequential(extractor, hidden, given.action_net)
    if not isinstance(given, torch.nn.Module):
        raise TypeError(f"a network is a torch module or a model of stable-baselines3, not {type(given).__name__}")
    return copy.deepcopy(given).to(device="cpu", dtype=torch.float32).eval()


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError("export_policy needs torch: pip install torch") from error
    return torch


def _run(module: Any, seen: _Floats) -> _Floats:
    torch = _torch()
    with torch.no_grad():
        logits: _Floats = module(torch.from_numpy(seen)).numpy()
    return logits


def _sizes(module: Any) -> tuple[int, int]:
    """How many numbers a module sees, and gives."""
    torch = _torch()
    first = next((layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)), None)
    if first is None:
        raise InputError("the module has no linear layer to tell how much it sees")
    n_seen = int(first.in_features)
    shape = _run(module, np.zeros((1, n_seen), dtype=np.float32)).shape
    if len(shape) != 2 or shape[0] != 1:
        raise InputError(f"of [1, {n_seen}] the module makes {list(shape)}, expected [1, logits]")
    return n_seen, int(shape[1])


def _check_actor(actor: str, sizes: list[tuple[int, int]]) -> None:
    """Refuses networks that see, or give, something else than the actor's."""
    if len(sizes) == (2 if actor == "agents" else 1):
        of_actor = {"window": _window, "elastic": _elastic, "dl2": _dl2}
        expected = [_SIZES[actor]] if actor in _SIZES else of_actor[actor](sizes[0]) if actor in of_actor else _agents(sizes)
    else:
        expected = [(0, 0)] * (2 if actor == "agents" else 1)
    _check_sizes(f"actor {actor}", sizes, expected)


def _check_sizes(whose: str, sizes: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    if len(sizes) != len(expected):
        raise InputError(f"{len(sizes)} modules, expected {len(expected)} for the {whose}")
    for (n_seen, n_logits), (must_see, must_give) in zip(sizes, expected):
        if (n_seen, n_logits) != (must_see, must_give):
            raise InputError(f"the module makes {n_logits} numbers of {n_seen}, expected {must_give} of {must_see} for the {whose}")


def _window(sizes: tuple[int, int]) -> list[tuple[int, int]]:
    slots = max(sizes[0] // 9, 1)
    return [(9 * slots, 3 * slots + 1)]


def _elastic(sizes: tuple[int, int]) -> list[tuple[int, int]]:
    """A scorer of climbs, or a network over all that the elastic world shows beside so many actions, of some number of worker types."""
    n_climbs = sizes[1] - 1
    of_types = [(n_types, n_climbs // n_types) for n_types in range(1, n_climbs + 1) if n_climbs % n_types == 0]
    shown = [(4 + 3 * n_types) * n_jobs + n_types for n_types, n_jobs in of_types]
    if sizes != (13, 1) and sizes[0] not in shown and (n_climbs < 1 or sizes[0] != 13 * sizes[1]):
        raise InputError(f"the module makes {sizes[1]} numbers of {sizes[0]}, as in no world of the actor elastic")
    return [sizes]


def _dl2(sizes: tuple[int, int]) -> list[tuple[int, int]]:
    """What DL2's world shows of each job of a window: one of eight types and five numbers, or, as it was released, six numbers."""
    jobs = max((sizes[1] - 1) // 3, 1)
    return [(6 * jobs if sizes[0] == 6 * jobs else 13 * jobs, 3 * jobs + 1)]


def _agents(sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    world = {"play": "agents", "seen_jobs": sizes[0][1] - 1, "seen_servers": sizes[1][1] - 1}
    spaces = _native.Environment("rounds", json.dumps(world)).spaces()
    return [(len(low), n_actions) for low, _, n_actions in spaces]


def _names(n_agents: int) -> list[tuple[str, str]]:
    ends = [""] + [f".{agent}" for agent in range(1, n_agents)]
    return [(f"observation{end}", f"logits{end}") for end in ends]


def _write_onnx(modules: list[Any], sizes: Sequence[tuple[int, int]], path: Path) -> None:
    torch = _torch()

    class All(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]  # (torch need not be installed)
        """An input and an output for each agent."""

        def __init__(self) -> None:
            super().__init__()
            self.networks = torch.nn.ModuleList(modules)

        def forward(self, *seen: Any) -> Any:
            return tuple(network(one) for network, one in zip(self.networks, seen))

    names = _names(len(modules))
    inputs, outputs = [one for one, _ in names], [other for _, other in names]
    options: dict[str, Any] = {"input_names": inputs, "output_names": outputs}
    if importlib.util.find_spec("onnxscript") is None:
        # The exporter that needs nothing else.
        options |= {"dynamo": False, "dynamic_axes": {name: {0: "batch"} for name in inputs + outputs}}
    else:
        options |= {"dynamo": True, "external_data": False}
    network = modules[0] if len(modules) == 1 else All()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, tuple(torch.zeros(1, n_seen) for n_seen, _ in sizes), os.fspath(path), verbose=False, **options)


def _check_onnx(modules: list[Any], sizes: Sequence[tuple[int, int]], path: Path) -> tuple[str, ...]:
    """Holds an ONNX file against the modules, if there is something to run it."""
    try:
        import onnxruntime
    except ImportError:
        return ()
    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    zeros = {names[0]: np.zeros((1, n_seen), dtype=np.float32) for names, (n_seen, _) in zip(_names(len(modules)), sizes)}
    for (sees, gives), module, size in zip(_names(len(modules)), modules, sizes):

        def run(seen: _Floats, sees: str = sees, gives: str = gives) -> _Floats:
            rows = [session.run([gives], {**zeros, sees: row[None]})[0] for row in seen]
            return np.concatenate(rows)

        _compare(module, size, run, "onnxruntime", path)
    return ("onnxruntime",)


def _compare(module: Any, sizes: tuple[int, int], other: _Network, by: str, path: Path) -> tuple[str, ...]:
    """Holds the network in a file against the module that it was made of."""
    seen = np.random.default_rng(0).uniform(-2, 2, (_N_COMPARED, sizes[0])).astype(np.float32)
    expected, found = _run(module, seen), other(seen)
    apart = float(np.abs(found - expected).max())
    if not apart <= _TOLERANCE * max(float(np.abs(expected).max()), 1.0):
        raise InputError(f"by {by} the logits of {os.fspath(path)!r} are {apart:.3g} from those of the module")
    return (by,)


def _played(policy: Path) -> tuple[str, ...]:
    """Lets apportion play with a policy, if this build reads its network, and it knows the job types of the usual throughputs."""
    try:
        simulate(policy, {"v100": 4, "p100": 4, "k80": 4}, rate=1.0, jobs=3, keep=())
    except ApportionError as error:
        if "this build does not read" in str(error) or "does not say which of DL2's job types" in str(error):
            return ()
        raise
    return ("apportion",)


def _dense(modules: list[Any], actor: str) -> tuple[list[_Layer], str]:
    """The layers of a dense network, and what is between them."""
    torch = _torch()
    otherwise = "a path that ends in .onnx takes any module"
    if len(modules) > 1:
        raise InputError("dense layers of several agents have no file of this kind", help=otherwise)
    ignored = (torch.nn.Flatten, torch.nn.Identity, torch.nn.Dropout)
    layers, between, is_linear = [], set(), False
    for layer in _leaves(modules[0]):
        if isinstance(layer, torch.nn.Linear) and not is_linear:
            weight = layer.weight.detach().numpy()
            bias = np.zeros(len(weight), dtype=np.float32) if layer.bias is None else layer.bias.detach().numpy()
            layers.append(_Layer(np.ascontiguousarray(weight), bias))
            is_linear = True
        elif isinstance(layer, (torch.nn.Tanh, torch.nn.ReLU)) and is_linear:
            between.add("tanh" if isinstance(layer, torch.nn.Tanh) else "relu")
            is_linear = False
        elif not isinstance(layer, ignored):
            raise InputError(f"{type(layer).__name__} is not linear layers in turn with tanh or ReLU", help=otherwise)
    allowed = {"tanh"} if _is_scorer(actor, layers) else {"tanh", "relu"}
    if not is_linear or len(between) > 1 or not between <= allowed:
        raise InputError(f"the actor {actor} takes linear layers with {' or '.join(sorted(allowed))} between them", help=otherwise)
    return layers, next(iter(between), "tanh")


def _is_scorer(actor: str, layers: list[_Layer]) -> bool:
    """Does the network score rows, one at a time?"""
    sizes = (layers[0].weight.shape[1], layers[-1].weight.shape[0]) if layers else None
    return _SIZES.get(actor) == (13, 1) or (actor == "elastic" and sizes == (13, 1))


def _leaves(module: Any) -> Iterator[Any]:
    """The modules that a module is made of, in the order that they run in if they stand in sequences."""
    torch = _torch()
    flattens = type(module).__name__ == "FlattenExtractor"  # (what stable-baselines3 puts before an MlpPolicy)
    if isinstance(module, torch.nn.Sequential) or flattens:
        for child in module.children():
            yield from _leaves(child)
    else:
        yield module


def _forward(layers: list[_Layer], activation: str, seen: _Floats) -> _Floats:
    for number, (weight, bias) in enumerate(layers):
        if number > 0:
            seen = np.tanh(seen) if activation == "tanh" else np.maximum(seen, 0.0)
        seen = seen @ weight.T + bias
    return seen


def _safetensors(layers: list[_Layer], activation: str, actor: str, spec: dict[str, Any], *, n_decisions: int) -> bytes:
    """Dense layers as the file that `apportion train` keeps."""
    tensors = {f"actor.0.{number}.{part}": getattr(layer, part) for number, layer in enumerate(layers) for part in ("weight", "bias")}
    tensors = {name: np.ascontiguousarray(tensors[name], dtype="<f4") for name in sorted(tensors)}
    digest = hashlib.sha256()
    place, described = 0, {}
    for name, numbers in tensors.items():
        if not np.isfinite(numbers).all():
            raise InputError(f"the module's {name} holds a number that is not finite")
        said = [len(name.encode()), name, numbers.ndim, *numbers.shape]
        for one in said:
            digest.update(one.encode() if isinstance(one, str) else struct.pack("<Q", one))
        digest.update(numbers.tobytes())
        described[name] = {"dtype": "F32", "shape": list(numbers.shape), "data_offsets": [place, place + numbers.nbytes]}
        place += numbers.nbytes
    is_scorer = _is_scorer(actor, layers)
    header = {
        "format": "apportion/learned-v1",
        "contents": "weights",
        "network": {"kind": "own", "name": "gangs_scorer"} if is_scorer else {"kind": "mlp", "activation": activation, "n_agents": 1},
        "spec": spec,
        "data_digest": "",
        "seed": 0,
        "crate_version": _native.__version__,
        "n_updates": 0,
        "n_decisions": n_decisions,
        "tensors_digest": digest.hexdigest(),
    }
    text = json.dumps({"__metadata__": {"apportion": json.dumps(header)}, **described}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(numbers.tobytes() for numbers in tensors.values())
