"""Trains an agent in a world, makes a policy of it, and sweeps it beside linear programs, a rule and chance.

    pip install "apportion[sb3]"
    python train.py

In about a minute it learns to halve the completion times of chance; linear programs and the rule stay ahead of it.
"""

import sys

import apportion
import torch
from apportion import envs
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecMonitor


def main(out: str = "trained", decisions: int = 60_000) -> apportion.Study:
    """Trains for so many decisions; the network, the policy and the results go into `out`."""
    torch.set_num_threads(1)  # small networks are faster so
    # Which job gets its workers of which type, one after another, from a window of 16 jobs; in the simulator.
    worlds = envs.sb3("apportion/Gangs-v0", 16, seed=0, actor="window", slots=16, workers=4, rates=[0.3, 0.45, 0.6])
    model = MaskablePPO("MlpPolicy", VecMonitor(worlds), n_steps=256, batch_size=512, gamma=0.995, seed=0, device="cpu")
    model.learn(decisions)

    mine = envs.export_policy(model, f"{out}.safetensors", actor="window")
    print(f"{mine.policy}, checked by {' and '.join(mine.checked_by)}")

    policies = [mine.policy, "max_min_fairness_perf", "max_sum_throughput_perf", "srtf", "random_gangs"]
    run = {"cluster": "v100=4,p100=4,k80=4", "jobs": 100, "reset_interval": "6min"}
    return apportion.sweep(policies=policies, rates=[0.3, 0.45, 0.6], seeds=range(1000, 1003), out=out, **run)


if __name__ == "__main__":
    table = main(*sys.argv[1:2]).means("average_jct_s")
    for policy, rate, mean in zip(table["policy"], table["rate"], table["mean"]):
        print(f"{policy:28} {rate:5} jobs/h: {mean / 3600:6.2f} h")
