//! The oracle for every problem: a written program over jobs for each level.

use std::collections::BTreeMap;
use std::iter::once;

use super::{FillState, LexicographicOptimum, Oracle, RaisedStep, saturated, water_fill};
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::levels::{LevelOptimum, SolvedLevel};
use crate::policy::program::program_columns::{ProgramColumns, SolvedFormulation};
use crate::policy::program::recorded::Purpose;
use crate::policy::program::reduced_cost_fixing::TightRows;
use crate::policy::program::solver_context::{Answer, SolverContext, SolvingError};
use crate::policy::program::tolerances::{EASING, EASING_FROM_TOLERANCE, SHOWN_PRICE_MIN};
use crate::program::{BoundObjective, Demand, Formulation, RowRole};

/// Largest slack, relative to the demand's scale, of a demand that counts as binding.
const SLACK_MAX: f64 = 1e-6;
/// A job's relative gain from easing the levels reached above which the report names it as a fallback.
const GAIN_REPORTED: f64 = 1e-6;

/// A level that is to be raised above what members reached.
#[derive(Clone, Copy)]
struct NextLevel<'a> {
    /// The rise of throughputs per unit of the level: [members].
    slope: &'a [f64],
    /// The throughput that each member reached: [members].
    reached: &'a [f64],
    /// The lowest level that a rising member has reached.
    level_before: f64,
}

/// A level that was raised, and the demands at which it was, which may ask for a little less than was reached.
struct EasedLevel {
    level: SolvedLevel,
    demands: Vec<Demand>,
}

/// The lexicographic optimum, found by written programs.
pub(in crate::policy::program) struct FilledByPrograms {
    pub(in crate::policy::program) filled: LexicographicOptimum,
    /// The program of the first level.
    pub(in crate::policy::program) first_level: SolvedFormulation,
    /// The duals at which each member saturated.
    pub(in crate::policy::program) saturation_duals: SaturationDuals,
}

/// The duals of the level program at which each member saturated: changes of that level.
#[derive(Clone, Debug, Default)]
pub(in crate::policy::program) struct SaturationDuals {
    /// The level at which it saturated, the first being 0; none if it never rose: [members].
    pub(in crate::policy::program) step: Vec<Option<usize>>,
    /// Change of that level per unit of throughput asked of the member, ≤ 0: [members].
    pub(in crate::policy::program) throughput_price: Vec<f64>,
    /// Change of that level per unit of time that the member had more: [members].
    pub(in crate::policy::program) time_price: Vec<f64>,
    /// Change of the level of each step per worker more of each type: [steps][K].
    pub(in crate::policy::program) one_more: Vec<Vec<f64>>,
    /// Nonzero duals of the policy's own constraints, by (constraint, member or worker type), per unit of the row: [steps].
    pub(in crate::policy::program) own: Vec<Vec<((usize, usize), f64)>>,
    /// The first step at which a worker of the type has a price that is more than rounding, if any: [K].
    pub(in crate::policy::program) first_one_more: Vec<Option<usize>>,
    /// The first step at which a constraint of the policy has a price that is more than rounding, by (constraint,
    /// member or worker type).
    pub(in crate::policy::program) first_own: BTreeMap<(usize, usize), usize>,
}

