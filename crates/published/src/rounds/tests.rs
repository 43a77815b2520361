//! Tests that the simulator runs the decisions made inside rounds, and tests of the schemes' rules.

use std::sync::Arc;

use super::action_scheme::{ActionScheme, begin, close};
use super::agents::{Agents, AgentsOptions};
use super::cells::Cells;
use super::environment::Actions;
use super::gang::{plan, worth};
use super::memory::Memory;
use super::policy::LearnedRounds;
use super::round_state::RoundState;
use super::rows::{Gang, candidate_row, global_row, job_row};
use super::scenario::{Condition, OfSeed, RoundsScenario};
use super::world::{ActionSchemeName, FurtherCluster, RoundsWorld};
use crate::dual_agent::observe::{CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES, Window};
use crate::gangs::{Presence, Scenario};
use apportion::index::{Id, JobId, ServerId, WorkerId};
use apportion::policy::{Placed, RoundView};
use apportion::scheduler::{Decided, Lease, Received, Scheduler};
use apportion::simulator::{Checkpoint, Event, Limits, Observer, Outcome, Simulation, Step};
use apportion::units::StepsPerSecond;
use apportion_learn::actor::{
    Actor, ActorError, Choice, Scratch, UniformActor, masked_softmax, most_probable,
};
use apportion_learn::checker::{CheckOptions, check};
use apportion_learn::environment::{Environment, Status};

const SCHEMES: [ActionSchemeName; 2] = [ActionSchemeName::Agents, ActionSchemeName::Cells];

fn world(scheme: ActionSchemeName) -> RoundsWorld {
    let conditions = vec![
        Condition::default(),
        Condition { contention: 0.3, ..Condition::default() },
        Condition { straggling: 0.5, straggling_rounds: Some(7), ..Condition::default() },
    ];
    RoundsWorld { scheme, conditions, rates: vec![0.5], jobs: 14, ..RoundsWorld::default() }
}

pub(super) fn scenario(conditions: Vec<Condition>) -> RoundsScenario {
    let scenario = Scenario::on("osdi20", (8, 4), &[0.6], (14, true)).unwrap();
    RoundsScenario { scenarios: vec![scenario], conditions }
}

fn by_chance(scheme: ActionSchemeName, seed: u64) -> Box<LearnedRounds> {
    let scheme = world(scheme).scheme();
    Box::new(LearnedRounds::new("tested", scheme, Arc::new(UniformActor), Choice::Sampled, seed))
}

/// An actor whose logits depend on the observation in no simple way, so that every row matters.
#[derive(Debug)]
struct Stirred;

impl Actor for Stirred {
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        _scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        for (action, logit) in logits.iter_mut().enumerate() {
            let weighed = observation.iter().enumerate().map(|(place, number)| {
                let turn = ((place * 7 + action * 13 + agent) % 31) as f32;
                number * (turn - 15.0)
            });
            *logit = weighed.sum::<f32>().sin() - if action + 1 == 49 { 4.0 } else { 0.0 };
        }
        Ok(())
    }
}

#[test]
fn both_pass_the_check() {
    for scheme in SCHEMES {
        let (make, _) = world(scheme).environment().unwrap();
        let report = check(make, CheckOptions { n_episodes: 3, ..CheckOptions::default() });
        report.assert_passed();
        assert_eq!(report.n_terminated, 3);
    }
}

/// An actor as a policy against itself in the environment: rewards add up to the return that the policy is judged by.
#[test]
fn a_policy_does_what_its_actor_does_in_training() {
    for scheme in SCHEMES {
        for seed in 0..6 {
            let judged = world(scheme).judge(Arc::new(Stirred), Choice::MostProbable, seed).unwrap();
            let (make, _) = world(scheme).environment().unwrap();
            let mut environment = make();
            environment.reset(seed);
            let (mut total, mut status, mut scratch) = (0.0, Status::Running, Scratch::default());
            while status == Status::Running {
                let agent = environment.agent();
                let space = environment.spaces()[agent].clone();
                let mut seen = vec![0.0; space.observation_length()];
                let (mut mask, mut numbers) = (vec![false; space.n_actions], vec![0.0; space.n_actions]);
                environment.observe(&mut seen, &mut mask);
                Stirred.logits(agent, &seen, &mut scratch, &mut numbers).unwrap();
                masked_softmax(&mut numbers, &mask).unwrap();
                let transition = environment.step(most_probable(&numbers)).unwrap();
                total += f64::from(transition.reward);
                status = transition.status;
            }
            assert_eq!(status, Status::Terminated);
            assert!((total - judged.total_reward).abs() < 1e-3, "{scheme:?}: {total} {judged:?}");
        }
    }
}

