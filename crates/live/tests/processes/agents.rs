//! Agents and shims that are killed, cut off and opened again while programs run.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use apportion_live::agent::{Link, LinkError, Processes};
use apportion_live::protocol::{End, Orders, Phase, Report, Stop};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::place::{
    PROGRAM, Place, end_of, lease, place_again, rank_of, shell, signal, trainer, until, until_steps,
};
use crate::support::{lives, wait_for};

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

    // The orders for the first agent are still in the mailbox: the second agent takes none that answer the first.
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

/// A guard that stops an agent, even if the test fails.
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

fn found_gone() -> End {
    End::Lost("it was gone when its agent was started again".to_owned())
}

/// The guard of a shim, which is its parent.
fn guard_of(shim: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    parent.trim().parse().unwrap()
}

/// A rank with three processes: the program, a child of it, and one that has left its group and session.
fn order_three(place: &mut Place, agent: &mut Processes) -> [i32; 3] {
    let [near, far, leader] = ["near", "far", "leader"].map(|name| place.path(name));
    let script = format!(
        "sh -c 'echo $$ >{near}; exec sleep 600' & setsid sh -c 'echo $$ >{far}; exec sleep 600' & \
         echo $$ >{leader}; sleep 600; true"
    );
    place.order(agent, &[&lease(1, shell(&script))]);
    let pids = ["near", "far", "leader"].map(|name| place.written(name));
    assert_eq!(place.pid(1, "program"), pids[2]);
    pids
}

#[test]
fn a_killed_shim_takes_all_processes_of_its_rank_with_it() {
    let mut place = Place::new();
    let mut agent = place.open();
    let pids = order_three(&mut place, &mut agent);
    signal(place.pid(1, "shim"), Signal::KILL);
    assert_eq!(end_of(&mut agent, 1).0, End::Vanished);
    assert_eq!(pids.map(lives), [false; 3]);
    assert_eq!(end_of(&mut place_again(&place, agent), 1).0, End::Vanished);
}

#[test]
fn a_shim_that_was_killed_while_no_agent_ran_is_lost_by_no_fault_of_the_job() {
    let mut place = Place::new();
    let mut agent = place.open();
    let pids = order_three(&mut place, &mut agent);
    drop(agent);
    signal(place.pid(1, "shim"), Signal::KILL);
    // No agent is there: the guard does it.
    wait_for("the ends of all processes", || (pids.map(lives) == [false; 3]).then_some(()));
    assert_eq!(end_of(&mut place.open(), 1).0, found_gone());
}

#[test]
fn an_agent_ends_what_a_shim_and_its_guard_have_left_before_it_reports_the_end() {
    let mut place = Place::new();
    let mut agent = place.open();
    let [near, far, leader] = order_three(&mut place, &mut agent);
    drop(agent);
    let shim = place.pid(1, "shim");
    signal(guard_of(shim), Signal::KILL);
    signal(shim, Signal::KILL);
    // The kernel kills the program only.
    wait_for("the program's end", || (!lives(leader)).then_some(()));
    assert_eq!([near, far].map(lives), [true; 2]);
    let mut agent = place.open();
    assert_eq!(end_of(&mut agent, 1).0, found_gone());
    assert_eq!([near, far].map(lives), [false; 2]);
}

#[test]
fn an_agent_ends_ranks_whose_folders_are_gone_before_it_reports() {
    let mut place = Place::new();
    let mut agent = place.open();
    let pids = order_three(&mut place, &mut agent);
    drop(agent);
    // Another folder is put in the place of the agent's.
    fs::rename(place.state(), place.path("moved")).unwrap();
    let mut agent = place.open();
    assert_eq!(pids.map(lives), [false; 3]);
    assert_eq!(agent.report().ranks, []);
}

#[test]
fn a_rank_goes_on_without_its_guard() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = lease(1, trainer("--speed 50"));
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    signal(guard_of(place.pid(1, "shim")), Signal::KILL);
    until_steps(&mut agent, 1);
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn an_order_that_was_kept_but_not_carried_out_starts_nothing_later() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, trainer("--speed 50"))]);
    until_steps(&mut agent, 1);
    place.order(&mut agent, &[]);
    end_of(&mut agent, 1);
    // This is the folder of an agent that ended before it had started the shim.
    let rank = place.rank(1, 0);
    for name in ["shim.json", "end.json", "steer.json", "stopping.json", "control.json", "progress.json"] {
        fs::remove_file(rank.join(name)).unwrap();
    }
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, found_gone());
    // A late shim finds its rank taken, or given up.
    let late = || Command::new(PROGRAM).arg("shim").arg(&rank).stderr(Stdio::null()).status().unwrap();
    assert!(!late().success());
    drop(agent);
    wait_for("a shim that finds its rank given up", || late().success().then_some(()));
    assert!(!rank.join("shim.json").exists());
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
