//! Droppable constraints: the largest number of jobs whose required throughput can be met, in the linear relaxation.
//!
//! A droppable constraint asks for a throughput d of a job, and is kept or dropped, as in the
//! [program](crate::program::droppable) that keeps as many as possible. A `soft` constraint of a policy file is another thing:
//! it has a price on violation. In the linear relaxation, a part z of it is kept:
//!
//!   maximize Σ n_m·z_m   subject to   throughput_m ≥ d_m·z_m,  time_m ≤ n_m·z_m,  z ≤ 1,  capacities of worker types
//!
//! for every class m of n_m identical jobs; z_m is fixed at 1 where the constraint is `due`, to be kept in any case. At
//! prices of workers a job's best response is its required throughput or no time, so this is a linear objective for the
//! Dantzig-Wolfe loop, and few z of the resulting mixture are fractional. Any prices κ_j of the w_j workers of each type j and
//! λ_m of throughput bound the optimum, where T_mj is the throughput of a job of class m on type j and s_m its number of
//! workers:
//!
//!   Σ n_m·z_m  ≤  Σ w_j·κ_j + Σ n_m·max(0, 1 − c_m),     c_m = λ_m·d_m − max_j(0, λ_m·T_mj − s_m·κ_j)
//!
//! with 1 − c_m in place of max(0, 1 − c_m) where the constraint is due. The largest c_m over all λ_m is, by duality, the least
//! cost of keeping the constraint of one job at the prices κ.

use super::{JobBatch, LevelGoal, WorkerPrices, class_times, in_chunks};
use crate::decomposition::unsolved::Unsolved;
use crate::program::droppable::DROPPABLE_SLACK;
use crate::program::singles::Singles;
use crate::solver::backend::Limits;

/// An optimum of the relaxation: which droppable constraints are kept, in part or whole, and the dual bound.
#[derive(Clone, Debug)]
pub struct DroppableKept {
    /// Class time: [members × K].
    pub time: Vec<f64>,
    /// The part of the droppable constraint that a job of each class keeps, 1 without one: `[members]`.
    pub part: Vec<f64>,
    /// The cost of keeping the whole constraint, at the prices that prove the bound, in jobs: `[members]`; 0 without
    /// a droppable constraint.
    pub cost: Vec<f64>,
    /// The dual bound on the number of jobs whose droppable constraints are kept, parts added up.
    pub bound: f64,
    /// Passes over all jobs.
    pub passes: u32,
}

/// The most droppable constraints that can be kept together, in the linear relaxation: those for the throughputs that classes
/// `demand`, of which the ones that are `due`, `[members]`, are kept in any case.
///
/// # Errors
/// If no class has a droppable constraint, if there are more than 64 worker types, or if prices do not converge in time.
pub fn keep_droppable(
    singles: &Singles<'_>,
    due: &[bool],
    limits: &Limits,
) -> Result<DroppableKept, Unsolved> {
    let instance = singles.instance();
    let (n, n_types) = (due.len(), instance.n_types());
    let constrained = |class: usize| singles.demand[class] > 0.0;
    let jobs: f64 = (0..n).filter(|class| constrained(*class)).map(|m| instance.multiplicity[m]).sum();
    if jobs == 0.0 {
        return Err(Unsolved::NothingDroppable);
    }
    let mut batch = JobBatch::of_instance(singles).ok_or(Unsolved::TooManyTypes)?;
    batch.demand = in_chunks(n, |class| required(singles, class));
    batch.due = in_chunks(n, |class| f64::from(u8::from(due[class])));
    // The required throughput of a class is worth its part of all jobs with a constraint. That of a class that is due is worth
    // nothing, as it is kept in any case.
    batch.worth = in_chunks(n, |class| {
        let required = required(singles, class);
        let free = due[class] || required == 0.0;
        if free { 0.0 } else { 1.0 / jobs * instance.multiplicity[class] / required }
    });
    let found = batch.search(LevelGoal::Hold { level: 1.0 }, None, limits)?;
    let mut time = batch.mixture_times(&found, n_types);
    let part = |(class, time): (usize, &[f64])| {
        let throughput =
            time.iter().zip(instance.alone(class)).map(|(time, speed)| time * speed).sum::<f64>();
        if constrained(class) { (throughput / singles.demand[class]).min(1.0) } else { 1.0 }
    };
    let part = time.chunks_exact(n_types).enumerate().map(part).collect();
    class_times(&mut time, singles);
    let price = batch.worker_prices(&found.at).price.iter().map(|price| (price * jobs).max(0.0)).collect();
    let at = WorkerPrices { price, level: 1.0 };
    let cost = batch.least_costs(singles, &at);
    let mut bound = instance.capacity.iter().zip(&at.price).map(|(workers, price)| workers * price).sum();
    for (class, (cost, due)) in cost.iter().zip(due).enumerate() {
        bound += instance.multiplicity[class] * if *due { 1.0 - cost } else { (1.0 - cost).max(0.0) };
    }
    Ok(DroppableKept { time, part, cost, bound, passes: found.passes })
}

/// The throughput of a class's droppable constraint, at most the job's highest throughput if that is lower by rounding only.
fn required(singles: &Singles<'_>, class: usize) -> f64 {
    let (demand, fastest) = (singles.demand[class], singles.fastest(class));
    if demand <= fastest * (1.0 + DROPPABLE_SLACK) { demand.min(fastest) } else { demand }
}

impl JobBatch {
    /// The least cost of keeping a job's droppable constraint, at prices at which jobs are counted as 1: `[members]`; infinite
    /// where it cannot be kept, 0 without one.
    fn least_costs(mut self, singles: &Singles<'_>, at: &WorkerPrices) -> Vec<f64> {
        let (mut throughput_price, mut time_price) = (vec![0.0; self.n], vec![0.0; self.n]);
        self.workers = in_chunks(self.n, |class| singles.instance().scale_factor[class]);
        self.worth = Vec::new();
        (self.pass.prove)(&self, at, &mut throughput_price, &mut time_price);
        let cost = |(class, (price, time)): (usize, (&f64, &f64))| match required(singles, class) {
            _ if singles.demand[class] <= 0.0 => 0.0,
            required if required > singles.fastest(class) => f64::INFINITY,
            required => price * required - time,
        };
        throughput_price.iter().zip(&time_price).enumerate().map(cost).collect()
    }
}