impl SaturationDuals {
    /// Notes the duals of the program of one level, at which these members saturated.
    fn record(&mut self, formulation: &Formulation, answer: &Answer, n_types: usize, saturated: &[usize]) {
        let step = self.one_more.len();
        for member in saturated {
            self.step[*member] = Some(step);
        }
        let (mut one_more, mut own) = (vec![0.0; n_types], Vec::new());
        let at = formulation.program.objective(&answer.solution.columns);
        for (row, role) in formulation.rows.iter().enumerate() {
            let dual = formulation.dual_of(row, &answer.solution.row_duals);
            let price = || formulation.shadow_price(row, dual, at);
            let here = |member: &usize| self.step[*member] == Some(step);
            match role {
                RowRole::Capacity { worker_type } => one_more[*worker_type] = price(),
                RowRole::Time { member } if here(member) => self.time_price[*member] = price(),
                RowRole::Level { member } if here(member) => self.throughput_price[*member] = price(),
                RowRole::Constraint { constraint, position } if dual != 0.0 => {
                    own.push(((*constraint, *position), price()));
                }
                _ => {}
            }
        }
        let prices = one_more.iter().chain(own.iter().map(|(_, price)| price));
        let least = SHOWN_PRICE_MIN * prices.fold(0.0_f64, |most, price| most.max(price.abs()));
        self.first_one_more.resize(n_types, None);
        for (first, price) in self.first_one_more.iter_mut().zip(&one_more) {
            *first = first.or((price.abs() > least).then_some(step));
        }
        for (row, _) in own.iter().filter(|(_, price)| price.abs() > least) {
            self.first_own.entry(*row).or_insert(step);
        }
        self.one_more.push(one_more);
        self.own.push(own);
    }
}

struct WrittenOracle<'a, 'o> {
    columns: &'a mut ProgramColumns<'o>,
    tight: TightRows,
    saturation_duals: SaturationDuals,
    first: Option<SolvedFormulation>,
    /// Class time of the columns at the last level: [columns].
    class_time: Vec<f64>,
}

/// Fills from `base`: [members].
pub(in crate::policy::program) fn fill_written(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    rates: &impl Rising,
    base: &[f64],
) -> Result<FilledByPrograms, SolvingError> {
    let n = base.len();
    let (throughput_price, time_price) = (vec![0.0; n], vec![0.0; n]);
    let saturation_duals =
        SaturationDuals { step: vec![None; n], throughput_price, time_price, ..SaturationDuals::default() };
    let tight = TightRows::default();
    let mut oracle = WrittenOracle { columns, tight, saturation_duals, first: None, class_time: Vec::new() };
    let filled = water_fill(&mut oracle, solver, rates, base);
    let WrittenOracle { columns, saturation_duals, first: first_level, class_time, .. } = oracle;
    columns.free_all();
    let filled = LexicographicOptimum::new(columns, class_time, filled?);
    let first_level = first_level.ok_or(SolvingError::NoLevelTried)?;
    Ok(FilledByPrograms { filled, first_level, saturation_duals })
}

impl Oracle for WrittenOracle<'_, '_> {
    type Error = SolvingError;

    fn raise(
        &mut self,
        solver: &mut SolverContext,
        state: &FillState,
        slope: &[f64],
    ) -> Result<RaisedStep, SolvingError> {
        let mut level_before = 0.0;
        if self.first.is_some() {
            // The last answer is feasible for this level's program, at a rise of zero.
            solver.add_rows_to_basis(0);
            solver.set_purpose(Purpose::NextLevel);
            level_before = lowest_reached(slope, &state.reached);
        }
        let next = NextLevel { slope, reached: &state.reached, level_before };
        let EasedLevel { level: SolvedLevel { raised, solved }, demands } = self.raise_eased(solver, next)?;
        let SolvedFormulation { formulation, answer } = &solved;
        self.tight.record(self.columns, formulation, answer);
        let rows = formulation.level_rows();
        let tight = |member: usize| {
            let asked = demands[member].slope * raised.level + demands[member].base;
            (raised.throughputs[member] - asked) / formulation.row_scales[rows.start + member] <= SLACK_MAX
        };
        let saturated = saturated(&raised.demand_price, slope, tight);
        self.saturation_duals.record(
            formulation,
            answer,
            self.columns.reduced().instance.n_types(),
            &saturated,
        );
        self.first.get_or_insert(solved);
        self.class_time = raised.class_time;
        Ok(RaisedStep {
            level: raised.level,
            bound: raised.bound,
            saturated,
            throughputs: raised.throughputs,
        })
    }
}

