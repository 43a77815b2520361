//! Tests of debts to a floor, and of policies that pay them.

use std::sync::Arc;

use super::*;
use crate::gangs::{Asked, Decider, GangPolicy, Presence, Rule, Scenario};
use crate::rounds::{ActionSchemeName, Condition, LearnedRounds, RoundsScenario, uniform};
use apportion::index::Id;
use apportion::policy::Policy as _;
use apportion::problem::ActiveJob;
use apportion::simulator::{Checkpoint, Limits, Outcome, Simulation};
use apportion::units::{Seconds, Steps};
use apportion_learn::actor::Choice;

/// One worker and two jobs of 1 step/s, these hours after they came; the first has made these steps.
fn after(hours: f64, made: f64) -> Problem {
    let mut builder = ProblemBuilder::new(Arc::new("a=1".parse().unwrap()));
    for (id, left) in [1e6 - made, 1e4].into_iter().enumerate() {
        let steps_remaining = Steps::new(left);
        let elapsed = Seconds::new(hours * 3600.0);
        let job = ActiveJob { steps_remaining, elapsed, ..ActiveJob::new(JobId::from_index(id)) };
        builder.job(job, &[1.0]);
    }
    builder.build().unwrap()
}

/// Half of the worker is an isolated share, a quarter of that 1/8 step/s: a day of it is 3 hours' worth of steps.
#[test]
fn a_job_comes_first_once_it_is_a_day_behind_and_until_it_has_caught_up() {
    let mut debts = Debts::new(0.25);
    let mut first =
        |hours: f64, made: f64| debts.update(&after(hours, made)).contains(&JobIndex::from_index(0));
    assert!(!first(0.0, 0.0));
    assert!(!first(24.0, 0.0));
    assert!(first(24.1, 0.0));
    assert!(first(26.0, 3.0 * 3600.0), "it is still a quarter of an hour behind");
    assert!(!first(27.0, 4.0 * 3600.0), "it has caught up");
    assert!(!first(50.0, 4.0 * 3600.0), "it is less than a day behind");
    assert!(first(60.0, 4.0 * 3600.0));
}

#[test]
fn jobs_come_first_in_the_order_in_which_they_fell_behind() {
    let mut debts = Debts::new(0.25);
    debts.update(&after(0.0, 0.0));
    // The first job ran an hour, and falls behind later than the second.
    let both = |hours: f64, debts: &mut Debts| -> Vec<usize> {
        debts.update(&after(hours, 3600.0)).into_iter().map(Id::index).collect()
    };
    assert_eq!(both(25.0, &mut debts), [1]);
    assert_eq!(both(40.0, &mut debts), [1, 0]);
}

#[test]
fn a_rule_serves_the_job_that_comes_first_also_after_a_restart() {
    let policy = || GangPolicy::new("least", Decider::Rule(Rule::LeastService), Asked::Events, 0);
    let served = |policy: &mut GangPolicy, hours: f64| {
        policy.allocate(&after(hours, 0.0)).unwrap().allocation.effective_throughput().as_slice().to_vec()
    };
    let mut bare = policy();
    let mut floored = policy().with_floor(0.25);
    // The second job, which is shorter, has the worker.
    for hours in [0.0, 12.0, 24.0] {
        assert_eq!(served(&mut bare, hours), [0.0, 1.0]);
        assert_eq!(served(&mut floored, hours), [0.0, 1.0]);
    }
    let mut restarted = policy().with_floor(0.25);
    restarted.restore(&floored.state()).unwrap();
    assert_eq!(served(&mut bare, 24.1), [0.0, 1.0]);
    assert_eq!(served(&mut floored, 24.1), [1.0, 0.0]);
    assert_eq!(served(&mut restarted, 24.1), [1.0, 0.0]);
}

/// A policy inside rounds that decides by chance, with a floor of all of an isolated share, which binds often.
fn by_chance(floor: Option<f64>, seed: u64) -> Box<dyn RoundPolicy> {
    let (actor, scheme) = uniform(ActionSchemeName::Agents);
    let policy = Box::new(LearnedRounds::new("tested", scheme, actor, Choice::Sampled, seed));
    match floor {
        Some(floor) => Box::new(Floored::new(policy, floor)),
        None => policy,
    }
}

#[test]
fn a_stopped_simulation_under_a_floor_goes_on_as_if_it_had_not_been() {
    let only = Scenario::on("osdi20", (8, 4), &[0.6], (14, true)).unwrap();
    let scenario = RoundsScenario { scenarios: vec![only], conditions: vec![Condition::default()] };
    let run = |simulation: &mut Simulation, presence: &mut Presence, limits: &Limits| {
        let outcome = simulation.run(presence, limits).unwrap();
        (outcome, presence.until(simulation.now()), simulation.round())
    };
    let whole = |floor| {
        let mut simulation = scenario.simulation(3, by_chance(floor, 3)).unwrap();
        run(&mut simulation, &mut Presence::default(), &Limits::default())
    };
    let expected = whole(Some(1.0));
    assert_eq!(expected.0, Outcome::Finished);
    assert_ne!(expected, whole(None), "the floor binds");
    let mut first = scenario.simulation(3, by_chance(Some(1.0), 3)).unwrap();
    let mut presence = Presence::default();
    run(&mut first, &mut presence, &Limits { rounds: Some(400), ..Limits::default() });
    let saved = serde_json::to_string(&first.checkpoint()).unwrap();
    let checkpoint: Checkpoint = serde_json::from_str(&saved).unwrap();
    let [only] = &scenario.scenarios[..] else { unreachable!() };
    let parts = (&only.cluster, Arc::clone(&only.throughputs));
    let policy = by_chance(Some(1.0), 99);
    let arrivals = only.arrivals(3).unwrap();
    let mut second = Simulation::resume_with_round_policy(parts, arrivals, policy, &checkpoint).unwrap();
    assert_eq!(run(&mut second, &mut presence, &Limits::default()), expected);
}
