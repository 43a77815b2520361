//! Levels raised one after another without a program being written, where members are alone on worker types.

use super::leaves;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::program::Wanted;

/// A member that lacks less than this part of the most it can have is at it.
const LACK_MAX: f64 = 1e-11;

/// The lexicographic optimum, for which no program was written.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct FilledShared {
    /// Class time of the columns: [columns].
    pub(in crate::policy::program) class_time: Vec<f64>,
    /// The leaf of each member: [members].
    pub(in crate::policy::program) leaves: Vec<f64>,
    /// What no allocation can exceed of the first level.
    pub(in crate::policy::program) bound: f64,
    /// What leaves rise by per unit of that: [members].
    pub(in crate::policy::program) first_slope: Vec<f64>,
}

/// Raises all members from nothing, as [`fill`](super::fill) does; nothing where programs must be written.
pub(in crate::policy::program) fn fill_shared(
    solving: &mut Solving,
    master: &Master<'_>,
    mut slopes: impl FnMut(&[bool]) -> Vec<f64>,
) -> Option<FilledShared> {
    let bound = master.bound();
    let n_columns = bound.columns().len();
    if !solving.shares(n_columns) || master.is_priced() {
        return None;
    }
    let (n, k) = (master.reduced().instance.n_members(), master.reduced().instance.n_types());
    let mut frozen = vec![false; n];
    let mut reached = vec![0.0; n];
    let mut given = vec![0.0; n * k];
    let mut near = Vec::new();
    let mut first = None;
    loop {
        let mut slope = slopes(&frozen);
        for (slope, frozen) in slope.iter_mut().zip(&frozen) {
            *slope = if *frozen { 0.0 } else { *slope };
        }
        if first.is_some() && slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
        let sharing = bound.sharing(slope)?;
        let slope = &sharing.demand;
        let full = |member: &usize| {
            let most = sharing.fastest(*member);
            slope[*member] > 0.0 && most - reached[*member] <= LACK_MAX * most
        };
        let full: Vec<usize> = (0..n).filter(full).collect();
        if !full.is_empty() && first.is_some() {
            for member in full {
                frozen[member] = true;
            }
            continue;
        }
        let wanted = Wanted::Above { base: &reached, given: &given };
        let (climbed, certificate) = solving.climb(&sharing, wanted, near, n_columns)?;
        near = climbed.near;
        let rise = climbed.shares.level.max(0.0);
        for (member, binding) in climbed.binding.iter().enumerate() {
            frozen[member] |= *binding;
        }
        if !climbed.binding.contains(&true) {
            // (nobody binds by much: the one whose leaf is worth most does)
            let share = |member: &usize| climbed.shares.leaf_price[*member] * slope[*member];
            let most = (0..n).max_by(|a, b| share(a).total_cmp(&share(b)))?;
            frozen[most] = true;
        }
        given = climbed.shares.time;
        for (member, reached) in reached.iter_mut().enumerate() {
            let instance = sharing.instance();
            let times = instance.alone(member).iter().zip(&given[member * k..(member + 1) * k]);
            let leaf = times.map(|(speed, time)| speed * time).sum::<f64>() / instance.multiplicity[member];
            *reached = (*reached + slope[member] * rise).min(leaf.max(0.0));
        }
        first.get_or_insert((certificate.bound, sharing.demand));
    }
    let (first, first_slope) = first?;
    let columns = bound.columns().iter();
    let class_time =
        columns.map(|column| given[column.combination * k + column.worker_type]).collect::<Vec<_>>();
    let leaves = leaves(&bound, &class_time);
    Some(FilledShared { class_time, leaves, bound: first, first_slope })
}
