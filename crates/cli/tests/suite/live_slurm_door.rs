//! A live scheduler that steers the held jobs which users submit by `sbatch` to a real Slurm. Skipped where Slurm is not
//! installed, or where its daemons may not be started.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::said_with_2;
use crate::live_slurm_world::World;
use crate::slurm_cluster::Node;

const NODES: [Node<'_>; 2] = [
    ("v100-0", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-1", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
];

const SERVE: [&str; 9] = [
    "serve",
    "--executor",
    "slurm",
    "--front-door",
    "sbatch",
    "--policy",
    "max_min_fairness_perf",
    "--state=state",
    "--round-length=5",
];

const COMMENT: &str = "--comment=apportion: throughput=v100=3 steps=100000";

/// A cluster and its scheduler. The error names what this machine lacks for a Slurm.
fn start() -> Result<World, String> {
    start_on(&NODES)
}

fn start_on(nodes: &[Node<'_>]) -> Result<World, String> {
    let mut world = World::start(nodes)?;
    world.serve(&SERVE);
    Ok(world)
}

/// Submits a held job that goes on until the file `go` exists. Answers its number in Slurm.
fn submit(world: &World, more: &[&str]) -> String {
    let folder = world.folder.path().display();
    let script = format!("--wrap=until [ -e {folder}/go ]; do sleep 0.1; done");
    let usual = ["--parsable", "--hold", "--output=/dev/null", "--mem=10", &script];
    let said = world.slurm.said("sbatch", &[&usual, more].concat()).trim().to_owned();
    assert!(said.parse::<u64>().is_ok(), "{more:?}: {said}");
    said
}

/// The scheduler's jobs, by Slurm's numbers.
fn jobs(world: &World) -> BTreeMap<String, Value> {
    let id = |job: &Value| {
        let name = job["name"].as_str().unwrap();
        name.rsplit(' ').next().unwrap().trim_end_matches(')').to_owned()
    };
    world.jobs().into_values().map(|job| (id(&job), job)).collect()
}

/// A job as Slurm shows it: its state, and why it waits.
fn shown(world: &World, id: &str) -> String {
    world.slurm.said("squeue", &["--noheader", "--states=all", "--format=%T %r", "--jobs", id])
}

fn update(world: &World, id: &str, what: &str) {
    world.slurm.said("scontrol", &["update", &format!("JobId={id}"), what]);
}

#[test]
fn held_jobs_have_their_turns_through_the_ends_of_scheduler_and_controller() {
    let mut world = match start() {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: the turns of held jobs on a real Slurm: {lacking}"),
    };
    let singles: Vec<String> = (0..3).map(|_| submit(&world, &["--gres=gpu:1", COMMENT])).collect();
    let gang = submit(&world, &["--nodes=2", "--gres=gpu:2", COMMENT]);
    let all: Vec<&String> = singles.iter().chain([&gang]).collect();
    let starts =
        |world: &World, id: &str| jobs(world).get(id).map_or(0, |job| job["starts"].as_u64().unwrap());
    // The gang needs all four workers: for each to run, others are put back, and released again.
    world.until("a second start", |world| {
        all.iter().all(|id| starts(world, id) > 0) && all.iter().any(|id| starts(world, id) > 1)
    });
    let before = all.iter().map(|id| starts(&world, id)).sum::<u64>();

    drop(world.served.take());
    world.serve(&SERVE);
    world.slurm.end_controller();
    world.slurm.start_controller();
    world.until("more turns", |world| {
        all.iter().map(|id| starts(world, id)).sum::<u64>() > before + 2 && !jobs(world).is_empty()
    });
    assert_eq!(jobs(&world).len(), all.len(), "each is one job, whoever ended");
    fs::write(world.folder.path().join("go"), "").unwrap();
    world.until("the end", |world| jobs(world).values().all(|job| !job["ended_s"].is_null()));
    for (id, job) in jobs(&world) {
        assert_eq!(job["state"], "completed", "{id}: {job}");
        assert!(shown(&world, &id).starts_with("COMPLETED"), "{}", shown(&world, &id));
    }
    let kept = world.folder.path().join("state/sbatch/jobs");
    world.until("their files to go", |_| fs::read_dir(&kept).unwrap().next().is_none());
}

#[test]
fn a_run_counts_as_long_as_slurm_says_though_the_scheduler_was_killed_meanwhile() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: the time of a run on a real Slurm: {lacking}"),
    };
    // No round ends meanwhile.
    let serve = [&SERVE[..8], &["--round-length=300"]].concat();
    world.serve(&serve);
    let id = submit(&world, &["--gres=gpu:1", COMMENT]);
    let received = |world: &World| {
        let of = |job: &Value| job["received_s"]["v100"].as_f64();
        jobs(world).get(&id).and_then(of).unwrap_or(0.0)
    };
    world.until("some time of it", |world| received(world) > 5.0);
    drop(world.served.take());
    world.serve(&serve);
    world.until("the time of before", |world| received(world) > 5.0);
    fs::write(world.folder.path().join("go"), "").unwrap();
    world.until("the end", |world| jobs(world)[&id]["state"] == "completed");
    let shown = world.slurm.said("scontrol", &["--oneliner", "show", "job", &id]);
    let time = shown.split_whitespace().find_map(|word| word.strip_prefix("RunTime=")).unwrap();
    let seconds = time.split(':').fold(0.0, |all, part| 60.0 * all + part.parse::<f64>().unwrap());
    assert!((received(&world) - seconds).abs() < 0.1, "{} s, by Slurm {shown}", received(&world));
}

