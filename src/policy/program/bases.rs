//! The bases of a decision's programs, kept to start those of the next from.
//!
//! The k-th program of a decision starts from the basis of the k-th of the one before. Classes of jobs that came or went
//! in between have columns and rows that the other did not have: what is common keeps its place, what is new starts out
//! of the basis with its rows in it. The result need not be a basis; simplex mends it.

use std::sync::Arc;

use crate::decomposition::WarmPrices;
use crate::program::{Auxiliary, AuxiliaryRole, Column, Formulation, RowRole, Wanted};
use crate::solver::{Basis, BasisStatus};

/// The basis of a program, with what its columns and rows stand for.
#[derive(Clone, Debug)]
struct Kept {
    columns: Arc<Vec<Column>>,
    auxiliaries: Arc<Vec<Auxiliary>>,
    rows: Arc<Vec<RowRole>>,
    basis: Basis,
}

/// The bases of the last decision, and of the one that is being made.
#[derive(Clone, Debug, Default)]
pub(super) struct Bases {
    old: Vec<Option<Kept>>,
    new: Vec<Option<Kept>>,
    /// Where each member was in the last decision, ascending: [members].
    before: Vec<Option<u32>>,
    /// Prices that the last searches ended at, by what was wanted: a level, worth, logarithms.
    near: [WarmPrices; 3],
}

impl Bases {
    /// A decision begins, whose members were at these places in the last one that ended.
    pub(super) fn begin(&mut self, before: &[Option<u32>]) {
        self.before.clear();
        self.before.extend_from_slice(before);
        self.new.clear();
    }

    /// A decision was made.
    pub(super) fn end(&mut self) {
        std::mem::swap(&mut self.old, &mut self.new);
    }

    /// Prices that a search begins with, where no program is written; they are gone if nothing comes of it.
    pub(super) fn take_near(&mut self, wanted: Wanted<'_>) -> WarmPrices {
        std::mem::take(&mut self.near[kind(wanted)])
    }

    /// Keeps prices that a search ended at.
    pub(super) fn keep_near(&mut self, wanted: Wanted<'_>, near: WarmPrices) {
        self.near[kind(wanted)] = near;
    }

    /// What to start the next program from.
    pub(super) fn start(&self, formulation: &Formulation) -> Option<Basis> {
        let kept = self.old.get(self.new.len())?.as_ref()?;
        let same = (0..).zip(&self.before).all(|(place, before)| *before == Some(place))
            && *kept.columns == *formulation.columns
            && *kept.rows == *formulation.rows
            && kept.auxiliaries.len() == formulation.auxiliaries.len();
        Some(if same { kept.basis.clone() } else { self.mapped(kept, formulation) })
    }

    /// Keeps the basis of the next program, if it has one.
    pub(super) fn keep(&mut self, formulation: &Formulation, basis: Option<&Basis>) {
        self.new.push(basis.map(|basis| Kept {
            columns: Arc::clone(&formulation.columns),
            auxiliaries: Arc::clone(&formulation.auxiliaries),
            rows: Arc::clone(&formulation.rows),
            basis: basis.clone(),
        }));
    }

    fn mapped(&self, kept: &Kept, formulation: &Formulation) -> Basis {
        let old = |member: usize| self.before.get(member).copied().flatten().map(|place| place as usize);
        // (Where members come one by one, so do their combinations: there are no pairs.)
        let of_column = |column: &Column| Some(Column { combination: old(column.combination)?, ..*column });
        let of_auxiliary = |auxiliary: &Auxiliary| match auxiliary.role {
            AuxiliaryRole::Part { function, member } => {
                old(member).map(|member| AuxiliaryRole::Part { function, member })
            }
            AuxiliaryRole::Kept { member } => old(member).map(|member| AuxiliaryRole::Kept { member }),
            other => Some(other),
        };
        let of_row = |role: &RowRole| match *role {
            RowRole::Time { member } => old(member).map(|member| RowRole::Time { member }),
            RowRole::Level { member } => old(member).map(|member| RowRole::Level { member }),
            other => Some(other),
        };
        let n = kept.columns.len();
        let (times, others) = kept.basis.columns.split_at(n.min(kept.basis.columns.len()));
        let mut columns = merged(
            (&kept.columns, times),
            formulation.columns.iter().map(of_column),
            |old, new| old == new,
            BasisStatus::Lower,
        );
        columns.extend(merged(
            (&kept.auxiliaries, others),
            formulation.auxiliaries.iter().map(of_auxiliary),
            |old, new| old.role == *new,
            BasisStatus::Lower,
        ));
        let rows = merged(
            (&kept.rows, &kept.basis.rows),
            formulation.rows.iter().map(of_row),
            |old, new| old == new,
            BasisStatus::Basic,
        );
        Basis { columns, rows }
    }
}

/// What is alike in searches for prices.
fn kind(wanted: Wanted<'_>) -> usize {
    match wanted {
        Wanted::Level | Wanted::Above { .. } => 0,
        Wanted::Worth { .. } => 1,
        Wanted::Logarithms(_) => 2,
    }
}

/// The status of each new thing: that of the old one which is the same, both being in the same order, or else `other`.
fn merged<O, N>(
    (old, status): (&[O], &[BasisStatus]),
    new: impl Iterator<Item = Option<N>>,
    same: impl Fn(&O, &N) -> bool,
    other: BasisStatus,
) -> Vec<BasisStatus> {
    let mut next = 0;
    let find = |new: Option<N>| {
        let new = new?;
        let found = next + old[next..].iter().position(|old| same(old, &new))?;
        next = found + 1;
        status.get(found).copied()
    };
    new.map(find).map(|found| found.unwrap_or(other)).collect()
}
