//! Sums over many members alone, of what is in proportion to their throughputs, without a program being written (see
//! [`worths`](crate::program::worths)); those over pairs by the time of kinds (see [`Sum`]).
//!
//! At the prices that prove an optimum, hardly any of many members, no two of them alike, may do one thing as well as
//! another. Only those have a choice among optima: one small program makes it, with all others where they are.

use crate::decomposition::PrimalDual;
use crate::policy::program::master::Master;
use crate::policy::program::policy::Refine;
use crate::policy::program::pools::Sum;
use crate::policy::program::reduce::Reduced;
use crate::policy::program::sharing::{class_time, unwritten};
use crate::policy::program::solve::{Solved, Task};
use crate::policy::program::solving::{COLUMNS_LARGE, Solving};
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::{Instance, Program, Range, Sense, Sharing, Wanted, Worths};
use crate::solver::certificate::Certificate;
use crate::solver::{Basis, BasisStatus};

/// What a member may lose by a choice, of what its time is worth, for it to be one.
const TIED: f64 = 1e-7;
/// So many members that have a choice are too many for a small program.
const TIED_MAX: usize = 65_536;
/// What the choice may cost of what those who have it are worth.
const HELD: f64 = 1e-9;

/// The largest sum, if members are many and nothing else is asked: who gets what, and what no allocation exceeds.
fn largest(
    solving: &mut Solving,
    (sharing, worths): (&Sharing<'_>, &Worths),
    n_columns: usize,
) -> Option<(PrimalDual, Certificate)> {
    let asked = sharing.demand.iter().any(|least| *least > 0.0);
    let Worths { worth, by_type } = worths;
    let wanted = Wanted::Worth { level: f64::from(u8::from(asked)), worth, by_type, given: &[] };
    solving.share(sharing, wanted, n_columns)
}

/// Are sums over so many columns found without a program?
fn fits(solving: &Solving, master: &Master<'_>) -> bool {
    let n_columns = master.bound().columns().len();
    n_columns >= COLUMNS_LARGE && solving.shares() && !master.is_priced()
}

/// Is it known, without a program, that everybody's promises can be kept?
pub(super) fn keeps_all(solving: &mut Solving, master: &Master<'_>) -> bool {
    if !fits(solving, master) {
        return false;
    }
    let bound = master.bound();
    let Some((sharing, worths)) = bound.worths() else { return false };
    largest(solving, (&sharing, &worths), bound.columns().len()).is_some()
}

impl Task<'_, '_> {
    /// The optimum of a sum over jobs alone, refined.
    pub(super) fn summed(&mut self, solving: &mut Solving) -> Result<Solved, GaveUp> {
        let bound = self.master.bound();
        let (sharing, worths) = bound.worths().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let found = largest(solving, (&sharing, &worths), bound.columns().len());
        let (mut shares, certificate) = found.ok_or(GaveUp::Unproven)?;
        if self.refine == Refine::Utilization {
            let refined = solving.among_optima(|solving| {
                refine(solving, self.master.reduced(), (&sharing, &worths), &mut shares)
            });
            refined.ok_or(GaveUp::Unrefined)?;
        }
        Ok(unwritten(class_time(&bound, &shares), certificate.bound))
    }

    /// The optimum of a sum over pairs, refined, by the time of kinds.
    pub(super) fn summed_by_kinds(&mut self, solving: &mut Solving) -> Result<Solved, GaveUp> {
        let sum = Sum::of(self.master, solving).map_err(GaveUp::Unfit)?;
        let refined = self.refine == Refine::Utilization;
        let found = sum.largest(solving, self.master, refined);
        let (class_time, bound) = found.ok_or(GaveUp::Unproven)?;
        Ok(unwritten(class_time, bound))
    }
}

/// A member that has a choice, and the types among which it has.
struct Tied {
    member: usize,
    types: Vec<usize>,
}

/// Who may do another thing as well.
fn tied(sharing: &Sharing<'_>, worths: &Worths, shares: &PrimalDual) -> Vec<Tied> {
    let instance = sharing.instance();
    let of = |member: usize| {
        let (time, throughput_price) = (shares.time_price[member], shares.throughput_price[member]);
        let jobs = instance.multiplicity[member];
        let size = instance.scale_factor[member];
        let mut bound = [false; 2];
        let mut types = Vec::new();
        for (j, speed) in instance.alone(member).iter().enumerate().filter(|(j, _)| sharing.runs(member, *j))
        {
            let per_time = speed / jobs;
            let gain = (throughput_price + worths.worth[member] * worths.by_type[j]) * per_time;
            let (rent, least) = (size * shares.worker_price[j], TIED * gain.max(time));
            if gain - time - rent >= -least {
                types.push(j);
                bound = [bound[0] || time > least, bound[1] || throughput_price * per_time > least];
            }
        }
        let n_bound = usize::from(bound[0]) + usize::from(bound[1]);
        (types.len() > n_bound).then_some(Tied { member, types })
    };
    (0..instance.n_members()).filter_map(of).collect()
}

/// Workers of each type that nobody has; none where rounding gave more than there are.
fn idle(instance: &Instance, shares: &PrimalDual) -> Vec<f64> {
    let mut left = instance.capacity.clone();
    for (size, times) in instance.scale_factor.iter().zip(shares.time.chunks(left.len())) {
        for (left, time) in left.iter_mut().zip(times) {
            *left -= size * time;
        }
    }
    left.into_iter().map(|left| left.max(0.0)).collect()
}

/// Uses the workers best among optima; nothing if too many members have a choice.
fn refine(
    solving: &mut Solving,
    reduced: &Reduced,
    (sharing, worths): (&Sharing<'_>, &Worths),
    shares: &mut PrimalDual,
) -> Option<()> {
    let tied = tied(sharing, worths, shares);
    if tied.is_empty() {
        return Some(());
    }
    if tied.len() > TIED_MAX {
        return None;
    }
    let instance = sharing.instance();
    let k = instance.n_types();
    let mut left = idle(instance, shares);
    let mut program = Program::new(Sense::Maximize);
    let (mut held, mut value, mut rented) = (Vec::new(), 0.0, vec![Vec::new(); k]);
    for Tied { member, types } in &tied {
        let (jobs, size) = (instance.multiplicity[*member], instance.scale_factor[*member]);
        let (mut time, mut throughput) = (Vec::new(), Vec::new());
        let (mut used, mut had) = (0.0, 0.0);
        for j in types {
            let (per_time, given) = (instance.alone(*member)[*j] / jobs, shares.time[member * k + j]);
            let range = Range { lower: 0.0, upper: sharing.most(*member, *j) };
            let column = program.push_column(range, range, jobs / reduced.equal_share[*member] * per_time);
            let worth = worths.worth[*member] * worths.by_type[*j] * per_time;
            time.push((column, 1.0));
            throughput.push((column, per_time));
            held.push((column, worth));
            rented[*j].push((column, size));
            left[*j] += size * given;
            (used, had, value) = (used + given, had + per_time * given, value + worth * given);
        }
        // what it has on other types, where it loses nothing by it, it keeps
        let others = |of: &dyn Fn(usize) -> f64| -> f64 {
            let apart = (0..k).filter(|j| !types.contains(j));
            apart.map(|j| of(j) * shares.time[member * k + j]).sum()
        };
        let throughput_elsewhere = others(&|j| instance.alone(*member)[j] / jobs);
        let needed = (sharing.demand[*member] - throughput_elsewhere).min(had).max(0.0);
        program.push_row(Range::at_most((jobs - others(&|_| 1.0)).max(used)), time);
        if needed > 0.0 {
            program.push_row(Range::at_least(needed), throughput);
        }
    }
    for (rented, left) in rented.into_iter().zip(left) {
        program.push_row(Range::at_most(left), rented);
    }
    if value > 0.0 {
        for (_, worth) in &mut held {
            *worth /= value;
        }
        program.push_row(Range::at_least(1.0 - HELD), held);
    }
    // from nothing
    let basis = Basis {
        columns: vec![BasisStatus::Lower; program.n_columns()],
        rows: vec![BasisStatus::Basic; program.n_rows()],
    };
    let Some(answer) = solving.solve_near(&program, Some(basis)) else {
        solving.report().fallbacks.push("not refined".to_owned());
        return Some(());
    };
    let mut chosen = answer.solution.columns.iter();
    for Tied { member, types } in &tied {
        for (j, time) in types.iter().zip(chosen.by_ref()) {
            shares.time[member * k + j] = time.max(0.0);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::ProgramPolicy;
    use crate::policy::program::Strategy;
    use crate::policy::program::tests::{options_of, worth};
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ConstraintText, ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{DollarsPerWorkerHour, Seconds, Steps};

    /// Jobs on three types; each `like`th gains as much as others of those on the first over the second. Each fiftieth
    /// cannot be done in time.
    fn problem(n_jobs: usize, like: usize) -> Problem {
        let part = |per_100: usize| u32::try_from((n_jobs * per_100).div_ceil(100).max(4)).unwrap();
        let mut cluster =
            crate::Cluster::try_new([("a", part(30)), ("b", part(25)), ("c", part(40))]).unwrap();
        for (name, price) in [("a", 3.0), ("b", 1.5), ("c", 1.0)] {
            cluster = cluster.with_price(name, DollarsPerWorkerHour::new(price)).unwrap();
        }
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        // multiples of the golden ratio are spread evenly
        let mut at = 0.0;
        let mut draw = || {
            at += 0.618_033_988_749_894_9_f64;
            at.fract()
        };
        for index in 0..n_jobs {
            let (speed, others) = (1.0 + 9.0 * draw(), [draw(), draw()]);
            let unit_s = if index % 50 == 7 { 1.0 } else { 3600.0 };
            let job = ActiveJob {
                scale_factor: [1, 1, 2][index % 3],
                weight: 1.0 + draw(),
                steps_remaining: Steps::new(3600.0 * speed * draw()),
                slo_remaining: Some(Seconds::new(unit_s * (0.6 + 2.0 * draw()))),
                ..ActiveJob::new(JobId::from_index(index))
            };
            let third = if index % 7 == 3 { 0.0 } else { speed * others[1] };
            let speeds = [speed, speed * others[0], third];
            builder.job(job, &if index % like == 0 { [speed + 2.0, speed, 0.0] } else { speeds });
        }
        builder.build().unwrap()
    }

    fn policy(text: &str, constraint: Option<ConstraintText>) -> ProgramPolicy {
        let mut objective = ObjectiveText::new(Sense::Maximize, text);
        objective.for_each_job.extend(constraint);
        ProgramPolicy::try_new(options_of(&objective)).unwrap()
    }

    // (without HiGHS the search for who is let off certifies too little)
    #[cfg(feature = "highs")]
    #[test]
    fn who_is_let_off_where_not_all_can_be_served_is_known() {
        let speeds = |index: usize| [4.0 + (index % 97) as f64 / 97.0, 2.0, 1.0 + (index % 89) as f64 / 89.0];
        let cluster = crate::Cluster::try_new([("a", 300), ("b", 250), ("c", 400)]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        for index in 0..900 {
            // twelve of these need all of 32 workers of the first type
            let large = index % 75 == 7;
            let job = ActiveJob {
                scale_factor: if large { 32 } else { 1 },
                steps_remaining: Steps::new(3600.0 * 0.99 * speeds(index)[0]),
                slo_remaining: Some(Seconds::new(if large { 3600.0 } else { 1e9 })),
                ..ActiveJob::new(JobId::from_index(index))
            };
            builder.job(job, &speeds(index));
        }
        let problem = builder.build().unwrap();
        let promised = ConstraintText::droppable("throughput >= steps_remaining / slo_remaining");
        let mut policy = policy("sum_over_jobs(throughput)", Some(promised));
        let decision = policy.allocate(&problem).unwrap();
        assert_eq!(decision.dropped.len(), 3, "{:?}", decision.solve);
        assert!(decision.objective.unwrap().optimal);
    }

    #[test]
    fn sums_without_a_program_are_as_good_as_those_of_one() {
        let promised = || ConstraintText::droppable("throughput >= steps_remaining / slo_remaining");
        let hard = || ConstraintText::hard("throughput >= 0.1 * equal_share_throughput");
        let by_price = "sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))";
        for (text, constraint) in [
            ("sum_over_jobs(throughput)", None),
            ("sum_over_jobs(weight * throughput / scale_factor)", Some(hard())),
            (by_price, None),
            (by_price, Some(promised())),
        ] {
            for like in [usize::MAX, 3] {
                let problem = problem(900, like);
                let mut policy = policy(text, constraint.clone());
                let decision = policy.allocate(&problem).unwrap();
                let solve = decision.solve.clone().unwrap();
                assert!(solve.fallbacks.is_empty(), "{text}: {:?}", solve.fallbacks);
                assert_eq!(solve.strategy, Strategy::Singles, "{text}: {solve:?}");
                let other = || registry::backend("simplex").unwrap();
                policy.solve_by(vec![other()], vec![other()], Limits::default());
                let written = policy.allocate(&problem).unwrap();
                let steps = [&solve, written.solve.as_ref().unwrap()].map(|solve| solve.iterations);
                assert!(3 * steps[0] < steps[1], "{text}: {steps:?}");
                assert_eq!(decision.dropped, written.dropped, "{text}");
                let droppable = constraint.as_ref().is_some_and(|constraint| constraint.droppable);
                assert_eq!(decision.dropped.len(), if droppable { 18 } else { 0 }, "{text}");
                let values = [&decision.objective, &written.objective].map(|of| of.clone().unwrap());
                assert!(values.iter().all(|objective| objective.optimal), "{text}: {values:?}");
                let near = |a: f64, b: f64, by: f64| (a - b).abs() <= by * a.abs();
                assert!(near(values[0].value, values[1].value, 1e-8), "{text}: {values:?}");
                let worths = [worth(&problem, &decision), worth(&problem, &written)];
                assert!(near(worths[0], worths[1], 1e-5), "{text}, {like}: {worths:?}");
            }
        }
    }
}
