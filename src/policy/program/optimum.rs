//! The optimum of a decision's objective: class times, the value that they reach, the bound that proves it, and the
//! program that explains it.

use crate::decomposition::PrimalDual;
use crate::policy::program::entity_level::ReachedLevel;
use crate::policy::program::options::{ProgramOptions, Refine};
use crate::policy::program::recorded::Purpose;
use crate::policy::program::solver_context::Answer;
use crate::policy::program::water_filling::SaturationDuals;
use crate::program::{BoundObjective, Demand, Formulation, LevelForm, Point, Route};

/// The relative distance of the optimum from the level tried last up to which prices there explain the optimum.
const TRIED_MAX: f64 = 1e-6;

/// The kind of optimum that a policy asks for, by which its programs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptimumKind {
    /// Levels of all jobs, raised one after another: the lexicographic optimum.
    Lexicographic,
    /// The best worst level, where levels are affine neither in throughput nor in its inverse: a parametric search.
    Parametric,
    /// The best worst level, by one linear program.
    Level,
    /// The best linear sum.
    Linear,
    /// The optimum of a program with cones.
    Conic,
}

impl OptimumKind {
    /// The kind of optimum that options ask for.
    pub(super) fn of(options: &ProgramOptions) -> Self {
        let objective = &options.objective;
        let lexicographic = objective.is_lexicographic() || options.refine == Refine::WaterFilling;
        let inversion = objective.inversion();
        let is_fillable = inversion.is_some_and(|inversion| inversion.form() != LevelForm::General);
        match objective.route() {
            _ if lexicographic && is_fillable => Self::Lexicographic,
            Route::Parametric => Self::Parametric,
            Route::Conic => Self::Conic,
            Route::Linear if inversion.is_some() => Self::Level,
            Route::Linear => Self::Linear,
        }
    }
}

/// The choice among optima, as programs make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refinement {
    /// Any optimum.
    Any,
    /// The optimum with the largest sum of throughputs over equal shares.
    Utilization,
    /// The analytic centre over jobs, found by a program over their classes.
    Centre,
    /// An optimum near the centre, at which an interior-point method ends: where a backend was named or the program has cones.
    NearCentre,
}

impl Refinement {
    /// The choice that options ask for. The lexicographic optimum fixes every throughput: it leaves none.
    pub(super) fn of(options: &ProgramOptions) -> Self {
        let is_linear = options.objective.route() != Route::Conic;
        match options.refine {
            Refine::Utilization => Self::Utilization,
            Refine::WaterFilling | Refine::None => Self::Any,
            Refine::Interior if is_linear && options.backend.is_none() => Self::Centre,
            Refine::Interior => Self::NearCentre,
        }
    }

    /// Whether jobs have time in every column where they may: at the centre or where an interior-point method ends.
    pub(super) fn is_central(self) -> bool {
        matches!(self, Self::Centre | Self::NearCentre)
    }
}

/// Prices of members, which prove an optimum by weak duality: dual values of a program over all members and their pairs, in
/// the instance's units, whether that program was written or not. Each is the change of the sum, or of the level that is
/// raised, per unit of its row's side.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberPrices {
    /// Prices of a worker of each type: `[K]`.
    pub(super) workers: Vec<f64>,
    /// Prices of class time: [members].
    pub(super) time: Vec<f64>,
    /// Fall per unit of throughput that is required of each job of a member: ≥ 0, [members].
    pub(super) throughput: Vec<f64>,
}

impl MemberPrices {
    /// The prices of a search.
    pub(super) fn of(search: &PrimalDual) -> Self {
        Self {
            workers: search.worker_price.clone(),
            time: search.time_price.clone(),
            throughput: search.throughput_price.clone(),
        }
    }

    /// These prices in another unit of the objective, `unit` times as large.
    pub(super) fn over(mut self, unit: f64) -> Self {
        let all = self.workers.iter_mut().chain(&mut self.time).chain(&mut self.throughput);
        all.for_each(|price| *price /= unit);
        self
    }
}

