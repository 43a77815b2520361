//! Policies of this world that learn nothing, by name.

use std::fmt;

use crate::deepshare::control::greedy;
use crate::deepshare::order::{Order, Width};
use crate::deepshare::{DeepShareSpeeds, N_ACTIONS, PREEMPT_AT, SERVER_SETS, candidates, decode, spread};
use crate::world::AfterRound;
use crate::world::Decision;
use crate::world::Part;
use crate::world::World;
use crate::world::WorldPolicy;
use apportion::index::JobId;
use apportion::spec::Fidelity;
use apportion::spec::nearest::name_list;
use apportion::workload::random::{SeedStreams, Stream};

/// A policy of this world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolicyName {
    /// Strictly in an order; every job is preempted after every round.
    Ordered(Order, Width),
    /// In order of arrival; no job is ever preempted.
    Fifo(Width),
    /// Uniformly random actions until one is invalid; in a hybrid, any candidate that fits takes the place of an invalid action,
    /// until none fits.
    Random {
        /// Whether an invalid action falls back on the baselines' placement.
        hybrid: bool,
    },
    /// The placement that gains most, as long as it gains more than a limit.
    Greedy {
        /// The limit of the gain, per worker.
        above: f64,
    },
}

const ALL: [(&str, PolicyName); 15] = [
    ("las", PolicyName::Ordered(Order::MostService, Width::Widest)),
    ("srtf", PolicyName::Ordered(Order::LeastProgress, Width::Widest)),
    ("random_base", PolicyName::Random { hybrid: false }),
    ("random_hybrid", PolicyName::Random { hybrid: true }),
    ("greedy_always", PolicyName::Greedy { above: f64::NEG_INFINITY }),
    ("greedy_gain", PolicyName::Greedy { above: 0.0 }),
    ("greedy_gain_0.4", PolicyName::Greedy { above: 0.4 }),
    ("true_las", PolicyName::Ordered(Order::LeastService, Width::Widest)),
    ("true_srtf", PolicyName::Ordered(Order::LeastRemaining, Width::Widest)),
    ("true_las_narrow", PolicyName::Ordered(Order::LeastService, Width::Narrowest)),
    ("true_srtf_narrow", PolicyName::Ordered(Order::LeastRemaining, Width::Narrowest)),
    ("las_narrow", PolicyName::Ordered(Order::MostService, Width::Narrowest)),
    ("srtf_narrow", PolicyName::Ordered(Order::LeastProgress, Width::Narrowest)),
    ("fifo", PolicyName::Fifo(Width::Widest)),
    ("fifo_narrow", PolicyName::Fifo(Width::Narrowest)),
];

/// All policies with their names, baselines first.
pub fn all() -> impl Iterator<Item = (&'static str, PolicyName)> {
    ALL.into_iter()
}

/// The policy of a name, and the name.
///
/// # Errors
/// If there is no policy of the name; the error lists the names.
pub fn parse_named(name: &str) -> Result<(&'static str, PolicyName), String> {
    let unknown = || {
        let known = name_list(ALL.iter().map(|(name, _)| *name));
        format!("unknown policy `{name}`, expected one of {known}")
    };
    ALL.into_iter().find(|(other, _)| *other == name).ok_or_else(unknown)
}

impl PolicyName {
    /// The rule of placed jobs after a round under this policy.
    pub const fn after_round(self) -> AfterRound {
        match self {
            Self::Ordered(..) => AfterRound::PreemptAll,
            Self::Fifo(_) => AfterRound::Stay,
            Self::Random { .. } | Self::Greedy { .. } => AfterRound::PreemptAtOrBelow(PREEMPT_AT),
        }
    }
}

/// A policy of this world at work.
pub struct DeepSharePolicy {
    name: PolicyName,
    fidelity: Fidelity,
    speeds: DeepShareSpeeds,
    actions: Stream,
    parts: Vec<Part>,
}

impl DeepSharePolicy {
    /// A policy; `seed` is for its random actions.
    pub fn new(name: PolicyName, speeds: DeepShareSpeeds, fidelity: Fidelity, seed: u64) -> Self {
        let actions = SeedStreams::new(seed).stream("deepshare actions");
        Self { name, fidelity, speeds, actions, parts: Vec::with_capacity(4) }
    }

    /// The job that runs next; its placement is in `parts`.
    fn choose(&mut self, world: &World) -> Option<JobId> {
        match self.name {
            PolicyName::Ordered(order, width) => self.head(world, order, width),
            PolicyName::Fifo(width) => self.head(world, Order::Fifo, width),
            PolicyName::Random { hybrid } => {
                let action = self.actions.below(N_ACTIONS);
                self.act(world, action).or_else(|| if hybrid { self.fill(world) } else { None })
            }
            PolicyName::Greedy { above } => {
                let (action, _) =
                    greedy(world, &self.speeds, self.fidelity).filter(|(_, gain)| *gain > above)?;
                self.act(world, action)
            }
        }
    }

    fn head(&mut self, world: &World, order: Order, width: Width) -> Option<JobId> {
        let job = order.head(world)?;
        width.place(world, job, &mut self.parts).then_some(job)
    }

    fn act(&mut self, world: &World, action: usize) -> Option<JobId> {
        let job = decode(world, action, self.fidelity)?;
        spread(&mut self.parts, world.job(job).workers, SERVER_SETS[action]);
        Some(job)
    }

    fn fill(&mut self, world: &World) -> Option<JobId> {
        let mut jobs = candidates(world).into_iter().flatten();
        jobs.find(|job| Width::Widest.place(world, *job, &mut self.parts))
    }
}

impl WorldPolicy for DeepSharePolicy {
    fn next(&mut self, world: &World) -> Decision<'_> {
        match self.choose(world) {
            Some(job) if world.rejected().is_none() => Decision::Place { job, parts: &self.parts },
            _ => Decision::EndRound,
        }
    }
}

impl fmt::Debug for DeepSharePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeepSharePolicy").field("name", &self.name).finish_non_exhaustive()
    }
}
