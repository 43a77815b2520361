//! Agents, shims and programs as real processes. What is waited for comes when it comes: the limit only ends a test that
//! would never end.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]
#![expect(clippy::float_cmp, reason = "steps are whole, and carried from document to document as they are")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use apportion::{Seconds, Steps};
use apportion_live::agent::{Home, Link, LinkError, Processes, ProcessesError, Server};
use apportion_live::clock;
use apportion_live::protocol::{
    End, JobNumber, LeaseOrder, Orders, Phase, Program, RankReport, Report, ReportId, Run, Stop,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use support::{lives, wait_for};

/// The shim, the pretend trainer and an agent.
const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion-shim");

/// A lease that no test outlives.
const LONG: f64 = 300.0;

/// A grace that no test outlives.
const PATIENT: f64 = 300.0;

fn run_of(job: u64) -> Run {
    Run { job: JobNumber(job), incarnation: 1 }
}

fn program(command: &[&str]) -> Program {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    Program { command, directory: None, environment: BTreeMap::new() }
}

fn trainer(flags: &str) -> Program {
    let words = [PROGRAM, "trainer"].into_iter().chain(flags.split_whitespace());
    program(&words.collect::<Vec<_>>())
}

fn shell(script: &str) -> Program {
    program(&["/bin/sh", "-c", script])
}

/// One rank on worker 0, with a long lease and a patient grace.
fn lease(job: u64, program: Program) -> LeaseOrder {
    LeaseOrder {
        run: run_of(job),
        submission: None,
        ranks: vec![(0, 0)],
        world_size: 1,
        first_server: "test".to_owned(),
        beside: None,
        lease: Seconds::new(LONG),
        grace: Seconds::new(PATIENT),
        stop: None,
        total_steps: Steps::ZERO,
        program,
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A folder for an agent's state and all that a scheduler would know.
struct Place {
    folder: TempDir,
    numbers: u64,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), numbers: 0 }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn rank(&self, job: u64, rank: u32) -> PathBuf {
        self.state().join(format!("ranks/{job}.1.{rank}"))
    }

    fn output(&self, job: u64) -> String {
        fs::read_to_string(self.rank(job, 0).join("output.log")).unwrap()
    }

    fn server() -> Server {
        Server { name: "test".to_owned(), worker_type: "fast".to_owned(), n_workers: 4 }
    }

    fn home(&self) -> Home {
        let checkpoints = self.folder.path().join("checkpoints");
        Home { state: self.state(), checkpoints, shim: vec![PROGRAM.into(), "shim".into()] }
    }

    fn try_open(&self) -> Result<Processes, ProcessesError> {
        Processes::open(Self::server(), self.home())
    }

    fn open(&self) -> Processes {
        self.try_open().unwrap()
    }

    fn orders(&mut self, answers: ReportId, leases: &[&LeaseOrder], forget: Vec<Run>) -> Orders {
        self.numbers += 1;
        let leases = leases.iter().map(|lease| (*lease).clone()).collect();
        Orders { epoch: 1, number: self.numbers, answers, leases, forget }
    }

    fn order(&mut self, agent: &mut Processes, leases: &[&LeaseOrder]) {
        let answers = agent.report().id;
        agent.take(&self.orders(answers, leases, Vec::new()));
    }

    /// A job whose lease ends within a second of when it is ready: until then it is extended.
    fn order_for_a_second(
        &mut self,
        agent: &mut Processes,
        job: LeaseOrder,
        mut is_ready: impl FnMut(&mut Processes) -> bool,
    ) {
        let job = LeaseOrder { lease: Seconds::new(1.0), ..job };
        wait_for("a job that is ready", || {
            self.order(agent, &[&job]);
            is_ready(agent).then_some(())
        });
    }

    /// A number that a program or a shim has written: of `shim.json`.
    fn pid(&self, job: u64, of: &str) -> i32 {
        wait_for("shim.json", || {
            let text = fs::read(self.rank(job, 0).join("shim.json")).ok()?;
            let owned: serde_json::Value = serde_json::from_slice(&text).unwrap();
            i32::try_from(owned[of]["pid"].as_i64()?).ok()
        })
    }

    /// A number that a program has written into a file of the place.
    fn written(&self, name: &str) -> i32 {
        let path = self.folder.path().join(name);
        wait_for(name, || fs::read_to_string(&path).ok()?.trim().parse().ok())
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn rank_of(report: &Report, job: u64, rank: u32) -> Option<RankReport> {
    report.ranks.iter().find(|found| found.run == run_of(job) && found.rank == rank).cloned()
}

/// Looks until the rank is as it should be.
fn until(agent: &mut Processes, job: u64, what: &str, is: impl Fn(&RankReport) -> bool) -> RankReport {
    wait_for(what, || {
        agent.look();
        rank_of(&agent.report(), job, 0).filter(&is)
    })
}

fn until_steps(agent: &mut Processes, job: u64) -> RankReport {
    until(agent, job, "steps", |rank| rank.progress.steps > rank.progress.first)
}

fn end_of(agent: &mut Processes, job: u64) -> (End, RankReport) {
    let rank = until(agent, job, "end", |rank| matches!(rank.phase, Phase::Ended(_)));
    let Phase::Ended(end) = rank.phase.clone() else { unreachable!() };
    (end, rank)
}

#[test]
fn a_job_reports_progress_and_ends() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = LeaseOrder { total_steps: Steps::new(40.0), ..lease(1, trainer("--speed 100")) };
    place.order(&mut agent, &[&job]);
    let rank = until_steps(&mut agent, 1);
    assert!(rank.progress.speaks);
    let (end, rank) = end_of(&mut agent, 1);
    assert_eq!(end, End::Exit(0));
    assert_eq!((rank.progress.steps, rank.progress.checkpointed, rank.progress.done), (40.0, 40.0, true));
    assert!(rank.progress.seconds > 0.0);
    assert!(place.folder.path().join("checkpoints/1/checkpoint.json").exists());
}

#[test]
fn a_job_stops_when_asked_and_goes_on_from_its_checkpoint() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = lease(1, trainer("--speed 50 --saving 0.2"));
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(rank_of(&agent.report(), 1, 0).unwrap().phase, Phase::Stopping);
    let (end, stopped) = end_of(&mut agent, 1);
    assert_eq!(end, End::Stopped(Some(0)));
    assert!(stopped.progress.checkpointed > 0.0 && !stopped.progress.done);

    let mut again = lease(1, job.program.clone());
    again.run.incarnation = 2;
    let answers = agent.report().id;
    agent.take(&place.orders(answers, &[&again], vec![run_of(1)]));
    let first = wait_for("the second start", || {
        agent.look();
        let report = agent.report();
        let rank = report.ranks.iter().find(|rank| rank.run == again.run)?;
        rank.progress.speaks.then_some(rank.progress.first)
    });
    assert_eq!(first, stopped.progress.checkpointed);
    again.stop = Some(Stop::Kill);
    place.order(&mut agent, &[&again]);
    wait_for("its end", || {
        agent.look();
        agent.report().ranks.iter().any(|rank| rank.phase == Phase::Ended(End::Killed)).then_some(())
    });
}

#[test]
fn a_run_that_orders_do_not_name_is_stopped() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, trainer("--speed 50"))]);
    until_steps(&mut agent, 1);
    place.order(&mut agent, &[]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_program_that_does_not_speak_is_terminated() {
    let mut place = Place::new();
    let mut agent = place.open();
    let started = place.path("started");
    let script = format!("trap 'echo saved; exit 3' TERM; echo $$ >{started}; while :; do sleep 0.05; done");
    let mut with_trap = lease(1, shell(&script));
    let mut without = lease(2, trainer("--silent"));
    without.ranks = vec![(0, 1)];
    place.order(&mut agent, &[&with_trap, &without]);
    place.written("started");
    (with_trap.stop, without.stop) = (Some(Stop::Now), Some(Stop::Now));
    place.order(&mut agent, &[&with_trap, &without]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(3)));
    // (the shell tells of its own child's end before)
    assert!(place.output(1).ends_with("saved\n"));
    let (end, rank) = end_of(&mut agent, 2);
    assert_eq!(end, End::Stopped(None));
    assert!(!rank.progress.speaks);
}

