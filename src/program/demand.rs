//! Level programs: the largest level t at which every member has the throughput that it demands.
//!
//!   maximize t   subject to   throughput(m) ≥ slope_m·t + base_m   for every member
//!
//! Each step of water filling and of a parametric search is such a program; only their demands differ. (Where a level asks
//! for another affine form of the allocation, that takes the place of the throughput: see [`Inversion`](super::Inversion).)

use super::binding::BoundObjective;
use super::expression::Subject;
use super::program_map::{AuxiliaryRole, Formulation};
use super::range::Reach;
use super::standard::{Affine, Range, Sense};

/// The demand of a member: throughput(m) ≥ slope·t + base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Throughput per unit of the level, ≥ 0; 0 for a fixed floor.
    pub slope: f64,
    /// Throughput at level 0, ≥ 0.
    pub base: f64,
}

impl Demand {
    /// A fixed floor: the same throughput at every level.
    pub const fn floor(throughput: f64) -> Self {
        Self { slope: 0.0, base: throughput }
    }
}

impl BoundObjective<'_> {
    /// The level program of `demands` `[members]`, with the policy's own constraints. Its value is the level; its
    /// [`level_rows`](Formulation::level_rows) are the demands, one per member. If no demand has a slope the
    /// level is 0.
    ///
    /// # Panics
    /// If the objective has no levels.
    pub fn with_demands(&self, demands: &[Demand]) -> Formulation {
        self.with_demands_again(demands, None)
    }

    /// The level program of `demands`, as [`with_demands`](Self::with_demands) gives it, in the memory of an old
    /// formulation if that is over the same columns.
    ///
    /// # Panics
    /// If the objective has no levels.
    pub fn with_demands_again(&self, demands: &[Demand], old: Option<Formulation>) -> Formulation {
        let inversion = self.objective.inversion().expect("the objective has levels");
        let reach = Reach::of(self);
        let mut builder = self.polytope(&reach, old);
        let (mut most, mut least) = (f64::INFINITY, 0.0_f64);
        for (at, demand) in self.places(Subject::Job).zip(demands).filter(|(_, demand)| demand.slope > 0.0) {
            let upper = self.range(inversion.throughput(), at, &reach).upper;
            most = most.min((upper - demand.base) / demand.slope);
            // Throughput 0 is always feasible, so no optimum is below the level at which it meets the demand.
            least = least.min(-demand.base / demand.slope);
        }
        // If the floors use up everything, the optimum is a level of 0, which rounding may make negative.
        let most = if most.is_finite() { most.max(least) } else { 0.0 };
        let bounds = if most > 0.0 || least < 0.0 { Range::FREE } else { Range::exactly(0.0) };
        let implied = Range { lower: least, upper: most };
        let scale = if most > 0.0 { most } else { 1.0 };
        let level = builder.auxiliary(AuxiliaryRole::Level, bounds, implied, scale);
        for (at, demand) in self.places(Subject::Job).zip(demands) {
            let range = if demand.slope > 0.0 || demand.base > 0.0 {
                Range::at_least(demand.base)
            } else {
                Range::FREE
            };
            let slope = (demand.slope > 0.0).then_some((level, -demand.slope * scale));
            builder.throughput_row(inversion, at, range, slope);
        }
        builder.constraints();
        builder.objective(Affine { constant: 0.0, terms: vec![(level, scale)] });
        builder.finish(Sense::Maximize)
    }
}
