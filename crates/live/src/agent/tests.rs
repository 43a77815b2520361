use std::collections::BTreeMap;

use apportion::Steps;

use super::*;
use crate::protocol::Program;

const NAME: &str = "one";

fn agent() -> Agent {
    let server = Server { name: NAME.to_owned(), worker_type: "fast".to_owned(), n_workers: 2 };
    Agent::new(server, 7, Vec::new())
}

fn at(seconds: f64) -> Seconds {
    Seconds::new(seconds)
}

fn run(job: u64, incarnation: u32) -> Run {
    Run { job: JobNumber(job), incarnation }
}

/// A lease of 10 s for one rank on a worker.
fn lease(run: Run, worker: u32) -> LeaseOrder {
    LeaseOrder {
        run,
        submission: None,
        ranks: vec![(0, worker)],
        world_size: 1,
        first_server: NAME.to_owned(),
        beside: None,
        lease: at(10.0),
        grace: at(2.0),
        stop: None,
        total_steps: Steps::new(100.0),
        program: Program { command: vec!["train".to_owned()], directory: None, environment: BTreeMap::new() },
    }
}

fn orders(number: u64, answers: u64, leases: &[LeaseOrder]) -> Orders {
    let answers = ReportId { boot: 7, number: answers };
    Orders { epoch: 1, number, answers, leases: leases.to_vec(), forget: Vec::new() }
}

/// Runs that are started, and the ends of their leases.
fn starts(acts: &[Act]) -> Vec<(Run, u32, f64)> {
    let start = |act: &Act| match act {
        Act::Start(start) => Some((start.run, start.worker, start.until.get())),
        Act::Steer { .. } => None,
    };
    acts.iter().filter_map(start).collect()
}

/// The ends of leases and the stops that ranks are sent.
fn steers(acts: &[Act]) -> Vec<(Run, f64, Option<Stop>)> {
    let steer = |act: &Act| match act {
        Act::Start(_) => None,
        Act::Steer { run, until, stop, .. } => Some((*run, until.get(), *stop)),
    };
    acts.iter().filter_map(steer).collect()
}

fn phases(agent: &mut Agent) -> Vec<(Run, Phase)> {
    agent.report(at(1000.0)).ranks.into_iter().map(|rank| (rank.run, rank.phase)).collect()
}

#[test]
fn a_lease_counts_from_the_sending_of_the_report_that_is_answered() {
    let mut agent = agent();
    agent.report(at(1.0));
    agent.report(at(5.0));
    let acts = agent.take(at(6.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    assert_eq!(starts(&acts), [(run(1, 1), 0, 11.0)]);
    let acts = agent.take(at(7.0), &orders(2, 2, &[lease(run(1, 1), 0)]));
    assert_eq!(steers(&acts), [(run(1, 1), 15.0, None)]);
    // A lease is never made shorter.
    assert_eq!(agent.take(at(8.0), &orders(3, 1, &[lease(run(1, 1), 0)])), []);
}

#[test]
fn orders_that_are_older_or_the_same_are_not_taken() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(5, 1, &[lease(run(1, 1), 0)]));
    for number in [4, 5] {
        assert_eq!(agent.take(at(1.0), &orders(number, 1, &[])), []);
    }
    // A later start of the scheduler counts anew, and orders of an earlier one are ignored.
    let later = Orders { epoch: 2, ..orders(1, 1, &[lease(run(1, 1), 0)]) };
    assert_eq!(agent.take(at(1.0), &later), []);
    assert_eq!(agent.take(at(1.0), &orders(6, 1, &[])), []);
    assert_eq!(agent.report(at(1.0)).taken, (2, 1));
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Running)]);
}

#[test]
fn orders_that_answer_another_agent_are_not_taken() {
    let mut agent = agent();
    agent.report(at(0.0));
    let mut others = orders(1, 1, &[lease(run(1, 1), 0)]);
    others.answers.boot = 6;
    assert_eq!(agent.take(at(1.0), &others), []);
    assert_eq!(agent.report(at(1.0)).taken, (0, 0));
}