#[test]
fn what_ignores_every_word_is_killed_with_its_children() {
    let mut place = Place::new();
    let mut agent = place.open();
    // One child is in the group, one has left group and session.
    let (near, far, leader) = (place.path("near"), place.path("far"), place.path("leader"));
    let script = format!(
        "trap '' TERM; sh -c 'echo $$ >{near}; exec sleep 600' & \
         setsid sh -c 'echo $$ >{far}; exec sleep 600' & \
         echo $$ >{leader}; while :; do sleep 0.05; done"
    );
    let mut job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    let pids = ["near", "far", "leader"].map(|name| place.written(name));
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Killed);
    assert_eq!(pids.map(lives), [false; 3]);
}

#[test]
fn a_deaf_trainer_and_its_deaf_child_are_killed() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, trainer("--deaf --child --speed 50")) };
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Killed);
}

#[test]
fn what_outlives_its_program_is_ended_before_the_end_is_told() {
    let mut place = Place::new();
    let mut agent = place.open();
    let child = place.path("child");
    let script = format!("trap '' TERM; sh -c 'echo $$ >{child}; exec sleep 600' & sleep 0.1; exit 7");
    let job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    let pid = place.written("child");
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(7));
    assert!(!lives(pid));
}

#[test]
fn a_program_that_ended_before_it_was_asked_has_ended_by_itself() {
    let mut place = Place::new();
    let mut agent = place.open();
    // What it leaves is ended with it, and is there when the request to stop comes.
    let (child, script) =
        (place.path("child"), "trap '' TERM; sh -c 'echo $$ >CHILD; exec sleep 600' & exit 0");
    let script = script.replace("CHILD", &child);
    let mut job = LeaseOrder { grace: Seconds::new(1.0), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    place.written("child");
    wait_for("its program's end", || (!lives(place.pid(1, "program"))).then_some(()));
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(0));
}

