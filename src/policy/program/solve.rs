//! Routes: from a bound objective to class times, its value and the bound that proves it.

use crate::policy::program::hierarchy::Hierarchy;
use crate::policy::program::levels::{self, Raised};
use crate::policy::program::policy::Refine;
use crate::policy::program::reduce::Reduced;
use crate::policy::program::solving::{Answer, Solving, SolvingError};
use crate::program::{BoundObjective, Demand, Formulation, LevelForm, Route, Sense};
use crate::solver::SolveError;

/// A solved objective.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    /// Class time of the columns, after refinement: [columns].
    pub(super) class_time: Vec<f64>,
    /// What no allocation can better.
    pub(super) bound: f64,
    /// What the allocation reaches of it, where that is not the objective's own value: the level that entities
    /// with weights reach together.
    pub(super) reached: Option<f64>,
    /// The program whose duals explain the optimum, with its answer.
    pub(super) formulation: Formulation,
    /// That answer.
    pub(super) answer: Answer,
    /// Change of the policy's objective per unit of the program's: 1 but on the parametric route.
    pub(super) price_factor: f64,
}

/// What to solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub(super) bound: &'a BoundObjective<'a>,
    pub(super) reduced: &'a Reduced,
    pub(super) refine: Refine,
    pub(super) hierarchy: Option<&'a Hierarchy>,
}

impl Task<'_> {
    /// Finds the optimum that the policy asks for.
    pub(super) fn solve(&self, solving: &mut Solving) -> Result<Solved, SolvingError> {
        let levelled = self.bound.levels().is_some_and(|levels| levels.form() != LevelForm::General);
        let lexicographic = self.bound.objective().is_lexicographic() || self.refine == Refine::WaterFilling;
        match self.bound.objective().route() {
            _ if levelled && lexicographic => self.fill(solving),
            Route::Parametric => self.parametric(solving),
            Route::Linear | Route::Conic => self.direct(solving),
        }
    }

    /// The lexicographic optimum, with weights that fall through entities if there are any.
    fn fill(&self, solving: &mut Solving) -> Result<Solved, SolvingError> {
        let levels = self.bound.levels().ok_or(SolvingError::Empty)?;
        let n = self.reduced.instance.n_members();
        let coefficients: Vec<(f64, f64)> =
            (0..n).map(|member| levels.coefficients(member).unwrap_or((0.0, 0.0))).collect();
        let base: Vec<f64> = coefficients.iter().map(|(base, _)| base.max(0.0)).collect();
        let weight =
            |member: usize| self.reduced.instance.data.get("weight").map_or(1.0, |weights| weights[member]);
        let slopes = |frozen: &[bool]| match self.hierarchy {
            None => coefficients.iter().map(|(_, slope)| *slope).collect(),
            // The slope is proportional to the weight: trade the job's own for what falls to it.
            Some(hierarchy) => {
                let fallen = hierarchy.weights(frozen);
                (0..n).map(|member| coefficients[member].1 / weight(member) * fallen[member]).collect()
            }
        };
        let filled = levels::fill(solving, self.bound, slopes, &base)?;
        let inverse = levels.form() == LevelForm::AffineInInverse;
        let level = |level: f64| if inverse { level.recip() } else { level };
        let reached = self.hierarchy.map(|_| level(filled.first_level));
        let Raised { bound, formulation, answer, .. } = filled.first;
        let bound = level(bound);
        Ok(Solved { class_time: filled.class_time, bound, reached, formulation, answer, price_factor: 1.0 })
    }

    fn parametric(&self, solving: &mut Solving) -> Result<Solved, SolvingError> {
        let found = levels::best_worst(solving, self.bound)?;
        let n = self.reduced.instance.n_members();
        let required =
            |member, level| self.bound.required(member, level).map_or(0.0, |required| required.value);
        let class_time = match self.refine {
            Refine::None => found.class_time.clone(),
            Refine::Interior => {
                // The program that fixes every demand has no objective: an interior method ends well inside.
                let eased = if self.bound.objective().sense() == Sense::Minimize { 1e-7 } else { -1e-7 };
                let level = found.value + eased * found.value.abs();
                let floors: Vec<Demand> =
                    (0..n).map(|member| Demand::floor(required(member, level))).collect();
                let formulation = self.bound.with_demands(&floors);
                let answer = solving.solve(&formulation.program)?;
                formulation.class_time(&answer.solution.columns).to_vec()
            }
            Refine::Utilization | Refine::WaterFilling => {
                let formulation = self.bound.at_level(found.value);
                self.refined(solving, &formulation, 1.0, &found.class_time)?
            }
        };
        let level = found.value;
        let steepness: f64 = (0..n)
            .map(|member| {
                let slope = self.bound.required(member, level).map_or(0.0, |required| required.slope);
                found.last.demand_price[member] * slope
            })
            .sum();
        let Raised { formulation, answer, .. } = found.last;
        let price_factor = if steepness == 0.0 { 0.0 } else { steepness.recip() };
        Ok(Solved { class_time, bound: found.bound, reached: None, formulation, answer, price_factor })
    }

    fn direct(&self, solving: &mut Solving) -> Result<Solved, SolvingError> {
        let formulation = self.bound.formulate();
        let answer = solving.solve(&formulation.program)?;
        let optimum = formulation.program.objective(&answer.solution.columns);
        // A strictly concave objective fixes every throughput: there is nothing left to refine.
        let refinable = formulation.program.is_linear() && matches!(self.refine, Refine::Utilization);
        let first = formulation.class_time(&answer.solution.columns).to_vec();
        let class_time =
            if refinable { self.refined(solving, &formulation, optimum, &first)? } else { first };
        let bound = formulation.value(answer.bound);
        Ok(Solved { class_time, bound, reached: None, formulation, answer, price_factor: 1.0 })
    }

    /// Among the optima of `formulation`, whose value is `optimum`, the one that uses the workers best. If the
    /// optimum cannot be held in floating point it stands as it is: a fallback, counted like any other.
    fn refined(
        &self,
        solving: &mut Solving,
        formulation: &Formulation,
        optimum: f64,
        first: &[f64],
    ) -> Result<Vec<f64>, SolvingError> {
        let next = self.bound.refine_utilization(formulation, optimum, &self.reduced.equal_share);
        match solving.solve(&next.program) {
            Ok(answer) => Ok(next.class_time(&answer.solution.columns).to_vec()),
            Err(SolvingError::Solve(SolveError::NotOptimal { attempts, .. })) => {
                solving.report().fallbacks.push(format!("not refined: {attempts}"));
                Ok(first.to_vec())
            }
            Err(error) => Err(error),
        }
    }
}
