//! The terms of every member in its throughput, time and workers, by column and by worker type.

use std::ops::Range;
use std::sync::OnceLock;

use super::binding::Term;
use super::instance::{Column, Instance};

/// The terms of every member.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The terms, one member after another.
    all: Vec<Term>,
    /// Position in `all` of each member's first term, then the number of terms: [members + 1].
    starts: Vec<u32>,
    /// Positions in `all`, one member after another, by worker type and then by column; computed when first asked for.
    by_type: OnceLock<Vec<u32>>,
}

impl Terms {
    /// The terms of every member in these columns.
    pub(super) fn of_members(instance: &Instance, columns: &[Column]) -> Self {
        let mut starts = vec![0_u32; instance.n_members() + 1];
        for column in columns {
            for (member, _, _) in instance.parts(column.combination) {
                starts[member + 1] += 1;
            }
        }
        for member in 0..instance.n_members() {
            starts[member + 1] += starts[member];
        }
        let empty = Term { column: 0, worker_type: 0, throughput: 0.0, time: 0.0, workers: 0.0 };
        let mut all = vec![empty; starts[instance.n_members()] as usize];
        let mut next = starts.clone();
        for (position, column) in columns.iter().enumerate() {
            for (member, uses, throughput) in instance.parts(column.combination) {
                let time = uses / instance.multiplicity[member];
                let throughput = time * throughput[column.worker_type];
                let worker_type = column.worker_type;
                let workers = time * instance.workers_each(column.combination);
                all[next[member] as usize] =
                    Term { column: position, worker_type, throughput, time, workers };
                next[member] += 1;
            }
        }
        Self { all, starts, by_type: OnceLock::new() }
    }

    /// The terms of a member, by column.
    pub(super) fn of(&self, member: usize) -> &[Term] {
        &self.all[self.range(member)]
    }

    /// The terms of a member on a worker type, by column.
    pub(super) fn on(&self, member: usize, worker_type: usize) -> impl Iterator<Item = &Term> {
        let kind = |position: &u32| self.all[*position as usize].worker_type;
        let order = self.by_type.get_or_init(|| {
            let mut order: Vec<u32> = (0_u32..).zip(&self.all).map(|(position, _)| position).collect();
            for member in 0..self.starts.len() - 1 {
                order[self.range(member)].sort_by_key(kind);
            }
            order
        });
        let order = &order[self.range(member)];
        let start = order.partition_point(|position| kind(position) < worker_type);
        let end = order.partition_point(|position| kind(position) <= worker_type);
        order[start..end].iter().map(|position| &self.all[*position as usize])
    }

    fn range(&self, member: usize) -> Range<usize> {
        self.starts[member] as usize..self.starts[member + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_on_a_type_are_those_of_its_columns_in_order() {
        let instance = Instance {
            capacity: vec![1.0, 2.0, 3.0],
            multiplicity: vec![1.0, 2.0],
            worker_types: ["a", "b", "c"].map(str::to_owned).to_vec(),
            scale_factor: vec![1.0; 2],
            throughput: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            ..Instance::default()
        };
        // A member's columns need not ascend by worker type, as those of pairs do not.
        let columns: Vec<Column> = [(0, 2), (1, 1), (0, 0), (1, 2), (0, 1), (0, 2)]
            .map(|(combination, worker_type)| Column { combination, worker_type })
            .to_vec();
        let terms = Terms::of_members(&instance, &columns);
        for member in 0..2 {
            for worker_type in 0..3 {
                let expected: Vec<Term> =
                    terms.of(member).iter().copied().filter(|term| term.worker_type == worker_type).collect();
                let found: Vec<Term> = terms.on(member, worker_type).copied().collect();
                assert_eq!(found, expected, "{member} on {worker_type}");
            }
        }
        let columns =
            |member: usize, on: usize| terms.on(member, on).map(|term| term.column).collect::<Vec<_>>();
        assert_eq!((columns(0, 2), columns(1, 0)), (vec![0, 5], Vec::new()));
    }
}
