"""Kills every part of a live scheduler by signal 9 at random instants, under load, and checks what is left by `check.py`.

    kill.py --program target/debug/apportion --seed 41 --kills 60

starts a scheduler and four agents in a folder of its own, submits, cancels and drains all the while, and kills the scheduler, agents, shims, their
guards and programs, alone and together. A part that was killed is started again after up to nine seconds. At the end all jobs
run to their ends. The same seed draws the same parts and waits; what they meet is another thing each time. Python's standard library only; `flock` and
`setsid` of util-linux.
"""

import argparse
import atexit
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import check

HERE = pathlib.Path(__file__).resolve().parent
SERVERS = {"v100-0": "v100", "v100-1": "v100", "k80-0": "k80", "k80-1": "k80"}
SERVE = (
    "serve --cluster v100=4,k80=4 --servers v100=2,k80=2 --state state --round-length 3 --grace 1.5 --slack 2 --silence 2 --start-limit 20 "
    "--back-off 0.5 --failures-max 30 --server-failures-max 60 --decision-limit 2 --log json"
)
TARGETS = "scheduler agent agent shim guard program agent+shim agent+shim agent+guard scheduler+agent all".split()


class World:
    """A scheduler and its agents, each a process, and what was killed of them."""

    def __init__(self, arguments):
        self.random = random.Random(arguments.seed)
        self.program = str(pathlib.Path(arguments.program).resolve())
        self.agent_program = str(pathlib.Path(arguments.agent_program or arguments.program).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"chaos-{arguments.seed}-", dir=arguments.folder))
        (self.folder / "locks").mkdir()
        self.port, self.policy = 17000 + arguments.seed, arguments.policy
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("APPORTION")}
        self.processes, self.due, self.counts, self.deaths = {}, [], collections.Counter(), []
        self.log = (self.folder / "chaos.log").open("w")
        atexit.register(lambda: [process.kill() for process in self.processes.values()])

    def note(self, *words):
        print(f"{time.monotonic():.2f}", *words, file=self.log, flush=True)

    def start(self, name):
        if name == "scheduler":
            words = [self.program, *SERVE.split(), "--policy", self.policy, "--listen", f"127.0.0.1:{self.port}"]
        else:
            words = [self.agent_program, *f"agent --workers 2 --state {name} --checkpoints checkpoints --name {name}".split()]
            words += ["--worker-type", SERVERS[name], "--scheduler", self.url]
        with (self.folder / f"{name}.log").open("a") as said:
            self.processes[name] = subprocess.Popen(
                words, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=self.environment, cwd=self.folder, start_new_session=True
            )
        self.note("start", name, self.processes[name].pid)

    def start_what_is_due(self):
        for at, name in list(self.due):
            if at <= time.monotonic():
                self.due.remove((at, name))
                self.start(name)
        for name, process in self.processes.items():
            if process.poll() is not None and all(name != other for _, other in self.due):
                self.deaths.append(f"{name} ended with {process.returncode} by itself")
                self.start(name)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def ask_until_answered(self, method, path, body=None, tries=200):
        for _ in range(tries):
            try:
                return self.ask(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    raise
            except OSError:
                pass
            self.counts["asked again"] += 1
            time.sleep(0.3)
        raise TimeoutError(path)

    def up(self):
        return [name for name in SERVERS if self.processes[name].poll() is None]

    def ranks(self):
        """The ranks that have processes: server, folder's name, shim, program."""
        for server in SERVERS:
            for folder in (self.folder / server / "ranks").glob("[0-9]*"):
                try:
                    owned = json.loads((folder / "shim.json").read_text())
                except (OSError, ValueError):
                    continue
                if not (folder / "end.json").exists():
                    yield server, folder.name, owned["shim"]["pid"], owned["program"]["pid"]

    def kill(self, what, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.counts[what] += 1
        self.note("kill", what, pid)

    def kill_part(self, name, away_s):
        process = self.processes[name]
        if process.poll() is None:
            self.kill("scheduler" if name == "scheduler" else "agent", process.pid)
            process.wait()
            self.due.append((time.monotonic() + away_s, name))

    def kill_one(self):
        draw = self.random.choice
        target, up, ranks = draw(TARGETS), self.up(), list(self.ranks())
        away_s, short_s = draw([0, 0.1, 0.5, 1, 2, 4, 9]), draw([0, 0.1, 0.5, 1, 2, 4])
        if target == "scheduler":
            self.kill_part("scheduler", short_s)
        elif target == "all":
            for name in [*up, "scheduler"]:
                self.kill_part(name, draw([0, 0.5, 1, 3, 6]))
        elif target in ("agent", "scheduler+agent") and up:
            if target != "agent":
                self.kill_part("scheduler", short_s)
            self.kill_part(draw(up), away_s)
        elif ranks:
            self.kill_of_rank(target, draw(ranks), away_s)

    def kill_of_rank(self, target, rank, away_s):
        server, _, shim, program = rank
        guard, is_up = parent(shim), server in self.up()
        is_guarded = guard is not None and b"\0shim\0" in read(f"/proc/{guard}/cmdline")
        if target == "program":
            self.kill("program", self.random.choice([program, *children(program)]))
        # Shim, guard and agent together, with no agent that comes back in time, is the one case that docs/live.md says is not covered.
        elif target == "guard" and is_guarded and is_up:
            self.kill("guard", guard)
        elif target == "shim" and (is_guarded or is_up):
            self.kill("shim", shim)
        elif target in ("agent+shim", "agent+guard") and is_guarded:
            of_rank = ("shim", shim) if target == "agent+shim" else ("guard", guard)
            steps = [lambda: self.kill(*of_rank), lambda: self.kill_part(server, away_s)]
            self.random.shuffle(steps)
            for step in steps:
                step()


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def parent(pid):
    lines = [line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith(b"PPid:")]
    return int(lines[0].split()[1]) if lines else None


def children(pid):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(name) == pid]


class Client:
    """Users: they submit, cancel and drain until they are stopped, and remember what was acknowledged."""

    def __init__(self, world, seed):
        self.world, self.random, self.seed = world, random.Random(seed + 1000), seed
        self.submitted, self.cancelled, self.drains_lost, self.faults = {}, [], [], []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def body(self, number):
        draw, shares = self.random.choice, self.world.policy.endswith("packed")
        kind, scale_factor = draw("plain plain group session both deaf silent".split()), draw([1, 1, 1, 2])
        arguments = [str(draw(range(1, 7)))] if kind == "silent" else ["--speed", "v100=20,k80=10"]
        arguments += ["--deaf"] if kind == "deaf" else []
        arguments += ["--saving", "0.2"] if kind != "silent" and self.random.random() < 0.3 else []
        job = {"job_type": "ResNet-18 (batch size 64)", "scale_factor": 1, "total_steps": draw(range(20, 161))}
        if not shares:
            job |= {"job_type": "own", "scale_factor": scale_factor, "throughput": {"v100": 20.0, "k80": 10.0}}
        variables = {"PATH": os.environ["PATH"], **({"SHARES": "1"} if shares else {})}
        command = ["env", f"APPORTION={self.world.program}", str(HERE / "rank.sh"), f"{self.world.folder}/locks", kind, *arguments]
        program = {"command": command, "directory": str(self.world.folder), "environment": variables}
        return {"name": f"{kind}-{number}", "key": f"key-{self.seed}-{number}", "job": job, "program": program}

    def submit(self, number):
        body = self.body(number)
        job = self.world.ask_until_answered("POST", "/v1/jobs", body)["job"]
        if self.random.random() < 0.2 and self.world.ask_until_answered("POST", "/v1/jobs", body)["job"] != job:
            self.faults.append(f"the key of job {job} has another number, too")
        is_silent = body["name"].startswith("silent")
        self.submitted[job] = {"key": body["key"], "steps": None if is_silent else body["job"]["total_steps"]}
        return job

    def cancel(self, job):
        try:
            self.world.ask("DELETE", f"/v1/jobs/{job}")
            self.cancelled.append(job)
        except OSError:
            pass

    def drain(self, server):
        try:
            self.world.ask("POST", f"/v1/servers/{server}/drain", {"reason": "chaos"})
        except OSError:
            return
        time.sleep(self.random.uniform(0, 2))
        views = [view for view in self.world.ask_until_answered("GET", "/v1/servers") if view["server"] == server]
        if views and views[0]["drained"] is None:
            self.drains_lost.append(server)
        self.world.ask_until_answered("POST", f"/v1/servers/{server}/resume", {})

    def run(self):
        number = 0
        while not self.is_over.is_set():
            try:
                job = self.submit(number)
                if self.random.random() < 0.08:
                    self.cancel(job)
                if self.random.random() < 0.08:
                    self.drain(self.random.choice(list(SERVERS)))
            except urllib.error.HTTPError as error:
                self.faults.append(f"refused: {error.read().decode()}")
            except TimeoutError as error:
                self.faults.append(f"no answer of {error}")
            number += 1
            time.sleep(self.random.uniform(0.3, 1.6))


def wait_for_ends(world, limit_s=300):
    until = time.monotonic() + limit_s
    while True:
        world.start_what_is_due()
        jobs = world.ask_until_answered("GET", "/v1/jobs")
        if all(job["ended_s"] is not None for job in jobs) or time.monotonic() > until:
            return jobs
        time.sleep(1)


def strays(world):
    """Processes of jobs that live on."""
    own = b"APPORTION_LEASE=" + str(world.folder).encode()
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and own in read(f"/proc/{pid}/environ")]


