//! What a step aims at, and what is asked of a pass.

use crate::solver::lanes::F64x8;

/// What the products of a step's pairs are to become. In place of mu, the row of a logarithm has its weight.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// mu, less `second` times the product of the steps stored: a predictor (both zero) or its corrector.
    Path { mu: f64, second: f64 },
    /// What the steps stored aim at, changed where they would lead to a product that is too far from mu: steps of
    /// length `primal` and `dual`.
    Centre { mu: f64, primal: f64, dual: f64 },
}

/// What a pair's product aims at.
#[derive(Clone, Copy, Debug)]
pub(super) enum ComplementarityTarget {
    /// This many times mu.
    Share(f64),
    /// This, whatever mu.
    Weight(f64),
}

impl ComplementarityTarget {
    fn at(self, mu: f64) -> f64 {
        match self {
            Self::Share(share) => share * mu,
            Self::Weight(weight) => weight,
        }
    }
}

/// Products within these factors of their target are left alone; none is asked to fall by more than the larger.
const NEAR: (f64, f64) = (0.1, 10.0);

impl Target {
    /// The product that a pair is to have.
    pub(super) fn of_pair(
        self,
        aim: ComplementarityTarget,
        [primal, dual, primal_step, dual_step]: [f64; 4],
    ) -> f64 {
        match self {
            Self::Path { mu, second } => aim.at(mu) - primal_step * dual_step * second,
            Self::Centre { mu, primal: along, dual: dual_along } => {
                let whole = aim.at(mu);
                let now = primal * dual + primal * dual_step + dual * primal_step;
                let then = (primal + along * primal_step) * (dual + dual_along * dual_step);
                let wanted = if then < NEAR.0 * whole { NEAR.0 * whole } else { then };
                let wanted = if wanted > NEAR.1 * whole { NEAR.1 * whole } else { wanted };
                let change = wanted - then;
                let least = -NEAR.1 * whole;
                now + if change < least { least } else { change }
            }
        }
    }
}

/// Values, or steps, of the linking rows' prices and of the linking columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer<'a> {
    pub(super) price: &'a [f64],
    pub(super) level: &'a [f64],
}

/// What is wanted of a gathering pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) target: Target,
    /// P, Q, R, activities and residuals too, not the right-hand side alone.
    pub(super) matrix: bool,
    /// The objective's logarithms too.
    pub(super) objective: bool,
}

/// What stands for the slack of an equation, relative to its part of the system: enough to keep that definite where
/// equations depend on one another, and without effect where steps end.
pub(super) const PROXIMAL: f64 = 1e-12;

/// [`Target::of_pair`] for eight pairs: of this share, or else of this weight.
#[inline]
pub(super) fn aim(
    target: Target,
    of: Result<F64x8, F64x8>,
    (x, z): (F64x8, F64x8),
    (dx, dz): (F64x8, F64x8),
) -> F64x8 {
    match (target, of) {
        (Target::Path { mu, second }, Ok(share)) => share * mu - dx * dz * second,
        (Target::Path { second, .. }, Err(weight)) => weight - dx * dz * second,
        (Target::Centre { .. }, _) => F64x8(std::array::from_fn(|i| {
            let aim = match of {
                Ok(share) => ComplementarityTarget::Share(share.0[i]),
                Err(weight) => ComplementarityTarget::Weight(weight.0[i]),
            };
            target.of_pair(aim, [x.0[i], z.0[i], dx.0[i], dz.0[i]])
        })),
    }
}
