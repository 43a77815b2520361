"""Checks what a live scheduler has kept against what it has acknowledged, from files alone and by arithmetic of its own.

    check.py FOLDER

reads what `kill.py` left in a folder: `events.jsonl` (`apportion events`), `history.json` (`apportion history --format json`), `jobs.json`
(`GET /v1/jobs`), `client.json` (what was acknowledged), and `locks`, in which the jobs' processes noted what they saw.
"""

import collections
import json
import pathlib
import sys

TYPES = {"v100": 4, "k80": 4}
EPSILON_S = 1e-6


def members(piece):
    """The jobs of a slice whose start it is of: each one's number, start and place in the slice."""
    numbers = [piece["jobs"]["first"], piece["jobs"]["second"]]
    starts = piece["incarnations"]
    return [(number, starts[at], at) for at, number in enumerate(numbers) if number is not None and starts[at] is not None]


def acknowledged(client, history, jobs, arrivals):
    """Problems with what was acknowledged."""
    for number in map(int, client["submitted"]):
        if number not in history or number not in jobs:
            yield f"job {number} was acknowledged and is not there"
        if arrivals.count(number) != 1:
            yield f"job {number} arrived {arrivals.count(number)} times"
    for number in client["cancelled"]:
        if history[number]["state"] != "cancelled":
            yield f"the end of job {number} was acknowledged, and it is {history[number]['state']}"
    for server in client["drains_lost"]:
        yield f"that {server} gets no jobs was acknowledged, and forgotten"


def places(slices):
    """Problems with who had which workers when."""
    of_job, of_type = collections.defaultdict(list), collections.defaultdict(list)
    for piece in slices:
        start, end = piece["start"], piece["end"]
        if end - start <= EPSILON_S:
            continue
        for number, incarnation, _ in members(piece):
            of_job[number].append((start, end, incarnation))
        held = piece["n_workers"]
        of_type[piece["worker_type"]] += [(start + EPSILON_S / 2, held), (end - EPSILON_S / 2, -held)]
    for number, spans in of_job.items():
        spans.sort()
        for one, next_one in zip(spans, spans[1:]):
            if next_one[0] < one[1] - EPSILON_S:
                yield f"job {number} is in two slices at once: {one}, {next_one}"
            if next_one[2] < one[2]:
                yield f"job {number}: start {next_one[2]} ran after start {one[2]}"
    for worker_type, changes in of_type.items():
        in_use = most = 0
        for _, change in sorted(changes):
            in_use += change
            most = max(most, in_use)
        if most > TYPES[worker_type]:
            yield f"{most} workers of type {worker_type} in use, of {TYPES[worker_type]}"


def accounts(slices, history, client):
    """Problems with time and steps."""
    time, steps, shared = collections.Counter(), collections.Counter(), set()
    for piece in slices:
        of = members(piece)
        for number, _, at in of:
            time[number] += piece["time"]
            steps[number] += piece["steps"][at]
        if piece["jobs"]["second"] is not None:
            shared |= {piece["jobs"]["first"], piece["jobs"]["second"]}
    for number, job in history.items():
        if number not in shared and abs((job["ran_s"] or 0.0) - time[number]) > 1e-3:
            yield f"job {number} ran {job['ran_s']} s, and {time[number]} s in the log"
        total = client["submitted"].get(str(number), {}).get("steps")
        if total and job["state"] == "completed" and abs(steps[number] - total) > 1e-6:
            yield f"job {number} has {steps[number]} steps in the log, of {total}"


def rounds(events):
    """Problems with leases and completions."""
    now, leased = None, set()
    for event in events:
        if event["event"] == "lease":
            if event["now"] != now:
                now, leased = event["now"], set()
            for worker in event["workers"]:
                if (event["worker_type"], worker) in leased:
                    yield f"worker {worker} of {event['worker_type']} has two leases from {now} s"
                leased.add((event["worker_type"], worker))


def check(folder):
    """All problems of a folder, in words."""
    folder = pathlib.Path(folder)
    read = lambda name: json.loads((folder / name).read_text())
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()[1:]]
    history, client = {int(job["id"]): job for job in read("history.json")}, read("client.json")
    jobs = {job["job"]: job for job in read("jobs.json")}
    slices = [event for event in events if event["event"] == "slice"]
    arrivals = [event["id"] for event in events if event["event"] == "arrival"]
    completions = [event["id"] for event in events if event["event"] == "completion"]
    problems = [f"job {number} is {job['state']}" for number, job in jobs.items() if job["ended_s"] is None]
    if sorted(completions) != sorted(number for number, job in history.items() if job["state"] == "completed"):
        problems.append("the log completes other jobs than those that are completed")
    problems += acknowledged(client, history, jobs, arrivals)
    problems += [*places(slices), *accounts(slices, history, client), *rounds(events)]
    seen = folder / "locks" / "violations"
    return problems + (seen.read_text().splitlines() if seen.exists() else [])


if __name__ == "__main__":
    found = check(sys.argv[1])
    print(*found or ["no problem"], sep="\n")
    sys.exit(1 if found else 0)