def keep(world, client, jobs):
    """Writes what `check.py` reads."""
    write = lambda name, value: (world.folder / name).write_text(json.dumps(value))
    said = lambda *words: subprocess.run(
        [world.program, *words, "--scheduler", world.url], capture_output=True, text=True, check=True, env=world.environment
    ).stdout
    (world.folder / "events.jsonl").write_text(said("events"))
    write("history.json", json.loads(said("history", "--format", "json"))["jobs"])
    write("jobs.json", jobs)
    write("client.json", {name: getattr(client, name) for name in ("submitted", "cancelled", "drains_lost")})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the command apportion")
    parser.add_argument("--agent-program", help="that of the agents, such as an older one; the same where not given")
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--policy", default="max_min_fairness_perf")
    parser.add_argument("--folder", help="where its folder is made; kept where something is wrong")
    arguments = parser.parse_args()
    world = World(arguments)
    client = Client(world, arguments.seed)
    for name in ["scheduler", *SERVERS]:
        world.start(name)
    began = time.monotonic()
    client.thread.start()
    parts = "scheduler agent shim guard program".split()
    while sum(world.counts[part] for part in parts) < arguments.kills:
        until = time.monotonic() + world.random.uniform(0.1, 2.4)
        while time.monotonic() < until:
            world.start_what_is_due()
            time.sleep(0.05)
        world.kill_one()
    client.is_over.set()
    while world.due or client.thread.is_alive():
        world.start_what_is_due()
        time.sleep(0.1)
    jobs = wait_for_ends(world)
    keep(world, client, jobs)
    problems = check.check(world.folder) + client.faults + world.deaths
    time.sleep(1)
    problems += [f"process {pid} of a job lives on" for pid in strays(world)]
    for process in world.processes.values():
        process.terminate()
    starts = (world.folder / "locks" / "starts").read_text().count("\n")
    states = collections.Counter(job["state"] for job in jobs)
    print(f"seed {arguments.seed}, {arguments.policy}: killed {dict(world.counts)}; {len(client.submitted)} jobs acknowledged, {starts} starts of ranks, "
          f"{dict(states)}; {time.monotonic() - began:.0f} s")
    print(*problems or ["no problem"], sep="\n")
    if not problems:
        shutil.rmtree(world.folder)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
