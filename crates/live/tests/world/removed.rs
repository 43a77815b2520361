//! Servers that are gone for good, and others that take their places.

use apportion_live::core::{Answer, Refusal, Request, ServerView, State};
use apportion_live::protocol::JobNumber;

use super::node::Process;
use super::small::{ROUND, Small, job};

const FREES: &str = "If such a machine is gone for good, `apportion remove a` frees its place";

fn servers(small: &mut Small) -> Vec<ServerView> {
    match small.ask(Request::Servers).unwrap() {
        Answer::Servers(views) => views,
        answer => panic!("{answer:?}"),
    }
}

fn remove(small: &mut Small, is_off: bool) -> String {
    match small.ask(Request::Remove("a".to_owned(), is_off)) {
        Ok(Answer::Done { text }) => text,
        answer => panic!("{answer:?}"),
    }
}

fn state(small: &mut Small, number: JobNumber) -> State {
    small.views().into_iter().find(|view| view.job == number).unwrap().state
}

/// Advances to this instant, and checks all along that no start of the job runs beside another.
fn until_apart(small: &mut Small, number: JobNumber, end: f64) {
    while small.now < end {
        small.until(small.now + 0.25);
        let ranks = small.nodes.iter().flat_map(|node| &node.processes);
        let runs: Vec<_> = ranks
            .filter(|((run, _), process)| run.job == number && process.is_running())
            .map(|((run, _), _)| *run)
            .collect();
        let is_one = runs.windows(2).all(|runs| runs[0] == runs[1]);
        assert!(is_one, "at {}: {runs:?}", small.now);
    }
}

/// A scheduler with a place for one server: a job runs on `a`, and `b` finds no place.
fn a_server_too_many() -> (Small, JobNumber) {
    let mut small = Small::new("fifo", &[("v100", 1), ("v100", 1)]);
    small.start("v100=1");
    small.until(1.0);
    let number = small.submit(job(100_000));
    small.until(20.0);
    assert_eq!(state(&mut small, number), State::Running);
    (small, number)
}

#[test]
fn a_server_that_finds_no_place_is_told_whose_can_be_freed_once_that_is_silent() {
    let (mut small, _) = a_server_too_many();
    let no_place = "b offers 1 of type v100; the cluster has no server of that type and size";
    assert_eq!(small.warnings(no_place), 1, "{:?}", small.notes);
    assert_eq!(small.warnings("start the scheduler with a larger `--cluster`"), 1, "{:?}", small.notes);
    assert_eq!(small.warnings(FREES), 0, "{:?}", small.notes);
    small.nodes[0].switch_off(true);
    small.until(200.0);
    assert_eq!(small.warnings(FREES), 1, "told once: {:?}", small.notes);
}

#[test]
fn a_server_that_is_heard_of_is_not_removed() {
    let (mut small, number) = a_server_too_many();
    for is_off in [false, true] {
        let said = small.ask(Request::Remove("a".to_owned(), is_off));
        let Err(Refusal::Invalid { text }) = &said else { panic!("{said:?}") };
        assert!(text.contains("a may be there: it was heard of 0 s ago"), "{text}");
    }
    let said = small.ask(Request::Remove("z".to_owned(), true));
    assert!(matches!(said, Err(Refusal::Unknown { .. })), "{said:?}");
    // Nor is one that a scheduler which was just started has not given the time to report.
    small.core = None;
    small.start("v100=1");
    let said = small.ask(Request::Remove("a".to_owned(), true));
    let Err(Refusal::Invalid { text }) = &said else { panic!("{said:?}") };
    assert!(text.contains("the scheduler was started 0 s ago, and waits for its report"), "{text}");
    small.until(60.0);
    assert_eq!(state(&mut small, number), State::Running);
    assert_eq!(small.jobs[&number].incarnation, 1);
}

