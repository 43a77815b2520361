//! Members alone: levels raised and held, and logarithms added up, without a program being written (see
//! [`sharing`](crate::program::sharing)).

use crate::decomposition::PrimalDual;
use crate::policy::decision::{Policy, PolicyError};
use crate::policy::program::explain::{Explained, Held};
use crate::policy::program::levels::{self, Rest};
use crate::policy::program::master::Master;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::pools::{Pools, Told};
use crate::policy::program::solve::{Explaining, Solved, Task};
use crate::policy::program::solving::Solving;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::problem::Problem;
use crate::program::{BoundObjective, Demand, HOLD_SLACK, Route, Sharing, Wanted};
use crate::solver::certificate::Certificate;

/// Worker types above which an optimum is rather left as it was found than refined by a program that would be written:
/// that takes a hundred times as long as all else.
const TYPES_WRITTEN: usize = 16;

/// The level of some demands, raised.
#[derive(Debug)]
pub(super) struct Reached {
    /// Class time of the columns, [columns]; none where pools have it.
    pub(super) class_time: Vec<f64>,
    /// The throughput of each member there: [members].
    pub(super) throughputs: Vec<f64>,
    /// What no allocation can exceed.
    pub(super) bound: f64,
    /// How much the level falls per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
    /// The other prices that prove it, without times, where no program was written.
    pub(super) prices: Option<PrimalDual>,
}

/// Class time of the columns: [columns].
pub(super) fn class_time(bound: &BoundObjective<'_>, shares: &PrimalDual) -> Vec<f64> {
    let k = bound.instance().n_types();
    bound.columns().iter().map(|column| shares.time[column.combination * k + column.worker_type]).collect()
}

fn solve(
    solving: &mut Solving,
    master: &Master<'_>,
    demand: Vec<f64>,
    wanted: Wanted<'_>,
) -> Option<(PrimalDual, Certificate)> {
    if master.is_priced() {
        return None;
    }
    let bound = master.bound();
    let sharing = bound.sharing(demand)?;
    solving.share(&sharing, wanted, bound.columns().len())
}

/// Raises the level of demands, if they are many and nothing else is asked.
pub(super) fn raise(solving: &mut Solving, master: &Master<'_>, demands: &[Demand]) -> Option<Reached> {
    if !solving.shares() || demands.iter().any(|demand| demand.base != 0.0) {
        return None;
    }
    let demand = demands.iter().map(|demand| demand.slope).collect();
    let (mut shares, certificate) = solve(solving, master, demand, Wanted::Level)?;
    let class_time = class_time(&master.bound(), &shares);
    shares.time = Vec::new();
    Some(Reached {
        throughputs: levels::throughputs(&master.bound(), &class_time),
        class_time,
        bound: certificate.bound,
        demand_price: shares.throughput_price.clone(),
        prices: Some(shares),
    })
}

/// Holds a level of demands, which members have at some class times `[columns]`, and uses the workers best: those that
/// `prices`, which prove the level, leave open. On many types those class times are left as they are, and the report says
/// so, where prices do not settle.
pub(super) fn refine(
    solving: &mut Solving,
    master: &Master<'_>,
    (demand, level): (Vec<f64>, f64),
    class_time: &[f64],
    prices: Option<&PrimalDual>,
) -> Option<Vec<f64>> {
    let instance = &master.reduced().instance;
    let n_columns = master.bound().columns().len();
    if !solving.shares() || !instance.pairs.is_empty() || master.is_priced() {
        return None;
    }
    let normal = instance.multiplicity.iter().zip(&master.reduced().equal_share);
    let worth: Vec<f64> = normal.map(|(jobs, equal_share)| jobs / equal_share).collect();
    let level = level - HOLD_SLACK * level.abs();
    let k = instance.n_types();
    let mut given = vec![0.0; instance.n_members() * k];
    for (column, time) in master.bound().columns().iter().zip(class_time) {
        given[column.combination * k + column.worker_type] = *time;
    }
    let rest = prices.and_then(|prices| Rest::of_level(instance, prices, &given));
    let rest = rest.unwrap_or_else(|| Rest::all(instance));
    if rest.members.is_empty() {
        return Some(class_time.to_vec());
    }
    let bound = master.bound();
    let [demand, worth] = [&bound.sharing(demand)?.demand, &worth].map(|of| rest.of_members(of));
    let (had, by_type) = (rest.times(&given, k), vec![1.0; rest.types.len()]);
    let wanted = Wanted::Worth { level, worth: &worth, by_type: &by_type, given: &had };
    let refined = solving.share(&Sharing::new(&rest.instance, demand), wanted, n_columns);
    if refined.is_none() && k > TYPES_WRITTEN {
        solving.report().fallbacks.push("not refined".to_owned());
        return Some(class_time.to_vec());
    }
    rest.put(&refined?.0.time, &mut given, k);
    Some(bound.columns().iter().map(|column| given[column.combination * k + column.worker_type]).collect())
}

