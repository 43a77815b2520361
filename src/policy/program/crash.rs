//! A crash basis: where the simplex method starts on a small program over members, or kinds for members, some of them
//! in pairs.
//!
//! A linear objective starts from the slack basis. From that basis a level that all members reach could not rise above
//! 0 before each of them has a basic column. So a level starts from a basis with one column a member, which is its own,
//! alone or in pairs within the member, on a worker type that is cheap for it at prices at which all types are in
//! demand; the level is as high as these columns allow. This vertex is nearly optimal without pairs of different
//! members, and from it simplex takes a step or two a member.

use crate::program::{Auxiliary, AuxiliaryRole, Formulation, RowRole, Sense};
use crate::solver::{Basis, BasisStatus};

/// The most rounds in which prices are adjusted.
const ROUNDS: u32 = 30;
/// The fraction of the upper bound on the level that a column must let its member reach to be chosen by its price.
const AIM: f64 = 0.95;
/// The strength a with which prices follow demand, and its decay b: a / (1 + b·round).
const PACE: [f64; 2] = [0.5, 0.2];

/// A column of one member alone.
#[derive(Clone, Copy, Debug)]
struct OwnColumn {
    column: usize,
    worker_type: usize,
    /// Workers that one unit of the level takes.
    workers: f64,
    /// The level that takes all of the member's time.
    level_max: f64,
}

/// A member that must rise with the level.
#[derive(Clone, Debug)]
struct RisingMember {
    /// The level row and the time row of the member.
    rows: [usize; 2],
    /// Columns of the member alone or in pairs within it, at least one.
    columns: Vec<OwnColumn>,
}

/// The coefficients of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    /// Coefficient in the time row of its last member.
    time: f64,
    worker_type: usize,
    /// Coefficient in the capacity row of that type.
    workers: f64,
    /// The number of level rows with a term in the column.
    n_levels: u32,
}

/// The capacity row of each worker type, and its upper bound.
type Capacity = Vec<(usize, f64)>;

/// The rows of a level program from which columns are picked.
struct LevelProgram {
    rising: Vec<RisingMember>,
    capacity: Capacity,
}

/// The columns of a crash basis.
struct Picked {
    /// One column for each rising member.
    columns: Vec<usize>,
    /// The row that bounds their common level.
    tight_row: usize,
}

/// The crash basis of a sum, or of a level under time, capacity and level rows alone; `None` exactly for programs of other
/// forms, and for levels of which a member can rise on no column. Simplex starts these from the basis of the rows' slacks.
pub(super) fn crash_basis(formulation: &Formulation) -> Option<Basis> {
    let program = &formulation.program;
    let mut columns = vec![BasisStatus::Lower; program.n_columns()];
    let mut rows = vec![BasisStatus::Basic; program.n_rows()];
    if !is_sum(formulation) {
        let level = level_column(formulation)?;
        let LevelProgram { rising, capacity } = rising(formulation, level)?;
        let Picked { columns: picked, tight_row } = pick(&rising, &capacity)?;
        columns[level] = BasisStatus::Basic;
        for (member, column) in rising.iter().zip(picked) {
            rows[member.rows[0]] = BasisStatus::Lower;
            columns[column] = BasisStatus::Basic;
        }
        rows[tight_row] = BasisStatus::Upper;
    }
    Some(Basis { columns, rows })
}

/// Whether the program maximizes a linear objective of shares, and of droppable constraints that are met, under time
/// rows, capacity rows and linear constraints alone. The slack basis need not keep the constraints: simplex does so
/// first.
fn is_sum(formulation: &Formulation) -> bool {
    let given = |role: &RowRole| {
        matches!(role, RowRole::Time { .. } | RowRole::Capacity { .. } | RowRole::Constraint { .. })
    };
    let met = |auxiliary: &Auxiliary| matches!(auxiliary.role, AuxiliaryRole::Kept { .. });
    let raised = formulation.program.sense == Sense::Maximize;
    raised && formulation.auxiliaries.iter().all(met) && formulation.rows.iter().all(given)
}

/// The column of a level, if it alone is maximized, under time, capacity and level rows alone.
fn level_column(formulation: &Formulation) -> Option<usize> {
    let known = |role: &RowRole| {
        matches!(role, RowRole::Time { .. } | RowRole::Capacity { .. } | RowRole::Level { .. })
    };
    let [auxiliary] = formulation.auxiliaries[..] else { return None };
    let is_level =
        matches!(auxiliary.role, AuxiliaryRole::Level | AuxiliaryRole::InverseLevel | AuxiliaryRole::Reached);
    let (program, level) = (&formulation.program, formulation.columns.len());
    let alone = program.cost.iter().enumerate().all(|(column, cost)| (*cost != 0.0) == (column == level));
    let raised = program.sense == Sense::Maximize && program.cost.get(level).is_some_and(|cost| *cost > 0.0);
    (is_level && alone && raised && formulation.rows.iter().all(known)).then_some(level)
}

