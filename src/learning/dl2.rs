//! DL2's world as an environment: see [`world::dl2`](crate::world::dl2) for what is seen and done.

use std::sync::Arc;

use super::environment::{Environment, Refused, Space, Status, Transition};
use crate::throughput::ThroughputsError;
use crate::throughput::elastic::ElasticThroughputs;
use crate::world::dl2::{
    Dl2Episode, Dl2Speeds, EpisodeOptions, ObservationKind, SpeedOptions, Window, WorkloadError,
    WorkloadOptions, generate, world,
};

/// What an environment is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dl2EnvironmentOptions {
    /// The cluster, the start of a slot and what a slot is worth.
    pub episode: EpisodeOptions,
    /// How fast jobs are; their errors follow the seed of the episode.
    pub speeds: SpeedOptions,
    /// Workloads, drawn anew for each seed.
    pub workload: WorkloadOptions,
    /// What is seen of a job.
    pub observation: ObservationKind,
    /// Jobs that are seen.
    pub n_window: usize,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

/// Episodes of DL2's world.
#[derive(Clone, Debug)]
pub struct Dl2Environment {
    tables: Arc<ElasticThroughputs>,
    options: Dl2EnvironmentOptions,
    spaces: [Space; 1],
    episode: Dl2Episode,
    mask: Vec<bool>,
    n_steps: u64,
    status: Option<Status>,
}

/// Why an environment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Dl2EnvironmentError {
    /// No such workload can be drawn.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// There is no surface of speeds.
    #[error(transparent)]
    Speeds(#[from] ThroughputsError),
}

impl Dl2Environment {
    /// Episodes of jobs as in `tables`.
    ///
    /// # Errors
    /// If no such workload can be drawn, or the tables carry no speeds.
    pub fn new(
        tables: Arc<ElasticThroughputs>,
        options: Dl2EnvironmentOptions,
    ) -> Result<Self, Dl2EnvironmentError> {
        generate(&tables, &options.workload, 0)?;
        let epochs = tables.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
        let tasks_max = options.episode.cluster.tasks_max;
        let window = Window::new(options.observation, options.n_window, tasks_max, epochs);
        // Slots since arrival are at most the steps; of epochs there are at most the longest job's.
        let most = (options.step_limit as f32).max(options.workload.epochs_max as f32).max(100.0);
        let n_actions = window.n_actions();
        let spaces = [Space::uniform(window.n_rows() * window.n_jobs(), (-most, most), n_actions)];
        let speeds = Dl2Speeds::new(&tables, options.speeds)?;
        let episode =
            Dl2Episode::new(world(&tables, options.episode.cluster), speeds, window, options.episode);
        let mask = vec![false; n_actions];
        Ok(Self { tables, options, spaces, episode, mask, n_steps: 0, status: None })
    }

    /// The episode as it is.
    pub fn episode(&self) -> &Dl2Episode {
        &self.episode
    }
}

impl Environment for Dl2Environment {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        let jobs = generate(&self.tables, &self.options.workload, seed);
        self.episode.reset(&jobs.unwrap_or_default(), seed);
        (self.n_steps, self.status) = (0, Some(Status::Running));
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        let window = self.episode.window();
        window.observe(self.episode.world(), observation);
        window.mask(self.episode.world(), mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status != Some(Status::Running) {
            return Err(Refused::Over);
        }
        self.episode.window().mask(self.episode.world(), &mut self.mask);
        match self.mask.get(action) {
            None => return Err(Refused::Unknown { action, n_actions: self.mask.len() }),
            Some(false) => return Err(Refused::Masked { action }),
            Some(true) => {}
        }
        let outcome = self.episode.step(action);
        self.n_steps += 1;
        let status = match outcome.done {
            true => Status::Terminated,
            false if self.n_steps >= self.options.step_limit => Status::Truncated,
            false => Status::Running,
        };
        self.status = Some(status);
        Ok(Transition {
            reward: outcome.reward as f32,
            rounds: u32::from(outcome.slot_ended),
            counts: outcome.valid,
            status,
        })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.options.step_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::checker::{CheckOptions, check};
    use crate::throughput::elastic::SurfaceOptions;
    use crate::world::dl2::{Dl2Options, RewardKind, SpeedModel};

    #[test]
    fn it_passes_the_check() {
        let kinds = [ObservationKind::Released, ObservationKind::Scaled, ObservationKind::Paper];
        for (observation, error) in kinds.into_iter().zip([0.0, 0.2, 0.0]) {
            let cluster = Dl2Options { n_servers: 4, ..Dl2Options::default() };
            let make = |step_limit| {
                let options = Dl2EnvironmentOptions {
                    episode: EpisodeOptions { cluster, starting_bundle: true, reward: RewardKind::Progress },
                    speeds: SpeedOptions {
                        model: SpeedModel::Measured(SurfaceOptions::CORRECTED),
                        error,
                        seed: 0,
                        tasks_max: cluster.tasks_max,
                    },
                    workload: WorkloadOptions { n_jobs: 6, epochs_max: 300, ..WorkloadOptions::default() },
                    observation,
                    n_window: 5,
                    step_limit,
                };
                Dl2Environment::new(ElasticThroughputs::dl2(), options).unwrap()
            };
            let report = check(|| make(2_000), CheckOptions { n_episodes: 2, ..CheckOptions::default() });
            report.assert_passed();
            assert_eq!(report.n_terminated, 2);
            check(|| make(9), CheckOptions { n_episodes: 1, ..CheckOptions::default() }).assert_passed();
        }
    }
}
