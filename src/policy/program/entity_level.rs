//! The level that weighted entities reach together: the objective's place in a hierarchical policy.
//!
//! Weights fall through entities, so a job's own weight is not the one by which its level counts. The level that is raised
//! first is the objective: an allocation has the highest one that every job which rises there keeps.

use crate::policy::program::hierarchy::{Hierarchy, Rates, Rising};
use crate::policy::program::water_filling::FirstLevel;
use crate::program::{BoundObjective, LevelCoefficients, LevelForm, Sense};

/// The level that all members reach together, as a function of throughputs.
#[derive(Clone, Debug)]
pub(super) struct ReachedLevel {
    first: FirstLevel,
    /// The throughput of each member at a level of 0: [members].
    base: Vec<f64>,
    /// Whether the inverse of the level is raised.
    inverse: bool,
    /// Levels that no throughput changes.
    fixed: Vec<f64>,
    sense: Sense,
}

impl ReachedLevel {
    /// The level before any program raises it, with the rates at which throughputs rise with it; none if the objective has no
    /// levels.
    pub(super) fn unraised<'h>(
        bound: &BoundObjective<'_>,
        hierarchy: Option<&'h Hierarchy>,
    ) -> Option<(Self, Rates<'h>)> {
        let levels = bound.levels_kept()?;
        let n = bound.instance().n_members();
        let coefficients: Vec<LevelCoefficients> =
            (0..n).map(|member| levels.coefficients(member).unwrap_or_default()).collect();
        let slopes = coefficients.iter().map(|of| of.slope);
        let slope = match (hierarchy, bound.instance().data.get("weight")) {
            // The slope is proportional to the weight: divide the job's own out, for the hierarchy sets another.
            (Some(_), Some(weights)) => slopes.zip(weights).map(|(slope, weight)| slope / weight).collect(),
            _ => slopes.collect(),
        };
        let rates = Rates { slope, hierarchy };
        // A level that no throughput changes, as a factor of it is 0, bounds the first level.
        let fixed = (0..n).filter(|member| levels.coefficients(*member).is_none());
        let level = Self {
            first: FirstLevel::unraised(rates.slopes(&vec![false; n])),
            base: coefficients.iter().map(|of| of.base.max(0.0)).collect(),
            inverse: levels.form() == LevelForm::AffineInInverse,
            fixed: fixed.map(|member| levels.level(member, 0.0)).collect(),
            sense: bound.objective().sense(),
        };
        Some((level, rates))
    }

    /// The throughput of each member at a level of 0: [members].
    pub(super) fn base(&self) -> &[f64] {
        &self.base
    }

    /// Whether the inverse of the level is raised.
    pub(super) fn is_inverse(&self) -> bool {
        self.inverse
    }

    /// The level once a program raised it.
    #[must_use]
    pub(super) fn raised(self, first: FirstLevel) -> Self {
        Self { first, ..self }
    }

    /// The level that all members keep at these throughputs: [members].
    pub(super) fn at(&self, throughputs: &[f64]) -> f64 {
        self.of_raised(self.first.kept_by(throughputs, &self.base))
    }

    /// A bound on the level that no allocation is better than; no limit before a program raised it.
    pub(super) fn bound(&self) -> f64 {
        self.of_raised(self.first.bound)
    }

    /// Whether a program raised it.
    pub(super) fn is_raised(&self) -> bool {
        self.first.bound.is_finite()
    }

    /// The bound that follows from the most that each member can have by itself.
    pub(super) fn ideal(&self, bound: &BoundObjective<'_>) -> Option<f64> {
        Some(self.at(&bound.throughputs_max()?))
    }

    /// The level, or its inverse where that is raised, with the levels that no throughput changes.
    fn of_raised(&self, level: f64) -> f64 {
        let raised = if self.inverse { level.recip() } else { level };
        self.fixed.iter().copied().fold(
            raised,
            match self.sense {
                Sense::Maximize => f64::min,
                Sense::Minimize => f64::max,
            },
        )
    }
}
