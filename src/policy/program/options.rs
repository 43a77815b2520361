//! The options of a policy that solves a program.

use std::time::Duration;

use crate::policy::program::strategy::Strategy;
use crate::policy::view::ThroughputView;
use crate::program::Objective;
use crate::solver::Interrupt;
use crate::spec::Fidelity;

/// The choice among several optima.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refine {
    /// The optimum with the largest Σ thr/`thr_eq`, so that no worker idles that a job could use.
    #[default]
    Utilization,
    /// The lexicographic optimum.
    WaterFilling,
    /// An optimum near the analytic centre of the optimal face, where an interior-point method without crossover ends.
    Interior,
    /// The optimum that the solver returns.
    None,
}

impl Refine {
    /// All refinements.
    pub const ALL: [Self; 4] = [Self::Utilization, Self::WaterFilling, Self::Interior, Self::None];

    /// The name of the refinement in policy files, sweeps and Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::WaterFilling => "water_filling",
            Self::Interior => "interior",
            Self::None => "none",
        }
    }

    /// The refinement of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refine| refine.name() == name)
    }
}

/// The options of a program-backed policy.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// The policy's name, as users know it.
    pub name: String,
    /// The objective that the program optimizes.
    pub objective: Objective,
    /// The view that the policy has of throughputs.
    pub view: ThroughputView,
    /// Whether two jobs may share workers.
    pub pairs: bool,
    /// The choice among several optima.
    pub refine: Refine,
    /// Whether the weights of jobs come from their owners, entity by entity.
    pub hierarchical: bool,
    /// Whether each job's time is discounted by what its presence costs the others. For objectives of throughput alone.
    pub discounted: bool,
    /// Whether the published system's oddities are kept: as `published`, gangs have time where they do not fit, entities serve jobs
    /// as listed, and where one droppable constraint cannot be kept, all are dropped.
    pub fidelity: Fidelity,
    /// A backend to try first; the default chain if none.
    pub backend: Option<String>,
    /// The strategy of every decision; the one that suits each problem if none. A problem that it does not fit is an error.
    pub strategy: Option<Strategy>,
    /// Wall time of a decision after which no further program is begun; unbounded if none. Programs are always
    /// bounded in steps.
    pub time_limit: Option<Duration>,
    /// The interrupt that ends a decision early, with an error.
    pub interrupt: Interrupt,
}
