//! Giving idle workers to jobs that can use them, after the optimum is found.
//!
//! An optimum is certified by its gap, relative to the whole objective. Where weights or speeds are far apart, that gap hides jobs
//! of small worth: workers may idle that one of them could use. Each step here raises the throughput of one member and
//! lowers none, so an objective that rises with throughputs only improves.

use crate::program::{BoundObjective, Route, Sense};

/// The part of a type's capacity below which unused workers are left, and of a member's throughput below which a gain is: the
/// certificate of a sum of logarithms tolerates as much.
const CONIC_MIN: f64 = 1e-6;

/// The like of [`CONIC_MIN`] where a linear program chose among optima: it leaves more than its tolerance only where
/// numbers are far apart.
const LINEAR_MIN: f64 = 1e-4;

/// The relative rounding of sums of times, beyond which a gain is one.
const ROUNDING: f64 = 1e-9;

/// Workers and time that class times leave unused.
struct Unused {
    /// Workers of each type that are unused: [K].
    idle: Vec<f64>,
    /// Class time that members do not use: [members].
    free: Vec<f64>,
    /// Throughput of all jobs of a member, in steps/s: [members].
    throughput: Vec<f64>,
}

impl Unused {
    /// The workers and the time that class times leave; `None` if of no type more than a part `least` is unused.
    fn of(bound: &BoundObjective<'_>, class_time: &[f64], least: f64) -> Option<Self> {
        let instance = bound.instance();
        let mut idle = instance.capacity.clone();
        for (column, time) in bound.columns().iter().zip(class_time) {
            idle[column.worker_type] -= instance.scale_factor_of(column.combination) * time;
        }
        if idle.iter().zip(&instance.capacity).all(|(idle, all)| *idle <= least * all) {
            return None;
        }
        let mut free = instance.multiplicity.clone();
        let mut throughput = vec![0.0; instance.n_members()];
        for (column, time) in bound.columns().iter().zip(class_time) {
            for (member, uses, speeds) in instance.parts(column.combination) {
                free[member] -= uses * time;
                throughput[member] += uses * speeds[column.worker_type] * time;
            }
        }
        Some(Self { idle, free, throughput })
    }

    /// Whether some member alone can gain by unused workers, in its unused time or in time that it has on a slower type.
    fn has_use(&self, bound: &BoundObjective<'_>, class_time: &[f64], least: f64) -> bool {
        let instance = bound.instance();
        let n = instance.n_members();
        let alone = bound.columns().iter().zip(class_time).filter(|(column, _)| column.combination < n);
        let alone = alone.map(|(column, time)| {
            let (member, kind) = (column.combination, column.worker_type);
            (member, kind, instance.alone(member)[kind], *time)
        });
        let mut slowest = vec![f64::INFINITY; n];
        for (member, _, speed, _) in alone.clone().filter(|(_, _, _, time)| *time > 0.0) {
            slowest[member] = slowest[member].min(speed);
        }
        alone.clone().any(|(member, kind, speed, _)| {
            let gains = self.free[member].max(0.0) * speed > least * self.throughput[member];
            self.idle[kind] > least * instance.capacity[kind] && (gains || slowest[member] < speed)
        })
    }
}

/// The columns of a member alone, the fastest first, and the time that it has behind each of them. Without these sums, a member with a
/// little time on many types would have each of its columns compared with all others.
#[derive(Clone, Default)]
struct Ranked {
    columns: Vec<usize>,
    /// The time on all columns behind each; empty if it is to be added up anew.
    time_behind: Vec<f64>,
    /// The number of columns that are looked at already, with the current one.
    n_passed: usize,
}

impl Ranked {
    /// The columns behind the current one, which are no faster.
    fn behind(&self) -> &[usize] {
        &self.columns[self.n_passed..]
    }

    /// The time that class times have on the columns behind the current one.
    fn time_behind(&mut self, class_time: &[f64]) -> f64 {
        if self.time_behind.is_empty() {
            let mut behind = 0.0;
            for column in self.columns.iter().rev() {
                self.time_behind.push(behind);
                behind += class_time[*column].max(0.0);
            }
        }
        self.time_behind[self.columns.len() - self.n_passed]
    }
}

