//! DeepShare's world as an environment.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::deepshare::{
    self, DeepShareEpisode, DeepSharePolicy, DeepShareSpeeds, EpisodeOptions, LIMITS, Mix, N_ACTIONS,
    ObservationKind, Order, PolicyName, Width, WorkloadError, generate, mask,
};
use crate::world::{PlayError, Summary, WorldError, WorldJob, run, summary_of};
use apportion::throughput::spread::SpreadThroughputs;
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::environment::{Environment, Refused, Space, Status, Transition};
use apportion_learn::evaluation::play;
use apportion_learn::vectorized::Finished;

/// The return of an episode that leaves jobs over, where times are the measure: as if times were ten times those of `las`.
const CUT_OFF: f64 = -10.0;

/// The workloads of episodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Workloads {
    /// Drawn anew for each seed: (mix, number of jobs).
    Drawn(Mix, usize),
    /// Workloads of which the seed picks one; at least one.
    Listed(Vec<Vec<WorldJob>>),
}

/// The reward of a round in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundReward {
    /// The published reward: contention and utilization, weighted.
    #[default]
    Published,
    /// The sum over jobs of the part of its work that each does in the round. Over an episode it adds up to the number of jobs
    /// under any policy; discounted, it rewards work done early.
    Progress,
}

/// Episodes of DeepShare's world.
#[derive(Clone, Debug)]
pub struct DeepShareEnvironment {
    tables: Arc<SpreadThroughputs>,
    workloads: Workloads,
    options: EpisodeOptions,
    /// Whether invalid actions are masked.
    masks: bool,
    step_limit: u64,
    observation_kind: ObservationKind,
    reward: RoundReward,
    spaces: [Space; 1],
    episode: DeepShareEpisode,
    n_steps: u64,
    status: Option<Status>,
}

impl DeepShareEnvironment {
    /// Episodes of at most `step_limit` steps, with jobs of `tables`, observed and rewarded as published.
    ///
    /// # Errors
    /// If the tables lack the mix.
    pub fn new(
        tables: Arc<SpreadThroughputs>,
        workloads: Workloads,
        options: EpisodeOptions,
        masks: bool,
        step_limit: u64,
    ) -> Result<Self, WorkloadError> {
        if let Workloads::Drawn(mix, _) = &workloads {
            generate(&tables, mix, 0, 0)?;
        }
        let (observation_kind, reward) = (ObservationKind::default(), RoundReward::default());
        let spaces = [space_of(observation_kind)];
        let episode = DeepShareEpisode::new(&tables, options);
        Ok(Self {
            tables,
            workloads,
            options,
            masks,
            step_limit,
            observation_kind,
            reward,
            spaces,
            episode,
            n_steps: 0,
            status: None,
        })
    }

    /// This environment with another kind of observation and another reward.
    #[must_use]
    pub fn learning_by(self, observation_kind: ObservationKind, reward: RoundReward) -> Self {
        Self { observation_kind, reward, spaces: [space_of(observation_kind)], ..self }
    }

    /// This environment with episodes in which policies act as in use: see [`EpisodeOptions::in_use`].
    #[must_use]
    pub fn in_use(&self, hybrid: bool) -> Self {
        let options = self.options.in_use(hybrid);
        let episode = DeepShareEpisode::new(&self.tables, options);
        Self { options, episode, status: None, ..self.clone() }
    }

    /// This environment with these jobs, whatever the seed.
    #[must_use]
    pub fn with_jobs(&self, jobs: &[WorldJob]) -> Self {
        Self { workloads: Workloads::Listed(vec![jobs.to_vec()]), ..self.clone() }
    }

    /// The episode as it is.
    pub fn episode(&self) -> &DeepShareEpisode {
        &self.episode
    }

    /// Plays the episode of a seed. The return is the mean reward of a round: a sum would favour long episodes.
    pub(super) fn judge(mut self, actor: &dyn Actor, choice: Choice, seed: u64) -> Result<Finished, String> {
        let played = play(&mut self, actor, choice, seed).map_err(|error| error.to_string())?;
        let n_rounds = self.episode.world().round().max(1);
        Ok(Finished { total_reward: played.total_reward / n_rounds as f64, ..played })
    }

    /// Plays the episode of a seed as published results are measured: the return is less the mean of two quotients, of
    /// the mean service time and of its 99th percentile, each over that of the published `las` for the same jobs.
    pub(super) fn judge_service(
        self,
        actor: &dyn Actor,
        choice: Choice,
        seed: u64,
    ) -> Result<Finished, String> {
        self.judge_quotients(actor, (choice, seed), |found| [found.service_s, found.service_p99_s])
    }

