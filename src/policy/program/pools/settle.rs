//! Programs over pools, and the rows that they turn out to need.

use super::cuts::{Cut, SlotColumn};
use super::needs::Needs;
use super::profile::{Slot, tightest};
use super::{Pools, Stage};
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::policy::program::start::start;
use crate::program::Demand;
use crate::solver::{Basis, BasisStatus};

/// A row is added where members lack more than this part of what they ask for.
const LACK_MAX: f64 = 1e-10;
/// A column with less time than this part of a pool's has none.
const TIME_MIN: f64 = 1e-12;
/// Programs solved for one level.
const ROUNDS_MAX: u32 = 200;

impl Pools {
    /// The program of the demands, with the rows that the last one needed, solved; levels above `most` are of no use.
    pub(super) fn raised(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
        most: f64,
    ) -> Option<(Stage, Vec<f64>)> {
        let bound = self.objective.bind_again(&self.instance, &self.layout).ok()?;
        let of_pool = |pool: usize| {
            let jobs = &master.reduced().instance.multiplicity;
            let sum = |of: fn(&Demand) -> f64| -> f64 {
                let members = self.members[pool].iter().map(|member| *member as usize);
                members.map(|member| jobs[member] * of(&self.demands[member])).sum()
            };
            let n = self.instance.multiplicity[pool];
            Demand { slope: sum(|demand| demand.slope) / n, base: sum(|demand| demand.base) / n }
        };
        let of_pools: Vec<Demand> = (0..self.members.len()).map(of_pool).collect();
        let mut formulation = bound.with_demands(&of_pools);
        let most = self.limit().map_or(most, |limit| limit.level.min(most));
        if most < f64::INFINITY {
            let (level, unit) = (formulation.columns.len(), formulation.auxiliaries.first()?.scale);
            let program = &mut formulation.program;
            program.columns[level].upper = program.columns[level].upper.min(most / unit);
            let implied = &mut program.implied[level];
            implied.upper = implied.upper.min(most / unit);
            implied.lower = implied.lower.min(implied.upper);
        }
        let old = self.stage.take();
        // Above what members have already, a level begins at 0.
        let begun = self.demands.iter().any(|demand| demand.base > 0.0);
        let level = old.as_ref().map_or(1.0, |old| if begun { 0.0 } else { old.level });
        let mut stage = Stage {
            formulation,
            cuts: Vec::new(),
            time: Vec::new(),
            level,
            needs: Vec::new(),
            parts: Vec::new(),
            part: 0.0,
        };
        for cut in self.needed(old.map(|old| old.cuts).unwrap_or_default()) {
            let needs = self.needs(master, cut.pool, level);
            let cut = cut.again(&needs);
            self.add(master, &mut stage, cut);
        }
        self.settled(solving, master, stage)
    }

    /// The rows of the last program that its answer depends on; its basis forgets the others.
    pub(super) fn needed(&mut self, cuts: Vec<Cut>) -> Vec<Cut> {
        let first = 2 * self.members.len() + self.instance.n_types();
        let Some(basis) = self.basis.as_mut().filter(|basis| basis.rows.len() == first + cuts.len()) else {
            return cuts;
        };
        let status = basis.rows.split_off(first);
        let needed =
            |(cut, status): (Cut, BasisStatus)| (status != BasisStatus::Basic).then_some((cut, status));
        let (cuts, status): (Vec<Cut>, Vec<BasisStatus>) =
            cuts.into_iter().zip(status).filter_map(needed).unzip();
        basis.rows.extend(status);
        cuts
    }

