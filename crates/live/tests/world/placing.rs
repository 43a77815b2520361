//! Policies that place jobs themselves, each round: their placements are the leases.

use std::cell::RefCell;

use apportion::policy::{PolicyError, Ran, RoundDecision, RoundPolicy, RoundView};
use apportion::scheduler::Rounds;
use apportion_live::core::{How, Request, State};
use apportion_live::protocol::{End, JobNumber};

use super::small::{GOOD, Small, job};

/// The most workers of a job: a larger job is placed nowhere.
const LARGEST: u32 = 2;

thread_local! {
    /// The progress that policies of this test were shown, with the round.
    static SHOWN: RefCell<Vec<(u64, Ran)>> = const { RefCell::new(Vec::new()) };
    /// Whether the policies of this test fail.
    static FAILS: RefCell<bool> = const { RefCell::new(false) };
}

/// A policy behind the mechanism as one that places jobs itself.
#[derive(Debug)]
struct Placing(Rounds);

impl RoundPolicy for Placing {
    fn name(&self) -> &'static str {
        "placing"
    }

    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        match view.problem.jobs().iter().find(|job| job.scale_factor > LARGEST) {
            Some(job) => Err(format!("{} workers are too many", job.scale_factor)),
            None => Ok(()),
        }
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        SHOWN.with_borrow_mut(|shown| shown.extend(view.ran.iter().map(|ran| (view.round, *ran))));
        if FAILS.with_borrow(|fails| *fails) {
            let (policy, reason) = (self.name().to_owned(), "told to".to_owned());
            return Err(PolicyError::Undecided { policy, reason });
        }
        self.0.begin(view)
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        self.0.next(view)
    }
}

fn placing(servers: &[(&str, u32)], cluster: &str) -> Small {
    let mut small = Small::new("max_min_fairness_perf", servers);
    small.placing = Some(|rounds| Box::new(Placing(rounds)));
    small.start(cluster);
    small.until(5.0);
    small
}

fn how(small: &Small, job: JobNumber) -> Option<How> {
    small.jobs[&job].outcome.as_ref().map(|outcome| outcome.how)
}

#[test]
fn jobs_run_fail_are_cancelled_and_move_off_servers_that_go() {
    let mut small = placing(&[("v100", 2), ("v100", 2)], "v100=4");
    let [gang, long, failing, cancelled] = [(200, 2), (250, 1), (100, 1), (900, 1)]
        .map(|(steps, workers)| small.submit(job(steps).scale_factor(workers)));
    small.doom(failing, &End::Exit(1));
    small.until(30.0);
    small.ask(Request::Cancel(cancelled)).unwrap();
    small.until(70.0);
    let of_gang = small.why(gang).job.servers;
    small.ask(Request::Drain(of_gang[0].clone(), "to be looked at".into())).unwrap();
    small.until(200.0);
    assert_ne!(small.why(gang).job.servers, of_gang, "it goes on on the other server");
    small.until(1500.0);
    let ends = [gang, long, failing, cancelled].map(|number| how(&small, number));
    assert_eq!(ends, [Some(How::Completed), Some(How::Completed), Some(How::Failed), Some(How::Cancelled)]);
    assert!(small.events.iter().all(|event| event["event"] != "allocated"));
}

#[test]
fn why_speaks_of_no_shares_where_there_are_none() {
    let mut small = placing(&[("v100", 1)], "v100=1");
    let first = small.submit(job(1_000));
    let second = small.submit(job(1_000));
    let said = small.why(second).because.join("\n");
    assert!(said.contains("has decided none since it came") && !said.contains('%'), "{said}");
    small.until(58.0);
    let waits = if small.why(first).job.state == State::Running { second } else { first };
    let why = small.why(waits);
    let said = why.because.join("\n");
    assert!(said.contains("The policy places jobs itself") && said.contains("no workers"), "{said}");
    assert!(!said.contains('%') && !said.contains("priority") && !said.contains("owed"), "{said}");
    let view = &why.worker_types[0];
    assert_eq!((view.share, view.deficit_s, view.since_reset_s, view.priority), (None, None, None, None));
    assert!(
        view.n_up == 1 && view.held_by.len() == 1 && why.decided_s.is_some() && why.decides_in_s.is_none()
    );
}

#[test]
fn the_policy_is_shown_what_ran_and_how_fast() {
    let mut small = placing(&[("v100", 1)], "v100=1");
    let only = small.submit(job(500));
    small.until(400.0);
    assert_eq!(how(&small, only), None);
    let shown = SHOWN.take();
    let of_round = |number: u64| shown.iter().filter(move |(round, _)| *round == number).collect::<Vec<_>>();
    assert!(of_round(0).is_empty());
    for round in 2..5 {
        let [(_, ran)] = of_round(round)[..] else { panic!("{shown:?}") };
        assert!((ran.time.get() - 60.0).abs() < 1.0, "{ran:?}");
        assert!((ran.throughput[0] - 1.0).abs() < 0.1 && ran.throughput[1].abs() < 1e-9, "{ran:?}");
    }
}

#[test]
fn where_the_policy_fails_jobs_go_on_and_a_restart_leaves_them_where_they_are() {
    let mut small = placing(&[("v100", 2)], "v100=2");
    let [first, second] = [0, 1].map(|_| small.submit(job(400)));
    // The first round was decided for the first job; the other has a worker from the second on.
    small.until(70.0);
    FAILS.set(true);
    small.until(200.0);
    assert!(small.warnings("told to; jobs keep the workers that they have") >= 2);
    small.start("v100=2");
    small.until(350.0);
    FAILS.set(false);
    small.until(600.0);
    for number in [first, second] {
        assert_eq!((how(&small, number), small.jobs[&number].incarnation), (Some(How::Completed), 1));
    }
    assert_eq!(small.warnings("the saved state"), 0);
}

#[test]
fn jobs_that_it_could_never_place_are_refused_or_wait_for_another_start() {
    let mut small = placing(&[("v100", 3)], "v100=3");
    let refusal = small.try_submit(job(10).scale_factor(3), GOOD).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "the job cannot be taken in: the policy `placing` could place it on no workers of the cluster: 3 workers are too many"
    );
    let placed = small.placing.take();
    small.start("v100=3");
    small.until(10.0);
    let large = small.submit(job(100).scale_factor(3));
    small.placing = placed;
    small.start("v100=3");
    let said = small.why(large).because.join(" ");
    assert!(said.starts_with("The policy cannot run it: the policy `placing`"), "{said}");
    assert!(said.contains("started with another policy"), "{said}");
    let other = small.submit(job(10));
    small.until(200.0);
    assert_eq!((how(&small, other), how(&small, large)), (Some(How::Completed), None));
    small.placing = None;
    small.start("v100=3");
    small.until(600.0);
    assert_eq!(how(&small, large), Some(How::Completed));
}

#[test]
fn a_gang_leaves_a_drained_server_though_the_policy_fails() {
    let mut small = placing(&[("v100", 2), ("v100", 2)], "v100=4");
    let gang = small.submit(job(10_000).scale_factor(2));
    small.until(70.0);
    let before = small.why(gang).job;
    assert_eq!(before.state, State::Running);
    FAILS.with_borrow_mut(|fails| *fails = true);
    small.ask(Request::Drain(before.servers[0].clone(), "a fan is broken".to_owned())).unwrap();
    small.until(200.0);
    assert_eq!(small.why(gang).job.state, State::Waiting);
    FAILS.with_borrow_mut(|fails| *fails = false);
    small.until(300.0);
    let after = small.why(gang).job;
    assert!(after.state == State::Running && after.servers != before.servers, "{after:?}");
}