#[test]
fn how_long_a_rank_ran_is_told_with_its_end() {
    let mut place = Place::new();
    let mut agent = place.open();
    let missing = LeaseOrder { ranks: vec![(0, 1)], ..lease(2, program(&["/no/such/program"])) };
    place.order(&mut agent, &[&lease(1, shell("sleep 0.5")), &missing]);
    let ran = end_of(&mut agent, 1).1.ran.unwrap();
    assert!(ran.get() >= 0.5, "{ran}");
    assert_eq!(end_of(&mut agent, 2).1.ran, Some(Seconds::ZERO));
    // A later agent tells it, too.
    drop(agent);
    assert_eq!(end_of(&mut place.open(), 1).1.ran, Some(ran));
}

#[test]
fn a_submission_has_a_folder_for_checkpoints_of_its_own() {
    let mut place = Place::new();
    let mut agent = place.open();
    let save = shell("ls -A $APPORTION_CHECKPOINTS; touch $APPORTION_CHECKPOINTS/weights");
    let with = |submission, incarnation| {
        let run = Run { job: JobNumber(1), incarnation };
        LeaseOrder { run, submission: Some(submission), ..lease(1, save.clone()) }
    };
    for (submission, incarnation) in [(0xa, 1), (0xb, 2), (0xa, 3)] {
        let job = with(submission, incarnation);
        place.order(&mut agent, &[&job]);
        let printed = wait_for("its end", || {
            agent.look();
            let report = agent.report();
            let rank = report.ranks.iter().find(|rank| rank.run == job.run)?;
            let output = place.state().join(format!("ranks/1.{incarnation}.0/output.log"));
            (rank.phase == Phase::Ended(End::Exit(0))).then(|| fs::read_to_string(output).unwrap())
        });
        let expected = if incarnation == 3 { "weights\n" } else { "" };
        assert_eq!(printed, expected, "start {incarnation}");
    }
    assert!(place.folder.path().join("checkpoints/1-00000000000a/weights").exists());
}

#[test]
fn ends_by_itself_are_told_as_they_were() {
    let mut place = Place::new();
    let mut agent = place.open();
    let exits = lease(1, trainer("--speed 50 --exit 9,5"));
    let signalled = LeaseOrder { ranks: vec![(0, 1)], ..lease(2, shell("kill -SEGV $$")) };
    place.order(&mut agent, &[&exits, &signalled]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(9));
    assert_eq!(end_of(&mut agent, 2).0, End::Signal(Signal::SEGV.as_raw()));
}

