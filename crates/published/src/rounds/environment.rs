//! Decisions inside rounds as an environment: the simulator, in which actions take the place of a policy.

use super::action_scheme::{ActionScheme, Opened, close, open};
use super::memory::Memory;
use super::round_state::RoundState;
use super::scenario::RoundsScenario;
use super::world::RoundsWorld;
use crate::gangs::{Presence, Reward, ScenarioError};
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::simulator::{Simulation, SimulationError, Step};
use apportion_learn::environment::{Environment, Refused, Show, Space, Status, Transition};

const NAME: &str = "rounds";

fn undecided(reason: String) -> SimulationError {
    PolicyError::Undecided { policy: NAME.to_owned(), reason }.into()
}

/// A placeholder for the simulation's policy, which is never asked: actions place jobs.
#[derive(Debug)]
pub(super) struct Actions;

impl RoundPolicy for Actions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn begin(&mut self, _view: &RoundView<'_>) -> Result<(), PolicyError> {
        Ok(())
    }

    fn next(&mut self, _view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        Ok(RoundDecision::EndRound)
    }
}

/// A running episode of one workload.
#[derive(Debug)]
struct Episode {
    simulation: Simulation,
    presence: Presence,
    scheme: Box<dyn ActionScheme>,
    memory: Memory,
    round: RoundState,
    n_jobs: usize,
    /// The sum of the rewards given so far.
    paid: f64,
    /// Rounds since the last action.
    n_rounds: u32,
    /// Whether the simulation failed, and cannot go on.
    broken: bool,
}

impl Episode {
    /// Runs the simulation to the next decision. False if there is none.
    fn advance(&mut self) -> Result<bool, ScenarioError> {
        while self.simulation.reach_boundary(&mut self.presence)? == Step::Advanced {
            let Self { scheme, memory, .. } = self;
            let opened = self.simulation.look(|view| open(&mut **scheme, memory, view))?;
            match opened.transpose().map_err(undecided)? {
                None => return Ok(false),
                Some(Opened::Undisturbed(placed)) => self.run_round(placed)?,
                Some(Opened::Begun(round, decides)) => {
                    self.round = round;
                    if decides {
                        return Ok(true);
                    }
                    self.end_round()?;
                }
            }
        }
        Ok(false)
    }

    fn end_round(&mut self) -> Result<(), ScenarioError> {
        close(&mut self.memory, &self.round);
        let placed = self.round.placed().iter().map(|(_, placed)| placed.clone()).collect();
        self.run_round(placed)
    }

    fn run_round(&mut self, placed: Vec<Placed>) -> Result<(), ScenarioError> {
        self.simulation.start_placed_round(placed, &mut self.presence)?;
        self.n_rounds += 1;
        Ok(())
    }

    /// The reward since the last one: less the hours that jobs were present, per job of the episode, or the sum over jobs of the
    /// part of its work that each did.
    fn reward(&mut self, reward: Reward) -> f64 {
        let due = match reward {
            Reward::Presence => {
                -self.presence.until(self.simulation.now()) / 3600.0 / self.n_jobs.max(1) as f64
            }
            Reward::Progress => self.presence.progress(),
        };
        let gained = due - self.paid;
        self.paid = due;
        gained
    }
}

/// Episodes of decisions inside rounds.
#[derive(Debug)]
pub struct RoundsEnvironment {
    scenario: RoundsScenario,
    world: RoundsWorld,
    spaces: Vec<Space>,
    state_length: usize,
    episode: Option<Episode>,
    n_steps: u64,
    status: Option<Status>,
    mask: Vec<bool>,
}

impl RoundsEnvironment {
    /// Episodes of a world.
    pub(super) fn new(world: RoundsWorld, scenario: RoundsScenario) -> Self {
        let scheme = world.scheme();
        let (spaces, state_length) = (scheme.spaces(), scheme.state_length());
        Self {
            scenario,
            world,
            spaces,
            state_length,
            episode: None,
            n_steps: 0,
            status: None,
            mask: Vec::new(),
        }
    }