#[test]
fn a_lease_that_is_over_starts_nothing() {
    let mut agent = agent();
    agent.report(at(0.0));
    assert_eq!(agent.take(at(10.0), &orders(1, 1, &[lease(run(1, 1), 0)])), []);
    assert_eq!(phases(&mut agent), []);
    // Nor does one whose report is unknown, so that its end is unknown.
    assert_eq!(agent.take(at(1.0), &orders(2, 99, &[lease(run(1, 1), 0)])), []);
    assert_eq!(phases(&mut agent), []);
}

#[test]
fn reports_of_long_ago_are_forgotten() {
    let mut agent = agent();
    for number in 0..=REPORTS_REMEMBERED {
        agent.report(at(number as f64));
    }
    assert_eq!(agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0)])), []);
    let acts = agent.take(at(1.0), &orders(2, 2, &[lease(run(1, 1), 0)]));
    assert_eq!(starts(&acts), [(run(1, 1), 0, 11.0)]);
}

#[test]
fn a_busy_worker_is_waited_for() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    let next = [lease(run(2, 1), 0), lease(run(3, 1), 1)];
    let acts = agent.take(at(2.0), &orders(2, 1, &next));
    assert_eq!(steers(&acts), [(run(1, 1), 10.0, Some(Stop::Now))]);
    assert_eq!(starts(&acts), [(run(3, 1), 1, 10.0)]);
    agent.note_end(run(1, 1), 0, End::Stopped(Some(0)));
    let acts = agent.take(at(3.0), &orders(3, 1, &next));
    assert_eq!(starts(&acts), [(run(2, 1), 0, 10.0)]);
}

#[test]
fn a_worker_is_shared_by_those_that_may_share_it() {
    let mut agent = agent();
    agent.report(at(0.0));
    let first = lease(run(1, 1), 0);
    let second = LeaseOrder { beside: Some(JobNumber(1)), ..lease(run(2, 1), 0) };
    let acts = agent.take(at(1.0), &orders(1, 1, &[first, second]));
    assert_eq!(starts(&acts).len(), 2);
}

#[test]
fn a_job_is_started_again_only_after_its_end() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    // This holds although the other worker is free.
    let again = [lease(run(1, 2), 1)];
    assert_eq!(starts(&agent.take(at(2.0), &orders(2, 1, &again))), []);
    agent.note_end(run(1, 1), 0, End::Killed);
    assert_eq!(starts(&agent.take(at(3.0), &orders(3, 1, &again))), [(run(1, 2), 1, 10.0)]);
}

#[test]
fn what_is_to_stop_before_it_was_started_has_ended() {
    let mut agent = agent();
    agent.report(at(0.0));
    let stopped = LeaseOrder { stop: Some(Stop::Now), ..lease(run(1, 1), 0) };
    assert_eq!(agent.take(at(1.0), &orders(1, 1, &[stopped])), []);
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Ended(End::Stopped(None)))]);
    // It is not started by later orders.
    assert_eq!(agent.take(at(1.0), &orders(2, 1, &[lease(run(1, 1), 0)])), []);
}

#[test]
fn a_worker_that_is_not_there_is_said() {
    let mut agent = agent();
    agent.report(at(0.0));
    assert_eq!(agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 2)])), []);
    let why = "worker 2 is asked for, the server has 2".to_owned();
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Ended(End::NotStarted(why)))]);
}

#[test]
fn an_end_is_reported_until_it_is_forgotten() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0), lease(run(2, 1), 1)]));
    agent.note_end(run(1, 1), 0, End::Exit(3));
    agent.note_end(run(1, 1), 0, End::Vanished);
    agent.note_progress(run(1, 1), 0, Progress { steps: 5.0, ..Progress::default() });
    let forget = Orders { forget: vec![run(1, 1), run(2, 1)], ..orders(3, 1, &[lease(run(2, 1), 1)]) };
    let ended = (run(1, 1), Phase::Ended(End::Exit(3)));
    assert_eq!(phases(&mut agent), [ended, (run(2, 1), Phase::Running)]);
    assert_eq!(agent.report(at(1.0)).ranks[0].progress, Progress::default());
    agent.take(at(2.0), &forget);
    // A rank that runs is not forgotten.
    assert_eq!(phases(&mut agent), [(run(2, 1), Phase::Running)]);
    assert!(agent.has(run(2, 1), 0) && !agent.has(run(1, 1), 0));
}

