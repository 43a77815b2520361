//! Promises over pairs where not all can be kept, by the time of pools: who is let off.
//!
//! With z_i, the part of its promise d_i that member i is kept, a pool's time can be divided only if for every speed θ
//!
//!   Σ_c (v_c − θ)⁺·y_c  ≥  Σ_i n_i·(d_i − θ)⁺·z_i
//!
//! (see [`profile`](super::profile): those who are kept in part are as many jobs less). What a program over pools with these
//! rows keeps, in parts that are added up, no allocation keeps more of. Those whose promise costs most at its prices make most
//! room when they are let off: if as many of them as must be are enough, nobody can do better.

use super::settle::grown;
use super::sum::Sum;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::policy::program::tolerances::WHOLE;
use crate::program::{Demand, PROMISE_SLACK, Program, Range};

/// Rows that a promise kept may break by this part of what it asks for are kept.
const LACK_MAX: f64 = 1e-9;
/// Programs solved.
const ROUNDS_MAX: u32 = 100;

/// A row of a pool's program, at a speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Above {
    pool: usize,
    speed: f64,
}

/// The program's end.
struct Relaxed {
    /// No more jobs than this are kept their promises.
    most: f64,
    /// The part that each is: [members].
    kept: Vec<f64>,
    /// What each promise costs, of what one job counts: [members].
    cost: Vec<f64>,
}

impl Sum {
    /// Who is let off so that all others, single jobs, have what they ask for, if it is proven that nobody could let off
    /// fewer: [members]. `let_off`: who is in any case.
    pub(in crate::policy::program) fn let_off(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
        let_off: &[bool],
    ) -> Option<Vec<bool>> {
        // (who is let off must be asked for nothing else)
        master.bound().promised()?;
        let Relaxed { most, kept, cost } = self.relaxed(solving, master, let_off)?;
        let most = (most + WHOLE).floor();
        let left = let_off.iter().filter(|let_off| !**let_off).count() as f64;
        let asks = |member: &usize| !let_off[*member] && self.demands[*member].slope > 0.0;
        let mut dearest: Vec<usize> = (0..let_off.len()).filter(asks).collect();
        for by_part in [true, false] {
            let part = |member: usize| if by_part { (kept[member] / WHOLE).round() } else { 0.0 };
            dearest.sort_by(|a, b| part(*a).total_cmp(&part(*b)).then(cost[*b].total_cmp(&cost[*a])));
            let mut tried = let_off.to_vec();
            let (mut left, mut first) = (left, dearest.iter());
            while left > most {
                tried[*first.next()?] = true;
                left -= 1.0;
            }
            if self.serves(solving, master, &tried) {
                return Some(tried);
            }
        }
        None
    }

    /// Can all have what they ask for but those that are let off?
    fn serves(&mut self, solving: &mut Solving, master: &Master<'_>, let_off: &[bool]) -> bool {
        let all = self.demands.clone();
        for (demand, let_off) in self.demands.iter_mut().zip(let_off) {
            demand.slope = if *let_off { 0.0 } else { demand.slope };
        }
        (self.pools.stage, self.pools.basis) = (None, None);
        let served = self.kept(solving, master).is_some();
        self.demands = all;
        served
    }

    fn relaxed(&mut self, solving: &mut Solving, master: &Master<'_>, let_off: &[bool]) -> Option<Relaxed> {
        let (mut program, parts) = self.counting(master, let_off)?;
        let first_row = program.n_rows();
        let mut rows: Vec<Above> =
            (0..self.pools.members.len()).map(|pool| Above { pool, speed: 0.0 }).collect();
        for row in &rows {
            self.push(&mut program, master, *row, parts);
        }
        let mut basis = None;
        for _ in 0..ROUNDS_MAX {
            let from = basis.take().and_then(|basis| grown(basis, program.n_columns(), program.n_rows()));
            let answer = solving.solve_near(&program, from)?;
            let x = &answer.solution.columns;
            let broken = self.broken(master, x, parts);
            let more: Vec<Above> = broken.into_iter().filter(|row| !rows.contains(row)).collect();
            if more.is_empty() {
                let cost = costs(&program, (first_row, &answer.solution.row_duals), parts);
                return Some(Relaxed { most: answer.bound, kept: x[parts..].to_vec(), cost });
            }
            for row in more {
                self.push(&mut program, master, row, parts);
                rows.push(row);
            }
            basis = answer.solution.basis;
        }
        None
    }