    /// Solves a stage's program, adding rows until its time can be divided; with its duals.
    pub(super) fn settled(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
        mut stage: Stage,
    ) -> Option<(Stage, Vec<f64>)> {
        for _ in 0..ROUNDS_MAX {
            let program = &mut stage.formulation.program;
            program.forget_names();
            let basis =
                self.basis.take().and_then(|basis| grown(basis, program.n_columns(), program.n_rows()));
            let first = basis.is_none() && stage.cuts.is_empty();
            let basis = basis.or_else(|| if first { start(&stage.formulation) } else { None });
            let answer = solving.solve_near(&stage.formulation.program, basis)?;
            self.basis = answer.solution.basis;
            let columns = &answer.solution.columns;
            stage.time = stage.formulation.class_time(columns).to_vec();
            let unit = stage.formulation.auxiliaries.first()?.scale;
            stage.level = unit * columns[stage.formulation.columns.len()];
            stage.needs = (0..self.members.len()).map(|pool| self.needs(master, pool, stage.level)).collect();
            let mut missing = stage.lacking(self.exceeded(&stage));
            if missing.is_empty() {
                let cuts = self.divide(solving, &mut stage)?;
                missing = stage.lacking(cuts);
            }
            if missing.is_empty() {
                return (stage.parts.len() == self.members.len())
                    .then_some((stage, answer.solution.row_duals));
            }
            for cut in missing {
                self.add(master, &mut stage, cut);
            }
        }
        None
    }

    /// What members need above a speed, and more of it than their pool has: the most of each pool.
    fn exceeded(&self, stage: &Stage) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for (pool, needs) in stage.needs.iter().enumerate() {
            let found = tightest(self.given(pool, &stage.time).map(|given| given.1), needs);
            // (what they need at any speed is in the row of the level)
            if found.part < 1.0 - LACK_MAX && found.speed > 0.0 {
                cuts.push(Cut::above(pool, found.speed, needs, found.n_members));
            }
        }
        cuts
    }

    fn add(&self, master: &Master<'_>, stage: &mut Stage, mut cut: Cut) {
        let members = self.members[cut.pool].iter().map(|member| *member as usize);
        let multiplicity = &master.reduced().instance.multiplicity;
        let jobs: Vec<f64> = members.clone().map(|member| multiplicity[member]).collect();
        let demands: Vec<Demand> = members.map(|member| self.demands[member]).collect();
        cut.push(&mut stage.formulation, &self.slots[cut.pool], &jobs, &demands);
        stage.cuts.push(cut);
    }

    /// What the members of a pool ask for at a level.
    pub(super) fn needs(&self, master: &Master<'_>, pool: usize, level: f64) -> Needs {
        let jobs = &master.reduced().instance.multiplicity;
        let members = &self.members[pool];
        Needs::of(self.order[pool].iter().map(|place| {
            let member = members[*place as usize] as usize;
            let demand = self.demands[member];
            (*place, jobs[member], demand.slope * level + demand.base)
        }))
    }

    /// Notes in which order members ask for most: what is nearly in order is soon in order.
    pub(super) fn set_order(&mut self) {
        let asked = |member: u32| {
            let Demand { slope, base } = self.demands[member as usize];
            slope + base
        };
        let order = |members: &Vec<u32>| {
            let mut places: Vec<u32> = (0..).zip(members).map(|(place, _)| place).collect();
            let of = |place: &u32| asked(members[*place as usize]);
            places.sort_by(|one, other| of(other).total_cmp(&of(one)));
            places
        };
        self.order = self.members.iter().map(order).collect();
    }

    /// The time that a pool has, the fastest first, and where.
    pub(super) fn given<'a>(
        &'a self,
        pool: usize,
        time: &'a [f64],
    ) -> impl Iterator<Item = (&'a SlotColumn, Slot)> + Clone + 'a {
        let least = TIME_MIN * self.instance.multiplicity[pool];
        let slots = self.slots[pool].iter().filter(move |slot| time[slot.column as usize] > least);
        slots.map(|slot| (slot, Slot { speed: slot.speed, time: slot.uses * time[slot.column as usize] }))
    }
}

impl Stage {
    /// Those of some rows that its program does not have.
    fn lacking(&self, mut cuts: Vec<Cut>) -> Vec<Cut> {
        cuts.retain(|cut| !self.cuts.iter().any(|known| known.is(cut)));
        cuts
    }
}

/// A basis for a program of so many columns and rows, of which it lacks rows.
pub(super) fn grown(mut basis: Basis, n_columns: usize, n_rows: usize) -> Option<Basis> {
    if basis.columns.len() != n_columns || basis.rows.len() > n_rows {
        return None;
    }
    basis.rows.resize(n_rows, BasisStatus::Basic);
    Some(basis)
}
