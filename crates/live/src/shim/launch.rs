//! The start of a rank's program, with a step in between: the shim starts itself once more, and that process becomes the program.
//!
//! The step has itself killed when the shim ends, which only the process itself can arrange. It then waits until the shim has
//! written down its number, and executes the program. An error comes back through a pipe, which closes itself when a program is
//! executed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use apportion::Seconds;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::clock;
use crate::files;
use crate::process::{Identity, LEASE, Owned, Seen, boot_id, signal_group};
use crate::protocol::{End, Run};
use crate::rank::{RankFolder, RankStart, Start, StartedBy, Steer};
use crate::shim::LOOK;
use crate::shim::guard::GUARD;
use crate::shim::signals::{PARENT, Told};

/// The environment variable with the number of the shim, which is set for the step only.
const STEP: &str = "APPORTION_SHIM_OF_STEP";

/// The environment variable that names the workers a process may use.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// The variable in which Slurm says how many workers a job has on its node.
const N_GIVEN: &str = "SLURM_GPUS_ON_NODE";

/// The longest time that a shim tries, on a full disk, to write down which processes are the rank's, before it gives up the start.
const BEGIN_TRIED: Seconds = Seconds::new(30.0);

/// The first port at which ranks meet, and the number of such ports.
const PORTS: (u64, u64) = (20_000, 40_000);

/// A rank's program that has been started, or will report why not.
pub(super) struct Launched {
    pub(super) program: Identity,
    pub(super) by: StartedBy,
    pub(super) steer: Steer,
    /// The end of the program before it could be executed, as JSON; nothing once it is executed.
    pub(super) refusal: Receiver<String>,
}

/// The shim whose step this process is; none if it is no step.
pub(super) fn shim_of_step() -> Option<Pid> {
    Pid::from_raw(env::var_os(STEP)?.to_str()?.parse().ok()?)
}

/// Starts the step, unless the shim is `told` to end before it can. The error is the reason why there is no program, in words.
pub(super) fn launch(folder: &RankFolder, told: &Told) -> Result<Launched, String> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    let start: Start = files::read(&folder.start()).map_err(at(&folder.start()))?;
    let RankStart { until, grace, .. } = start.rank;
    let until = start.by.instant(clock::node_now(), until);
    let steer = Steer { until, grace, stop: None };
    let output = folder.open_output().map_err(at(&folder.output()))?;
    let pipe = |error: io::Error| format!("a pipe: {error}");
    let (go, mut going) = io::pipe().map_err(pipe)?;
    let (mut said, say) = io::pipe().map_err(pipe)?;
    let own = Path::new("/proc/self/exe");
    let mut step = Command::new(own);
    step.args(env::args_os().skip(1)).env(STEP, getpid().to_string()).env_remove(GUARD).env_remove(PARENT);
    step.stdin(go).stdout(say).stderr(output).process_group(0);
    let child = step.spawn().map_err(at(own))?;
    // Dropped here are this process's ends of the pipes.
    drop(step);
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let last = until.min(clock::node_now() + BEGIN_TRIED);
    let is_tried = || clock::node_now() < last && !told.is_told() && !told.is_orphaned();
    let owned = own_processes(folder, pid, is_tried).inspect_err(|_| signal_group(pid, Signal::KILL))?;
    // If the step is gone already, that shows when it is waited for.
    let _ = going.write_all(b"g");
    let (sender, refusal) = channel();
    thread::spawn(move || {
        let mut words = String::new();
        let _ = said.read_to_string(&mut words);
        let _ = sender.send(words);
    });
    Ok(Launched { program: owned.program, by: start.by, steer, refusal })
}

