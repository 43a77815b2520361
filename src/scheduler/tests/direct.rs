//! Policies that decide inside rounds: their placements are the leases, in a scheduler as in the simulator.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::policy::{Placed, RoundDecision, RoundPolicy, RoundView};

/// A policy whose every decision depends on all that it was ever shown: a difference in that leads to different decisions.
#[derive(Debug, Default)]
struct Whim {
    seen: u64,
    n_decided: usize,
    /// The action that replaces deciding; none to decide.
    instead: Option<Instead>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Instead {
    Fail,
    Panic,
    GoOnForEver,
    /// Each job gets the first free workers, in order.
    First,
    Resize,
    /// No job of more workers than this is placed.
    Refuse(u32),
    RefuseAll,
}

impl Whim {
    fn boxed(instead: Option<Instead>) -> Box<dyn RoundPolicy> {
        Box::new(Self { instead, ..Self::default() })
    }

    fn see(&mut self, word: u64) {
        self.seen = (self.seen ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.seen ^= self.seen >> 29;
    }

    fn see_placed(&mut self, placed: &[Placed]) {
        for Placed { combination, worker_type, workers } in placed {
            for job in combination.members() {
                self.see(job.index() as u64);
            }
            self.see(worker_type.index() as u64);
            for worker in workers {
                self.see(worker.index() as u64);
            }
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.see(0);
        (self.seen >> 33) as usize % n
    }

    /// The first free workers of a type for the job at a place.
    fn first(view: &RoundView<'_>, place: usize, type_place: usize) -> RoundDecision {
        let Some(job) = view.problem.jobs().as_slice().get(place) else { return RoundDecision::EndRound };
        let worker_type = Id::from_index(type_place);
        let workers = view.free[worker_type].iter().take(job.scale_factor as usize).copied().collect();
        RoundDecision::Place(Placed { combination: Combination::single(job.id), worker_type, workers })
    }

    fn undecided(&self, reason: &str) -> PolicyError {
        PolicyError::Undecided { policy: self.name().to_owned(), reason: reason.to_owned() }
    }
}

impl RoundPolicy for Whim {
    fn name(&self) -> &'static str {
        "whim"
    }

    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        assert!(view.previous.is_empty() && view.ran.is_empty() && view.rejected.is_none());
        assert_eq!(view.free.iter().flatten().count(), view.locations.len());
        let most = view.problem.jobs().iter().map(|job| job.scale_factor).max().unwrap_or(0);
        match self.instead {
            Some(Instead::Refuse(largest)) if most > largest => Err("it is so large".to_owned()),
            Some(Instead::RefuseAll) => Err("it is so odd".to_owned()),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        self.see(view.round);
        self.see(view.now.get().to_bits());
        for job in view.problem.jobs() {
            self.see(job.id.index() as u64);
            for time in [job.steps_remaining.get(), job.elapsed.get(), job.isolated_elapsed.get()] {
                self.see(time.to_bits());
            }
        }
        for ran in view.ran {
            for job in ran.combination.members() {
                self.see(job.index() as u64);
            }
            for number in [ran.time.get(), ran.throughput[0], ran.throughput[1]] {
                self.see(number.to_bits());
            }
        }
        self.see_placed(view.previous);
        self.n_decided = 0;
        match self.instead {
            Some(Instead::Fail) => Err(self.undecided("told to fail")),
            Some(Instead::Panic) => panic!("told to panic"),
            _ => Ok(()),
        }
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        self.see_placed(view.placed);
        if let Some(reason) = view.rejected {
            self.see(reason.len() as u64);
        }
        self.n_decided += 1;
        let first = view.problem.jobs().iter().next().map(|job| job.id);
        match (self.instead, first) {
            (Some(Instead::GoOnForEver), _) => {
                return Ok(RoundDecision::Preempt { job: JobId::from_index(999) });
            }
            (Some(Instead::Resize), Some(job)) if view.rejected.is_none() => {
                return Ok(RoundDecision::Resize { job, workers: 2 });
            }
            (Some(Instead::Resize), _) if self.n_decided == 2 => {
                assert!(
                    view.rejected
                        .is_some_and(|reason| reason.contains("does not say that it can have other"))
                );
            }
            (Some(Instead::First), _) => return Ok(Self::first(view, self.n_decided - 1, 0)),
            _ => {}
        }
        let (n_jobs, n_types) = (view.problem.n_jobs(), view.free.len());
        if let Some(more) = self.n_decided.checked_sub(2 * n_jobs + 3) {
            // Something must run, or nothing would ever change.
            return Ok(match view.placed {
                [] => Self::first(view, more / n_types, more % n_types),
                _ => RoundDecision::EndRound,
            });
        }
        if n_jobs == 0 {
            return Ok(RoundDecision::EndRound);
        }
        let job = &view.problem.jobs().as_slice()[self.below(n_jobs)];
        if self.below(8) == 0 {
            return Ok(RoundDecision::Preempt { job: job.id });
        }
        let worker_type = Id::from_index(self.below(n_types));
        let mut free = view.free[worker_type].clone();
        let mut combination = Combination::single(job.id);
        if self.below(4) == 0 {
            let other = view.problem.jobs().as_slice()[self.below(n_jobs)].id;
            if other != job.id {
                combination = Combination::pair(job.id.min(other), job.id.max(other));
            }
        }
        let mut workers = Vec::new();
        while workers.len() < job.scale_factor as usize && !free.is_empty() {
            workers.push(free.remove(self.below(free.len())));
        }
        workers.sort_unstable();
        Ok(RoundDecision::Place(Placed { combination, worker_type, workers }))
    }

    fn state(&self) -> serde_json::Value {
        json!(self.seen)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        self.seen = state.as_u64().ok_or_else(|| PolicyError::State { policy: "whim".to_owned() })?;
        Ok(())
    }
}

fn direct(cluster: &str, instead: Option<Instead>) -> Scheduler {
    let (cluster, policy) = (cluster.parse().unwrap(), Whim::boxed(instead));
    Scheduler::with_round_policy(&cluster, throughputs(), policy, Options::default()).unwrap()
}

/// A shadow whose scheduler is saved and restored before every third round, if its policy is a whim.
#[derive(Debug)]
struct Saved {
    shadow: Shadow,
    whim_on: Option<(Cluster, Options)>,
}

impl Observer for Saved {
    fn observe(&mut self, event: &Event<'_>) {
        if let (Event::RoundStarted { round, .. }, Some((cluster, options))) = (event, &self.whim_on)
            && round % 3 == 0
        {
            let text = serde_json::to_string(&self.shadow.scheduler.state()).unwrap();
            let policy = Whim::boxed(None);
            let mut fresh = Scheduler::with_round_policy(cluster, throughputs(), policy, *options).unwrap();
            fresh.restore(&serde_json::from_str(&text).unwrap()).unwrap();
            self.shadow.scheduler = fresh;
        }
        self.shadow.observe(event);
    }
}

fn shadowed(policy: &dyn Fn() -> Box<dyn RoundPolicy>, is_whim: bool, options: simulator::Options) -> usize {
    let cluster = of_four("v100=6,p100=4,k80=4");
    let told = options.scheduler();
    let scheduler = Scheduler::with_round_policy(&cluster, throughputs(), policy(), told).unwrap();
    let whim_on = is_whim.then(|| (cluster.clone(), told));
    let mut saved = Saved { shadow: Shadow::new(scheduler), whim_on };
    let arrivals = Box::new(Listed::new(some_jobs(options.seed)));
    let mut simulation =
        Simulation::with_round_policy((&cluster, throughputs()), arrivals, policy(), options).unwrap();
    let outcome = simulation.run(&mut saved, &Limits { rounds: Some(20_000), ..Limits::default() });
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    saved.shadow.n_compared
}

#[test]
fn placements_are_those_of_the_simulator() {
    let names = ["fifo", "max_min_fairness_packed", "themis"].into_iter().cycle();
    for (seed, name) in (0..12).zip(names) {
        let mut options = if seed % 2 == 0 { with_worker_faults() } else { simulator::Options::corrected() };
        options.faults.jobs.probability = if seed % 3 == 0 { 0.05 } else { 0.0 };
        let options = options.with_seed(seed);
        assert!(shadowed(&|| Whim::boxed(None), true, options.clone()) > 50);
        let rounds = || {
            let policy = Catalog::embedded().policy(name).unwrap();
            let cluster = of_four("v100=6,p100=4,k80=4");
            Box::new(Rounds::new(policy, &cluster, &options.scheduler())) as Box<dyn RoundPolicy>
        };
        assert!(shadowed(&rounds, false, options.clone()) > 50);
    }
}

#[test]
fn there_is_no_allocation_and_nothing_is_given_inside_rounds() {
    let mut scheduler = direct("v100=4", Some(Instead::First));
    scheduler.submit_as("first", job(2.0, 1.0)).unwrap();
    assert_eq!(scheduler.decided(), None);
    let round = scheduler.tick(start(0), LONG);
    assert_eq!(round.decided, Decided::Fresh { asked: Seconds::ZERO });
    assert_eq!(held(&round), [("first".to_owned(), "v100")]);
    assert_eq!(scheduler.decided(), Some(Seconds::ZERO));
    assert!(scheduler.in_force().is_none() && scheduler.mechanism().is_none());
    let second = scheduler.submit_as("second", job(2.0, 1.0)).unwrap();
    assert!(!scheduler.was_shown(second));
    assert_eq!(scheduler.refill(Seconds::new(9.0)), []);
    assert_eq!(scheduler.refill_with_arrivals(Seconds::new(9.0), LONG), (Decided::Unchanged, Vec::new()));
    let [jobs] = [round.leases[0].jobs];
    scheduler.project(jobs, Id::from_index(0), Seconds::new(9.0)).unwrap();
    let speeds = [StepsPerSecond::new(f64::NAN), StepsPerSecond::new(0.0)];
    assert!(scheduler.observe(jobs, Id::from_index(0), speeds).is_err());
    scheduler.tick(start(1), LONG);
    assert!(scheduler.was_shown(second));
}

#[test]
fn where_the_policy_fails_jobs_keep_the_workers_that_are_up() {
    for (instead, said) in [
        (Instead::Fail, "policy `whim` cannot decide: told to fail"),
        (Instead::Panic, "policy `whim` failed: it panicked: told to panic"),
        (Instead::GoOnForEver, "the policy made 144 decisions in round 1 without ending it"),
    ] {
        let mut scheduler = direct("v100=6", Some(Instead::First));
        for name in ["a", "b", "c"] {
            scheduler.submit_as(name, job(2.0, 1.0)).unwrap();
        }
        let round = scheduler.tick(start(0), None);
        assert_eq!(round.leases.len(), 3);
        let mut failing = direct("v100=6", Some(instead));
        failing.restore(&scheduler.state()).unwrap();
        let [gone, lost, stays] = [&round.leases[0], &round.leases[1], &round.leases[2]];
        assert!(failing.finish(failing.find(&gone.names[0]).unwrap()));
        failing.set_up(lost.workers[0], false).unwrap();
        let next = failing.tick(start(1), LONG);
        let Decided::Failed { error } = &next.decided else { panic!("{next:?}") };
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(failing.decided(), Some(Seconds::ZERO));
        let expected = Lease { extended: true, ..stays.clone() };
        assert_eq!((next.leases, next.preempted), (vec![expected], vec![lost.clone()]));
    }
}

#[test]
fn jobs_that_it_could_never_place_are_refused_and_none_changes_its_size() {
    let mut scheduler = direct("v100=4", Some(Instead::Refuse(2)));
    scheduler.submit_as("two", job(2.0, 1.0).scale_factor(2)).unwrap();
    let refused = scheduler.submit_as("three", job(2.0, 1.0).scale_factor(3)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the policy `whim` could place it on no workers of the cluster: it is so large"
    );
    assert_eq!(scheduler.jobs().len(), 1);
    // A job that another start took in is refused when its state is restored.
    let mut stricter = direct("v100=4", Some(Instead::Refuse(1)));
    let error = stricter.restore(&scheduler.state()).unwrap_err();
    assert!(error.to_string().contains("so large") && stricter.jobs().len() == 0, "{error}");
    let on_nothing = Whim::boxed(Some(Instead::RefuseAll));
    let error = Scheduler::with_round_policy(
        &"v100=4".parse().unwrap(),
        throughputs(),
        on_nothing,
        Options::default(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "the policy `whim` cannot place jobs on the cluster `v100=4`: it is so odd"
    );

    let mut resized = direct("v100=4", Some(Instead::Resize));
    resized.submit_as("one", job(2.0, 1.0)).unwrap();
    let round = resized.tick(start(0), None);
    assert_eq!((round.decided, round.leases[0].workers.len()), (Decided::Fresh { asked: Seconds::ZERO }, 1));
}

#[test]
fn states_of_others_are_refused_and_nothing_changes() {
    let mut scheduler = direct("v100=4", Some(Instead::First));
    scheduler.submit_as("mine", job(2.0, 1.0)).unwrap();
    scheduler.tick(start(0), None);
    let state = serde_json::to_value(scheduler.state()).unwrap();
    let with = |path: &str, value: serde_json::Value| {
        let mut state = state.clone();
        *state.pointer_mut(path).unwrap() = value;
        serde_json::from_value::<SchedulerState>(state).unwrap()
    };
    for (wrong, said) in [
        (with("/direct/down", json!([4])), "worker 4 is not in the cluster"),
        (with("/direct/placed/0/workers", json!([7])), "worker 7 is none of type 0"),
        (with("/direct/placed/0/worker_type", json!(1)), "is none of type 1"),
        (with("/direct", json!(null)), "it has not one policy's rounds"),
        (with("/policy", json!("fifo")), "it is of policy `fifo`, expected `whim`"),
        (with("/direct/policy", json!("x")), "whim"),
    ] {
        let mut fresh = direct("v100=4", None);
        let error = fresh.restore(&wrong).unwrap_err().to_string();
        assert!(error.contains(said) && fresh.jobs().len() == 0, "{error}");
    }
}

#[test]
fn a_simulation_goes_on_where_the_scheduler_is() {
    let cluster: Cluster = "v100=4".parse().unwrap();
    let mut scheduler = direct("v100=4", None);
    for name in ["a", "b", "c", "d", "e"] {
        scheduler.submit_as(name, job(2.0, 1.0).steps(3_000)).unwrap();
    }
    let round = scheduler.tick(start(0), None);
    run(&mut scheduler, &round);
    let nothing = || Box::new(Listed::new(Vec::new()));
    let of_simulation = simulator::Options::corrected();
    let fresh = Simulation::with_round_policy(
        (&cluster, throughputs()),
        nothing(),
        Whim::boxed(None),
        of_simulation.clone(),
    );
    let checkpoint = fresh.unwrap().checkpoint();
    let taken = checkpoint.clone().taking_over(&scheduler.state(), start(1), &BTreeMap::new()).unwrap();
    let policy = Whim::boxed(None);
    let mut simulation =
        Simulation::resume_with_round_policy((&cluster, throughputs()), nothing(), policy, &taken).unwrap();
    simulation.start_round(&mut simulator::Unobserved).unwrap();
    let outcome = simulation.run(&mut simulator::Unobserved, &Limits::default()).unwrap();
    assert_eq!(outcome, Outcome::Finished);

    let other = super::scheduler("v100=4", Box::new(Isolated::default()));
    let error = checkpoint.taking_over(&other.state(), start(1), &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("gives shares, and this one places jobs itself"), "{error}");
}