/// Class times with idle workers in use, [columns]; `None` if no member gains, the objective would be worse, or constraints may
/// be dropped.
///
/// Members take workers by the largest gain over `equal_share`, [members], first: idle time of their own, then time that they
/// have on slower types. Only members alone are moved, one at a time, and not where a constraint of the policy would be exceeded
/// by more than before.
pub(super) fn use_idle(
    bound: &BoundObjective<'_>,
    equal_share: &[f64],
    class_time: &[f64],
) -> Option<Vec<f64>> {
    if bound.has_droppable() {
        return None;
    }
    let least = if bound.objective().route() == Route::Conic { CONIC_MIN } else { LINEAR_MIN };
    let constrained = !bound.objective().constraints().is_empty();
    let instance = bound.instance();
    let n = instance.n_members();
    let unused = Unused::of(bound, class_time, least)?;
    if !unused.has_use(bound, class_time, least) {
        return None;
    }
    let Unused { mut idle, mut free, mut throughput } = unused;
    let keeps = constraints_kept(bound, class_time);
    let speed = |at: usize| {
        let column = &bound.columns()[at];
        instance.alone(column.combination)[column.worker_type]
    };
    let mut alone: Vec<usize> =
        (0..class_time.len()).filter(|at| bound.columns()[*at].combination < n && speed(*at) > 0.0).collect();
    let worth = |at: usize| speed(at) / equal_share[bound.columns()[at].combination];
    alone.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)).then(a.cmp(b)));
    let mut of_member = vec![Ranked::default(); n];
    for at in &alone {
        of_member[bound.columns()[*at].combination].columns.push(*at);
    }
    let mut filled = class_time.to_vec();
    let mut gains = false;
    for at in &alone {
        let (member, kind) = (bound.columns()[*at].combination, bound.columns()[*at].worker_type);
        let size = instance.scale_factor[member];
        let ranked = &mut of_member[member];
        ranked.n_passed += 1;
        if idle[kind] <= least * instance.capacity[kind] {
            continue;
        }
        let gained_max = speed(*at) * (free[member].max(0.0) + ranked.time_behind(&filled));
        if gained_max * (1.0 + ROUNDING) <= least * throughput[member] {
            continue;
        }
        let slower = |other: &usize| speed(*other) < speed(*at) && filled[*other] > 0.0;
        // The slowest first, after the member's unused idle time.
        let slower: Vec<usize> = ranked.behind().iter().rev().copied().filter(slower).collect();
        let slower = slower.into_iter().map(|from| Move { from: Some(from), time: filled[from] });
        let moves = moves(idle[kind] / size, free[member].max(0.0), slower);
        let gain = |Move { from, time }: &Move| (speed(*at) - from.map_or(0.0, speed)) * time;
        let gained: f64 = moves.iter().map(gain).sum();
        if gained <= least * throughput[member] {
            continue;
        }
        let before = constrained.then(|| filled.clone());
        move_time(&mut filled, *at, &moves);
        if let Some(before) = before.filter(|_| !keeps(&filled)) {
            filled = before;
            continue;
        }
        for Move { from, time } in moves {
            idle[kind] -= size * time;
            if let Some(from) = from {
                idle[bound.columns()[from].worker_type] += size * time;
            } else {
                free[member] -= time;
            }
        }
        throughput[member] += gained;
        of_member[member].time_behind.clear();
        gains = true;
    }
    (gains && is_no_worse(bound, &filled, class_time)).then_some(filled)
}

/// Whether the objective at these class times is no worse than at those of before.
fn is_no_worse(bound: &BoundObjective<'_>, class_time: &[f64], before: &[f64]) -> bool {
    let [value, value_before] = [class_time, before].map(|time| bound.value(&bound.point(time)));
    match bound.objective().sense() {
        Sense::Maximize => value >= value_before,
        Sense::Minimize => value <= value_before,
    }
}

/// Class time that moves to a column.
struct Move {
    /// The column that it comes from; none if it was not used.
    from: Option<usize>,
    time: f64,
}

/// The moves that fit into `room`: of the `free` time, then of those in `columns`, as much as there is.
fn moves(mut room: f64, free: f64, columns: impl Iterator<Item = Move>) -> Vec<Move> {
    let part = |Move { from, time }: Move| {
        let time = room.min(time);
        room -= time;
        Move { from, time }
    };
    [Move { from: None, time: free }].into_iter().chain(columns).map(part).collect()
}

/// A check that class times exceed no constraint by more than `class_time` does.
fn constraints_kept(bound: &BoundObjective<'_>, class_time: &[f64]) -> impl Fn(&[f64]) -> bool {
    let excesses = |time: &[f64]| bound.excesses(&bound.point(time));
    let most = excesses(class_time);
    move |time| excesses(time).iter().zip(&most).all(|(excess, most)| *excess <= most.max(0.0))
}

/// Moves class time to a column.
fn move_time(class_time: &mut [f64], to: usize, moves: &[Move]) {
    for Move { from, time } in moves {
        class_time[to] += time;
        if let Some(from) = from {
            class_time[*from] -= time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four columns of one member, the fastest first, with 0.5, 0.25, 0 and 0.125 of time.
    #[test]
    fn time_behind_a_column_is_that_of_all_slower_ones_and_is_added_up_anew_where_it_has_changed() {
        let mut ranked = Ranked { columns: vec![3, 1, 0, 2], ..Ranked::default() };
        let mut class_time = [0.0, 0.25, 0.125, 0.5];
        for (n_passed, expected) in [(1, 0.375), (2, 0.125), (3, 0.125), (4, 0.0)] {
            ranked.n_passed = n_passed;
            assert!((ranked.time_behind(&class_time) - expected).abs() < 1e-15, "{n_passed}");
            assert_eq!(ranked.behind().len(), 4 - n_passed);
        }
        class_time[1] = 0.0;
        ranked.time_behind.clear();
        ranked.n_passed = 1;
        assert!((ranked.time_behind(&class_time) - 0.125).abs() < 1e-15);
    }
}
