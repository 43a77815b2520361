//! The elastic world as an environment: see [`elastic`](crate::elastic) for its actions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::elastic::{
    ElasticEpisode, ElasticPolicy, ElasticReward, Ladders, N_OF_PAIR, ObservationKind, SEEN_MAX, SLOT_S,
    WORKERS_PER_TYPE, WorkloadOptions, generate, parse_named, world,
};
use crate::gangs::{N_FEATURES, SCORER};
use crate::slots::StepOutcome;
use crate::slots::{SlotEnvironment, Slots, check_scaling_cost, is_free, system_of};
use crate::world::World;
use apportion::throughput::Throughputs;
use apportion_learn::environment::{Environment, Show, Space, Status};
use apportion_learn::system::{Registered, System, SystemError, check_counts, check_seen, options};

/// The system `elastic`.
pub const SYSTEM: Registered = Registered {
    name: "elastic",
    decides: "how many workers of which type each job gets, slot by slot, at the speeds of a throughput matrix",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: ElasticWorld = options(world)?;
    check_seen("window", options.window)?;
    let first = options.environment()?;
    let data = first.slots().ladders().described();
    let network = (options.observation_kind != ObservationKind::Window).then_some(SCORER);
    Ok(system_of((SYSTEM.name, &data), first, demonstrate_rule).with_network(network))
}

/// The elastic world with its workloads, one for each seed.
#[derive(Clone, Debug)]
pub struct ElasticSlots {
    ladders: Arc<Ladders>,
    workload: WorkloadOptions,
    episode: ElasticEpisode,
}

impl ElasticSlots {
    /// The speeds of the world.
    pub fn ladders(&self) -> &Ladders {
        &self.ladders
    }
}

/// Episodes of the elastic world.
pub type ElasticEnvironment = SlotEnvironment<ElasticSlots>;

impl Slots for ElasticSlots {
    fn begin(&mut self, seed: u64) {
        let jobs = generate(&self.ladders, &self.workload, seed);
        self.episode.reset(&jobs.unwrap_or_default());
    }

    fn world(&self) -> &World {
        self.episode.world()
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        self.episode.observe(observation);
        self.episode.mask(mask);
    }

    fn step(&mut self, action: usize) -> StepOutcome {
        self.episode.step(action)
    }
}

/// Options of the world of `elastic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ElasticWorld {
    /// Name of a throughput matrix that ships with the program.
    pub throughputs: String,
    /// Workers of each type.
    pub workers: u16,
    /// Jobs of an episode.
    pub jobs: usize,
    /// Mean arrivals in a slot.
    pub rate: f64,
    /// Powers of ten between which a job's minutes on one worker of its fastest type are drawn, uniformly in the power.
    pub minutes_log10: (f64, f64),
    /// The kind of observation of jobs.
    #[serde(rename = "sight")]
    pub observation_kind: ObservationKind,
    /// The number of jobs in view.
    pub window: usize,
    /// The reward of actions.
    pub reward: ElasticReward,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
    /// Time that a job stands still in a slot in which it holds other workers than in the slot before.
    #[serde(skip_serializing_if = "is_free")]
    #[schemars(extend("x-unit" = "s"))]
    pub scaling_cost_s: f64,
}

impl Default for ElasticWorld {
    fn default() -> Self {
        let workload = WorkloadOptions::default();
        Self {
            throughputs: "osdi20".to_owned(),
            workers: WORKERS_PER_TYPE,
            jobs: workload.n_jobs,
            rate: workload.rate_per_slot,
            minutes_log10: workload.minutes_log10,
            observation_kind: ObservationKind::Window,
            window: 20,
            reward: ElasticReward::Progress,
            step_limit: 200_000,
            scaling_cost_s: 0.0,
        }
    }
}

impl ElasticWorld {
    /// An environment of these options, still to be reset.
    ///
    /// # Errors
    /// If there is no such matrix, or an option is out of range.
    pub fn environment(&self) -> Result<ElasticEnvironment, String> {
        let counts = [
            ("workers", u64::from(self.workers)),
            ("jobs", self.jobs as u64),
            ("window", self.window as u64),
        ];
        check_counts(&counts, self.step_limit)?;
        check_scaling_cost(self.scaling_cost_s)?;
        let throughputs = Throughputs::embedded(&self.throughputs).map_err(|error| error.to_string())?;
        let ladders = Arc::new(Ladders::new(&throughputs));
        let workload = WorkloadOptions {
            n_jobs: self.jobs,
            rate_per_slot: self.rate,
            minutes_log10: self.minutes_log10,
        };
        generate(&ladders, &workload, 0).map_err(|error| error.to_string())?;
        let empty = world(&ladders, self.workers, self.scaling_cost_s);
        let episode = ElasticEpisode::new(
            empty,
            Arc::clone(&ladders),
            (self.observation_kind, self.window),
            self.reward,
        );
        let window = episode.window();
        let space = Space::uniform(window.length(), (-SEEN_MAX, SEEN_MAX), window.n_actions());
        let slots = ElasticSlots { ladders, workload, episode };
        Ok(ElasticEnvironment::of_slots(slots, space, (SLOT_S, self.step_limit)))
    }
}