    /// Plays the episode of a seed: the return is less the mean of two quotients, of the mean service time and of the
    /// mean completion time, each over that of the published `las` for the same jobs.
    pub(super) fn judge_times(
        self,
        actor: &dyn Actor,
        choice: Choice,
        seed: u64,
    ) -> Result<Finished, String> {
        self.judge_quotients(actor, (choice, seed), |found| [found.service_s, found.completion_s])
    }

    /// The return is less the mean of the quotients of these times over those of the published `las`.
    fn judge_quotients(
        mut self,
        actor: &dyn Actor,
        (choice, seed): (Choice, u64),
        times: fn(&Summary) -> [f64; 2],
    ) -> Result<Finished, String> {
        let played = play(&mut self, actor, choice, seed).map_err(|error| error.to_string())?;
        if played.status != Status::Terminated {
            return Ok(Finished { total_reward: CUT_OFF, ..played });
        }
        let found = times(&self.episode.world().summary());
        let las = times(&self.las(seed).map_err(|error| error.to_string())?);
        Ok(Finished { total_reward: -(found[0] / las[0] + found[1] / las[1]) / 2.0, ..played })
    }

    /// The outcome of the jobs of a seed under the published `las`.
    fn las(&self, seed: u64) -> Result<Summary, WorldError> {
        let fidelity = self.options.fidelity;
        let name = PolicyName::Ordered(Order::MostService, Width::Widest);
        let mut speeds = DeepShareSpeeds::new(&self.tables, fidelity);
        let mut policy = DeepSharePolicy::new(name, speeds.clone(), fidelity, seed);
        let mut world = deepshare::world(&self.tables, fidelity, name.after_round());
        world.reset(&self.jobs(seed));
        run(&mut world, &mut speeds, &mut policy, LIMITS)
    }

    /// The jobs of a seed.
    fn jobs(&self, seed: u64) -> Cow<'_, [WorldJob]> {
        match &self.workloads {
            // The tables have the mix: jobs were drawn once when the environment was made.
            Workloads::Drawn(mix, n_jobs) => {
                Cow::Owned(generate(&self.tables, mix, *n_jobs, seed).unwrap_or_default())
            }
            Workloads::Listed(listed) => Cow::Borrowed(&listed[(seed % listed.len().max(1) as u64) as usize]),
        }
    }

    /// Plays the episode of a seed to its end, and sums up what became of its jobs.
    ///
    /// # Errors
    /// If the actor gives no probabilities, or jobs are left over at the step limit.
    pub fn play(&mut self, actor: &dyn Actor, choice: Choice, seed: u64) -> Result<Summary, PlayError> {
        let played = play(self, actor, choice, seed)?;
        summary_of(played, self.episode.world())
    }

    fn allowed(&self) -> [bool; N_ACTIONS] {
        if self.masks { mask(self.episode.world(), self.options.fidelity) } else { [true; N_ACTIONS] }
    }
}

fn space_of(observation_kind: ObservationKind) -> Space {
    Space::uniform(observation_kind.length(), (0.0, observation_kind.most()), N_ACTIONS)
}

impl Environment for DeepShareEnvironment {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        let jobs = self.jobs(seed).into_owned();
        self.episode.reset(&jobs);
        (self.n_steps, self.status) = (0, Some(Status::Running));
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        self.observation_kind.observe(self.episode.world(), self.options.fidelity, observation);
        mask.copy_from_slice(&self.allowed());
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status != Some(Status::Running) {
            return Err(Refused::Over);
        }
        let allowed = self.allowed();
        Refused::check(&allowed, action)?;
        let outcome = self.episode.step(action);
        self.n_steps += 1;
        let status = Status::after(self.n_steps, self.step_limit, outcome.done);
        self.status = Some(status);
        let reward = match self.reward {
            RoundReward::Published => outcome.reward,
            RoundReward::Progress => outcome.progress,
        };
        Ok(Transition { rounds: u32::from(outcome.round_ended), ..Transition::new(reward as f32, status) })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.step_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepshare::DecisionsPerRound;
    use apportion::spec::Fidelity;
    use apportion_learn::actor::UniformActor;
    use apportion_learn::checker::{CheckOptions, check};

    #[test]
    fn it_passes_the_check() {
        let base = (false, ObservationKind::Serials, RoundReward::Published);
        let hybrid = (true, ObservationKind::Counts, RoundReward::Progress);
        for (fidelity, decisions, masks, (hybrid, observation_kind, reward)) in [
            (Fidelity::Published, DecisionsPerRound::UntilInvalid, false, base),
            (Fidelity::Corrected, DecisionsPerRound::One, true, base),
            (Fidelity::Published, DecisionsPerRound::UntilInvalid, false, hybrid),
            (Fidelity::Corrected, DecisionsPerRound::UntilInvalid, true, hybrid),
        ] {
            let options = EpisodeOptions {
                fidelity,
                decisions,
                hybrid,
                preempts_first: false,
                contention_weight: 0.7,
                utilization_weight: 0.3,
            };
            let make = |step_limit| {
                let workloads = Workloads::Drawn(Mix::Random, 12);
                let tables = SpreadThroughputs::deepshare();
                let new = DeepShareEnvironment::new(tables, workloads, options, masks, step_limit).unwrap();
                new.learning_by(observation_kind, reward)
            };
            let report = check(|| make(2_000), CheckOptions { n_episodes: 3, ..CheckOptions::default() });
            report.assert_passed();
            assert_eq!(report.n_terminated, 3);
            check(|| make(20), CheckOptions { n_episodes: 1, ..CheckOptions::default() }).assert_passed();
        }
    }