    /// The program over pools in which nobody asks for anything, and columns for the parts that are kept, from which on they
    /// are.
    fn counting(&self, master: &Master<'_>, let_off: &[bool]) -> Option<(Program, usize)> {
        let pools = &self.pools;
        let bound = pools.objective.bind_again(&pools.instance, &pools.layout).ok()?;
        let mut program = bound.with_demands(&vec![Demand::floor(0.0); pools.members.len()]).program;
        program.forget_names();
        program.cost.fill(0.0);
        let parts = program.n_columns();
        for (let_off, jobs) in let_off.iter().zip(&master.reduced().instance.multiplicity) {
            let range = Range { lower: 0.0, upper: if *let_off { 0.0 } else { 1.0 } };
            program.push_column(range, range, *jobs);
        }
        Some((program, parts))
    }

    /// What a member of a pool asks for above a speed, all its jobs together.
    fn asked(&self, master: &Master<'_>, member: usize, speed: f64) -> f64 {
        let jobs = master.reduced().instance.multiplicity[member];
        // (a promise that takes all of a job's time is asked for up to rounding)
        jobs * (self.demands[member].slope * (1.0 - PROMISE_SLACK) - speed).max(0.0)
    }

    fn push(&self, program: &mut Program, master: &Master<'_>, row: Above, parts: usize) {
        let slots = self.pools.slots[row.pool].iter().filter(|slot| slot.speed > row.speed);
        let mut terms: Vec<(usize, f64)> =
            slots.map(|slot| (slot.column as usize, slot.uses * (slot.speed - row.speed))).collect();
        let members = self.pools.members[row.pool].iter().map(|member| *member as usize);
        let asked = members.map(|member| (parts + member, -self.asked(master, member, row.speed)));
        terms.extend(asked.filter(|(_, asked)| *asked < 0.0));
        terms.sort_unstable_by_key(|(column, _)| *column);
        let most = terms.iter().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let scale = if most > 0.0 { most } else { 1.0 };
        let terms = terms.into_iter().map(|(column, value)| (column, value / scale));
        program.push_row(Range::at_least(0.0), terms);
    }

    /// The row that an answer breaks most of each pool.
    fn broken(&self, master: &Master<'_>, x: &[f64], parts: usize) -> Vec<Above> {
        let mut broken = Vec::new();
        for (pool, members) in self.pools.members.iter().enumerate() {
            let lack = |speed: f64| {
                let asked: f64 = members
                    .iter()
                    .map(|member| self.asked(master, *member as usize, speed) * x[parts + *member as usize])
                    .sum();
                let given = self.pools.given(pool, x);
                asked - given.map(|(_, slot)| slot.time * (slot.speed - speed).max(0.0)).sum::<f64>()
            };
            let all = members.iter().map(|member| self.asked(master, *member as usize, 0.0)).sum::<f64>();
            let speeds = self.pools.given(pool, x).map(|(_, slot)| slot.speed);
            let most = speeds.map(|speed| (lack(speed), speed)).max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, speed)) = most.filter(|(lack, _)| *lack > LACK_MAX * all) {
                broken.push(Above { pool, speed });
            }
        }
        broken
    }
}

/// What each promise costs at prices of rows from the first on: [members].
fn costs(program: &Program, (first, duals): (usize, &[f64]), parts: usize) -> Vec<f64> {
    let mut cost = vec![0.0; program.n_columns() - parts];
    for (row, dual) in duals.iter().enumerate().skip(first) {
        for (column, value) in program.row(row) {
            if let Some(member) = column.checked_sub(parts) {
                // (of a row that is at least something, what makes it harder has a price below 0)
                cost[member] += dual * value;
            }
        }
    }
    cost
}
