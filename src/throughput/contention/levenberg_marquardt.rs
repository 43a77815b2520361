//! Least squares by Levenberg–Marquardt, for residuals that each depend on a few parameters.
//!
//!   minimise over p   Σ_i e_i(p)² + ridge · Σ_k (p_k − prior_k)²
//!
//! The ridge keeps parameters that no residual reaches at their prior, and the normal equations positive definite.
//! Residuals need be differentiable only almost everywhere: a step is taken only if it lowers the cost. One
//! iteration costs a Cholesky factorization of the normal equations, O(n³/3) for n parameters.

use nalgebra::{DMatrix, DVector};

/// A receiver of a residual e and its non-zero slopes (k, ∂e/∂p_k).
pub(super) type Visitor<'a> = dyn FnMut(f64, &[(usize, f64)]) + 'a;

/// Residuals and their slopes.
pub(super) trait Residuals {
    /// Calls `visit` with every residual at `parameters`.
    fn each(&self, parameters: &[f64], visit: &mut Visitor<'_>);
}

/// The values to which a ridge pulls the parameters, and its strength.
#[derive(Clone, Debug)]
pub(super) struct Prior {
    /// Values in the absence of evidence: [parameter].
    pub(super) center: Vec<f64>,
    /// Cost of a parameter one unit off, in squared residuals.
    pub(super) ridge: f64,
}

/// The end of a minimization.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    /// Parameters of the lowest cost met.
    pub(super) parameters: Vec<f64>,
    /// The cost of the parameters.
    pub(super) cost: f64,
}

const ITERATIONS_MAX: usize = 120;
/// The most times that damping is raised within an iteration.
const ATTEMPTS_MAX: usize = 10;
/// The relative decrease of the cost below which the minimization stops.
const TOLERANCE: f64 = 1e-7;

/// Descends from `start` to a local minimum.
pub(super) fn minimize(residuals: &impl Residuals, prior: &Prior, start: Vec<f64>) -> Minimum {
    let mut best = Minimum { cost: cost(residuals, prior, &start), parameters: start };
    let mut damping = 1e-2;
    for _ in 0..ITERATIONS_MAX {
        let (normal, gradient) = normal_equations(residuals, prior, &best.parameters);
        let Some(next) = descend(residuals, prior, &best, (&normal, &gradient), &mut damping) else { break };
        let small = best.cost - next.cost <= TOLERANCE * best.cost;
        best = next;
        if small {
            break;
        }
    }
    best
}

/// A damped Gauss–Newton step that lowers the cost; none if there is none.
fn descend(
    residuals: &impl Residuals,
    prior: &Prior,
    from: &Minimum,
    (normal, gradient): (&DMatrix<f64>, &DVector<f64>),
    damping: &mut f64,
) -> Option<Minimum> {
    for _ in 0..ATTEMPTS_MAX {
        let mut damped = normal.clone();
        for k in 0..damped.nrows() {
            damped[(k, k)] += *damping * normal[(k, k)];
        }
        if let Some(factor) = damped.cholesky() {
            let step = factor.solve(gradient);
            let parameters: Vec<f64> =
                from.parameters.iter().zip(step.iter()).map(|(value, step)| value - step).collect();
            let cost = cost(residuals, prior, &parameters);
            if cost < from.cost {
                *damping = (*damping / 5.0).max(1e-9);
                return Some(Minimum { parameters, cost });
            }
        }
        *damping *= 4.0;
    }
    None
}

fn cost(residuals: &impl Residuals, prior: &Prior, parameters: &[f64]) -> f64 {
    let pull: f64 =
        parameters.iter().zip(&prior.center).map(|(value, center)| (value - center).powi(2)).sum();
    let mut total = prior.ridge * pull;
    residuals.each(parameters, &mut |residual, _| total += residual * residual);
    total
}

/// The products JᵀJ and Jᵀe of residuals and prior together.
fn normal_equations(
    residuals: &impl Residuals,
    prior: &Prior,
    parameters: &[f64],
) -> (DMatrix<f64>, DVector<f64>) {
    let n_parameters = parameters.len();
    let mut normal = DMatrix::from_diagonal_element(n_parameters, n_parameters, prior.ridge);
    let mut gradient = DVector::from_iterator(
        n_parameters,
        parameters.iter().zip(&prior.center).map(|(value, center)| prior.ridge * (value - center)),
    );
    residuals.each(parameters, &mut |residual, slopes| {
        for (k, slope) in slopes {
            gradient[*k] += slope * residual;
            for (l, other) in slopes {
                normal[(*k, *l)] += slope * other;
            }
        }
    });
    (normal, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley: e = (10 (y − x²), 1 − x).
    struct Valley;

    impl Residuals for Valley {
        fn each(&self, p: &[f64], visit: &mut Visitor<'_>) {
            visit(10.0 * (p[1] - p[0] * p[0]), &[(0, -20.0 * p[0]), (1, 10.0)]);
            visit(1.0 - p[0], &[(0, -1.0)]);
        }
    }

    #[test]
    fn the_bottom_of_a_curved_valley_is_found() {
        let prior = Prior { center: vec![0.0, 0.0, 5.0], ridge: 1e-12 };
        let found = minimize(&Valley, &prior, vec![-1.2, 1.0, 0.0]);
        assert!((found.parameters[0] - 1.0).abs() < 1e-4, "{found:?}");
        assert!((found.parameters[1] - 1.0).abs() < 1e-4, "{found:?}");
        assert!((found.parameters[2] - 5.0).abs() < 1e-2, "no evidence leaves the prior: {found:?}");
    }
}
