//! The map from a written program back to the policy: the meaning of its columns, rows and value.

use std::ops::Range as Span;
use std::sync::Arc;

use super::instance::{Column, Instance, InstancePair};
use super::standard::{Namer, Program, Range, Sense};

/// The meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRole {
    /// A member spends at most its time.
    Time {
        /// The member.
        member: usize,
    },
    /// The workers of a type are in use at most once.
    Capacity {
        /// The worker type.
        worker_type: usize,
    },
    /// A member reaches the level.
    Level {
        /// The member.
        member: usize,
    },
    /// A constraint of the policy holds.
    Constraint {
        /// Position among the objective's constraints.
        constraint: usize,
        /// Position of the member or worker type that it holds for; 0 if it is on the whole cluster.
        position: usize,
    },
    /// An auxiliary column is at most (or at least) the part of an expression that it stands for.
    Part {
        /// The auxiliary column, counted from the first one.
        auxiliary: usize,
        /// The member whose jobs each have such a row; `None` if it is not a row of jobs.
        member: Option<usize>,
    },
    /// The optimum of an earlier stage is held.
    Hold,
}

/// The meaning of an auxiliary column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuxiliaryRole {
    /// The level of a min-max objective.
    Level,
    /// The inverse of the level of a min-max objective.
    InverseLevel,
    /// The part of the required throughputs that all members reach at once; 1 is all of them.
    Reached,
    /// A curved or piecewise linear part of an expression.
    Part {
        /// Name of the function: `log`, `sqrt`, `inv`, `min` or `max`.
        function: &'static str,
        /// The member whose jobs each have such a part; `None` if it is not a part of jobs.
        member: Option<usize>,
    },
    /// Whether the droppable constraints of a member are kept: 1 if they are, 0 if they are dropped.
    Kept {
        /// The member.
        member: usize,
    },
    /// The violation of a soft constraint.
    Slack {
        /// Position among the objective's constraints.
        constraint: usize,
        /// Position of the member or worker type; 0 if it is on the whole cluster.
        position: usize,
    },
}

/// An auxiliary column: `value = scale · x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auxiliary {
    /// The meaning of the auxiliary column.
    pub role: AuxiliaryRole,
    /// The unit of the column.
    pub scale: f64,
}

/// The policy's objective as a function of the program's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueMap {
    /// value = scale · objective.
    Scaled(f64),
    /// value = 1 / (scale · objective): the program maximizes the inverse of what the policy minimizes.
    Inverse(f64),
    /// The value is this level wherever the program's objective is at least 1.
    Level(f64),
}

/// A written program and the meaning of its parts. Class times are its first columns, auxiliary columns follow.
#[derive(Clone, Debug)]
pub struct Formulation {
    /// The program, well scaled: every row divided by its largest coefficient, its objective of order 1.
    pub program: Program,
    /// The combination and worker type of each of the first columns.
    pub columns: Arc<Vec<Column>>,
    /// The meaning of the columns after `columns`.
    pub auxiliaries: Arc<Vec<Auxiliary>>,
    /// The meaning of each row: `[rows]`.
    pub rows: Arc<Vec<RowRole>>,
    /// The divisor of each row: `[rows]`.
    pub row_scales: Vec<f64>,
    /// The policy's objective as a function of the program's.
    pub value_map: ValueMap,
    /// The parts of the first stage that a second stage replaced.
    pub(super) replaced: Option<Box<Replaced>>,
}

/// The parts of a first stage that a second stage replaces.
#[derive(Clone, Debug)]
pub(super) struct Replaced {
    pub(super) sense: Sense,
    pub(super) offset: f64,
    pub(super) cost: Vec<f64>,
    pub(super) value_map: ValueMap,
    /// The column that holds the optimum; `None` if a row holds it.
    pub(super) column: Option<ReplacedBounds>,
}

/// The bounds that a column had in the first stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplacedBounds {
    pub(super) column: usize,
    pub(super) range: Range,
    pub(super) implied: Range,
}

impl Formulation {
    /// The policy's objective at a value of the program's, soft penalties included. Bounds map alike: a bound
    /// on the program's optimum becomes one on the policy's.
    pub fn value(&self, program_objective: f64) -> f64 {
        match self.value_map {
            ValueMap::Scaled(scale) => scale * program_objective,
            ValueMap::Inverse(scale) => (scale * program_objective).recip(),
            ValueMap::Level(level) => level,
        }
    }

    /// The program's objective at a value of the policy's: the inverse of [`value`](Self::value).
    pub fn program_objective(&self, value: f64) -> f64 {
        match self.value_map {
            ValueMap::Scaled(scale) => value / scale,
            ValueMap::Inverse(scale) => (scale * value).recip(),
            ValueMap::Level(_) => 1.0,
        }
    }

