//! The oracle for jobs that share no workers: by prices of worker types, without a program.
//!
//! The prices of a level show which worker types are *scarce*: every allocation that keeps the level uses all their
//! workers. A job that could rise only on scarce types is saturated. The others rise on types that are not scarce and
//! saturate there one by one, each at its *limit*, its highest throughput on such types.
//! [`skip_saturated`](SinglesOracle::skip_saturated) passes over these levels, so that about one level for each worker
//! type is left to be raised by prices.

use super::{FillState, LexicographicOptimum, Oracle, RaisedStep, water_fill};
use crate::decomposition::RaisedLevel;
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::singles::{self, Certified, FixedLevel, ResidualProblem};
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit, may_replace_program};
use crate::program::{Goal, Instance, Singles};

/// A member that lacks less than this part of its highest throughput has it.
pub(super) const LACK_MAX: f64 = 1e-11;

/// The allocation so far, and the residual problem of later levels.
#[derive(Clone, Debug)]
pub(super) struct SinglesOracle<'a> {
    instance: &'a Instance,
    /// Columns of the program that is not written.
    n_columns: usize,
    /// Class times: [members × K].
    class_time: Vec<f64>,
    /// Whether a type is scarce, every worker of it being in use at any optimum: [K].
    scarce: Vec<bool>,
    /// Worker prices that the next search starts with.
    warm_prices: Vec<Vec<f64>>,
    pub(super) residual: ResidualProblem<'a>,
    /// The last level raised; none before the first.
    raised: Option<RaisedLevel>,
}

/// The lexicographic optimum, filled from throughputs of 0; fails where a program must be written.
pub(in crate::policy::program) fn fill_singles(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    rates: &impl Rising,
) -> Result<LexicographicOptimum, GaveUp> {
    let bound = columns.bound();
    let (instance, n_columns) = (bound.instance(), bound.columns().len());
    let (n, k) = (instance.n_members(), instance.n_types());
    may_replace_program(solver).map_err(GaveUp::Unfit)?;
    bound.singles(rates.slopes(&vec![false; n])).ok_or(GaveUp::Unfit(Unfit::Objective))?;
    let mut oracle = SinglesOracle {
        instance,
        n_columns,
        class_time: vec![0.0; n * k],
        scarce: vec![false; k],
        warm_prices: Vec::new(),
        residual: ResidualProblem::all(instance),
        raised: None,
    };
    let first = water_fill(&mut oracle, solver, rates, &vec![0.0; n])?;
    Ok(LexicographicOptimum::new(columns, singles::class_time(&bound, &oracle.class_time), first))
}

impl Oracle for SinglesOracle<'_> {
    type Error = GaveUp;

    fn raise(
        &mut self,
        solver: &mut SolverContext,
        state: &FillState,
        slope: &[f64],
    ) -> Result<RaisedStep, GaveUp> {
        let Certified { answer: raised, bound } = self.search(solver, state, slope)?;
        let members = || self.residual.members.iter().copied();
        let binding = members().zip(&raised.binding).filter(|(_, binding)| **binding);
        let mut saturated: Vec<usize> = binding.map(|(member, _)| member).collect();
        if saturated.is_empty() {
            // No demand clearly binds: the one with the largest share of the level's price counts as binding.
            let share = |(member, price): &(usize, &f64)| **price * slope[*member];
            let rising = |(member, _): &(usize, &f64)| slope[*member] > 0.0;
            let priced = members().zip(&raised.answer.throughput_price).filter(rising);
            let most = priced.max_by(|a, b| share(a).total_cmp(&share(b)));
            saturated.push(most.ok_or(GaveUp::Unproven)?.0);
        }
        for (kind, scarce) in self.residual.types.iter().zip(&raised.scarce) {
            self.scarce[*kind] |= *scarce;
        }
        self.move_time_to(&raised.answer.time, 1.0);
        let level = raised.answer.level;
        self.raised = Some(raised);
        Ok(RaisedStep { level, bound, saturated, throughputs: self.throughputs() })
    }

    fn skip(&mut self, solver: &mut SolverContext, state: &mut FillState, rates: &impl Rising) {
        let mut limits = self.limits(state);
        if let Some(raised) = self.raised.take()
            && state.frozen.contains(&false)
            && raised.scarce.contains(&true)
            && self.fix(state, &raised)
        {
            limits = self.limits(state);
        }
        // An error leaves a feasible state: the next level is raised from there.
        let _ = self.skip_saturated(solver, state, rates, &limits);
    }
}

