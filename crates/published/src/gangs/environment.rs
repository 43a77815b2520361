//! Decisions by gangs as an environment: the simulator, in which actions take the place of a policy.
//!
//! An episode has the decisions of a policy that is asked at events; an action gives one gang, or stops. Between decisions the
//! simulation runs, and the reward is for what happens there.

use std::sync::{Arc, Mutex, PoisonError};

use super::observation::{Observation, ObservationKind};
use super::partial_decision::PartialDecision;
use super::policy::whole;
use super::scenario::{Presence, Reward, Scenario, ScenarioError};
use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::policy::{Decision, Policy, PolicyError, RoundRules};
use apportion::problem::Problem;
use apportion::simulator::{Simulation, SimulationError, Step};
use apportion::units::Seconds;
use apportion_learn::environment::{Environment, Refused, Space, Status, Transition};

const NAME: &str = "gangs";

/// Options of an environment.
#[derive(Clone, Debug)]
pub struct GangEnvironmentOptions {
    /// The workloads.
    pub scenario: Scenario,
    /// The kind of observation.
    pub observation_kind: ObservationKind,
    /// The quantity that is rewarded.
    pub reward: Reward,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

/// Episodes of decisions by gangs.
#[derive(Debug)]
pub struct GangEnvironment {
    options: GangEnvironmentOptions,
    spaces: [Space; 1],
    episode: Option<Episode>,
    n_steps: u64,
    status: Option<Status>,
    mask: Vec<bool>,
}

/// A policy that gives the simulation the decisions made by actions.
#[derive(Debug)]
struct Relay(Arc<Mutex<Option<Decision>>>);

impl Policy for Relay {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        given.filter(|_| problem.n_jobs() > 0).ok_or_else(|| PolicyError::Infeasible {
            policy: NAME.to_owned(),
            reason: "asked where nothing was to be decided".to_owned(),
        })
    }
}

/// A running episode.
#[derive(Debug)]
struct Episode {
    simulation: Simulation,
    presence: Presence,
    given: Arc<Mutex<Option<Decision>>>,
    /// The jobs of the last decision, with the type that each was given.
    held: Vec<(JobId, Option<WorkerTypeId>)>,
    turn: Turn,
    /// The sum of the rewards given so far.
    paid: f64,
    /// Whether the simulation failed, and cannot go on.
    broken: bool,
}

/// A decision that waits for its next action.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) problem: Problem,
    pub(super) partial: PartialDecision,
    pub(super) observation: Observation,
}

impl Turn {
    fn new(
        problem: Problem,
        held: &[(JobId, Option<WorkerTypeId>)],
        observation_kind: ObservationKind,
    ) -> Result<Self, PolicyError> {
        let of = |id: JobId| held.iter().find(|(other, _)| *other == id).and_then(|(_, kind)| *kind);
        let partial = PartialDecision::new(NAME, &problem, |job| of(problem.jobs()[job].id))?;
        let observation = observation_kind.observation(&problem, &partial);
        Ok(Self { problem, partial, observation })
    }

    fn given(&self) -> Vec<(JobId, Option<WorkerTypeId>)> {
        let mut given: Vec<_> = self.problem.jobs().iter().map(|active| (active.id, None)).collect();
        for (job, kind) in self.partial.placed() {
            given[job.index()].1 = Some(kind);
        }
        given
    }
}

impl Episode {
    fn begin(options: &GangEnvironmentOptions, seed: u64) -> Result<Option<Self>, ScenarioError> {
        let given = Arc::new(Mutex::new(None));
        let mut simulation = options.scenario.simulation(seed, Box::new(Relay(Arc::clone(&given))))?;
        let (mut presence, mut held) = (Presence::default(), Vec::new());
        let turn = advance(&mut simulation, &mut presence, &given, &mut held, options.observation_kind)?;
        Ok(turn.map(|turn| Self { simulation, presence, given, held, turn, paid: 0.0, broken: false }))
    }

    /// Commits the decision and runs the simulation to the next. False if there is none.
    fn commit(&mut self, observation_kind: ObservationKind) -> Result<bool, ScenarioError> {
        self.held = self.turn.given();
        give(&self.given, decision(&self.turn)?);
        self.simulation.start_round(&mut self.presence)?;
        let next =
            advance(&mut self.simulation, &mut self.presence, &self.given, &mut self.held, observation_kind)?;
        let goes_on = next.is_some();
        if let Some(turn) = next {
            self.turn = turn;
        }
        Ok(goes_on)
    }