    /// The class times among a solution's columns.
    pub fn class_time<'a>(&self, columns: &'a [f64]) -> &'a [f64] {
        &columns[..self.columns.len()]
    }

    /// The columns of class time that one of the policy's constraints forbids by itself: it bounds by 0 a sum of which no
    /// term can be below 0.
    pub fn forbidden(&self) -> Vec<usize> {
        let own = (0..self.rows.len()).filter(|row| matches!(self.rows[*row], RowRole::Constraint { .. }));
        let signed = |row: usize| match (self.program.rows[row].lower, self.program.rows[row].upper) {
            (_, 0.0) => Some((row, 1.0)),
            (0.0, _) => Some((row, -1.0)),
            _ => None,
        };
        let adds = |(row, sign): (usize, f64)| {
            let adds = |(column, value): (usize, f64)| {
                sign * value >= 0.0 && self.program.columns[column].lower >= 0.0
            };
            self.program.row(row).all(adds)
        };
        let counted = |(row, _): (usize, f64)| self.program.row(row).filter(|(_, value)| *value != 0.0);
        let mut forbidden: Vec<usize> = own
            .filter_map(signed)
            .filter(|signed| adds(*signed))
            .flat_map(counted)
            .map(|(column, _)| column)
            .filter(|column| *column < self.columns.len())
            .collect();
        forbidden.sort_unstable();
        forbidden.dedup();
        forbidden
    }

    /// The dual value of a row; 0 where the solver gives none, and where the row has no columns, as for a worker type
    /// without workers: such a row limits nothing, and a solver may give it any dual.
    pub fn dual_of(&self, row: usize, row_duals: &[f64]) -> f64 {
        let is_empty = self.program.row(row).next().is_none();
        if is_empty { 0.0 } else { row_duals.get(row).copied().unwrap_or(0.0) }
    }

    /// The change of the policy's objective per unit of a row's own right-hand side (class time for a time row,
    /// workers for a capacity row), at a solution of objective `objective` where the row's dual is `dual`.
    pub fn shadow_price(&self, row: usize, dual: f64, objective: f64) -> f64 {
        let per_unit = dual / self.row_scales[row];
        match self.value_map {
            ValueMap::Scaled(scale) => scale * per_unit,
            ValueMap::Inverse(scale) => -per_unit / (scale * objective * objective),
            ValueMap::Level(_) => per_unit,
        }
    }

    /// The rows that hold members to the level, in member order; empty if there are none.
    pub fn level_rows(&self) -> Span<usize> {
        let is_level = |role: &RowRole| matches!(role, RowRole::Level { .. });
        let start = self.rows.iter().position(is_level).unwrap_or(self.rows.len());
        start..start + self.rows[start..].iter().take_while(|role| is_level(role)).count()
    }

    /// Gives the program's columns and rows their names, which are written when they are asked for.
    pub(crate) fn name(&mut self, instance: &Instance) {
        let types = Arc::new(instance.worker_types.clone());
        let columns = Arc::clone(&self.columns);
        let n_members = instance.n_members();
        let members = |pair: &InstancePair| pair.parts.iter().map(|part| part.member.to_string()).collect();
        let pairs: Vec<Vec<String>> = instance.pairs.iter().map(members).collect();
        let auxiliaries = Arc::clone(&self.auxiliaries);
        let column_types = Arc::clone(&types);
        let of_column: Namer = Arc::new(move |position| match columns.get(position) {
            Some(Column { combination, worker_type }) => {
                let pair = combination.checked_sub(n_members);
                let members = pair.map_or_else(|| combination.to_string(), |pair| pairs[pair].join("+"));
                format!("time[job class {members}, {}]", type_name(&column_types, *worker_type))
            }
            None => auxiliary_name(auxiliaries.get(position - columns.len()), position),
        });
        let rows = Arc::clone(&self.rows);
        let of_row: Namer = Arc::new(move |position| match rows.get(position) {
            Some(role) => row_name(*role, &types),
            None => format!("row[{position}]"),
        });
        self.program.set_names(of_column, of_row);
    }
}

fn type_name(types: &[String], position: usize) -> String {
    types.get(position).cloned().unwrap_or_else(|| position.to_string())
}

fn auxiliary_name(auxiliary: Option<&Auxiliary>, position: usize) -> String {
    match auxiliary.map(|auxiliary| auxiliary.role) {
        None => format!("column[{position}]"),
        Some(AuxiliaryRole::Level) => "level".to_owned(),
        Some(AuxiliaryRole::InverseLevel) => "inverse level".to_owned(),
        Some(AuxiliaryRole::Reached) => "reached".to_owned(),
        Some(AuxiliaryRole::Part { function, member }) => {
            let of = member.map(|member| format!("job class {member}, ")).unwrap_or_default();
            format!("{function}[{of}{position}]")
        }
        Some(AuxiliaryRole::Kept { member }) => format!("kept[job class {member}]"),
        Some(AuxiliaryRole::Slack { constraint, position }) => format!("slack[{constraint}, {position}]"),
    }
}

fn row_name(role: RowRole, types: &[String]) -> String {
    match role {
        RowRole::Time { member } => format!("time[job class {member}]"),
        RowRole::Capacity { worker_type } => format!("capacity[{}]", type_name(types, worker_type)),
        RowRole::Level { member } => format!("level[job class {member}]"),
        RowRole::Constraint { constraint, position } => format!("constraint[{constraint}, {position}]"),
        RowRole::Part { auxiliary, member: None } => format!("part[{auxiliary}]"),
        RowRole::Part { auxiliary, member: Some(member) } => format!("part[job class {member}, {auxiliary}]"),
        RowRole::Hold => "hold".to_owned(),
    }
}