#[test]
fn a_job_is_not_given_up_for_what_a_controller_says_as_it_ends() {
    let lost = "scontrol: error: slurm_msg_sendto: msg_type=5023: Unexpected missing socket error";
    // A request whose answer is in no list of such words is sent again, too.
    for says in [lost, "Unknown words"] {
        let mut world = match World::start(&NODES[..1]) {
            Ok(world) => world,
            Err(lacking) => return eprintln!("skipped: a controller that ends, of a real Slurm: {lacking}"),
        };
        let reset = "slurm_load_partitions: Connection reset by peer";
        world.serve_failing(&SERVE, &[("scontrol", " requeuehold ", says), ("sinfo", "", reset)]);
        assert!(world.has_failed("sinfo"));
        let all = [0, 1].map(|_| submit(&world, &["--gres=gpu:2", COMMENT]));
        world.until("a job to be put back, though Slurm refuses it once", |world| {
            let jobs = jobs(world);
            let turns = all.iter().map(|id| jobs.get(id).map_or(0, |job| job["starts"].as_u64().unwrap()));
            world.has_failed("scontrol") && turns.sum::<u64>() > 2
        });
        assert!(jobs(&world).values().all(|job| job["state"] != "cancelled"), "{:?}", jobs(&world));
    }
}

#[test]
fn a_refused_release_is_asked_for_again() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: a refused release on a real Slurm: {lacking}"),
    };
    let says = "slurm_suspend error: Unknown words";
    world.serve_failing(&SERVE, &[("scontrol", " release ", says)]);
    let id = submit(&world, &["--gres=gpu:2", COMMENT]);
    world.until("the job to run", |world| jobs(world).get(&id).is_some_and(|job| job["state"] == "running"));
    let job = &jobs(&world)[&id];
    assert!(world.has_failed("scontrol") && job["starts"] == 1 && job["last_end"].is_null(), "{job}");
}

