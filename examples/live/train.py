"""A job that needs nothing but Python: it pretends to train, a tenth of a second a step, and is stopped and resumed by apportion.

    python examples/live/train.py

Where the package is not installed, `crates/python/python/apportion/live.py` stands beside this file as `apportion_live.py`.
"""

import argparse
import json
import os
import time

try:
    from apportion.live import lease
except ImportError:
    from apportion_live import lease

parser = argparse.ArgumentParser(description="Pretends to train a model of one weight.")
parser.add_argument("--seconds", type=float, default=0.1, help="how long a step takes (default: %(default)s)")
parser.add_argument("--batches", type=int, default=20, help="how many the loader has (default: %(default)s)")
parser.add_argument("--checkpoint-every", type=float, metavar="SECONDS", help="time between checkpoints in passing (default: none)")
options = parser.parse_args()

#: The folder that all starts of the job see.
folder = os.environ.get("APPORTION_CHECKPOINTS", "checkpoints")
checkpoint = os.path.join(folder, "checkpoint.json")
model = {"weight": 0.0}


def load():
    """Brings the last checkpoint back; gives the number of steps that it holds."""
    if not os.path.exists(checkpoint):
        return None
    with open(checkpoint, encoding="utf-8") as file:
        saved = json.load(file)
    model.update(saved["model"])
    return saved["steps"]


def save(steps):
    """Writes a checkpoint, in whole or not at all; that of rank 0 is everybody's."""
    if run.rank == 0:
        os.makedirs(folder, exist_ok=True)
        with open(checkpoint + ".new", "w", encoding="utf-8") as file:
            json.dump({"steps": steps, "model": model}, file)
        os.replace(checkpoint + ".new", checkpoint)


def train(batch):
    """One step: the weight goes a part of the way to 1."""
    time.sleep(options.seconds)
    model["weight"] += 0.01 * (1 - model["weight"])


with lease(save=save, load=load, checkpoint_every=options.checkpoint_every) as run:
    for batch in run.steps(range(options.batches)):
        train(batch)

print(f"rank {run.rank}: {run.step} steps, weight {model['weight']:.6f}")
