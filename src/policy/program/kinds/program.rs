//! The cutting-plane loop over the kind program.
//!
//! In turn: solve the program; for every kind that has too little time above some speed, add the cut at the tightest such
//! speed θ (see [`feasibility`](super::feasibility)); if there is none, divide the time of every kind, and add the Benders cut of
//! each division that fails because a job would run beside itself; stop when all divisions succeed.

use super::divide::{Divided, Division, MemberPrice, Slot, divide};
use super::feasibility::{MemberRequirement, Required, Tightest, tightest};
use super::{KindProgram, KindSolution};
use crate::policy::program::crash::crash_basis;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::GaveUp;
use crate::program::{Demand, Formulation, Program, Range};
use crate::solver::{Basis, BasisStatus};

/// A cut is added where members lack more than this fraction of their required throughputs.
const LACK_MAX: f64 = 1e-10;
/// The fraction of its required throughput that a division must give every member.
const FRACTION_MIN: f64 = 1.0 - 1e-9;
/// Class time below this fraction of a kind's is rounding.
const TIME_MIN: f64 = 1e-12;
/// A coefficient of a cut below this fraction of the largest speed is rounding: prices are at most 1.
const WORTH_MIN: f64 = 1e-12;
/// The most programs that are solved for one level.
const ROUNDS_MAX: u32 = 200;

/// A column of the kind program, with the data of one of its kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindColumn {
    /// Throughput of a job of the kind, steps/s.
    pub(super) speed: f64,
    pub(super) column: u32,
    /// Class time of the kind per unit of the column: 1, or 2 for pairs within the kind.
    pub(super) uses: f64,
}

/// A valid inequality for the time of a kind: Σ_c η_c·y_c + Σ_i n_i·μ_i ≥ Σ_i n_i·ω_i·r_i, whatever the level, where
/// y_c is the kind's time in column c, and r_i what a job of member i requires at the level.
///
/// ω_i ≥ 0 and μ_i ≥ 0 are prices of the throughput and of the time of a member i, and η_c is the most that a unit of time at
/// speed v_c is worth to a member, ω_i·v_c − μ_i. Two jobs each have half of the time of pairs within the kind, of which η_c is
/// the mean of the two largest.
#[derive(Clone, Debug)]
pub(super) struct FeasibilityCut {
    pub(super) kind: usize,
    /// The speed θ of a speed cut: ω = 1, μ = θ for the members that require more than θ, and η = (v − θ)⁺. None for
    /// a cut by the prices of a division that failed.
    above: Option<f64>,
    /// Prices of members, by ascending member; a member that is not listed has prices of 0.
    pub(super) prices: Vec<MemberPrice>,
    /// The number that the row was divided by.
    pub(super) scale: f64,
}

impl FeasibilityCut {
    /// The cut at a speed below the requirements of the first `n_members`.
    fn above(kind: usize, speed: f64, required: &Required, n_members: usize) -> Self {
        let price = |member: &u32| MemberPrice { member: *member, throughput: 1.0, time: speed };
        let mut prices: Vec<MemberPrice> = required.members()[..n_members].iter().map(price).collect();
        prices.sort_unstable_by_key(|price| price.member);
        Self { kind, above: Some(speed), prices, scale: 1.0 }
    }

    /// Adds the row behind the others.
    fn push(&mut self, program: &KindProgram, formulation: &mut Formulation, jobs: &[f64]) {
        let (mut least, mut slope, mut n_jobs) = (0.0, 0.0, 0.0);
        for price in &self.prices {
            let member = price.member as usize;
            let Demand { slope: by_level, base } = program.demands[member];
            least += jobs[member] * (price.throughput * base - price.time);
            slope += jobs[member] * price.throughput * by_level;
            n_jobs += jobs[member];
        }
        let columns = &program.kind_columns[self.kind];
        let fastest = columns.first().map_or(0.0, |column| column.speed);
        let mut terms: Vec<(usize, f64)> = Vec::with_capacity(columns.len() + 1);
        for column in columns {
            let worth = match self.above {
                // One job alone has half of the time of pairs within the kind.
                Some(speed) if column.uses > 1.0 && n_jobs < 2.0 => (column.speed - speed).max(0.0) / 2.0,
                Some(speed) => (column.speed - speed).max(0.0),
                None => self.worth(column, &program.members[self.kind], jobs),
            };
            if worth.abs() > WORTH_MIN * fastest {
                terms.push((column.column as usize, column.uses * worth));
            }
        }
        terms.sort_unstable_by_key(|(column, _)| *column);
        if slope > 0.0 {
            terms.push((formulation.columns.len(), -slope * level_unit(formulation)));
        }
        self.scale = push_scaled(&mut formulation.program, least, terms);
    }