#[test]
fn what_users_do_to_their_jobs_is_heeded() {
    let world = match start() {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: what users do to held jobs on a real Slurm: {lacking}"),
    };
    let once = |speed: &str| format!("--comment=apportion: throughput=v100={speed} steps=100000");
    let running = submit(&world, &["--gres=gpu:2", &once("3")]);
    let cancelled = submit(&world, &["--gres=gpu:2", &once("3")]);
    let is = |id: &str, state: &str| {
        let (id, state) = (id.to_owned(), state.to_owned());
        move |world: &World| jobs(world).get(&id).is_some_and(|job| job["state"] == state.as_str())
    };
    world.until("the first", is(&running, "running"));
    world.until("the second", is(&cancelled, "running"));
    let [released, taken_back] =
        [0, 1].map(|_| submit(&world, &["--nodes=2", "--gres=gpu:2", &once("0.001")]));
    world.until("those that wait", |world| jobs(world).len() == 4);

    world.slurm.said("scancel", &[&cancelled]);
    update(&world, &taken_back, "Comment=mine");
    world.until("a job cancelled in Slurm to be cancelled", is(&cancelled, "cancelled"));
    world.until("a job that is taken back to be given up", is(&taken_back, "cancelled"));
    assert!(
        shown(&world, &taken_back).starts_with("PENDING"),
        "it is its user's: {}",
        shown(&world, &taken_back)
    );
    // With the workers of the other job it may be its turn; then it is its user's release that is too late.
    world.slurm.said("scontrol", &["release", &released]);
    world.until("the user's release", |world| {
        is(&released, "cancelled")(world)
            || is(&released, "running")(world)
            || is(&released, "starting")(world)
    });
    let number = jobs(&world)[&running]["job"].to_string();
    world.ask(&["cancel", &number]);
    world.until("a job cancelled here to be cancelled there", |world| {
        shown(world, &running).starts_with("CANCELLED")
    });
}

#[test]
fn jobs_that_cannot_be_steered_are_refused_with_a_word_and_taken_once_they_can() {
    let world = match start() {
        Ok(world) => world,
        Err(lacking) => {
            return eprintln!("skipped: held jobs that cannot be steered on a real Slurm: {lacking}");
        }
    };
    let stubborn = submit(&world, &["--no-requeue", "--gres=gpu:1", COMMENT]);
    let odd = submit(&world, &["--gres=gpu:1", "--comment=apportion: throughput=v100=3 step=5"]);
    let anothers = submit(&world, &["--gres=gpu:1", "--comment=mine"]);
    let said = |id: &str| world.slurm.said("scontrol", &["show", "job", id]);
    world.until("a word on the one", |_| said(&stubborn).contains("not taken in: Slurm may not put it back"));
    world.until("a word on the other", |_| said(&odd).contains("not taken in: its comment has `step=`"));
    assert!(jobs(&world).is_empty() && !said(&anothers).contains("AdminComment"));
    update(&world, &stubborn, "Requeue=1");
    update(&world, &odd, "Comment=apportion: throughput=v100=3 steps=5");
    world.until("both to be taken in", |world| jobs(world).len() == 2);
    world.until("both to run", |world| jobs(world).values().all(|job| job["state"] == "running"));
    let failing = ["--parsable", "--hold", "--gres=gpu:1", COMMENT, "--output=/dev/null", "--wrap=exit 3"];
    let failing = world.slurm.said("sbatch", &failing).trim().to_owned();
    world.until("the failure", |world| jobs(world).get(&failing).is_some_and(|job| job["state"] == "failed"));
    let last_end = jobs(&world)[&failing]["last_end"].to_string();
    assert!(last_end.contains("FAILED (NonZeroExitCode), exit code 3"), "{last_end}");
}

