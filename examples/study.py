"""Pictures of a small study, one of whose policies is a Python function: `python examples/study.py [FOLDER]`, `study` by default."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import apportion as ap

CLUSTER = {"v100": 3, "p100": 3, "k80": 3}
COLORS = {"v100": "#0072b2", "p100": "#e69f00", "k80": "#999999"}


def shortest_first(p: ap.Problem) -> np.ndarray:
    """Whole workers, each job's fastest first, to the jobs with the least time left on theirs."""
    free, shares = p.workers.copy(), np.zeros(p.throughputs.shape)
    for job in np.argsort(p.steps_remaining / p.throughputs.max(axis=1), kind="stable"):
        fits = (free >= p.scale_factor[job]) & (p.throughputs[job] > 0)
        if fits.any():
            kind = np.argmax(np.where(fits, p.throughputs[job], 0))
            free[kind] -= p.scale_factor[job]
            shares[job, kind] = 1.0
    return shares


shortest_first.policy_rules = {"skip_zero_priority": True}  # no worker to a job that has no share of its type


def averages(study: ap.Study) -> plt.Figure:
    """Average completion time and utilization against the arrival rate."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for ax, metric in zip(axes, ("average_jct_s", "utilization")):
        study.plot(metric, ax=ax).grid(alpha=0.3)
        ax.set_ylim(bottom=0)
    return figure


def leases(run: ap.Run, title: str) -> plt.Figure:
    """When each job ran, and on which worker type; grey from its arrival to its completion."""
    figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    ax.hlines(run.jobs["job"], run.jobs["arrival_s"] / 3600, run.jobs["completion_s"] / 3600, color="0.8", zorder=0)
    for kind, color in COLORS.items():
        start, end, job = (run.slices[name][run.slices["worker_type"] == kind] for name in ("start_s", "end_s", "job"))
        ax.barh(job, (end - start) / 3600, left=start / 3600, color=color, label=kind)
    ax.set(title=title, xlabel="time (h)", ylabel="job, in order of arrival", xlim=(0, None))
    ax.invert_yaxis()
    ax.legend(loc="lower left", frameon=False)
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "study")
    policies = ["fifo_perf", "max_min_fairness_perf", shortest_first]
    made = ap.sweep(policies=policies, rates=[0.1, 0.2, 0.3, 0.4], seeds=range(3), out=folder / "runs", cluster=CLUSTER, measure=[20, 60])
    averages(made).savefig(folder / "averages.png", dpi=150)
    run = ap.simulate(shortest_first, CLUSTER, rate=0.4, jobs=40, seed=1)
    leases(run, "shortest_first at 0.4 jobs/h").savefig(folder / "leases.png", dpi=150)
    print(made.means().to_pandas().pivot(index="rate", columns="policy", values="mean").div(3600).round(2))