impl SinglesOracle<'_> {
    /// The highest throughput of each member on types that are not scarce, [members]; members that have reached it
    /// are frozen.
    fn limits(&self, state: &mut FillState) -> Vec<f64> {
        let mut limits = Vec::with_capacity(state.frozen.len());
        for (member, (reached, frozen)) in state.reached.iter().zip(&mut state.frozen).enumerate() {
            let speeds = self.instance.alone(member).iter().zip(&self.scarce).enumerate();
            let free =
                speeds.filter(|(kind, (_, scarce))| !**scarce && self.instance.runs_alone(member, *kind));
            let limit = free.map(|(_, (speed, _))| *speed).fold(0.0, f64::max);
            *frozen |= limit - reached <= LACK_MAX * limit;
            limits.push(limit);
        }
        limits
    }

    /// The highest level at which members rise by `slope`, [members], in the residual problem, and a bound on it.
    pub(super) fn search(
        &mut self,
        solver: &mut SolverContext,
        state: &FillState,
        slope: &[f64],
    ) -> Result<Certified<RaisedLevel>, GaveUp> {
        let [slope, base] = [slope, &state.reached].map(|of| self.residual.of_members(of));
        let given = self.residual.times(&self.class_time, self.instance.n_types());
        let goal = Goal::Above { base: &base, given: &given };
        let singles = Singles::new(&self.residual.instance, slope);
        let warm_prices = self.warm_prices.clone();
        let mut found = singles::search_above(solver, &singles, goal, warm_prices, self.n_columns)?;
        self.warm_prices = std::mem::take(&mut found.answer.near);
        Ok(found)
    }

    /// Reduces the residual problem to the members and types that the prices of a level leave undecided; returns whether
    /// this makes more types scarce.
    fn fix(&mut self, state: &mut FillState, raised: &RaisedLevel) -> bool {
        let k = self.instance.n_types();
        let fixed = FixedLevel {
            instance: &self.residual.instance,
            prices: &raised.answer,
            given: &self.residual.times(&self.class_time, k),
            frozen: &self.residual.of_members(&state.frozen),
            scarce: &self.residual.types.iter().map(|kind| self.scarce[*kind]).collect::<Vec<bool>>(),
        };
        let Some(residual) = ResidualProblem::of(fixed) else { return false };
        let residual = residual.with_places_of(&self.residual);
        let mut more = false;
        for kind in self.residual.types.iter().filter(|kind| !residual.types.contains(kind)) {
            more |= !self.scarce[*kind];
            self.scarce[*kind] = true;
        }
        residual.clear_excluded_times(&mut self.class_time, k);
        state.cap(&self.throughputs());
        self.residual = residual;
        self.warm_prices.clear();
        more
    }

    /// Moves the class times of the residual problem this `part` of the way to `time`, [members × types] there.
    pub(super) fn move_time_to(&mut self, time: &[f64], part: f64) {
        let k = self.instance.n_types();
        let times = time.chunks_exact(self.residual.types.len().max(1));
        for (member, times) in self.residual.members.iter().zip(times) {
            let given = &mut self.class_time[member * k..(member + 1) * k];
            for (kind, time) in self.residual.types.iter().zip(times) {
                given[*kind] = part * time + (1.0 - part) * given[*kind];
            }
        }
    }

    /// The throughput of each member at its class times: [members].
    pub(super) fn throughputs(&self) -> Vec<f64> {
        let times = self.class_time.chunks_exact(self.instance.n_types()).zip(&self.instance.multiplicity);
        let throughput = |(member, (times, jobs)): (usize, (&[f64], &f64))| {
            let speeds = self.instance.alone(member).iter().zip(times);
            speeds.map(|(speed, time)| speed * time).sum::<f64>() / jobs
        };
        times.enumerate().map(throughput).collect()
    }
}
