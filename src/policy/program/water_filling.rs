//! Water filling: the lexicographic max-min optimum, one level after another.
//!
//! All unsaturated jobs rise together, each by its slope, as far as workers allow. A job that then cannot rise unless
//! another job of the same level falls is saturated and keeps what it has; a positive dual of its demand proves that,
//! so saturated jobs need not be searched for. Where no dual is clearly positive, the job with the largest one is taken.
//! [`water_fill`] is the loop; an [`Oracle`] raises one level, by one of three methods.

mod kinds;
mod singles;
mod skip_saturated;
mod written;

pub(super) use self::kinds::fill_kinds;
pub(super) use self::singles::fill_singles;
pub(super) use self::written::{FilledByPrograms, SaturationDuals, fill_written};
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::levels;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;

/// The share of the level's price, demand price times slope, above which a demand counts as binding. Shares sum to 1.
const PRICE_MIN: f64 = 1e-7;

/// The lexicographic optimum.
#[derive(Clone, Debug)]
pub(super) struct LexicographicOptimum {
    /// Class time of the columns: [columns].
    pub(super) class_time: Vec<f64>,
    /// The throughput of each member at the optimum: [members].
    pub(super) throughputs: Vec<f64>,
    pub(super) first: FirstLevel,
}

/// The first level, the max-min optimum.
#[derive(Clone, Debug)]
pub(super) struct FirstLevel {
    pub(super) level: f64,
    /// An upper bound on the level.
    pub(super) bound: f64,
    /// The rise of throughputs per unit of the level: [members].
    slope: Vec<f64>,
}

impl LexicographicOptimum {
    fn new(columns: &ProgramColumns<'_>, class_time: Vec<f64>, first: FirstLevel) -> Self {
        Self { throughputs: levels::throughputs(&columns.bound(), &class_time), class_time, first }
    }
}

impl FirstLevel {
    /// The first level before any search raised it, with an infinite bound.
    pub(super) fn unraised(slope: Vec<f64>) -> Self {
        Self { level: f64::INFINITY, bound: f64::INFINITY, slope }
    }

    /// The first level, or the lower one that all `throughputs` reach above `base`, [members] each.
    pub(super) fn kept_by(&self, throughputs: &[f64], base: &[f64]) -> f64 {
        let Self { level, slope, .. } = self;
        let rising = (0..base.len()).filter(|member| slope[*member] > 0.0);
        let kept = rising.map(|member| (throughputs[member] - base[member]) / slope[member]);
        kept.fold(*level, f64::min)
    }
}

/// The state of water filling between two levels.
#[derive(Clone, Debug)]
struct FillState {
    /// Members that rise no more: [members].
    frozen: Vec<bool>,
    /// The throughput of each member: [members].
    reached: Vec<f64>,
}

/// One level, raised above what members have.
struct RaisedStep {
    /// The level reached.
    level: f64,
    /// An upper bound on the level.
    bound: f64,
    /// Members that cannot rise further; at least one if any rises.
    saturated: Vec<usize>,
    /// The throughput of each member at the class times found, [members]; empty if no time was divided among members.
    throughputs: Vec<f64>,
}

/// A method to raise one level of water filling after another.
trait Oracle {
    /// The reason for which the method gives up.
    type Error;

    /// Raises the level at which each member has what it reached and rises by `slope`, [members].
    fn raise(
        &mut self,
        solver: &mut SolverContext,
        state: &FillState,
        slope: &[f64],
    ) -> Result<RaisedStep, Self::Error>;

    /// Skips later levels at which members saturate only because they have their highest throughput, if the method finds
    /// these levels without raising each.
    fn skip(&mut self, _: &mut SolverContext, _: &mut FillState, _: &impl Rising) {}
}

impl FillState {
    /// The rise of throughputs per unit of the level: [members].
    fn slopes(&self, rates: &impl Rising) -> Vec<f64> {
        let mut slopes = rates.slopes(&self.frozen);
        for (slope, frozen) in slopes.iter_mut().zip(&self.frozen) {
            *slope = if *frozen { 0.0 } else { *slope };
        }
        slopes
    }

    /// Lowers the throughputs that members have reached to `throughputs`, [members], which the class times found give
    /// them, so that these are feasible for the next level, whatever was rounded. If `throughputs` is empty, nothing
    /// is lowered.
    fn cap(&mut self, throughputs: &[f64]) {
        for (reached, throughput) in self.reached.iter_mut().zip(throughputs) {
            *reached = reached.min(throughput.max(0.0));
        }
    }
}

/// Raises all members from `base`, [members], until all are saturated; returns the first level.
fn water_fill<O: Oracle>(
    oracle: &mut O,
    solver: &mut SolverContext,
    rates: &impl Rising,
    base: &[f64],
) -> Result<FirstLevel, O::Error> {
    let mut state = FillState { frozen: vec![false; base.len()], reached: base.to_vec() };
    let mut first = None;
    loop {
        let slope = state.slopes(rates);
        if let Some(first) = first.take_if(|_| slope.iter().all(|slope| *slope == 0.0)) {
            return Ok(first);
        }
        let RaisedStep { level, bound, saturated, throughputs } = oracle.raise(solver, &state, &slope)?;
        for member in saturated {
            state.frozen[member] = true;
        }
        for (reached, slope) in state.reached.iter_mut().zip(&slope) {
            *reached += slope * level.max(0.0);
        }
        state.cap(&throughputs);
        if first.is_none() {
            let raised = FirstLevel { level, bound, slope };
            solver.found_so_far.raise_level(&raised);
            first = Some(raised);
        }
        oracle.skip(solver, &mut state, rates);
    }
}

/// The members whose share of the level's price, `demand_price` times slope, exceeds [`PRICE_MIN`] and that are `tight`; the
/// one with the largest share if there is none.
fn saturated(demand_price: &[f64], slope: &[f64], tight: impl Fn(usize) -> bool) -> Vec<usize> {
    let sloped = || (0..slope.len()).filter(|member| slope[*member] > 0.0);
    let share = |member: usize| demand_price[member] * slope[member];
    let found: Vec<usize> = sloped().filter(|member| share(*member) > PRICE_MIN && tight(*member)).collect();
    if !found.is_empty() {
        return found;
    }
    sloped().max_by(|a, b| share(*a).total_cmp(&share(*b))).into_iter().collect()
}
