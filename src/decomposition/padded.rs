//! Padding: worker types that no job runs on, added where there are no loops for the number of types.

use super::types::padded_to;
use crate::program::Instance;
use crate::program::singles::{Goal as Wanted, Singles as Sharing};

/// Up to so many types, members buy at prices whatever their own are; of more, where they run on so many on average.
const TYPES_BOUGHT: usize = 32;
const OWN_MIN: usize = 6;

/// Do members buy at prices sooner than cones are solved of blocks, each with columns for its own types? Not where types
/// are many, and hardly any of them are a member's own.
pub(super) fn suits_nash_welfare(sharing: &Sharing<'_>) -> bool {
    let (n, k) = (sharing.instance().n_members(), sharing.instance().n_types());
    let own = |member: usize| (0..k).filter(|j| sharing.runs(member, *j)).count();
    k <= TYPES_BOUGHT || (0..n).map(own).sum::<usize>() >= OWN_MIN * n
}

/// Members whose worker types were padded.
#[derive(Debug)]
pub(super) struct Padded {
    instance: Instance,
    demand: Vec<f64>,
    /// Class times, [members × K]: empty where none were given.
    given: Vec<f64>,
    /// Of throughput from each type.
    by_type: Vec<f64>,
    /// How many types there are.
    n_types: usize,
}

impl Padded {
    /// Nothing if there are loops for so many types, or for none that are as many.
    pub(super) fn of(sharing: &Sharing<'_>, wanted: Wanted<'_>) -> Option<Self> {
        let old = sharing.instance();
        let n_types = old.n_types();
        let k = padded_to(n_types)?;
        let longer =
            |list: &[f64]| list.iter().copied().chain(std::iter::repeat_n(0.0, k - n_types)).collect();
        let rows =
            |rows: &[f64]| rows.chunks_exact(n_types).flat_map(|row| longer(row) as Vec<f64>).collect();
        let instance = Instance {
            capacity: longer(&old.capacity),
            multiplicity: old.multiplicity.clone(),
            scale_factor: old.scale_factor.clone(),
            throughput: rows(&old.throughput),
            oversized: old.oversized,
            ..Instance::default()
        };
        let (given, by_type) = match wanted {
            Wanted::Above { given, .. } => (rows(given), Vec::new()),
            Wanted::Worth { given, by_type, .. } => (rows(given), longer(by_type)),
            Wanted::Level | Wanted::Logarithms(_) => (Vec::new(), Vec::new()),
        };
        Some(Self { instance, demand: sharing.demand.clone(), given, by_type, n_types })
    }

    pub(super) fn sharing(&self) -> Sharing<'_> {
        Sharing::new(&self.instance, self.demand.clone())
    }

    /// The same of members whose types were padded.
    pub(super) fn wanted<'a>(&'a self, wanted: Wanted<'a>) -> Wanted<'a> {
        let given = &self.given[..];
        match wanted {
            Wanted::Above { base, .. } => Wanted::Above { base, given },
            Wanted::Worth { level, worth, .. } => {
                Wanted::Worth { level, worth, by_type: &self.by_type, given }
            }
            Wanted::Level | Wanted::Logarithms(_) => wanted,
        }
    }

    /// Takes what was added out of rows: [members × K].
    pub(super) fn cut_rows(&self, rows: &mut Vec<f64>) {
        let (k, n_types) = (self.instance.n_types(), self.n_types);
        for member in 0..rows.len() / k {
            rows.copy_within(member * k..member * k + n_types, member * n_types);
        }
        rows.truncate(rows.len() / k * n_types);
    }

    /// Takes what was added out of a list: `[K]`.
    pub(super) fn cut<T>(&self, list: &mut Vec<T>) {
        list.truncate(self.n_types);
    }
}
