//! One trace as an episode of actions and rewards.

use crate::deepshare::observe::{OBSERVATION_LEN, UtilizationMean, observe, reward};
use crate::deepshare::order::Width;
use crate::deepshare::{DeepShareSpeeds, PREEMPT_AT, SERVER_SETS, candidates, decode, spread, world};
use crate::world::AfterRound;
use crate::world::Decision;
use crate::world::World;
use crate::world::{Part, WorldJob};
use apportion::index::JobId;
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;

/// A rule of when a round of an episode ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionsPerRound {
    /// After one action, as the published agents are trained.
    One,
    /// After the first invalid action, as they are used.
    UntilInvalid,
}

/// Options of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeOptions {
    /// Whether the published simulator's quirks are kept.
    pub fidelity: Fidelity,
    /// The decisions after which a round ends.
    pub decisions: DecisionsPerRound,
    /// Whether an invalid action falls back on the baselines' placement.
    pub hybrid: bool,
    /// Whether crowded jobs are preempted before the round, so that they never run crowded, as in the training of the published
    /// agents. Otherwise they are preempted after it.
    pub preempts_first: bool,
    /// Weight of contention in the published reward, w1.
    pub contention_weight: f64,
    /// Weight of utilization in the published reward, w2.
    pub utilization_weight: f64,
}

impl EpisodeOptions {
    /// These options with rounds as policies are used: a round goes on until an action is invalid, and crowded jobs are preempted
    /// after it.
    #[must_use]
    pub const fn in_use(self, hybrid: bool) -> Self {
        Self { decisions: DecisionsPerRound::UntilInvalid, hybrid, preempts_first: false, ..self }
    }
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOutcome {
    /// The published reward; 0 while the round goes on.
    pub reward: f64,
    /// The sum over jobs of the part of its work that each did in the round; 0 while the round goes on.
    pub progress: f64,
    /// Whether the action started a job.
    pub valid: bool,
    /// Whether the round ended.
    pub round_ended: bool,
    /// Whether all jobs are done.
    pub done: bool,
}

/// An episode: reset, then step until it is done.
#[derive(Clone, Debug)]
pub struct DeepShareEpisode {
    world: World,
    speeds: DeepShareSpeeds,
    options: EpisodeOptions,
    utilization: UtilizationMean,
    parts: Vec<Part>,
}

impl DeepShareEpisode {
    /// An episode without jobs.
    pub fn new(tables: &SpreadThroughputs, options: EpisodeOptions) -> Self {
        let after =
            if options.preempts_first { AfterRound::Stay } else { AfterRound::PreemptAtOrBelow(PREEMPT_AT) };
        Self {
            world: world(tables, options.fidelity, after),
            speeds: DeepShareSpeeds::new(tables, options.fidelity),
            options,
            utilization: UtilizationMean::default(),
            parts: Vec::with_capacity(4),
        }
    }

    /// Begins an episode with these jobs.
    pub fn reset(&mut self, jobs: &[WorldJob]) {
        self.world.reset(jobs);
        self.utilization = UtilizationMean::default();
        self.world.begin_round();
    }

    /// The world as it is.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Writes the published observation.
    pub fn observe(&self, observation: &mut [f32; OBSERVATION_LEN]) {
        observe(&self.world, self.options.fidelity, observation);
    }

    /// Plays an action.
    pub fn step(&mut self, action: usize) -> StepOutcome {
        let chosen = self.choose(action);
        let decision = chosen.map_or(Decision::EndRound, |job| Decision::Place { job, parts: &self.parts });
        let valid = self.world.apply(decision).is_ok() && chosen.is_some();
        let round_ended = !valid || self.options.decisions == DecisionsPerRound::One;
        let (reward, progress) = if round_ended { self.end_round() } else { (0.0, 0.0) };
        StepOutcome { reward, progress, valid, round_ended, done: self.world.is_done() }
    }

    fn choose(&mut self, action: usize) -> Option<JobId> {
        if let Some(job) = decode(&self.world, action, self.options.fidelity) {
            spread(&mut self.parts, self.world.job(job).workers, SERVER_SETS[action]);
            return Some(job);
        }
        let mut jobs = candidates(&self.world).into_iter().flatten().filter(|_| self.options.hybrid);
        jobs.find(|job| Width::Widest.place(&self.world, *job, &mut self.parts))
    }

    /// Ends the round: (its published reward, the sum over jobs of the part of its work that each did in it).
    fn end_round(&mut self) -> (f64, f64) {
        let Self { world, speeds, options, .. } = self;
        if options.preempts_first {
            world.forget_retention();
            world.find_rates(speeds);
            world.suspend_at_or_below(PREEMPT_AT);
        }
        world.find_rates(speeds);
        let gained =
            reward(world, options.contention_weight, options.utilization_weight, self.utilization.get());
        self.utilization.add(world.utilization());
        let progress = world.advance(speeds);
        world.begin_round();
        (gained, progress)
    }
}