#[test]
fn a_stopped_simulation_goes_on_as_if_it_had_not_been() {
    for scheme in SCHEMES {
        for (seed, condition) in world(scheme).conditions.into_iter().enumerate() {
            let (scenario, seed) = (scenario(vec![condition]), seed as u64);
            let run = |simulation: &mut Simulation, presence: &mut Presence, limits: &Limits| {
                let outcome = simulation.run(presence, limits).unwrap();
                (outcome, presence.until(simulation.now()), simulation.round())
            };
            let whole = {
                let mut simulation = scenario.simulation(seed, by_chance(scheme, seed)).unwrap();
                run(&mut simulation, &mut Presence::default(), &Limits::default())
            };
            assert_eq!(whole.0, Outcome::Finished);
            let mut first = scenario.simulation(seed, by_chance(scheme, seed)).unwrap();
            let mut presence = Presence::default();
            run(&mut first, &mut presence, &Limits { rounds: Some(60), ..Limits::default() });
            let saved = serde_json::to_string(&first.checkpoint()).unwrap();
            let checkpoint: Checkpoint = serde_json::from_str(&saved).unwrap();
            let [only] = &scenario.scenarios[..] else { unreachable!() };
            let parts = (&only.cluster, Arc::clone(&only.throughputs));
            let arrivals = only.arrivals(seed).unwrap();
            let policy = by_chance(scheme, 99);
            let mut second =
                Simulation::resume_with_round_policy(parts, arrivals, policy, &checkpoint).unwrap();
            assert_eq!(run(&mut second, &mut presence, &Limits::default()), whole, "{scheme:?} {seed}");
        }
    }
}

/// A scheduler that is told the events of a simulation, and has to grant the same leases.
#[derive(Debug)]
struct Beside {
    scheduler: Scheduler,
    leases: Vec<Lease>,
    n_compared: usize,
}