#[test]
fn a_lease_ends_without_any_agent() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = lease(1, trainer("--speed 50"));
    place.order_for_a_second(&mut agent, job, |agent| {
        agent.look();
        rank_of(&agent.report(), 1, 0).is_some_and(|rank| rank.progress.speaks)
    });
    drop(agent);
    let end = place.rank(1, 0).join("end.json");
    wait_for("the end", || end.exists().then_some(()));
    let why = fs::read_to_string(place.rank(1, 0).join("stopping.json")).unwrap();
    assert!(why.contains("\"lease\""), "{why}");
    assert_eq!(end_of(&mut place.open(), 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_lease_that_ends_is_told_as_stopping() {
    let mut place = Place::new();
    let mut agent = place.open();
    let (ready, more) = (place.path("ready"), place.path("more"));
    let script = format!(
        "trap 'while [ ! -e {more} ]; do sleep 0.02; done; exit 0' TERM; echo >{ready}; \
         while :; do sleep 0.05; done"
    );
    let job = lease(1, shell(&script));
    place.order_for_a_second(&mut agent, job.clone(), |_| Path::new(&ready).exists());
    until(&mut agent, 1, "stopping", |rank| rank.phase == Phase::Stopping);
    // Once it is asked to stop, no longer lease lets it go on.
    place.order(&mut agent, &[&LeaseOrder { lease: Seconds::new(LONG), ..job }]);
    assert_eq!(until(&mut agent, 1, "a look", |_| true).phase, Phase::Stopping);
    fs::write(&more, "").unwrap();
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_lease_that_is_extended_goes_on() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = LeaseOrder { lease: Seconds::new(2.0), ..lease(1, trainer("--speed 50")) };
    place.order(&mut agent, &[&job]);
    place.order(&mut agent, &[&LeaseOrder { lease: Seconds::new(LONG), ..job.clone() }]);
    let over = clock::node_now() + job.lease;
    until(&mut agent, 1, "the first lease's end", |_| clock::node_now() > over + Seconds::new(0.2));
    let rank = until_steps(&mut agent, 1);
    assert_eq!(rank.phase, Phase::Running);
    place.order(&mut agent, &[]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

/// An agent as a process of its own, in a process group that is killed as a whole.
struct AgentProcess(Child);

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process_group(group, Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

fn spawn_agent(place: &Place, mailbox: &Path) -> AgentProcess {
    let mut agent = Command::new(PROGRAM);
    agent.arg("agent").arg(place.state()).arg(mailbox).process_group(0).stdin(Stdio::null());
    AgentProcess(agent.spawn().unwrap())
}

fn read_report(mailbox: &Path) -> Option<Report> {
    serde_json::from_slice(&fs::read(mailbox.join("report.json")).ok()?).ok()
}

fn write_orders(mailbox: &Path, orders: &Orders) {
    let new = mailbox.join("orders.new");
    fs::write(&new, serde_json::to_vec(orders).unwrap()).unwrap();
    fs::rename(new, mailbox.join("orders.json")).unwrap();
}

#[test]
fn a_killed_agent_touches_no_rank_and_a_new_one_adopts_it() {
    let mut place = Place::new();
    let mailbox = tempfile::tempdir().unwrap();
    let first = spawn_agent(&place, mailbox.path());
    let report = wait_for("a report", || read_report(mailbox.path()));
    write_orders(mailbox.path(), &place.orders(report.id, &[&lease(1, trainer("--speed 50"))], Vec::new()));
    let running = wait_for("steps", || {
        rank_of(&read_report(mailbox.path())?, 1, 0).filter(|rank| rank.progress.steps > 0.0)
    });
    let pid = place.pid(1, "program");
    drop(first);
    assert!(lives(pid));

    // The orders of before are still in the mailbox: the second agent takes none that answer the first.
    let _second = spawn_agent(&place, mailbox.path());
    let adopted = wait_for("a report of the second agent", || {
        let report = read_report(mailbox.path()).filter(|other| other.id.boot > report.id.boot)?;
        rank_of(&report, 1, 0).filter(|rank| rank.progress.steps > running.progress.steps)
    });
    assert_eq!((adopted.phase, place.pid(1, "program")), (Phase::Running, pid));
    assert!(lives(pid));

    let report = read_report(mailbox.path()).unwrap();
    assert_eq!(report.taken, (0, 0));
    write_orders(mailbox.path(), &place.orders(report.id, &[], Vec::new()));
    wait_for("the end", || {
        let rank = rank_of(&read_report(mailbox.path())?, 1, 0)?;
        (rank.phase == Phase::Ended(End::Stopped(Some(0)))).then_some(())
    });
}

/// A link that is down now and then.
struct Wire {
    is_down: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
    reports: Sender<Report>,
    orders: Receiver<Orders>,
}

impl Link for Wire {
    fn send(&mut self, report: &Report) -> Result<(), LinkError> {
        if self.is_down.load(Ordering::Relaxed) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(LinkError("down".to_owned()));
        }
        self.reports.send(report.clone()).map_err(|error| LinkError(error.to_string()))
    }

    fn receive(&mut self, wait: Duration) -> Option<Orders> {
        self.orders.recv_timeout(wait).ok().filter(|_| !self.is_down.load(Ordering::Relaxed))
    }
}

/// Stops an agent, though the test fail before.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_link_that_is_down_touches_no_rank() {
    let mut place = Place::new();
    let (is_down, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (sender, reports) = channel();
    let (orders, receiver) = channel();
    let mut wire =
        Wire { is_down: is_down.clone(), failures: failures.clone(), reports: sender, orders: receiver };
    let stop = AtomicBool::new(false);
    let (server, home) = (Place::server(), place.home());
    let running = thread::scope(|scope| {
        let beat = Duration::from_millis(20);
        let (link, flag) = (&mut wire, &stop);
        let agent = scope.spawn(move || apportion_live::agent::run(server, home, link, beat, flag));
        let stopped = StopAtEnd(flag);
        let first = reports.recv().unwrap();
        orders.send(place.orders(first.id, &[&lease(1, trainer("--speed 50"))], Vec::new())).unwrap();
        let next = |steps: f64| {
            wait_for("steps", || {
                let rank = rank_of(&reports.try_iter().last()?, 1, 0)?;
                (rank.phase == Phase::Running && rank.progress.steps > steps).then_some(rank.progress.steps)
            })
        };
        let steps = next(0.0);
        is_down.store(true, Ordering::Relaxed);
        wait_for("failures", || (failures.load(Ordering::Relaxed) > 5).then_some(()));
        is_down.store(false, Ordering::Relaxed);
        let running = next(steps);
        drop(stopped);
        agent.join().unwrap().unwrap();
        running
    });
    // Nor does the agent's own end.
    let mut agent = place.open();
    until(&mut agent, 1, "more steps", |rank| rank.progress.steps > running);
    place.order(&mut agent, &[]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn an_agent_that_is_dropped_and_opened_again_steers_what_it_finds() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = lease(1, trainer("--speed 50"));
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    drop(agent);
    let mut agent = place.open();
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn orders_of_an_earlier_agent_are_not_taken() {
    let mut place = Place::new();
    let mut agent = place.open();
    let answers = agent.report().id;
    drop(agent);
    let mut agent = place.open();
    assert!(agent.report().id.boot > answers.boot);
    assert!(!agent.take(&place.orders(answers, &[&lease(1, trainer(""))], Vec::new())));
    assert_eq!(agent.report().ranks, []);
    assert!(!place.rank(1, 0).exists());
}

#[test]
fn a_killed_shim_takes_its_program_with_it() {
    let mut place = Place::new();
    let mut agent = place.open();
    // The child of this program is left to the agent.
    let (child, leader) = (place.path("child"), place.path("leader"));
    let script = format!("sh -c 'echo $$ >{child}; exec sleep 600' & echo $$ >{leader}; sleep 600; true");
    let job = lease(1, shell(&script));
    place.order(&mut agent, &[&job]);
    let pids = ["child", "leader"].map(|name| place.written(name));
    assert_eq!(place.pid(1, "program"), pids[1]);
    signal(place.pid(1, "shim"), Signal::KILL);
    assert_eq!(end_of(&mut agent, 1).0, End::Vanished);
    assert_eq!(pids.map(lives), [false; 2]);
    assert_eq!(end_of(&mut place_again(&place, agent), 1).0, End::Vanished);
}

/// The next agent of a place.
fn place_again(place: &Place, agent: Processes) -> Processes {
    drop(agent);
    place.open()
}

#[test]
fn a_shim_that_was_killed_while_no_agent_ran_has_vanished() {
    let mut place = Place::new();
    let mut agent = place.open();
    let child = place.path("child");
    let script = format!("sh -c 'echo $$ >{child}; exec sleep 600' & wait");
    place.order(&mut agent, &[&lease(1, shell(&script))]);
    let pid = place.written("child");
    let (shim, leader) = (place.pid(1, "shim"), place.pid(1, "program"));
    drop(agent);
    signal(shim, Signal::KILL);
    // The kernel kills the program, an agent its child.
    wait_for("the program's end", || (!lives(leader)).then_some(()));
    assert!(lives(pid));
    let mut agent = place.open();
    assert_eq!(end_of(&mut agent, 1).0, End::Vanished);
    assert!(!lives(pid));
}

#[test]
fn an_order_that_was_kept_but_not_carried_out_starts_nothing_later() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, trainer("--speed 50"))]);
    until_steps(&mut agent, 1);
    place.order(&mut agent, &[]);
    end_of(&mut agent, 1);
    // As an agent leaves a folder that ends before it has started the shim.
    let rank = place.rank(1, 0);
    for name in ["shim.json", "end.json", "steer.json", "stopping.json", "control.json", "progress.json"] {
        fs::remove_file(rank.join(name)).unwrap();
    }
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, End::Vanished);
    // A shim that comes late finds its rank taken, or given up.
    let late = || Command::new(PROGRAM).arg("shim").arg(&rank).stderr(Stdio::null()).status().unwrap();
    assert!(!late().success());
    drop(agent);
    wait_for("a shim that finds its rank given up", || late().success().then_some(()));
    assert!(!rank.join("shim.json").exists());
}

fn why_not_executable(program: Program) -> String {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, program)]);
    match end_of(&mut agent, 1).0 {
        End::NotExecutable(why) => why,
        end => panic!("{end:?}"),
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let why = why_not_executable(program(&["/no/such/program"]));
    assert!(why.starts_with("/no/such/program: No such file or directory"), "{why}");
    let why = why_not_executable(program(&["no-such-program-anywhere"]));
    assert!(why.starts_with("no-such-program-anywhere: No such file or directory"), "{why}");
    let why = why_not_executable(program(&["/etc/passwd"]));
    assert!(why.starts_with("/etc/passwd: Permission denied"), "{why}");
    let elsewhere = Program { directory: Some("/no/such/folder".to_owned()), ..trainer("") };
    let why = why_not_executable(elsewhere);
    assert!(why.starts_with("folder /no/such/folder: No such file or directory"), "{why}");
    assert_eq!(why_not_executable(program(&[])), "no program is named");
}