/// The lowest level, throughput per unit of slope, that a rising member has reached; 0 if none rises.
fn lowest_reached(slope: &[f64], reached: &[f64]) -> f64 {
    let rising = slope.iter().zip(reached).filter(|(slope, _)| **slope > 0.0);
    let level_before = rising.map(|(slope, reached)| reached / slope).fold(f64::INFINITY, f64::min);
    if level_before.is_finite() { level_before } else { 0.0 }
}

impl WrittenOracle<'_, '_> {
    /// Raises the level above what members reached. The program's objective is `level_before` plus the rise, as a
    /// solver's tolerance is relative to the objective and a rise may be tiny.
    ///
    /// Levels already reached are known to solver tolerance only. If the next program fails, they are eased by the
    /// smallest part that helps, first with the tight rows of earlier optima held and unused columns fixed at 0, then
    /// without; a gain of more than [`GAIN_REPORTED`] is reported as a fallback. All pairs become columns only if
    /// nothing else helps: what was reached needs no more columns.
    fn raise_eased(
        &mut self,
        solver: &mut SolverContext,
        next: NextLevel<'_>,
    ) -> Result<EasedLevel, SolvingError> {
        let NextLevel { slope, reached, level_before } = next;
        let mut outcome = Err(SolvingError::NoLevelTried);
        let on_face = EASING.iter().map(|eased| (*eased, true));
        let without = EASING_FROM_TOLERANCE.iter().map(|eased| (*eased, false));
        for (eased, on_face) in once((0.0, false)).chain(on_face).chain(without) {
            if eased > 0.0 && !on_face {
                self.columns.free_all();
            }
            let demand = |(slope, base): (&f64, &f64)| Demand { slope: *slope, base: base * (1.0 - eased) };
            let demands: Vec<Demand> = slope.iter().zip(reached).map(demand).collect();
            let tight = &self.tight;
            let formulate = |bound: &BoundObjective<'_>| {
                let mut formulation = bound.with_demands(&demands);
                if on_face {
                    tight.hold(&mut formulation);
                }
                formulation.program.offset += formulation.program_objective(level_before);
                formulation
            };
            let outcome_here = self.columns.solve_priced(solver, formulate).map(|solved| {
                let raised = LevelOptimum::of(self.columns, &solved);
                let raised = LevelOptimum {
                    level: raised.level - level_before,
                    bound: raised.bound - level_before,
                    ..raised
                };
                SolvedLevel { raised, solved }
            });
            if let Ok(level) = &outcome_here {
                report_gain(solver, &level.raised, next, eased);
            }
            outcome = outcome_here.map(|level| EasedLevel { level, demands });
            if !outcome.as_ref().is_err_and(SolvingError::is_unsolved) {
                return outcome;
            }
        }
        if self.columns.is_priced() {
            self.columns.admit_all();
            return self.raise_eased(solver, next);
        }
        outcome
    }
}

/// Reports the gain of a level from easing the levels already reached, if it is more than [`GAIN_REPORTED`].
fn report_gain(solver: &mut SolverContext, raised: &LevelOptimum, next: NextLevel<'_>, eased: f64) {
    let NextLevel { slope, reached, .. } = next;
    // The level is concave in the demands, so this is a lower bound.
    let given_back = reached.iter().map(|base| base * eased);
    let gained: f64 = raised.demand_price.iter().zip(given_back).map(|(price, part)| price * part).sum();
    let part = slope.iter().zip(&raised.throughputs).map(|(slope, throughput)| gained * slope / throughput);
    let part = part.filter(|part| part.is_finite()).fold(0.0, f64::max);
    if part > GAIN_REPORTED {
        let fallback =
            format!("levels reached were eased by {eased:.0e}, by which the next gains {part:.1e} of itself");
        solver.report().fallbacks.push(fallback);
    }
}