/// The optimum of a decision's objective.
#[derive(Clone, Debug)]
pub(super) struct Optimum {
    /// Class time of the columns, after refinement: [columns].
    pub(super) class_time: Vec<f64>,
    /// A bound on the objective: no allocation is better.
    pub(super) bound: f64,
    /// The level that weighted entities reach together, which is the value of an allocation of theirs in the objective's place.
    pub(super) reached: Option<ReachedLevel>,
    /// The program that explains the optimum by its duals.
    pub(super) explaining: ExplainingProgram,
    /// The answer to the program that explains the optimum; none if no program was written.
    pub(super) answer: Option<Answer>,
    /// The prices of members that prove the optimum; none where a written program does, and where it is one of
    /// logarithms or of several levels.
    pub(super) prices: Option<MemberPrices>,
    /// Change of the policy's objective per unit of the program's: 1, except on the parametric route and where water
    /// filling raises the inverse of the level.
    pub(super) price_factor: f64,
    /// The level at which water filling fixed each member, and the duals there.
    pub(super) saturation_duals: Option<SaturationDuals>,
    /// The part of its time that a job of each member keeps after the discount: [members], or empty without one.
    pub(super) discounts: Vec<f64>,
}

impl Optimum {
    /// An optimum found without a program over jobs. Where one was written, the caller adds it and its answer; where prices of
    /// members prove the optimum, these.
    pub(super) fn without_program(class_time: Vec<f64>, bound: f64) -> Self {
        Self {
            class_time,
            bound,
            reached: None,
            explaining: ExplainingProgram::Unwritten,
            answer: None,
            prices: None,
            price_factor: 1.0,
            saturation_duals: None,
            discounts: Vec::new(),
        }
    }

    /// The value of a point: the objective's or, of weighted entities, the level that they reach together.
    pub(super) fn value(&self, bound: &BoundObjective<'_>, point: &Point) -> f64 {
        let reached = self.reached.as_ref().zip(bound.throughputs(point));
        reached.map_or_else(|| bound.value(point), |(level, throughputs)| level.at(&throughputs))
    }

    /// Whether the program that explains the optimum is one at a level that was only tried, away from the optimum.
    pub(super) fn explains_another_level(&self) -> bool {
        matches!(self.explaining, ExplainingProgram::Tried { level, .. } if is_another_level(level, self.bound))
    }
}

/// Whether a level that was tried is so far from the optimum that prices there do not explain the optimum.
pub(super) fn is_another_level(tried: f64, optimum: f64) -> bool {
    optimum.is_finite() && (tried - optimum).abs() > TRIED_MAX * optimum.abs()
}

/// A program that explains a decision by its duals: kept, or written again where it is needed.
#[derive(Clone, Debug)]
pub(super) enum ExplainingProgram {
    /// The program itself.
    Kept(Box<Formulation>),
    /// The program of the demands at a level that was tried.
    Tried { level: f64, demands: Vec<Demand> },
    /// The objective's own program, which was not written.
    Unwritten,
}

impl ExplainingProgram {
    /// The purpose of the program. `levels` says whether the levels of water filling, of which the program is the
    /// first, are inverses; none without water filling.
    pub(super) fn purpose(&self, levels: Option<bool>) -> Purpose {
        match (self, levels) {
            (Self::Tried { level, .. }, _) => Purpose::Tried { level: *level },
            (_, Some(inverse)) => Purpose::FirstLevel { inverse },
            _ => Purpose::Optimum,
        }
    }

    pub(super) fn formulation(self, bound: &BoundObjective<'_>) -> Formulation {
        match self {
            Self::Kept(formulation) => *formulation,
            Self::Tried { demands, .. } => bound.with_demands(&demands),
            Self::Unwritten => bound.formulate(),
        }
    }
}