/// What took no program.
pub(super) fn unwritten(class_time: Vec<f64>, bound: f64) -> Solved {
    Solved {
        class_time,
        bound,
        reached: None,
        explaining: Explaining::Unwritten,
        answer: None,
        price_factor: 1.0,
        fixing: None,
        discounts: Vec::new(),
    }
}

impl Task<'_, '_> {
    /// The optimum by prices of worker types: of a level that is a column, or its inverse is, refined; of a sum; or of a sum
    /// of logarithms, which fixes every throughput.
    pub(super) fn singles(&mut self, solving: &mut Solving) -> Result<Solved, GaveUp> {
        if self.master.objective().route() == Route::Conic {
            return self.bought(solving);
        }
        if self.master.objective().inversion().is_none() {
            return self.summed(solving);
        }
        let demand = self.demanded().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let raised = solve(solving, self.master, demand.clone(), Wanted::Level);
        let (mut shares, certificate) = raised.ok_or(GaveUp::Unproven)?;
        let inverse = self.master.objective().is_by_inverse();
        let bound = if inverse { certificate.bound.recip() } else { certificate.bound };
        let held = (demand, shares.level);
        let given = class_time(&self.master.bound(), &shares);
        shares.time = Vec::new();
        let refined =
            solving.among_optima(|solving| refine(solving, self.master, held, &given, Some(&shares)));
        Ok(unwritten(refined.ok_or(GaveUp::Unrefined)?, bound))
    }

    /// The optimum by a program over the kinds of jobs: of a level that is a column, or its inverse is, refined, or of a sum.
    pub(super) fn kinds(&mut self, solving: &mut Solving) -> Result<Solved, GaveUp> {
        if self.master.objective().inversion().is_none() {
            return self.summed_by_kinds(solving);
        }
        let demand = self.demanded().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let mut pools = Pools::of(self.master, solving, Told::Level).map_err(GaveUp::Unfit)?;
        let demands: Vec<Demand> = demand.iter().map(|slope| Demand { slope: *slope, base: 0.0 }).collect();
        let raised = pools.raise(solving, self.master, &demands).ok_or(GaveUp::Unproven)?;
        let refined = solving.among_optima(|solving| pools.refine(solving, self.master, raised.level));
        refined.ok_or(GaveUp::Unrefined)?;
        let inverse = self.master.objective().is_by_inverse();
        let bound = if inverse { raised.bound.recip() } else { raised.bound };
        Ok(unwritten(pools.divided(self.master).ok_or(GaveUp::Undivided)?, bound))
    }

    /// What each member asks for per unit of the level, [members]; nothing if levels are not in proportion to throughput.
    fn demanded(&self) -> Option<Vec<f64>> {
        let levels = self.master.bound().levels_kept()?;
        let n = self.master.reduced().instance.n_members();
        let slope = |member| match levels.coefficients(member)? {
            (0.0, slope) => Some(slope),
            _ => None,
        };
        (0..n).map(slope).collect()
    }

    /// The optimum of a sum of logarithms.
    fn bought(&self, solving: &mut Solving) -> Result<Solved, GaveUp> {
        let bound = self.master.bound();
        let (sharing, logarithms) = bound.logarithms().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let wanted = Wanted::Logarithms(&logarithms);
        let shared = solving.share(&sharing, wanted, bound.columns().len());
        let (shares, certificate) = shared.ok_or(GaveUp::Unproven)?;
        Ok(unwritten(class_time(&bound, &shares), certificate.bound))
    }
}