    /// The reward since the last one.
    fn reward(&mut self, options: &GangEnvironmentOptions) -> f64 {
        let due = match options.reward {
            Reward::Presence => {
                let hours = self.presence.until(self.simulation.now()) / 3600.0;
                -hours / options.scenario.n_jobs.max(1) as f64
            }
            Reward::Progress => self.presence.progress(),
        };
        let reward = due - self.paid;
        self.paid = due;
        reward
    }
}

fn give(given: &Mutex<Option<Decision>>, decision: Decision) {
    *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(decision);
}

fn decision(turn: &Turn) -> Result<Decision, ScenarioError> {
    let decision = whole(NAME, &turn.problem, &turn.partial).map_err(SimulationError::from)?;
    let rules = RoundRules {
        skip_zero_priority: true,
        recompute_after: Some(Seconds::ZERO),
        ..RoundRules::default()
    };
    Ok(Decision { rules, ..decision })
}

/// Runs the simulation to the next boundary at which the set of jobs has changed; at other boundaries the last decision is given
/// again. None at the end.
fn advance(
    simulation: &mut Simulation,
    presence: &mut Presence,
    given: &Mutex<Option<Decision>>,
    held: &mut [(JobId, Option<WorkerTypeId>)],
    observation_kind: ObservationKind,
) -> Result<Option<Turn>, ScenarioError> {
    let failed = |error: PolicyError| ScenarioError::from(SimulationError::from(error));
    while simulation.reach_boundary(presence)? == Step::Advanced {
        if simulation.n_active() > 0 {
            let problem = simulation.problem()?;
            let mut turn = Turn::new(problem, held, observation_kind).map_err(failed)?;
            let ids = turn.problem.jobs().iter().map(|active| active.id);
            if !ids.eq(held.iter().map(|(id, _)| *id)) {
                return Ok(Some(turn));
            }
            for (job, (_, kind)) in turn.problem.jobs().ids().zip(held.iter()) {
                if let Some(kind) = kind {
                    turn.partial.place(&turn.problem, job, *kind);
                }
            }
            give(given, decision(&turn)?);
        }
        simulation.start_round(presence)?;
    }
    Ok(None)
}

impl GangEnvironment {
    /// Episodes of these options.
    ///
    /// # Errors
    /// If no such episode can be made.
    pub fn new(options: GangEnvironmentOptions) -> Result<Self, ScenarioError> {
        let first = Episode::begin(&options, 0)?;
        // Observations have the same length throughout: of the window, or of the padded rows.
        let (length, n_actions) = first.map_or((1, 1), |first| {
            (first.turn.observation.observation_length(), first.turn.observation.n_actions())
        });
        let spaces = [Space::uniform(length, (-Observation::bound(), Observation::bound()), n_actions)];
        Ok(Self { options, spaces, episode: None, n_steps: 0, status: None, mask: vec![false; n_actions] })
    }
}

impl GangEnvironment {
    /// The decision that is being made, while an episode is under way.
    pub(super) fn turn(&self) -> Option<&Turn> {
        self.episode.as_ref().map(|episode| &episode.turn)
    }
}

impl Environment for GangEnvironment {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        // Errors are unexpected: these options have already made an episode.
        self.episode = Episode::begin(&self.options, seed).ok().flatten();
        self.n_steps = 0;
        self.status = Some(Status::Running);
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        let Some(Episode { turn: Turn { problem, partial, observation: seen }, .. }) = &self.episode else {
            observation.fill(0.0);
            mask.fill(true);
            return;
        };
        seen.observe(problem, partial, observation);
        seen.mask(problem, partial, mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status != Some(Status::Running) {
            return Err(Refused::Over);
        }
        let Some(episode) = &mut self.episode else { return Err(Refused::Over) };
        episode.turn.observation.mask(&episode.turn.problem, &episode.turn.partial, &mut self.mask);
        Refused::check(&self.mask, action)?;
        self.n_steps += 1;
        let turn = &mut episode.turn;
        let mut decided = true;
        let mut goes_on = true;
        if let Some((job, kind)) = turn.observation.decode(action) {
            turn.partial.place(&turn.problem, job, kind);
            let observation = self.options.observation_kind.observation(&turn.problem, &turn.partial);
            decided = observation.is_empty();
            if !decided {
                turn.observation = observation;
            }
        }
        let mut reward = 0.0;
        if decided {
            goes_on = episode.commit(self.options.observation_kind).unwrap_or_else(|_| {
                episode.broken = true;
                false
            });
            reward = episode.reward(&self.options);
        }
        let status = if episode.broken {
            Status::Truncated
        } else {
            Status::after(self.n_steps, self.options.step_limit, !goes_on)
        };
        self.status = Some(status);
        Ok(Transition { rounds: u32::from(decided), ..Transition::new(reward as f32, status) })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.options.step_limit)
    }
}