/// Writes down the rank's processes before the program is executed. If the disk refuses, it tries again while `is_tried`.
fn own_processes(folder: &RankFolder, program: i32, is_tried: impl Fn() -> bool) -> Result<Owned, String> {
    let seen = |pid: i32| {
        let seen = Seen::of(pid).ok_or_else(|| format!("/proc/{pid}/stat cannot be read"))?;
        Ok::<_, String>(seen.identity)
    };
    let shim = seen(getpid().as_raw_nonzero().get())?;
    let owned = Owned { boot_id: boot_id(), shim, program: seen(program)? };
    let path = folder.owned();
    loop {
        match files::write_durably(&path, &owned) {
            Ok(()) => return Ok(owned),
            Err(_) if is_tried() => thread::sleep(LOOK),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
}

/// Becomes the rank's program. Returns only if that failed: how the failure counts, and why.
pub(super) fn become_program(folder: &RankFolder, shim: Pid) -> End {
    // This file is closed when a program is executed, like all files that std opens.
    let say = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let Err(end) = prepare(folder, shim).map_err(End::NotStarted).and_then(execute);
    if let (Ok(mut say), Ok(words)) = (say, serde_json::to_vec(&end)) {
        let _ = say.write_all(&words);
    }
    end
}

/// Waits until the shim has written down its number, and prepares all that does not depend on the job.
fn prepare(folder: &RankFolder, shim: Pid) -> Result<(&RankFolder, Start, [File; 2]), String> {
    let dies = set_parent_process_death_signal(Some(Signal::KILL));
    dies.map_err(|error| format!("dying with the shim: {error}"))?;
    let mut word = [0];
    let has_word = io::stdin().read_exact(&mut word).is_ok();
    if !has_word || getppid() != Some(shim) {
        return Err("the shim ended before its program was started".to_owned());
    }
    let at = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let start: Start = files::read(&folder.start()).map_err(|error| at(&folder.start(), error))?;
    let output = folder.open_output().map_err(|error| at(&folder.output(), error))?;
    let errors = output.try_clone().map_err(|error| at(&folder.output(), error))?;
    let checkpoints = checkpoints_of(&start);
    fs::create_dir_all(&checkpoints).map_err(|error| at(&checkpoints, error))?;
    Ok((folder, start, [output, errors]))
}

/// Executes the program in its folder.
fn execute((folder, start, [output, errors]): (&RankFolder, Start, [File; 2])) -> Result<Infallible, End> {
    let program = &start.rank.program;
    let Some((name, arguments)) = program.command.split_first() else {
        return Err(End::NotExecutable("no program is named".to_owned()));
    };
    if let Some(directory) = &program.directory {
        env::set_current_dir(directory)
            .map_err(|error| refused(&error, format!("folder {directory}: {error}")))?;
    }
    let given = env::var_os(VISIBLE).and_then(|given| given.into_string().ok());
    let n_given = env::var_os(N_GIVEN).and_then(|count| count.to_str()?.trim().parse().ok());
    check_given(&start, given.as_deref(), n_given).map_err(End::NotStarted)?;
    let mut command = Command::new(name);
    command.args(arguments).env_remove(STEP);
    command.envs(&program.environment).envs(contract(folder, &start));
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let error = command.exec();
    let is_there = name.contains('/') && Path::new(name).exists();
    if is_there && error.kind() == io::ErrorKind::NotFound {
        return Err(refused(
            &error,
            format!("{name} is there, the interpreter that it names is not: {error}"),
        ));
    }
    Err(refused(&error, format!("{name}: {error}")))
}

/// The end of a rank whose program or folder was refused: it counts against the job where the program does not exist or is none,
/// and against the server, too, where that has no memory, no process, or another trouble of its own.
fn refused(error: &io::Error, why: String) -> End {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let of_the_job = [
        Errno::NOENT,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::NOEXEC,
        Errno::LOOP,
        Errno::NAMETOOLONG,
        Errno::TOOBIG,
        Errno::INVAL,
    ];
    if errno.is_some_and(|errno| of_the_job.contains(&errno)) {
        End::NotExecutable(why)
    } else {
        End::NotStarted(why)
    }
}

/// The worker of a program in the words of [`VISIBLE`], from the workers that this process was `given`, in order. If an agent was
/// given none, it is the worker's place on the server; if Slurm names none, it is nothing.
fn visible_worker(start: &Start, given: Option<&str>) -> Option<String> {
    let nth =
        |place: u32| given?.split(',').map(str::trim).filter(|name| !name.is_empty()).nth(place as usize);
    match start.by {
        StartedBy::Agent => {
            Some(nth(start.rank.worker).map_or_else(|| start.rank.worker.to_string(), str::to_owned))
        }
        StartedBy::Slurm { place, .. } => nth(place).map(str::to_owned),
    }
}

/// Refuses a rank that Slurm has started without its worker, as a job whose generic resources were taken from it: it would run on
/// workers that other leases have. `n_given` is the number of workers that Slurm says it has given, where it names none.
fn check_given(start: &Start, given: Option<&str>, n_given: Option<u32>) -> Result<(), String> {
    let StartedBy::Slurm { place, .. } = start.by else { return Ok(()) };
    let has_it = match given {
        Some(_) => visible_worker(start, given).is_some(),
        None => n_given.is_some_and(|count| place < count),
    };
    let said = given.map_or_else(|| "none".to_owned(), |given| format!("`{given}`"));
    let why = || {
        format!(
            "Slurm has not given its job the worker of this rank: {VISIBLE} names {said}, worker {} of them was asked for",
            place + 1
        )
    };
    has_it.then_some(()).ok_or_else(why)
}

/// The job's folder for checkpoints. That of a submission is its own: another job of its number has another.
fn checkpoints_of(start: &Start) -> std::path::PathBuf {
    let job = start.rank.run.job;
    start.checkpoints.join(match start.rank.submission {
        Some(submission) => format!("{job}-{submission:012x}"),
        None => job.to_string(),
    })
}

/// The variables that describe the rank to its program. They have precedence over the program's own.
fn contract(folder: &RankFolder, start: &Start) -> BTreeMap<&'static str, String> {
    let rank = &start.rank;
    let mut variables = BTreeMap::from([
        (LEASE, folder.path().display().to_string()),
        ("APPORTION_JOB", rank.run.job.to_string()),
        ("APPORTION_INCARNATION", rank.run.incarnation.to_string()),
        ("APPORTION_CHECKPOINTS", checkpoints_of(start).display().to_string()),
        ("APPORTION_GRACE", rank.grace.get().to_string()),
        ("APPORTION_WORKER_TYPE", start.worker_type.clone()),
        ("RANK", rank.rank.to_string()),
        ("WORLD_SIZE", rank.world_size.to_string()),
        ("LOCAL_RANK", rank.local_rank.to_string()),
        ("MASTER_ADDR", meeting_host(rank)),
        ("MASTER_PORT", meeting_port(rank.run).to_string()),
    ]);
    if let Some(worker) =
        visible_worker(start, env::var_os(VISIBLE).and_then(|given| given.into_string().ok()).as_deref())
    {
        variables.insert(VISIBLE, worker);
    }
    let total_steps = rank.total_steps.get().ceil();
    if total_steps > 0.0 {
        variables.insert("APPORTION_TOTAL_STEPS", format!("{total_steps:.0}"));
    }
    variables
}

/// The host where ranks meet: the server of rank 0, whose name is its host's, or a host and a port.
fn meeting_host(rank: &RankStart) -> String {
    if rank.ranks_here == rank.world_size {
        return "127.0.0.1".to_owned();
    }
    match rank.first_server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => host.to_owned(),
        _ => rank.first_server.clone(),
    }
}

