//! An agent's folder, and the programs that run in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use apportion::{Seconds, Steps};
use apportion_live::agent::{Home, Processes, ProcessesError, Server};
use apportion_live::protocol::{
    End, JobNumber, LeaseOrder, Orders, Phase, Program, RankReport, Report, ReportId, Run,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::wait_for;

/// The shim, the pretend trainer and an agent.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion-shim");

/// A lease that no test outlives.
pub(crate) const LONG: f64 = 300.0;

/// A grace that no test outlives.
pub(crate) const PATIENT: f64 = 300.0;

pub(crate) fn run_of(job: u64) -> Run {
    Run { job: JobNumber(job), incarnation: 1 }
}

pub(crate) fn program(command: &[&str]) -> Program {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    Program { command, directory: None, environment: BTreeMap::new() }
}

pub(crate) fn trainer(flags: &str) -> Program {
    let words = [PROGRAM, "trainer"].into_iter().chain(flags.split_whitespace());
    program(&words.collect::<Vec<_>>())
}

pub(crate) fn shell(script: &str) -> Program {
    program(&["/bin/sh", "-c", script])
}

/// One rank on worker 0, with a long lease and a patient grace.
pub(crate) fn lease(job: u64, program: Program) -> LeaseOrder {
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

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A folder for an agent's state, and for the documents that a scheduler would have.
pub(crate) struct Place {
    pub folder: TempDir,
    numbers: u64,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), numbers: 0 }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn rank(&self, job: u64, rank: u32) -> PathBuf {
        self.state().join(format!("ranks/{job}.1.{rank}"))
    }

    pub(crate) fn output(&self, job: u64) -> String {
        fs::read_to_string(self.rank(job, 0).join("output.log")).unwrap()
    }

    pub(crate) fn server() -> Server {
        Server { name: "test".to_owned(), worker_type: "fast".to_owned(), n_workers: 4 }
    }

    pub(crate) fn home(&self) -> Home {
        let checkpoints = self.folder.path().join("checkpoints");
        Home { state: self.state(), checkpoints, shim: vec![PROGRAM.into(), "shim".into()] }
    }

    pub(crate) fn try_open(&self) -> Result<Processes, ProcessesError> {
        Processes::open(Self::server(), self.home())
    }

    pub(crate) fn open(&self) -> Processes {
        self.try_open().unwrap()
    }

    pub(crate) fn orders(&mut self, answers: ReportId, leases: &[&LeaseOrder], forget: Vec<Run>) -> Orders {
        self.numbers += 1;
        let leases = leases.iter().map(|lease| (*lease).clone()).collect();
        Orders { epoch: 1, number: self.numbers, answers, leases, forget }
    }

    pub(crate) fn order(&mut self, agent: &mut Processes, leases: &[&LeaseOrder]) {
        let answers = agent.report().id;
        agent.take(&self.orders(answers, leases, Vec::new()));
    }

    /// Orders a job with a lease of one second, which is extended until `is_ready`, and not after that.
    pub(crate) fn order_for_a_second(
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

    /// A process number in `shim.json`: that of `of`.
    pub(crate) fn pid(&self, job: u64, of: &str) -> i32 {
        wait_for("shim.json", || {
            let text = fs::read(self.rank(job, 0).join("shim.json")).ok()?;
            let owned: serde_json::Value = serde_json::from_slice(&text).unwrap();
            i32::try_from(owned[of]["pid"].as_i64()?).ok()
        })
    }

    /// A process number that a program has written into a file of the place.
    pub(crate) fn written(&self, name: &str) -> i32 {
        let path = self.folder.path().join(name);
        wait_for(name, || fs::read_to_string(&path).ok()?.trim().parse().ok())
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

pub(crate) fn rank_of(report: &Report, job: u64, rank: u32) -> Option<RankReport> {
    report.ranks.iter().find(|found| found.run == run_of(job) && found.rank == rank).cloned()
}

/// Looks until the rank's state is as expected.
pub(crate) fn until(
    agent: &mut Processes,
    job: u64,
    what: &str,
    is: impl Fn(&RankReport) -> bool,
) -> RankReport {
    wait_for(what, || {
        agent.look();
        rank_of(&agent.report(), job, 0).filter(&is)
    })
}

pub(crate) fn until_steps(agent: &mut Processes, job: u64) -> RankReport {
    until(agent, job, "steps", |rank| rank.progress.steps > rank.progress.first)
}

pub(crate) fn end_of(agent: &mut Processes, job: u64) -> (End, RankReport) {
    let rank = until(agent, job, "end", |rank| matches!(rank.phase, Phase::Ended(_)));
    let Phase::Ended(end) = rank.phase.clone() else { unreachable!() };
    (end, rank)
}

/// A new agent of a place, after the end of this one.
pub(crate) fn place_again(place: &Place, agent: Processes) -> Processes {
    drop(agent);
    place.open()
}