#[test]
fn a_run_that_is_not_named_is_stopped_even_while_it_makes_a_proposal() {
    let mut agent = agent();
    agent.report(at(0.0));
    let mut named = lease(run(1, 1), 0);
    agent.take(at(1.0), &orders(1, 1, &[named.clone()]));
    named.stop = Some(Stop::Propose);
    assert_eq!(
        steers(&agent.take(at(1.0), &orders(2, 1, &[named]))),
        [(run(1, 1), 10.0, Some(Stop::Propose))]
    );
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Running)]);
    assert_eq!(steers(&agent.take(at(1.0), &orders(3, 1, &[]))), [(run(1, 1), 10.0, Some(Stop::Now))]);
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Stopping)]);
    assert_eq!(agent.take(at(1.0), &orders(4, 1, &[])), [], "it is told once");
}

#[test]
fn ranks_of_an_earlier_agent_are_reported_and_steered() {
    let report = RankReport {
        run: run(1, 4),
        rank: 0,
        worker: 1,
        phase: Phase::Running,
        progress: Progress { speaks: true, steps: 3.0, ..Progress::default() },
        ran: None,
        ended_ago: None,
    };
    let server = agent().server().clone();
    let adopted = Adopted { report: report.clone(), ended: None, until: at(20.0), grace: at(1.0) };
    let mut agent = Agent::new(server, 7, vec![adopted]);
    assert_eq!(agent.report(at(15.0)).ranks, [report]);
    let acts = agent.take(at(16.0), &orders(1, 1, &[lease(run(1, 4), 1)]));
    assert_eq!(steers(&acts), [(run(1, 4), 25.0, None)]);
}

#[test]
fn how_long_ago_a_rank_ended_is_reported_by_later_agents_too() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    let ago = |agent: &mut Agent, now: f64| agent.report(at(now)).ranks[0].ended_ago;
    assert_eq!(ago(&mut agent, 2.0), None);
    agent.note_ended(run(1, 1), 0, at(3.0));
    agent.note_end(run(1, 1), 0, End::Exit(0));
    agent.note_ended(run(1, 1), 0, at(3.5));
    assert_eq!([4.0, 9.0].map(|now| ago(&mut agent, now)), [Some(at(1.0)), Some(at(6.0))]);
    let report = agent.report(at(9.0)).ranks.remove(0);
    let adopted = |ended| Adopted { report: report.clone(), ended, until: at(10.0), grace: at(1.0) };
    let next = |ended| Agent::new(agent.server().clone(), 7, vec![adopted(ended)]);
    assert_eq!(ago(&mut next(Some(at(3.0))), 20.0), Some(at(17.0)));
    assert_eq!(ago(&mut next(None), 20.0), None, "when it ended is not known");
    assert_eq!(ago(&mut next(Some(at(30.0))), 20.0), None, "nothing ends in the future");
}

#[test]
fn only_news_that_a_scheduler_waits_for_are_said_to_be() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(1.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    let mut progress = Progress { speaks: true, ..Progress::default() };
    assert!(agent.note_progress(run(1, 1), 0, progress));
    progress.steps = 5.0;
    assert!(!agent.note_progress(run(1, 1), 0, progress));
    progress.proposed = Some(9);
    assert!(agent.note_progress(run(1, 1), 0, progress));
    assert!(!agent.note_progress(run(2, 1), 0, progress), "of a rank that is not here");
}

#[test]
fn a_rank_that_waits_for_slurm_runs_only_once_it_has_been_started() {
    let mut agent = agent();
    agent.report(at(0.0));
    agent.take(at(0.0), &orders(1, 1, &[lease(run(1, 1), 0)]));
    agent.note_waiting(run(1, 1), 0);
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Waiting)]);
    agent.take(at(1.0), &orders(2, 1, &[LeaseOrder { stop: Some(Stop::Now), ..lease(run(1, 1), 0) }]));
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Waiting)], "it has nothing to stop yet");
    agent.note_started(run(1, 1), 0);
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Running)]);
    agent.note_stopping(run(1, 1), 0);
    assert_eq!(phases(&mut agent), [(run(1, 1), Phase::Stopping)]);
}