impl ProgramPolicy {
    /// Solves, and where that took no program, writes one for what explains the decision, which stands.
    pub(super) fn solve_to_explain(&mut self, problem: &Problem) -> Result<Explained, PolicyError> {
        let state = self.state();
        let (reduced, solved, decision) = self.solve(problem)?;
        let layout = self.layout(&self.options.objective, &reduced)?;
        let bound = self.options.objective.bind_again(&reduced.instance, &layout);
        let bound = bound.map_err(|error| self.bind_error(&error, &reduced))?;
        let held = Some(Held::of(&bound, &solved.class_time));
        if solved.answer.is_some() {
            return Ok(Explained { reduced, solved, decision, held });
        }
        self.restore(&state)?;
        self.solving.write(true);
        let written = self.solve(problem);
        self.solving.write(false);
        let (again, solved, _) = written?;
        let alike = again.classes == reduced.classes && again.instance.waived == reduced.instance.waived;
        Ok(Explained { reduced: again, solved, decision, held: held.filter(|_| alike) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::tests::{options_of, worth};
    use crate::policy::program::{ProgramPolicy, Reason, Strategy};
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{Seconds, Steps};

    /// Jobs on three types, no two alike, which half as many workers run.
    fn problem(n_jobs: usize) -> Problem {
        let part = |per_100: usize| u32::try_from((n_jobs * per_100).div_ceil(100).max(4)).unwrap();
        let cluster = crate::Cluster::try_new([("a", part(22)), ("b", part(17)), ("c", part(10))]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        // multiples of the golden ratio are spread evenly
        let mut at = 0.0;
        let mut draw = || {
            at += 0.618_033_988_749_894_9_f64;
            at.fract()
        };
        for index in 0..n_jobs {
            let job = ActiveJob {
                scale_factor: [1, 1, 2, 4][index % 4],
                weight: 1.0 + draw(),
                steps_remaining: Steps::new(1e5 * (0.1 + draw())),
                elapsed: Seconds::new(1e4 * draw()),
                isolated_elapsed: Seconds::new(5e3 * draw()),
                ..ActiveJob::new(JobId::from_index(index))
            };
            let speed = 1.0 + 9.0 * draw();
            builder.job(job, &[speed, speed * draw(), speed * draw().powi(3)]);
        }
        builder.build().unwrap()
    }

    fn policy(sense: Sense, text: &str) -> ProgramPolicy {
        ProgramPolicy::try_new(options_of(&ObjectiveText::new(sense, text))).unwrap()
    }

    #[test]
    fn decisions_without_a_program_are_as_good_as_those_of_one() {
        let few = [2, 5, 12, 30, 60, 61].map(|n_jobs| (n_jobs, "simplex"));
        for (n_jobs, other) in few.into_iter().chain([(900, "clarabel")]) {
            as_good_as_a_program(&problem(n_jobs), other);
        }
    }

    fn as_good_as_a_program(problem: &Problem, other: &str) {
        for (sense, text) in [
            (Sense::Maximize, "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))"),
            (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
            (
                Sense::Minimize,
                "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
            ),
        ] {
            let mut policy = policy(sense, text);
            let explained = policy.explain(problem).unwrap();
            assert!(
                explained.program.is_some() && explained.types.iter().all(|kind| kind.one_more.is_some())
            );
            let decision = policy.allocate(problem).unwrap();
            assert_eq!(
                explained.decision.allocation, decision.allocation,
                "an explanation is of the decision"
            );
            let solve = decision.solve.as_ref().unwrap();
            assert_eq!((solve.strategy, solve.reason), (Strategy::Singles, Reason::JobsAlone));
            assert_eq!((solve.solves, &solve.backend), (0, &None), "no program is written");
            let other = || registry::backend(other).unwrap();
            policy.solve_by(vec![other()], vec![other()], Limits::default());
            let written = policy.allocate(problem).unwrap();
            let values = [&decision, &written].map(|of| of.objective.clone().unwrap());
            assert!(values.iter().all(|objective| objective.optimal), "{values:?}");
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * a.abs();
            assert!(near(values[0].value, values[1].value), "{text}: {values:?}");
            let worths = [&decision, &written].map(|of| worth(problem, of));
            assert!(near(worths[0], worths[1]), "{text}: {worths:?}");
            assert!(decision.solve.unwrap().fallbacks.is_empty());
        }
    }

    #[test]
    fn logarithms_without_a_program_are_as_good_as_with_cones() {
        let problem = problem(900);
        let mut policy = policy(Sense::Maximize, "sum_over_jobs(weight * log(throughput))");
        let explained = policy.explain(&problem).unwrap();
        assert!(explained.program.is_some() && explained.types.iter().all(|kind| kind.one_more.is_some()));
        let decision = policy.allocate(&problem).unwrap();
        assert_eq!(explained.decision.allocation, decision.allocation, "an explanation is of the decision");
        let solve = decision.solve.as_ref().unwrap();
        assert!(solve.fallbacks.is_empty() && solve.size.rows == 903, "{solve:?}");
        let other = || registry::backend("clarabel").unwrap();
        policy.solve_by(vec![other()], vec![other()], Limits::default());
        let written = policy.allocate(&problem).unwrap();
        let values = [&decision, &written].map(|of| of.objective.clone().unwrap());
        assert!(values.iter().all(|objective| objective.optimal), "{values:?}");
        assert!((values[0].value - values[1].value).abs() <= 1e-8 * values[0].value.abs(), "{values:?}");
        // throughputs at the optimum are unique; the value is flat about them
        let [one, other] = [&decision, &written].map(|of| of.allocation.effective_throughput().as_slice());
        for (one, other) in one.iter().zip(other) {
            assert!((one - other).abs() <= 1e-3 * one, "{one} {other}");
        }
    }
}