/// A port that all ranks of a run agree on, and that two runs seldom share.
fn meeting_port(run: Run) -> u64 {
    let (first, n_ports) = PORTS;
    let mixed = (run.job.0 ^ u64::from(run.incarnation).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    first + (mixed >> 32) % n_ports
}

#[cfg(test)]
mod tests {
    use apportion::{Seconds, Steps};

    use super::*;
    use crate::protocol::{JobNumber, Program};

    fn start(total_steps: f64) -> Start {
        let run = Run { job: JobNumber(7), incarnation: 2 };
        let program =
            Program { command: vec!["x".to_owned()], directory: None, environment: BTreeMap::new() };
        let rank = RankStart {
            run,
            submission: Some(0xab),
            rank: 3,
            worker: 1,
            local_rank: 1,
            ranks_here: 2,
            world_size: 4,
            first_server: "head:7070".to_owned(),
            total_steps: Steps::new(total_steps),
            program,
            until: Seconds::ZERO,
            grace: Seconds::ZERO,
        };
        Start { rank, by: StartedBy::Agent, checkpoints: "/c".into(), worker_type: "fast".to_owned() }
    }

    #[test]
    fn a_program_is_told_what_it_is() {
        let folder = RankFolder::at("/s/ranks/7.2.3".into());
        let variables = contract(&folder, &start(10.5));
        let expected = [
            ("APPORTION_CHECKPOINTS", "/c/7-0000000000ab"),
            ("APPORTION_GRACE", "0"),
            ("APPORTION_INCARNATION", "2"),
            ("APPORTION_JOB", "7"),
            ("APPORTION_LEASE", "/s/ranks/7.2.3"),
            ("APPORTION_TOTAL_STEPS", "11"),
            ("APPORTION_WORKER_TYPE", "fast"),
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "head"),
            ("RANK", "3"),
            ("WORLD_SIZE", "4"),
        ];
        let but_port = variables.iter().filter(|(name, _)| **name != "MASTER_PORT");
        assert!(but_port.map(|(name, value)| (*name, value.as_str())).eq(expected), "{variables:?}");
        assert!(!contract(&folder, &start(0.0)).contains_key("APPORTION_TOTAL_STEPS"));
        // A job that an earlier version took in keeps its folder.
        let mut earlier = start(1.0);
        earlier.rank.submission = None;
        assert_eq!(contract(&folder, &earlier)["APPORTION_CHECKPOINTS"], "/c/7");
    }

    #[test]
    fn a_worker_is_one_of_those_that_slurm_or_the_agents_environment_gives() {
        let by_slurm = |place| Start { by: StartedBy::Slurm { first: 0, place }, ..start(1.0) };
        assert_eq!(visible_worker(&start(1.0), None).as_deref(), Some("1"), "the worker's place");
        assert_eq!(
            visible_worker(&start(1.0), Some("4, MIG-5")).as_deref(),
            Some("MIG-5"),
            "of the agent's own"
        );
        assert_eq!(visible_worker(&by_slurm(1), Some("4,5")).as_deref(), Some("5"));
        assert_eq!(visible_worker(&by_slurm(2), Some("4,5")), None);
        assert_eq!(visible_worker(&by_slurm(0), None), None);
    }

    #[test]
    fn a_rank_to_which_slurm_has_given_no_worker_is_not_started() {
        let by_slurm = |place| Start { by: StartedBy::Slurm { first: 0, place }, ..start(1.0) };
        assert_eq!(
            check_given(&start(1.0), None, None),
            Ok(()),
            "an agent's ranks have theirs by their place"
        );
        assert_eq!(check_given(&by_slurm(1), Some("4,5"), Some(2)), Ok(()));
        assert_eq!(check_given(&by_slurm(1), None, Some(2)), Ok(()), "Slurm knows how many, and names none");
        for (given, n_given) in [(None, None), (Some("4"), Some(2)), (Some(""), Some(0)), (None, Some(1))] {
            let said = check_given(&by_slurm(1), given, n_given).unwrap_err();
            assert!(said.starts_with("Slurm has not given its job the worker of this rank"), "{said}");
        }
    }

    #[test]
    fn ranks_on_one_server_meet_there() {
        let mut rank = start(1.0).rank;
        rank.world_size = 2;
        assert_eq!(meeting_host(&rank), "127.0.0.1");
        rank.world_size = 3;
        rank.first_server = "fe80::1".to_owned();
        assert_eq!(meeting_host(&rank), "fe80::1");
    }

    #[test]
    fn ports_are_in_range_and_differ_between_runs() {
        let runs = (0..100).flat_map(|job| (1..11).map(move |incarnation| (JobNumber(job), incarnation)));
        let ports: Vec<u64> = runs.map(|(job, incarnation)| meeting_port(Run { job, incarnation })).collect();
        assert!(ports.iter().all(|port| (20_000..60_000).contains(port)));
        let different: std::collections::BTreeSet<u64> = ports.iter().copied().collect();
        assert!(different.len() > 980, "{} of 1000", different.len());
    }
}