    /// η of a column: the most that a unit of its time is worth to a member.
    fn worth(&self, column: &KindColumn, members: &[u32], jobs: &[f64]) -> f64 {
        let mut best = [f64::NEG_INFINITY; 2];
        let mut offer = |worth: f64, twice: bool| {
            if worth > best[0] {
                best = [worth, if twice { worth } else { best[0] }];
            } else {
                best[1] = best[1].max(worth);
            }
        };
        for price in &self.prices {
            let worth = price.throughput.mul_add(column.speed, -price.time);
            offer(worth, jobs[price.member as usize] > 1.0);
        }
        // Any time is worth 0 to members without prices.
        let unpriced = members.len() - self.prices.len();
        if unpriced > 0 {
            offer(0.0, unpriced > 1 || members.iter().any(|member| jobs[*member as usize] > 1.0));
        }
        if column.uses > 1.0 { best[0].midpoint(best[1]) } else { best[0] }
    }
}

/// A kind in a solution: its time, what its members require of it, and where that is tightest.
struct OfKind {
    slots: Vec<Slot>,
    required: Required,
    tightest: Tightest,
}

impl KindProgram {
    /// Maximizes the level of the demands, with `most` as an upper bound on it. The first program has the cuts that bound the
    /// last optimum.
    pub(super) fn solve_level(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        most: f64,
    ) -> Result<KindSolution, GaveUp> {
        let jobs = &columns.reduced().instance.multiplicity;
        let demands = &self.demands;
        for members in &mut self.members {
            // Members are nearly in order from the level before, which makes sorting fast.
            let demanded = |member: &u32| demands[*member as usize].slope + demands[*member as usize].base;
            members.sort_by(|a, b| demanded(b).total_cmp(&demanded(a)));
        }
        let mean = |(members, n_jobs): (&Vec<u32>, &f64)| {
            let sum = |of: fn(&Demand) -> f64| -> f64 {
                members.iter().map(|member| jobs[*member as usize] * of(&demands[*member as usize])).sum()
            };
            Demand { slope: sum(|demand| demand.slope) / n_jobs, base: sum(|demand| demand.base) / n_jobs }
        };
        let means: Vec<Demand> = self.members.iter().zip(&self.instance.multiplicity).map(mean).collect();
        let mut formulation = self.bound().with_demands(&means);
        let most = self.saturation().map_or(most, |saturation| saturation.level.min(most));
        if most < f64::INFINITY {
            let (level, most) = (formulation.columns.len(), most / level_unit(&formulation));
            let Range { upper, .. } = &mut formulation.program.columns[level];
            *upper = upper.min(most);
            let implied = &mut formulation.program.implied[level];
            implied.upper = implied.upper.min(most);
            implied.lower = implied.lower.min(implied.upper);
        }
        let old = self.solved.take();
        // A later level of water filling is a rise above the throughputs that members have, so it begins at 0 and not at the
        // last level.
        let begun = self.demands.iter().any(|demand| demand.base > 0.0);
        let level = old.as_ref().map_or(1.0, |old| if begun { 0.0 } else { old.level });
        let mut solved = KindSolution {
            formulation,
            cuts: Vec::new(),
            duals: Vec::new(),
            time: Vec::new(),
            level,
            divided: Vec::new(),
            fraction: 0.0,
        };
        for cut in self.binding_cuts(old.map(|old| old.cuts).unwrap_or_default()) {
            // Other members may require more than the speed now.
            let again = cut.above.map(|speed| {
                let required = self.required(columns, cut.kind, level);
                FeasibilityCut::above(cut.kind, speed, &required, required.n_above(speed))
            });
            self.push(columns, &mut solved, again.unwrap_or(cut));
        }
        self.add_cuts(solver, columns, solved)
    }

    /// The cuts with rows that bound the last program's optimum; the rows of other cuts are removed from its basis.
    fn binding_cuts(&mut self, cuts: Vec<FeasibilityCut>) -> Vec<FeasibilityCut> {
        let first = 2 * self.members.len() + self.instance.n_types();
        let Some(basis) = self.basis.as_mut().filter(|basis| basis.rows.len() == first + cuts.len()) else {
            return cuts;
        };
        let status = basis.rows.split_off(first);
        let binds = |(_, status): &(FeasibilityCut, BasisStatus)| *status != BasisStatus::Basic;
        let (cuts, status): (Vec<FeasibilityCut>, Vec<BasisStatus>) =
            cuts.into_iter().zip(status).filter(binds).unzip();
        basis.rows.extend(status);
        cuts
    }

    /// Solves a program again and again, adding the cuts that its optimum violates, until the time of every kind can be
    /// divided among its members.
    pub(super) fn add_cuts(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        mut solved: KindSolution,
    ) -> Result<KindSolution, GaveUp> {
        for _ in 0..ROUNDS_MAX {
            let program = &mut solved.formulation.program;
            program.forget_names();
            let basis = self.basis.take();
            let basis = basis.and_then(|basis| with_rows(basis, program.n_columns(), program.n_rows()));
            let first = basis.is_none() && solved.cuts.is_empty();
            let basis = if first { crash_basis(&solved.formulation) } else { basis };
            let answer = solver.solve_from_basis(&solved.formulation.program, basis)?;
            self.basis = answer.solution.basis;
            let values = &answer.solution.columns;
            solved.time = solved.formulation.class_time(values).to_vec();
            solved.level = level_unit(&solved.formulation) * values[solved.formulation.columns.len()];
            solved.duals = answer.solution.row_duals;
            let violated = self.divide(solver, columns, &mut solved)?;
            if violated.is_empty() {
                let divided = solved.divided.len() == self.members.len();
                return if divided { Ok(solved) } else { Err(GaveUp::Undivided) };
            }
            for cut in violated {
                self.push(columns, &mut solved, cut);
            }
        }
        Err(GaveUp::Unproven)
    }