#[test]
fn a_removed_server_s_place_is_another_s_when_its_leases_are_surely_over() {
    for restarts in [false, true] {
        let (mut small, number) = a_server_too_many();
        // The agent is gone; what it started runs on until the end of its lease.
        small.nodes[0].agent = None;
        until_apart(&mut small, number, 40.0);
        let said = remove(&mut small, false);
        assert!(said.starts_with("a is removed when job 0 can run there no more, in "), "{said}");
        assert!(said.contains("`apportion remove a --off` waits for no lease of it"), "{said}");
        assert!(servers(&mut small)[0].is_leaving);
        if restarts {
            small.core = None;
            small.start("v100=1");
        }
        until_apart(&mut small, number, 60.0);
        let names: Vec<String> = servers(&mut small).into_iter().map(|view| view.server).collect();
        assert_eq!(names, ["a"], "its lease is not over");
        until_apart(&mut small, number, 3.5 * ROUND);
        let names: Vec<String> = servers(&mut small).into_iter().map(|view| view.server).collect();
        assert_eq!(names, ["b"], "restarts: {restarts}");
        assert_eq!((state(&mut small, number), small.jobs[&number].incarnation), (State::Running, 2));
        assert!(small.nodes[1].processes.values().any(Process::is_running));
    }
}

#[test]
fn a_server_that_is_off_is_removed_at_once_and_its_jobs_run_elsewhere() {
    let (mut small, number) = a_server_too_many();
    small.nodes[0].switch_off(true);
    small.until(40.0);
    let said = remove(&mut small, true);
    assert_eq!(said, "a is removed, and its leases are over: another server of type v100 can take its place");
    assert_eq!(servers(&mut small), []);
    let is_down = |event: &&serde_json::Value| event["event"] == "worker_down";
    assert_eq!(small.events.iter().filter(is_down).count(), 1, "{:?}", small.events);
    small.until(small.now + 1.0);
    let last = small.jobs[&number].last_end.clone();
    assert_eq!(last.as_deref(), Some("on a, it was lost: its machine is off, as its operator says"));
    small.until(small.now + ROUND);
    assert_eq!((state(&mut small, number), small.jobs[&number].incarnation), (State::Running, 2));
    // Its run counts until its operator says that the machine is off, and no longer.
    let before = small.jobs[&number].received["v100"].get();
    assert!(before < 2.0 * ROUND, "{before}");
    // The removal is on disk.
    small.close();
    small.start("v100=1");
    small.until(small.now + 1.0);
    let names: Vec<String> = servers(&mut small).into_iter().map(|view| view.server).collect();
    assert_eq!(names, ["b"]);
}

#[test]
fn a_gang_with_a_rank_on_a_removed_server_stops_and_runs_elsewhere() {
    for restarts in [false, true] {
        let mut small = Small::new("fifo", &[("v100", 1), ("v100", 1), ("v100", 1)]);
        small.start("v100=2");
        small.until(1.0);
        let gang = small.submit(job(100_000).scale_factor(2));
        small.until(20.0);
        assert_eq!(state(&mut small, gang), State::Running);
        small.nodes[0].switch_off(true);
        small.until(40.0);
        let said = remove(&mut small, true);
        assert!(said.starts_with("a is removed when the other ranks of job 0 have stopped"), "{said}");
        if restarts {
            small.core = None;
            small.start("v100=2");
        }
        until_apart(&mut small, gang, 3.0 * ROUND);
        let view = small.views().remove(0);
        assert_eq!(
            (view.state, view.servers, view.starts),
            (State::Running, vec!["b".into(), "c".into()], 2)
        );
        assert_eq!(
            view.last_end.as_deref(),
            Some("on a, it was lost: its machine is off, as its operator says")
        );
    }
}

#[test]
fn a_server_that_is_heard_of_again_stays() {
    let (mut small, number) = a_server_too_many();
    small.nodes[0].agent = None;
    small.until(40.0);
    remove(&mut small, false);
    let now = small.now;
    small.nodes[0].start_agent(now);
    until_apart(&mut small, number, 3.0 * ROUND);
    assert_eq!(small.warnings("a is heard of again, and is not removed"), 1, "{:?}", small.notes);
    let views = servers(&mut small);
    assert!(views.len() == 1 && views[0].server == "a" && !views[0].is_leaving, "{views:?}");
    assert_eq!(state(&mut small, number), State::Running);
}