impl Observer for Beside {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, job, .. } => assert_eq!(self.scheduler.submit((*job).clone()), Ok(*id)),
            Event::Slice(slice) => {
                let (jobs, worker_type, time, steps) =
                    (slice.jobs, slice.worker_type, slice.time, slice.steps);
                self.scheduler.record(Received { jobs, worker_type, time, steps }).unwrap();
                let speeds = slice.throughput.map(StepsPerSecond::new);
                self.scheduler.observe(jobs, worker_type, speeds).unwrap();
            }
            Event::Completion { id, .. } => assert!(self.scheduler.finish(*id)),
            Event::RoundStarted { now, .. } => {
                let round = self.scheduler.tick(*now, None);
                assert_eq!(round.decided, Decided::Fresh { asked: *now });
                self.leases = round.leases;
                self.leases.reverse();
            }
            Event::Lease { jobs, workers, extended, .. } => {
                let lease = self.leases.pop().unwrap();
                assert_eq!((lease.jobs, &*lease.workers, lease.extended), (*jobs, *workers, *extended));
                self.n_compared += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn a_scheduler_places_as_the_simulator_does() {
    for scheme in SCHEMES {
        for (seed, condition) in world(scheme).conditions.into_iter().enumerate() {
            let (scenario, seed) = (scenario(vec![condition]), seed as u64);
            let mut simulation = scenario.simulation(seed, by_chance(scheme, seed)).unwrap();
            let [only] = &scenario.scenarios[..] else { unreachable!() };
            let (throughputs, options) = (Arc::clone(&only.throughputs), simulation.options().scheduler());
            let policy = by_chance(scheme, seed);
            let scheduler =
                Scheduler::with_round_policy(&only.cluster, throughputs, policy, options).unwrap();
            let mut beside = Beside { scheduler, leases: Vec::new(), n_compared: 0 };
            assert_eq!(simulation.run(&mut beside, &Limits::default()).unwrap(), Outcome::Finished);
            assert!(beside.n_compared > 50, "{scheme:?}: {}", beside.n_compared);
        }
    }
}

/// The state of a round, and whether there is an action, also of rounds in which nothing is to be decided.
pub(super) fn begun(
    scheme: &mut dyn ActionScheme,
    memory: &mut Memory,
    view: &RoundView<'_>,
) -> Result<(RoundState, bool), String> {
    memory.learn(view);
    let continuation = scheme.continuation(memory, view);
    begin(scheme, memory, view, continuation)
}

/// Shows `look` the rounds of a simulation with their memory.
fn rounds(condition: Condition, seed: u64, mut look: impl FnMut(&RoundState, &Memory, u64)) {
    let scenario = scenario(vec![condition]);
    let window = Window { n_jobs: 24, n_servers: 8 };
    let mut scheme = Agents::new(AgentsOptions { window, advised: false, lease_rounds: 1 });
    let mut memory = Memory::default();
    let mut simulation = scenario.simulation(seed, Box::new(Actions)).unwrap();
    let mut presence = Presence::default();
    for number in 0..120 {
        if simulation.reach_boundary(&mut presence).unwrap() != Step::Advanced {
            return;
        }
        let (mut round, _) = simulation
            .look(|view| begun(&mut scheme, &mut memory, view))
            .unwrap()
            .expect("inside rounds")
            .unwrap();
        look(&round, &memory, number);
        while !scheme.is_over() {
            let action = scheme.advice(&round).expect("the rule has an answer");
            scheme.act(&mut round, action);
        }
        close(&mut memory, &round);
        let placed = round.placed().iter().map(|(_, placed)| placed.clone()).collect();
        simulation.start_placed_round(placed, &mut presence).unwrap();
    }
}

/// The rule's placement against all sets of free workers of one server.
#[test]
fn the_rule_finds_the_best_workers_of_a_server() {
    let condition = Condition { straggling: 0.6, ..Condition::default() };
    let mut n_compared = 0;
    for seed in 0..4 {
        rounds(condition, seed, |round, _, _| {
            for &job in round.waiting() {
                let needed = round.problem().jobs()[job].scale_factor as usize;
                let mut best: Option<f64> = None;
                for (id, server) in round.servers().enumerate() {
                    let relative = round.relative(job, server.kind);
                    for set in 0_u32..1 << server.free.len() {
                        let chosen =
                            server.free.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
                        let workers: Vec<WorkerId> = chosen.map(|(_, worker)| *worker).collect();
                        if workers.len() == needed && relative > 0.0 {
                            let merit = relative * worth(round, &[id], &workers).1;
                            best = Some(best.map_or(merit, |best| best.max(merit)));
                        }
                    }
                }
                let (Some(best), Some(found)) = (best, plan(round, job)) else { continue };
                let (slowest, worth) = worth(round, &found.servers, &found.workers);
                let merit = found.expected / slowest * worth;
                assert!(merit >= best - 1e-9, "{merit} {best} {found:?}");
                n_compared += 1;
            }
        });
    }
    assert!(n_compared > 100);
}

/// Workers that never change: after a while the estimates of used workers are exact.
#[test]
fn what_jobs_make_shows_how_fast_their_workers_are() {
    let condition = Condition { straggling: 0.6, ..Condition::default() };
    let (mut slow, mut fast, mut n_measured) = (0.0_f64, 0.0_f64, 0);
    rounds(condition, 3, |round, memory, number| {
        if number < 119 {
            return;
        }
        for worker in (0..24).map(WorkerId::from_index) {
            let known = memory.known(worker);
            if known.since_s < 3600.0 {
                n_measured += 1;
                assert!(known.log_speed < 0.1 && known.log_speed > 0.4_f64.ln() - 0.1, "{known:?}");
                (slow, fast) = (slow.min(known.log_speed), fast.max(known.log_speed));
            }
        }
        assert!(round.problem().n_jobs() > 0);
    });
    assert!(n_measured >= 4 && slow < -0.2 && fast > slow + 0.1, "{n_measured} {slow} {fast}");
    // Where no worker is slow, none is estimated to be.
    rounds(Condition::default(), 3, |_, memory, _| {
        for worker in (0..24).map(WorkerId::from_index) {
            assert!(memory.known(worker).log_speed.abs() < 1e-9);
        }
    });
}

/// DeepShare's rules: a job with more than 0.6 of its expected throughput goes on where it is, others go to the end of the queue; a
/// job that starts is the first of its size that fits, spread evenly over one, two or four servers of a cell.
#[test]
fn cells_keep_what_runs_well_and_spread_what_starts_evenly() {
    let scenario =
        scenario(vec![Condition { straggling: 0.9, straggling_rounds: Some(2), ..Condition::default() }]);
    let mut simulation = scenario.simulation(2, Box::new(Actions)).unwrap();
    let (mut memory, mut presence, mut cells) = (Memory::default(), Presence::default(), Cells::default());
    let (mut n_kept, mut n_sent_back, mut n_started) = (0, 0, 0);
    for _ in 0..200 {
        if simulation.reach_boundary(&mut presence).unwrap() != Step::Advanced {
            break;
        }
        let (mut round, _) = simulation
            .look(|view| begun(&mut cells, &mut memory, view))
            .unwrap()
            .expect("inside rounds")
            .unwrap();
        let queued = |job| memory.history(round.problem().jobs()[job].id).expect("seen").queued;
        for job in round.problem().jobs().ids() {
            let job_state = round.job_state(job);
            let Some(previous) = &job_state.previous else { continue };
            let stays = round.placed().iter().any(|(_, placed)| placed == previous);
            assert_eq!(stays, job_state.retained > 0.6);
            n_kept += usize::from(stays);
            if !stays {
                n_sent_back += 1;
                let others =
                    round.waiting().iter().filter(|other| round.job_state(**other).previous.is_none());
                assert!(
                    others.clone().all(|other| queued(*other) < queued(job)),
                    "it is at the end of the queue"
                );
            }
        }
        let n_before = round.placed().len();
        while !cells.is_over() {
            let (waiting, n_placed) = (round.waiting().to_vec(), round.placed().len());
            let action = cells.advice(&round).expect("the rule has an answer");
            cells.act(&mut round, action);
            if let Some((job, _)) = round.placed().get(n_placed) {
                let size = |job| round.problem().jobs()[job].scale_factor;
                let first = waiting.iter().find(|other| size(**other) == size(*job));
                assert_eq!(first, Some(job), "the first of its size");
            }
        }
        for (_, placed) in &round.placed()[n_before..] {
            let on = round.servers_of(&placed.workers);
            let cell = |server: &ServerId| round.servers()[*server].group;
            let share =
                |server| placed.workers.iter().filter(|worker| round.server_of(**worker) == server).count();
            assert!([1, 2, 4].contains(&on.len()) && on.iter().all(|server| cell(server) == cell(&on[0])));
            assert!(on.iter().all(|server| share(*server) * on.len() == placed.workers.len()));
            n_started += 1;
        }
        close(&mut memory, &round);
        let placed = round.placed().iter().map(|(_, placed)| placed.clone()).collect();
        simulation.start_placed_round(placed, &mut presence).unwrap();
    }
    assert!(n_kept > 50 && n_sent_back > 2 && n_started > 10, "{n_kept} {n_sent_back} {n_started}");
}

#[test]
fn what_goes_on_stays_on_its_workers() {
    let mut agents = Agents::new(AgentsOptions {
        window: Window { n_jobs: 8, n_servers: 6 },
        advised: true,
        lease_rounds: 5,
    });
    let scenario = scenario(vec![Condition::default()]);
    let mut simulation = scenario.simulation(1, Box::new(Actions)).unwrap();
    let (mut memory, mut presence) = (Memory::default(), Presence::default());
    let mut before: Option<(Vec<JobId>, Vec<Placed>, u32)> = None;
    let mut n_kept = 0;
    for _ in 0..200 {
        if simulation.reach_boundary(&mut presence).unwrap() != Step::Advanced {
            break;
        }
        let (mut round, decides) = simulation
            .look(|view| begun(&mut agents, &mut memory, view))
            .unwrap()
            .expect("inside rounds")
            .unwrap();
        let jobs: Vec<JobId> = round.problem().jobs().iter().map(|active| active.id).collect();
        let rounds = match &before {
            Some((had, placed, rounds)) if *had == jobs && *rounds < 4 => {
                assert!(!decides, "nothing has changed");
                let now: Vec<_> = round.placed().iter().map(|(_, placed)| placed.clone()).collect();
                assert!(placed.iter().all(|placed| now.contains(placed)) && now.len() == placed.len());
                n_kept += 1;
                rounds + 1
            }
            _ => 0,
        };
        while decides && !agents.is_over() {
            let action = agents.advice(&round).expect("the rule has an answer");
            agents.act(&mut round, action);
        }
        close(&mut memory, &round);
        let placed: Vec<_> = round.placed().iter().map(|(_, placed)| placed.clone()).collect();
        simulation.start_placed_round(placed.clone(), &mut presence).unwrap();
        before = Some((jobs, placed, rounds));
    }
    assert!(n_kept > 20, "{n_kept}");
}

/// The rows of the first job in an empty cluster, before any measurement, which follow from the matrix alone.
#[test]
fn rows_say_what_the_matrix_does() {
    let mut seen = false;
    rounds(Condition::default(), 5, |round, _, _| {
        let [job] = round.waiting() else { return };
        if seen || round.problem().n_jobs() > 1 {
            return;
        }
        seen = true;
        let active = &round.problem().jobs()[*job];
        let speeds = round.problem().throughput().row(*job);
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let mut row = [0.0; JOB_FEATURES];
        job_row(round, *job, &mut row);
        let close = |found: f32, expected: f64| {
            assert!((f64::from(found) - expected).abs() < 1e-5, "{found} {expected}");
        };
        close(row[1], (active.steps_remaining.get() / fastest / 3600.0).ln() / 4.0);
        close(row[2], f64::from(active.scale_factor) / 16.0);
        close(row[4], 1.0);
        close(row[7], f64::from(active.scale_factor).ln());
        for (kind, place) in (8..13).enumerate() {
            close(row[place], speeds.get(kind).map_or(0.0, |speed| speed / fastest));
        }
        assert_eq!(row[13..], [1.0, 0.0, 1.0], "it fits where it is fastest");
        let mut whole = [0.0; GLOBAL_FEATURES];
        global_row(round, &mut whole);
        assert_eq!(whole[..5], [1.0, 1.0, 1.0, 0.0, 0.0], "all of three types is free");
        close(whole[5], 2.0_f64.ln() / 5.0);
        close(whole[7], f64::from(active.scale_factor) / 24.0);
        let gang = Gang { job: *job, chosen: &[], needed: active.scale_factor as usize };
        let found = plan(round, *job).expect("it fits");
        let mut candidate = [0.0; CANDIDATE_FEATURES];
        candidate_row(round, &gang, (found.servers[0], &found.workers), &mut candidate);
        let of_type = speeds[round.servers()[found.servers[0]].kind.index()];
        close(candidate[1], of_type / fastest);
        close(candidate[12], found.expected.ln());
    });
    assert!(seen);
}

#[test]
fn a_seed_says_on_which_cluster_at_which_rate_and_under_which_condition() {
    let slow = Condition { straggling: 0.5, straggling_rounds: None, contention: 0.0 };
    let world = RoundsWorld {
        rates: vec![0.5, 1.0],
        jobs: 9,
        further: vec![FurtherCluster { workers: 32, per_server: 4, rates: vec![2.0, 3.0], jobs: 40 }],
        conditions: vec![Condition::default(), slow],
        ..world(ActionSchemeName::Agents)
    };
    let scenario = world.scenario().unwrap();
    for seed in 0..16 {
        let OfSeed { scenario: of, rate, condition } = scenario.of(seed).unwrap();
        let turn = usize::try_from(seed).unwrap();
        assert_eq!((of.cluster.n_workers(), of.n_jobs), [(24, 9), (96, 40)][turn % 2]);
        assert_eq!(rate.get(), [0.5, 2.0, 1.0, 3.0][turn % 4]);
        assert_eq!(condition, if turn % 8 < 4 { Condition::default() } else { slow });
        let simulation = scenario.simulation(seed, by_chance(ActionSchemeName::Agents, seed)).unwrap();
        assert_eq!(simulation.cluster().n_workers(), of.cluster.n_workers());
        assert_eq!(simulation.options().faults.stragglers.is_some(), condition == slow);
    }
    let none = FurtherCluster { workers: 16, per_server: 2, rates: vec![], jobs: 4 };
    let said =
        |further| RoundsWorld { further: vec![further], ..RoundsWorld::default() }.scenario().unwrap_err();
    assert!(said(none.clone()).contains("`rates` is []"));
    assert!(said(FurtherCluster { per_server: 0, ..none.clone() }).contains("`per_server` is 0"));
    assert!(said(FurtherCluster { workers: 4, rates: vec![1.0], ..none }).contains("`workers` is 4"));
}

#[test]
fn options_out_of_their_range_are_refused() {
    let said = |world: RoundsWorld| world.environment().err().unwrap();
    let base = RoundsWorld::default;
    assert!(said(RoundsWorld { workers: 4, ..base() }).contains("`workers` is 4, expected at least 8"));
    assert!(said(RoundsWorld { per_server: 0, ..base() }).contains("`per_server` is 0"));
    assert!(said(RoundsWorld { conditions: vec![], ..base() }).contains("`conditions` is []"));
    let slow = Condition { straggling: 1.0, ..Condition::default() };
    assert!(said(RoundsWorld { conditions: vec![slow], ..base() }).contains("`straggling` is 1"));
    let never = Condition { straggling_rounds: Some(0), ..Condition::default() };
    assert!(said(RoundsWorld { conditions: vec![never], ..base() }).contains("`straggling_rounds` is 0"));
    let cells = RoundsWorld { scheme: ActionSchemeName::Cells, per_server: 1, ..base() };
    assert!(said(cells).contains("`per_server` is 1, expected as many that a cell of four"));
    assert!(RoundsWorld { scheme: ActionSchemeName::Cells, per_server: 2, ..base() }.environment().is_ok());
    assert!(said(RoundsWorld { rates: vec![], ..base() }).contains("`rates` is []"));
}