// Scorers of gangs and of climbs have rows of the same length.
const _: () = assert!(N_OF_PAIR == N_FEATURES);

/// Plays the episode of a seed as a rule of the world decides, and shows each observation, mask and action. A climb of a job out of
/// view is shown as the end of the slot.
///
/// # Errors
/// If there is no such rule.
pub(super) fn demonstrate_rule(
    environment: &mut ElasticEnvironment,
    rule: &str,
    seed: u64,
    show: &mut Show<'_>,
) -> Result<(), String> {
    let (_, rule) = parse_named(rule)?;
    let mut policy = ElasticPolicy::new(rule, Ladders::clone(&environment.slots().ladders), seed);
    let space = &environment.spaces()[0];
    let (mut seen, mut mask) = (vec![0.0; space.observation_length()], vec![false; space.n_actions]);
    environment.reset(seed);
    loop {
        environment.observe(&mut seen, &mut mask);
        let slots = environment.slots();
        let climb = policy.climb(slots.world());
        let action = climb.and_then(|climb| slots.episode.window().encode(climb)).unwrap_or(mask.len() - 1);
        show(0, &seen, &mask, action);
        match environment.step(action) {
            Ok(transition) if transition.status != Status::Running => return Ok(()),
            Ok(_) => {}
            Err(refused) => return Err(refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elastic::{LIMITS, all};
    use crate::world::run;
    use apportion_learn::checker::{CheckOptions, check};

    fn small() -> ElasticWorld {
        ElasticWorld { workers: 4, jobs: 8, window: 8, ..ElasticWorld::default() }
    }

    #[test]
    fn it_passes_the_check() {
        for (observation_kind, step_limit, n_episodes) in [
            (ObservationKind::Window, 20_000, 2),
            (ObservationKind::Pairs, 20_000, 1),
            (ObservationKind::Window, 9, 1),
        ] {
            let world = ElasticWorld { observation_kind, step_limit, window: 5, ..small() };
            let options = CheckOptions { n_episodes, ..CheckOptions::default() };
            check(|| world.environment().unwrap(), options).assert_passed();
        }
    }

    #[test]
    fn a_climb_is_its_jobs_where_rewards_are_own() {
        let owners = |reward| {
            let world = ElasticWorld { reward, ..small() };
            let mut environment = world.environment().unwrap();
            environment.reset(3);
            let space = &environment.spaces()[0];
            let (mut seen, mut mask) = (vec![0.0; space.observation_length()], vec![false; space.n_actions]);
            environment.observe(&mut seen, &mut mask);
            // Before any job has arrived, the only action is to let a slot pass.
            let first = mask.iter().position(|allowed| *allowed).unwrap();
            let climbed = environment.step(first).unwrap();
            (first + 1 == mask.len(), climbed.owner, environment.step(mask.len() - 1).unwrap().owner)
        };
        assert_eq!(owners(ElasticReward::OwnProgress), (false, Some(0), None));
        assert_eq!(owners(ElasticReward::Progress), (false, None, None));
    }

    #[test]
    fn a_rule_does_the_same_as_a_teacher() {
        let first = small().environment().unwrap();
        // Slots end here once no job can climb, where a random rule would draw once more.
        for (name, rule) in all().filter(|(name, _)| *name != "random") {
            let mut environment = first.clone();
            let mut n_shown = 0;
            let mut show = |_: usize, _: &[f32], mask: &[bool], action: usize| {
                assert!(mask[action], "{name}");
                n_shown += 1;
            };
            demonstrate_rule(&mut environment, name, 5, &mut show).unwrap();
            assert!(n_shown > 8, "{name}");
            let ladders = first.slots().ladders();
            let mut alone = world(ladders, 4, 0.0);
            alone.reset(&generate(ladders, &first.slots().workload, 5).unwrap());
            let mut policy = ElasticPolicy::new(rule, ladders.clone(), 5);
            let summary = run(&mut alone, &mut &*ladders, &mut policy, LIMITS).unwrap();
            let shown = environment.slots().world().summary();
            assert_eq!(shown.completion_s, summary.completion_s, "{name}");
        }
        let unknown = demonstrate_rule(&mut first.clone(), "optimum", 5, &mut |_, _, _, _| {}).unwrap_err();
        assert!(unknown.starts_with("unknown policy `optimum`"), "{unknown}");
    }

    #[test]
    fn options_that_make_no_world_are_refused() {
        let said = |world: ElasticWorld| world.environment().unwrap_err();
        assert!(said(ElasticWorld { workers: 0, ..small() }).starts_with("`workers` is 0"));
        assert!(said(ElasticWorld { rate: -1.0, ..small() }).starts_with("the rate is -1"));
        assert!(said(ElasticWorld { throughputs: "osdi21".to_owned(), ..small() }).contains("osdi21"));
    }
}