    /// Divides the time of every kind among its members; returns the new cuts that the time violates where that is not
    /// possible, none where all divisions succeed.
    fn divide(
        &self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        solved: &mut KindSolution,
    ) -> Result<Vec<FeasibilityCut>, GaveUp> {
        let of_kind = |kind: usize| {
            let slots: Vec<Slot> = self.slots(kind, &solved.time).collect();
            let required = self.required(columns, kind, solved.level);
            let tightest = tightest(slots.iter().map(|slot| (slot.speed, slot.time)), &required);
            OfKind { slots, required, tightest }
        };
        let of_kinds: Vec<OfKind> = (0..self.members.len()).map(of_kind).collect();
        let known = |cut: &FeasibilityCut, cuts: &[FeasibilityCut]| {
            let same = |known: &FeasibilityCut| {
                known.above.is_some() == cut.above.is_some() && known.prices == cut.prices
            };
            cuts.iter().any(|known| known.kind == cut.kind && same(known))
        };
        let mut violated = Vec::new();
        for (kind, OfKind { required, tightest, .. }) in of_kinds.iter().enumerate() {
            // The cut at speed 0 is the kind's level row.
            if tightest.fraction < 1.0 - LACK_MAX && tightest.speed > 0.0 {
                violated.push(FeasibilityCut::above(kind, tightest.speed, required, tightest.n_members));
            }
        }
        violated.retain(|cut| !known(cut, &solved.cuts));
        if !violated.is_empty() {
            return Ok(violated);
        }
        (solved.divided, solved.fraction) = (Vec::new(), 1.0);
        for (kind, OfKind { slots, required, tightest }) in of_kinds.iter().enumerate() {
            // The tightest speed has its cut already: what still lacks there is rounding.
            let least = FRACTION_MIN.min(tightest.fraction);
            match divide(solver, slots, self.instance.multiplicity[kind], required, least)? {
                Division::Done(Divided { fraction, times }) => {
                    solved.fraction = solved.fraction.min(fraction);
                    solved.divided.push(times);
                }
                Division::Impossible(prices) => {
                    violated.push(FeasibilityCut { kind, above: None, prices, scale: 1.0 });
                }
            }
        }
        violated.retain(|cut| !known(cut, &solved.cuts));
        Ok(violated)
    }

    /// Adds a cut to a program, behind its other rows.
    fn push(&self, columns: &ProgramColumns<'_>, solved: &mut KindSolution, mut cut: FeasibilityCut) {
        cut.push(self, &mut solved.formulation, &columns.reduced().instance.multiplicity);
        solved.cuts.push(cut);
    }

    /// The throughputs that the members of a kind require at a level.
    fn required(&self, columns: &ProgramColumns<'_>, kind: usize, level: f64) -> Required {
        let jobs = &columns.reduced().instance.multiplicity;
        Required::of(self.members[kind].iter().map(|member| {
            let Demand { slope, base } = self.demands[*member as usize];
            let throughput = slope * level + base;
            MemberRequirement { member: *member, jobs: jobs[*member as usize], throughput }
        }))
    }

    /// The slots of a kind's time, the fastest first.
    pub(super) fn slots<'a>(
        &'a self,
        kind: usize,
        time: &'a [f64],
    ) -> impl Iterator<Item = Slot> + Clone + 'a {
        let least = TIME_MIN * self.instance.multiplicity[kind];
        let columns = self.kind_columns[kind].iter().filter(move |of| time[of.column as usize] > least);
        columns.map(|of| Slot {
            column: of.column,
            speed: of.speed,
            time: of.uses * time[of.column as usize],
            own: of.uses > 1.0,
        })
    }
}

/// The level per unit of its column.
pub(super) fn level_unit(formulation: &Formulation) -> f64 {
    formulation.auxiliaries.first().map_or(1.0, |auxiliary| auxiliary.scale)
}

/// Adds the row Σ terms ≥ `least` behind the others, divided by its largest coefficient, which is returned.
pub(super) fn push_scaled(program: &mut Program, least: f64, terms: Vec<(usize, f64)>) -> f64 {
    let most = terms.iter().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
    let scale = if most > 0.0 { most } else { 1.0 };
    let terms = terms.into_iter().map(|(column, value)| (column, value / scale));
    program.push_row(Range::at_least(least / scale), terms);
    scale
}

/// A basis extended by basic rows to a program of this size; none if it has other columns or more rows.
pub(super) fn with_rows(mut basis: Basis, n_columns: usize, n_rows: usize) -> Option<Basis> {
    if basis.columns.len() != n_columns || basis.rows.len() > n_rows {
        return None;
    }
    basis.rows.resize(n_rows, BasisStatus::Basic);
    Some(basis)
}
