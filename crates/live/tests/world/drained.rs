//! Gangs on servers that are drained, by their operator or by Slurm, and the ends of gangs.

use apportion_live::core::{Answer, JobView, NextView, Request, State};
use apportion_live::protocol::{End, JobNumber};

use super::small::{ROUND, Small, job};

/// Policies of different kinds: a program, a rule, and one by which jobs keep their workers.
const POLICIES: [&str; 3] = ["max_min_fairness_perf", "fifo", "isolated"];

/// A gang of two that runs in a cluster of these servers.
fn gang_on(policy: &'static str, servers: &[(&str, u32)], cluster: &str) -> (Small, JobNumber) {
    let mut small = Small::new(policy, servers);
    small.start(cluster);
    small.until(1.0);
    let gang = small.submit(job(100_000).scale_factor(2));
    small.until(ROUND / 2.0);
    assert_eq!(view(&mut small, gang).state, State::Running);
    (small, gang)
}

fn view(small: &mut Small, number: JobNumber) -> JobView {
    small.views().into_iter().find(|view| view.job == number).unwrap()
}

fn next(small: &mut Small) -> NextView {
    match small.ask(Request::Next).unwrap() {
        Answer::Next(next) => *next,
        answer => panic!("{answer:?}"),
    }
}

/// A gang runs on other servers after a round in which `drain` is applied to the first of its own.
fn after_draining(small: &mut Small, gang: JobNumber, drain: impl Fn(&mut Small, &str)) {
    let before = view(small, gang).servers;
    let ends = next(small).ends_in_s.unwrap();
    drain(small, &before[0]);
    small.until(small.now + ends + 5.0);
    let after = view(small, gang);
    assert_eq!(after.state, State::Running, "{after:?}, before on {before:?}");
    assert!(!after.servers.contains(&before[0]), "{after:?}, before on {before:?}");
}

/// A way to drain the server of this name.
type Drain = fn(&mut Small, &str);

fn by_operator(small: &mut Small, server: &str) {
    small.ask(Request::Drain(server.to_owned(), "a fan is broken".to_owned())).unwrap();
}

/// Drains a server as an executor does that reports a node to which Slurm gives no job.
fn by_slurm(small: &mut Small, server: &str) {
    small.nodes.iter_mut().find(|node| node.server.name == server).unwrap().n_offered = Some(0);
}

/// Policies with ways to drain a server.
fn all() -> impl Iterator<Item = (&'static str, Drain)> {
    POLICIES.into_iter().flat_map(|policy| [by_operator as Drain, by_slurm].map(|drain| (policy, drain)))
}

#[test]
fn a_gang_leaves_a_drained_server_at_the_end_of_the_round() {
    for (policy, drain) in all() {
        let (mut small, gang) = gang_on(policy, &[("v100", 2), ("v100", 2)], "v100=4");
        after_draining(&mut small, gang, drain);
    }
}

#[test]
fn a_gang_over_servers_leaves_the_drained_one_of_them() {
    for (policy, drain) in all() {
        let (mut small, gang) = gang_on(policy, &[("v100", 1), ("v100", 1), ("v100", 1)], "v100=3");
        after_draining(&mut small, gang, drain);
    }
}

#[test]
fn a_gang_on_drained_servers_waits_where_there_are_no_others() {
    for (policy, drain) in all() {
        let (mut small, gang) = gang_on(policy, &[("v100", 1), ("v100", 1)], "v100=2");
        let ends = next(&mut small).ends_in_s.unwrap();
        drain(&mut small, "a");
        small.until(small.now + ends + 5.0);
        assert_eq!(view(&mut small, gang).state, State::Waiting);
    }
}

#[test]
fn the_end_of_a_gang_is_known_with_the_last_rank_s() {
    let (mut small, gang) = gang_on("fifo", &[("v100", 1), ("v100", 1)], "v100=2");
    let last = small.now;
    for node in &mut small.nodes {
        for process in node.processes.values_mut() {
            process.end = Some(End::Exit(0));
        }
    }
    small.until(last + 1.0);
    let view = view(&mut small, gang);
    assert_eq!(view.state, State::Completed, "{view:?}");
}

#[test]
fn a_job_whose_servers_are_all_drained_is_told_so() {
    for (policy, drain) in all() {
        let (mut small, gang) = gang_on(policy, &[("v100", 2), ("k80", 1)], "v100=2,k80=1");
        drain(&mut small, "a");
        // Several rounds follow in which the policy does not decide about it any more.
        small.until(20.0 * ROUND);
        let why = small.why(gang);
        let said = &why.because[0];
        assert!(
            said.starts_with("It needs 2 workers of one type")
                && said.contains("0 of v100, 1 of k80 that may"),
            "{policy}: {said}"
        );
    }
}

#[test]
fn a_server_with_a_full_disk_gets_no_new_job_and_what_runs_there_goes_on() {
    let mut small = Small::new("fifo", &[("v100", 2)]);
    small.start("v100=2");
    small.until(5.0);
    let first = small.submit(job(300));
    small.until(10.0);
    small.nodes[0].disk = Some("the disk of /var/lib/agent is full".to_owned());
    small.until(11.0);
    let second = small.submit(job(10));
    small.until(200.0);
    assert_eq!(
        small.warnings("a gets no new job, and what runs there goes on: the disk of /var/lib/agent"),
        1
    );
    assert_eq!((small.jobs[&first].incarnation, small.jobs[&second].incarnation), (1, 0));
    assert!(small.jobs[&first].run.is_some(), "{:?}", small.jobs[&first]);
    let why = small.why(second).because.join(" ");
    assert!(why.contains("0 of v100 that may be given jobs"), "{why}");
    small.nodes[0].disk = None;
    small.until(300.0);
    assert!(small.jobs[&second].outcome.is_some(), "{:?}", small.jobs[&second]);
}

#[test]
fn workers_that_may_be_given_jobs_are_counted_alike_before_the_next_decision() {
    let mut small = Small::new("fifo", &[("v100", 1), ("k80", 1)]);
    small.start("v100=1,k80=1");
    small.until(1.0);
    let [_, _, waits] = [0, 1, 2].map(|_| small.submit(job(100_000)));
    small.until(ROUND / 2.0);
    let up = |small: &mut Small| -> Vec<u32> {
        small.why(waits).worker_types.iter().map(|view| view.n_up).collect()
    };
    assert_eq!(up(&mut small), [1, 1]);
    by_operator(&mut small, "a");
    by_operator(&mut small, "b");
    assert_eq!(up(&mut small), [0, 0]);
    assert!(small.why(waits).because[0].contains("at present 0 of v100, 0 of k80 that may be given jobs"));
}
