//! Block interior point: a primal-dual method for programs that fall apart but for a few rows and columns.
//!
//! An allocation without pairs is such a program: a handful of columns and rows belong to each block, and all blocks
//! together share one row per worker type and one level. The structure is read off the matrix, never off names; a program
//! without it is declined.
//!
//! # What is solved
//!
//! In units near one (see `scale`), with x of blocks, t that link:
//!
//!   minimize   Σ c·x + e·t − Σ ω log s          s the slack of a row that is a logarithm's
//!   subject to A x + G t + s = b   block by block,   C x + F t + σ = w   linking rows,   x, s, σ ≥ 0
//!
//! An exponential cone whose column is worth ω and in no row is such a logarithm: the column itself is left out and
//! set at the end. In the Newton system its row differs from any other in one number only, the product that slack
//! and dual aim at: ω, where others aim at zero.
//!
//! # The elimination
//!
//! A step solves for (dx, dy) of every block and (dπ, dt) of the linking rows and columns. Blocks do not touch one
//! another, so each is inverted on its own (`kernel`: up to two rows, in closed form without cancellation; `dense`:
//! any other, by symmetric pivoting) and what is left is one positive definite system of the linking rows
//! (`linking`). The cost of a step is that of two or three passes over the blocks, eight at a time (`lanes`,
//! `block_batch`, `passes`); memory is linear in the terms.
//!
//! # The path
//!
//! Predictor and corrector (Mehrotra 1992), then up to three corrections towards the centre where steps are short
//! (Gondzio 1996). Shares of the barrier follow what a block is worth, so that blocks unlike by orders of magnitude
//! settle together. It ends in the relative interior of the optimal face.
//!
//! # Why the bound holds
//!
//! Nothing here vouches for an answer. Duals of rows and cones are handed out with it, and a certificate computes
//! from them, over the original program, a bound that holds whatever they are. Infeasibility is claimed only where
//! the duals prove it (Farkas 1902).

mod inequality;
mod structure;
mod scale;
mod block_batch;
mod system;
mod target;
mod linking;
mod kernel;
mod sums;
#[macro_use]
mod passes;
mod dense;
mod interior;
mod build;
mod recover;

use crate::program::{Program, Range};
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::certificate::dual_bound;
use crate::solver::intake::{admit, without_columns};
use crate::solver::timing::Stopwatch;
use interior::{End, Interior};
use scale::{Frame, Scaled};
use structure::Structure;

const NAME: &str = "block-interior-point";

/// Relative gap and residuals within which a path that got stuck counts as inaccurate, not failed.
const CLOSE: f64 = 1e-5;
/// Blocks from which on more than one thread helps.
const PARALLEL_BLOCKS_MIN: usize = 4096;

/// Columns at least this large may point along a ray; a row may be off by this part of its terms.
const RAY_SIZE: f64 = 1e8;
const RAY_SLACK: f64 = 1e-6;

/// The block interior-point backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockInteriorPoint;

impl Backend for BlockInteriorPoint {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::ExponentialCones | Feature::Duals => true,
            Feature::SecondOrderCones
            | Feature::InteriorSolutions
            | Feature::VertexSolutions
            | Feature::WarmStart
            | Feature::AnyStructure => false,
        }
    }

    fn solve(
        &mut self,
        program: &Program,
        limits: &Limits,
        _warm: Option<&WarmStart>,
    ) -> Result<Solution, SolveError> {
        if let Some(answer) = admit(self, program)? {
            return Ok(answer);
        }
        let declined = |reason| SolveError::Declined { backend: NAME, reason };
        let structure = Structure::of(program).map_err(declined)?;
        if structure.n_blocks() == 0 {
            return Err(declined("no column is in a block".to_owned()));
        }
        if program.is_linear() && structure.is_entangled() {
            let (n_rows, n_blocks) = (structure.linking_rows.len(), structure.n_blocks());
            return Err(declined(format!("{n_rows} rows link no more than {n_blocks} blocks")));
        }
        let threads = if structure.n_blocks() >= PARALLEL_BLOCKS_MIN { limits.threads as usize } else { 1 };
        let frame = Frame::of(program, structure);
        let scaled = Scaled::of(program, &frame);
        let Some(linking) = scaled.linking_system() else {
            return Ok(without_columns(Termination::Infeasible));
        };
        let clock = Stopwatch::start();
        let (batches, dense) = build::blocks(&scaled);
        let pool = (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build());
        // without a pool the same sums are taken one after another
        let pool = pool.and_then(Result::ok);
        let mut interior = Interior::of(batches, dense, linking, build::unit(&scaled), pool.is_some());
        interior.start();
        let limits =
            &Limits { time: limits.time.map(|time| time.saturating_sub(clock.elapsed())), ..*limits };
        let end = match &pool {
            Some(pool) => pool.install(|| interior.follow(limits)),
            None => interior.follow(limits),
        };
        let termination = match end {
            End::Optimal => Termination::Optimal,
            End::Stuck { worst } if worst <= CLOSE => Termination::Inaccurate,
            End::Stuck { .. } => Termination::Failed,
            End::TimeLimit => Termination::TimeLimit,
            End::IterationLimit => Termination::IterationLimit,
        };
        let answer = recover::solution(&scaled, &interior, termination);
        if termination == Termination::Optimal {
            return Ok(answer);
        }
        if proves_infeasible(program, &answer) {
            return Ok(without_columns(Termination::Infeasible));
        }
        if is_ray(program, &answer.columns) {
            return Ok(without_columns(Termination::InfeasibleOrUnbounded));
        }
        Ok(answer)
    }
}

/// Do the duals prove that no point satisfies the rows? They do if they bound the objective that is zero
/// everywhere away from zero (Farkas 1902).
fn proves_infeasible(program: &Program, answer: &Solution) -> bool {
    let mut without_objective = program.clone();
    without_objective.offset = 0.0;
    without_objective.cost.fill(0.0);
    let none: Vec<Vec<f64>> = program.cones.iter().map(|cone| vec![0.0; cone.entries.len()]).collect();
    structure::sign(program) * dual_bound(&without_objective, &answer.row_duals, &none) < 0.0
}

/// Do the columns point along a ray on which the objective improves without end, as far as numbers tell?
fn is_ray(program: &Program, columns: &[f64]) -> bool {
    let size = columns.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if !program.is_linear() || !size.is_finite() || size < RAY_SIZE {
        return false;
    }
    let recedes = |range: Range, value: f64, terms: f64| {
        let slack = RAY_SLACK * terms;
        (range.upper.is_infinite() || value <= slack) && (range.lower.is_infinite() || value >= -slack)
    };
    let kept = |(range, value): (&Range, &f64)| recedes(*range, *value, size);
    let row_kept = |row: usize| {
        let terms =
            program.row(row).map(|(column, value)| (value * columns[column]).abs()).fold(0.0, f64::max);
        recedes(program.rows[row], program.row_value(row, columns), terms)
    };
    let (gain, terms) =
        program.cost.iter().zip(columns).fold((0.0, 0.0_f64), |(gain, terms), (cost, value)| {
            (gain + structure::sign(program) * cost * value, terms.max((cost * value).abs()))
        });
    gain > RAY_SLACK * terms
        && program.columns.iter().zip(columns).all(kept)
        && (0..program.n_rows()).all(row_kept)
}

#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod tests;