#[test]
fn gpus_of_a_type_in_all_and_tasks_of_arrays_are_taken_in() {
    let world = start_on(&[NODES[0], ("k80-0", "CPUs=4 RealMemory=1000 Gres=gpu:k80:2")]);
    let world = match world {
        Ok(world) => world,
        Err(lacking) => {
            return eprintln!("skipped: types and arrays of held jobs on a real Slurm: {lacking}");
        }
    };
    let both = "--comment=apportion: throughput=v100=3,k80=3 steps=100000";
    let typed = submit(&world, &["--gpus=k80:2", both]);
    let array = submit(&world, &["--array=0-2", "--gres=gpu:v100:1", both]);
    let unknown = submit(&world, &["--gres=gpu:v100:1", "--comment=apportion: throughput=k80=3 steps=5"]);
    let limited = submit(&world, &["--array=0-1%1", "--gres=gpu:1", both]);
    let tasks = [0, 1, 2].map(|task| format!("{array}_{task}"));
    world.until("all to be taken in", |world| jobs(world).len() == 4);
    let starts =
        |world: &World, id: &str| jobs(world).get(id).map_or(0, |job| job["starts"].as_u64().unwrap());
    world.until("each to run", |world| {
        starts(world, &typed) > 0 && tasks.iter().all(|task| starts(world, task) > 0)
    });
    for _ in 0..20 {
        let queue =
            world.slurm.said("squeue", &["--noheader", "--array", "--states=running", "--format=%i %N"]);
        for line in queue.lines() {
            let (id, nodes) = line.split_once(' ').unwrap();
            assert_eq!(nodes, if id == typed { "k80-0" } else { "v100-0" }, "{queue}");
        }
        thread::sleep(Duration::from_millis(100));
    }
    let said = |id: &str| world.slurm.said("scontrol", &["show", "job", id]);
    assert!(said(&unknown).contains("it has a speed on none of the types"), "{}", said(&unknown));
    assert!(said(&limited).contains("ArrayTaskThrottle=0"), "{}", said(&limited));

    // The record with the array's number is one task by now: an action on it concerns that task alone.
    world.slurm.said("scancel", &[&tasks[2]]);
    world.until("one task to be cancelled", |world| jobs(world)[&tasks[2]]["state"] == "cancelled");
    fs::write(world.folder.path().join("go"), "").unwrap();
    world.until("the end of the others", |world| {
        [&typed, &tasks[0], &tasks[1]].iter().all(|id| jobs(world)[*id]["state"] == "completed")
    });
}

#[test]
fn a_partition_has_one_scheduler_and_another_after_its_end() {
    let mut world = match start() {
        Ok(world) => world,
        Err(lacking) => {
            return eprintln!("skipped: two schedulers of one partition of a real Slurm: {lacking}");
        }
    };
    let elsewhere = TempDir::new().unwrap();
    let more = ["--listen", "127.0.0.1:0"];
    let mut second = crate::live::command(elsewhere.path(), &[&SERVE[..], &more].concat());
    let said = said_with_2(second.env("SLURM_CONF", world.slurm.at("slurm.conf")).output().unwrap());
    assert!(said.contains("are steered by another scheduler: process "), "{said}");
    assert!(said.contains(&world.folder.path().join("state/sbatch").display().to_string()), "{said}");
    // When it is killed it leaves its mark, but its process is known to be gone.
    drop(world.served.take());
    assert!(world.slurm.said("scontrol", &["show", "node"]).contains("Extra=apportion:"));
    world.folder = elsewhere;
    world.serve(&SERVE);
    let job = submit(&world, &["--gres=gpu:1", COMMENT]);
    world.until("a job to run", |world| jobs(world).get(&job).is_some_and(|job| job["state"] == "running"));
    assert_eq!(world.served.take().unwrap().end(), Some(0));
    assert!(!world.slurm.said("scontrol", &["show", "node"]).contains("Extra=apportion:"));
}

#[test]
fn flags_that_mean_nothing_at_this_door_are_refused() {
    let folder = TempDir::new().unwrap();
    for (more, says) in [
        (
            &["--executor", "slurm", "--slurm-time", "30"][..],
            "--slurm-time says something of Slurm jobs that",
        ),
        (&["--cluster", "v100=2"], "--front-door sbatch: users submit to Slurm"),
    ] {
        let usual = ["serve", "--front-door", "sbatch", "--policy", "fifo", "--state=state"];
        let said =
            said_with_2(crate::live::command(folder.path(), &[&usual, more].concat()).output().unwrap());
        assert!(said.contains(says), "{more:?}: {said}");
    }
}