    fn begin(&self, seed: u64) -> Result<Option<Episode>, ScenarioError> {
        let mut simulation = self.scenario.simulation(seed, Box::new(Actions))?;
        let mut memory = Memory::default();
        let mut scheme = self.world.scheme();
        let mut presence = Presence::default();
        if simulation.reach_boundary(&mut presence)? != Step::Advanced {
            return Ok(None);
        }
        let opened = simulation.look(|view| open(&mut *scheme, &mut memory, view))?;
        // The first round has no jobs that continue.
        let Some(Opened::Begun(round, decides)) = opened.transpose().map_err(undecided)? else {
            return Ok(None);
        };
        let mut episode = Episode {
            simulation,
            presence,
            scheme,
            memory,
            round,
            n_jobs: self.scenario.n_jobs(seed),
            paid: 0.0,
            n_rounds: 0,
            broken: false,
        };
        if !decides {
            episode.end_round()?;
            if !episode.advance()? {
                return Ok(None);
            }
        }
        Ok(Some(episode))
    }

    /// Plays the episode of a seed as the teacher decides, and shows each observation, mask and action.
    ///
    /// # Errors
    /// If an action is refused.
    pub fn demonstrate(&mut self, seed: u64, show: &mut Show<'_>) -> Result<(), String> {
        self.reset(seed);
        let (mut seen, mut mask) = (Vec::new(), Vec::new());
        while self.status == Some(Status::Running) {
            let agent = self.agent();
            let Space { n_actions, .. } = self.spaces[agent];
            seen.resize(self.spaces[agent].observation_length(), 0.0);
            mask.resize(n_actions, false);
            self.observe(&mut seen, &mut mask);
            let Some(episode) = &self.episode else { return Ok(()) };
            let advice = episode.scheme.advice(&episode.round).filter(|action| mask[*action]);
            let action = advice.or_else(|| mask.iter().position(|allowed| *allowed)).unwrap_or(0);
            show(agent, &seen, &mask, action);
            self.step(action).map_err(|refused| refused.to_string())?;
        }
        Ok(())
    }
}

impl Environment for RoundsEnvironment {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn agent(&self) -> usize {
        self.episode.as_ref().map_or(0, |episode| episode.scheme.agent())
    }

    fn reset(&mut self, seed: u64) {
        // Errors are unexpected: these options are checked beforehand.
        self.episode = self.begin(seed).ok().flatten();
        let status = if self.episode.is_some() { Status::Running } else { Status::Terminated };
        (self.n_steps, self.status) = (0, Some(status));
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        let Some(episode) = &self.episode else {
            observation.fill(0.0);
            mask.fill(true);
            return;
        };
        episode.scheme.observe(&episode.round, observation);
        episode.scheme.mask(&episode.round, mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        let n_actions = self.spaces[self.agent()].n_actions;
        let Some(episode) = self.episode.as_mut().filter(|_| self.status == Some(Status::Running)) else {
            return Err(Refused::Over);
        };
        self.mask.resize(n_actions, false);
        episode.scheme.mask(&episode.round, &mut self.mask);
        Refused::check(&self.mask, action)?;
        self.n_steps += 1;
        episode.n_rounds = 0;
        episode.scheme.act(&mut episode.round, action);
        let mut goes_on = true;
        let mut reward = 0.0;
        if episode.scheme.is_over() {
            let advanced = episode.end_round().and_then(|()| episode.advance());
            goes_on = advanced.unwrap_or_else(|_| {
                episode.broken = true;
                false
            });
            reward = episode.reward(self.world.reward);
        }
        let status = if episode.broken {
            Status::Truncated
        } else {
            Status::after(self.n_steps, self.world.step_limit, !goes_on)
        };
        self.status = Some(status);
        Ok(Transition { rounds: episode.n_rounds, ..Transition::new(reward as f32, status) })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.world.step_limit)
    }

    fn state_length(&self) -> usize {
        self.state_length
    }

    fn state(&self, state: &mut [f32]) {
        match &self.episode {
            Some(episode) => episode.scheme.state(&episode.round, state),
            None => state.fill(0.0),
        }
    }
}
