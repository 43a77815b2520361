//! Level programs: raise one level t as far as the polytope allows while each member's demand is met.
//!
//!   maximize t   subject to   leaf(m) ≥ slope_m·t + base_m   for every member
//!
//! The leaf is the member's throughput, as a rule. Each step of water filling and of a parametric search is such
//! a program; they differ in the numbers of the demands only.

use super::bound::BoundObjective;
use super::expression::Subject;
use super::formulation::{AuxiliaryRole, Formulation};
use super::range::Reach;
use super::standard::{Affine, Range, Sense};

/// What a member asks of a level program: leaf(m) ≥ slope·t + base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Leaf per unit of the level, ≥ 0; 0 = a fixed floor.
    pub slope: f64,
    /// Leaf at level 0, ≥ 0.
    pub base: f64,
}

impl Demand {
    /// A fixed floor.
    pub const fn floor(leaf: f64) -> Self {
        Self { slope: 0.0, base: leaf }
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

    /// The same, made of an old formulation over the same columns if that is what it is.
    ///
    /// # Panics
    /// If the objective has no levels.
    pub fn with_demands_again(&self, demands: &[Demand], old: Option<Formulation>) -> Formulation {
        let inversion = self.objective.inversion().expect("the objective has levels");
        let reach = Reach::of(self);
        let mut builder = self.polytope(&reach, old);
        let (mut most, mut least) = (f64::INFINITY, 0.0_f64);
        for (at, demand) in self.places(Subject::Job).zip(demands).filter(|(_, demand)| demand.slope > 0.0) {
            let upper = self.range(inversion.leaf(), at, &reach).upper;
            most = most.min((upper - demand.base) / demand.slope);
            // A leaf of 0 is always to be had, so no optimum is below the level that this serves.
            least = least.min(-demand.base / demand.slope);
        }
        // Floors at the very edge of what can be had leave a level of 0 that rounding makes negative.
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
            builder.leaf_row(inversion, at, range, slope);
        }
        builder.constraints();
        builder.objective(Affine { constant: 0.0, terms: vec![(level, scale)] });
        builder.finish(Sense::Maximize)
    }
}