/// The members that must rise with the level, and the capacity rows; none if one has no column of its own.
fn rising(formulation: &Formulation, level: usize) -> Option<LevelProgram> {
    let program = &formulation.program;
    let mut terms = vec![Terms::default(); level];
    let mut capacity = Vec::new();
    let mut time_of = Vec::new();
    for (row, role) in formulation.rows.iter().enumerate() {
        let of_columns = program.row(row).filter(|(column, value)| *column < level && *value != 0.0);
        match role {
            RowRole::Time { .. } => time_of.push(row),
            RowRole::Capacity { .. } => {
                of_columns.for_each(|(column, workers)| {
                    (terms[column].worker_type, terms[column].workers) = (capacity.len(), workers);
                });
                capacity.push((row, program.rows[row].upper));
            }
            _ => of_columns.for_each(|(column, _)| terms[column].n_levels += 1),
        }
    }
    let mut rising = Vec::with_capacity(time_of.len());
    for row in formulation.level_rows() {
        let RowRole::Level { member } = formulation.rows[row] else { return None };
        let asked = program.row(row).find(|(column, _)| *column == level).map_or(0.0, |(_, value)| -value);
        if program.rows[row].lower != 0.0 || asked < 0.0 {
            return None;
        }
        if asked == 0.0 {
            continue;
        }
        let is_time = |row: &&usize| formulation.rows[**row] == RowRole::Time { member };
        let time_row = *time_of.get(member).filter(is_time)?;
        program.row(time_row).for_each(|(column, time)| terms[column].time = time);
        let of = |(column, speed): (usize, f64)| {
            let Terms { time, worker_type, workers, n_levels } = *terms.get(column)?;
            let room = n_levels == 1 && speed > 0.0 && time > 0.0 && workers > 0.0;
            let room = room && capacity[worker_type].1 > 0.0;
            let level_max = program.rows[time_row].upper / time * speed / asked;
            room.then_some(OwnColumn { column, worker_type, workers: workers * asked / speed, level_max })
        };
        let columns: Vec<OwnColumn> = program.row(row).filter_map(of).collect();
        if columns.is_empty() {
            return None;
        }
        rising.push(RisingMember { rows: [row, time_row], columns });
    }
    (!rising.is_empty()).then_some(LevelProgram { rising, capacity })
}

/// One column for each member, and the row that bounds their common level, from the round with the highest level.
///
/// A round chooses columns at the prices of worker types; prices then rise where the columns chosen take more workers
/// than on average over types, and fall where they take fewer. The worth of all workers at the prices, divided by the
/// cost of all members' cheapest columns, bounds the level of every round.
fn pick(rising: &[RisingMember], capacity: &Capacity) -> Option<Picked> {
    let mut prices = vec![1.0_f64; capacity.len()];
    let (mut bound, mut best) = (f64::INFINITY, (0.0, Vec::new(), None));
    for round in 0..ROUNDS {
        let cost = |column: &OwnColumn| column.workers * prices[column.worker_type];
        let least = |columns: &[OwnColumn]| columns.iter().map(cost).fold(f64::INFINITY, f64::min);
        let asked: f64 = rising.iter().map(|member| least(&member.columns)).sum();
        let worth: f64 = capacity.iter().zip(&prices).map(|((_, workers), price)| workers * price).sum();
        bound = bound.min(worth / asked);
        let aim = AIM * bound;
        let mut used = vec![0.0; capacity.len()];
        let (mut level, mut tight, mut picked) = (f64::INFINITY, None, Vec::with_capacity(rising.len()));
        for member in rising {
            // A member without time for the level aimed at chooses the column that comes nearest to it.
            let rank = |column: &OwnColumn| {
                if column.level_max < aim { (1, -column.level_max) } else { (0, cost(column)) }
            };
            let by_rank = |a: &&OwnColumn, b: &&OwnColumn| {
                let (a, b) = (rank(a), rank(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
            };
            let chosen = member.columns.iter().min_by(by_rank)?;
            used[chosen.worker_type] += chosen.workers;
            if chosen.level_max < level {
                (level, tight) = (chosen.level_max, Some(member.rows[1]));
            }
            picked.push(chosen.column);
        }
        for ((row, workers), used) in capacity.iter().zip(&used) {
            if workers / used < level {
                (level, tight) = (workers / used, Some(*row));
            }
        }
        if level > best.0 {
            best = (level, picked, tight);
        }
        let load: Vec<f64> = capacity
            .iter()
            .zip(&used)
            .map(|((_, workers), used)| if *workers > 0.0 { used / workers } else { 0.0 })
            .collect();
        let mean = load.iter().sum::<f64>() / load.len() as f64;
        let pace = PACE[0] / (1.0 + PACE[1] * f64::from(round));
        for (price, load) in prices.iter_mut().zip(load) {
            *price *= (pace * (load / mean - 1.0)).exp();
        }
    }
    let (_, picked, tight) = best;
    Some(Picked { columns: picked, tight_row: tight? })
}