    #[test]
    fn an_actor_is_judged_by_its_rounds_and_used_until_nothing_is_valid() {
        let options = EpisodeOptions {
            fidelity: Fidelity::Corrected,
            decisions: DecisionsPerRound::One,
            hybrid: false,
            preempts_first: true,
            contention_weight: 0.0,
            utilization_weight: 1.0,
        };
        let tables = SpreadThroughputs::deepshare();
        let workloads = Workloads::Drawn(Mix::Equal, 12);
        let mut trained_in = DeepShareEnvironment::new(tables, workloads, options, false, 5_000).unwrap();
        let [base, hybrid] = [false, true].map(|hybrid| trained_in.in_use(hybrid));
        let judged = base.clone().judge(&UniformActor, Choice::Sampled, 3).unwrap();
        assert!(
            judged.total_reward > 0.0 && judged.total_reward < 1.0,
            "a part of the accelerators: {judged:?}"
        );
        let [alone, base, hybrid] = [&mut trained_in, &mut base.clone(), &mut hybrid.clone()]
            .map(|environment| environment.play(&UniformActor, Choice::Sampled, 3).unwrap());
        assert_eq!((alone.n_done, base.n_done, hybrid.n_done), (12, 12, 12));
        assert!(alone.makespan_s > base.makespan_s && base.makespan_s > hybrid.makespan_s);
        let cut = EpisodeOptions { ..options }.in_use(false);
        let tables = SpreadThroughputs::deepshare();
        let mut cut =
            DeepShareEnvironment::new(tables, Workloads::Drawn(Mix::Equal, 12), cut, false, 9).unwrap();
        let error = cut.play(&UniformActor, Choice::Sampled, 3).unwrap_err();
        assert!(error.to_string().ends_with(" of 12 jobs were done after 9 decisions"), "{error}");
    }

    /// The quotients against those of worlds that are run as `apportion world` runs them.
    #[test]
    fn service_times_are_judged_against_those_of_las() {
        let options = EpisodeOptions {
            fidelity: Fidelity::Published,
            decisions: DecisionsPerRound::One,
            hybrid: false,
            preempts_first: true,
            contention_weight: 0.7,
            utilization_weight: 0.3,
        };
        let (tables, workloads) = (SpreadThroughputs::deepshare(), Workloads::Drawn(Mix::Random, 40));
        let new = |step_limit| {
            let (tables, workloads) = (Arc::clone(&tables), workloads.clone());
            DeepShareEnvironment::new(tables, workloads, options, false, step_limit).unwrap().in_use(false)
        };
        let jobs = generate(&tables, &Mix::Random, 40, 3).unwrap();
        let [las, narrow] = ["las", "las_narrow"].map(|name| {
            let (_, policy) = deepshare::parse_named(name).unwrap();
            let mut world = deepshare::world(&tables, options.fidelity, policy.after_round());
            let mut speeds = DeepShareSpeeds::new(&tables, options.fidelity);
            world.reset(&jobs);
            let mut policy = DeepSharePolicy::new(policy, speeds.clone(), options.fidelity, 0);
            run(&mut world, &mut speeds, &mut policy, LIMITS).unwrap()
        });
        assert!(las.service_s > narrow.service_s);
        let found = new(5_000).play(&UniformActor, Choice::Sampled, 3).unwrap();
        let expected = (found.service_s / las.service_s + found.service_p99_s / las.service_p99_s) / -2.0;
        let judged = new(5_000).judge_service(&UniformActor, Choice::Sampled, 3).unwrap();
        assert!((judged.total_reward - expected).abs() < 1e-12, "{judged:?} {expected}");
        let expected = (found.service_s / las.service_s + found.completion_s / las.completion_s) / -2.0;
        let judged = new(5_000).judge_times(&UniformActor, Choice::Sampled, 3).unwrap();
        assert!((judged.total_reward - expected).abs() < 1e-12, "{judged:?} {expected}");
        let cut_off = new(9).judge_service(&UniformActor, Choice::Sampled, 3).unwrap();
        assert_eq!(cut_off.total_reward, CUT_OFF);
    }
}