#[test]
fn a_folder_has_one_agent() {
    let place = Place::new();
    let first = place.open();
    let error = place.try_open().unwrap_err().to_string();
    assert!(error.contains("is the folder of an agent that is running"), "{error}");
    drop(first);
    place.open();
}

#[test]
fn an_order_that_cannot_be_kept_starts_nothing() {
    let mut place = Place::new();
    let mut agent = place.open();
    // (as on a full disk: no folder can be made in a file)
    let ranks = place.state().join("ranks");
    fs::remove_dir(&ranks).unwrap();
    fs::write(&ranks, "").unwrap();
    place.order(&mut agent, &[&lease(1, trainer(""))]);
    let End::NotStarted(why) = end_of(&mut agent, 1).0 else { panic!("it was started") };
    assert!(why.contains("ranks/.new-1.1.0: Not a directory"), "{why}");
}

#[test]
fn an_end_is_told_though_the_disk_has_no_more_room() {
    let mut place = Place::new();
    let mut agent = place.open();
    // (no file can be made where a folder is)
    place.order(&mut agent, &[&lease(1, shell("mkdir $APPORTION_LEASE/end.json.new; exit 0"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(0));
}

#[test]
fn ends_are_told_until_they_are_forgotten() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, shell("echo to be kept; exit 5"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let answers = agent.report().id;
    agent.take(&place.orders(answers, &[], vec![run_of(1)]));
    assert_eq!(agent.report().ranks, []);
    assert!(!place.rank(1, 0).exists());
    let log = fs::read_to_string(place.state().join("logs/1.1.0.log")).unwrap();
    assert_eq!(log, "to be kept\n");
    let mut agent = place_again(&place, agent);
    assert_eq!(agent.report().ranks, []);
}

#[test]
fn a_gang_stops_after_the_same_step() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut gang = lease(1, trainer("--speed 200 --margin 500"));
    (gang.ranks, gang.world_size) = (vec![(0, 2), (1, 3)], 2);
    place.order(&mut agent, &[&gang]);
    let ranks = |agent: &mut Processes| {
        agent.look();
        let report = agent.report();
        [0, 1].map(|rank| rank_of(&report, 1, rank).unwrap())
    };
    wait_for("both", || ranks(&mut agent).iter().all(|rank| rank.progress.steps > 0.0).then_some(()));
    gang.stop = Some(Stop::Propose);
    place.order(&mut agent, &[&gang]);
    let proposed = wait_for("a proposal", || ranks(&mut agent)[0].progress.proposed);
    assert!(ranks(&mut agent).iter().all(|rank| rank.phase == Phase::Running));
    gang.stop = Some(Stop::After(proposed));
    place.order(&mut agent, &[&gang]);
    let ended = wait_for("both ends", || {
        let ranks = ranks(&mut agent);
        ranks.iter().all(|rank| rank.phase == Phase::Ended(End::Stopped(Some(0)))).then_some(ranks)
    });
    assert_eq!(ended.map(|rank| rank.progress.checkpointed), [proposed as f64; 2]);
}

#[test]
fn what_a_program_is_told_is_in_its_environment() {
    let mut place = Place::new();
    let mut agent = place.open();
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $CUDA_VISIBLE_DEVICES $APPORTION_JOB \
                  $APPORTION_TOTAL_STEPS $OWN $(pwd) ${APPORTION_SHIM_OF_STEP-unset}";
    let mut job = LeaseOrder { total_steps: Steps::new(9.0), ..lease(4, shell(script)) };
    job.ranks = vec![(0, 2)];
    job.program.environment =
        BTreeMap::from([("OWN", "mine"), ("RANK", "no")].map(|(k, v)| (k.into(), v.into())));
    job.program.directory = Some("/".to_owned());
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 4).0, End::Exit(0));
    assert_eq!(place.output(4).trim(), "0 1 0 127.0.0.1 2 4 9 mine / unset");
}

#[test]
fn progress_that_cannot_be_read_changes_nothing() {
    let mut place = Place::new();
    let mut agent = place.open();
    let (more, said) = (place.path("more"), "$APPORTION_LEASE/progress.json");
    let script = format!(
        "echo '{{\"version\": 1, \"steps\": 7, \"state\": \"running\"}}' >{said}.new; mv {said}.new {said}; \
         while [ ! -e {more} ]; do sleep 0.02; done; echo '{{half' >{said}; exit 1"
    );
    place.order(&mut agent, &[&lease(1, shell(&script))]);
    until(&mut agent, 1, "steps", |rank| rank.progress.steps == 7.0);
    fs::write(&more, "").unwrap();
    let (end, rank) = end_of(&mut agent, 1);
    assert_eq!((end, rank.progress.steps), (End::Exit(1), 7.0));
}

#[test]
fn a_folder_that_cannot_be_read_is_set_aside() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, shell("exit 5"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let broken = place.rank(2, 0);
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("start.json"), "{half").unwrap();
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    assert_eq!(agent.report().ranks.len(), 1);
    assert!(place.state().join("aside/2.1.0/start.json").exists());
}
