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
    // Each member's columns, the fastest first: [members].
    let mut of_member: Vec<Vec<usize>> = vec![Vec::new(); n];
    for at in &alone {
        of_member[bound.columns()[*at].combination].push(*at);
    }
    let mut filled = class_time.to_vec();
    let mut gains = false;
    for at in &alone {
        let (member, kind) = (bound.columns()[*at].combination, bound.columns()[*at].worker_type);
        let size = instance.scale_factor[member];
        if idle[kind] <= least * instance.capacity[kind] {
            continue;
        }
        let slower = |other: &usize| speed(*other) < speed(*at) && filled[*other] > 0.0;
        // The slowest first, after the member's unused idle time.
        let slower: Vec<usize> = of_member[member].iter().rev().copied().filter(slower).collect();
        let slower = slower.into_iter().map(|from| (from, filled[from]));
        let moves = moves(idle[kind] / size, free[member].max(0.0), slower);
        let gain = |(from, time): &(Option<usize>, f64)| (speed(*at) - from.map_or(0.0, speed)) * time;
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
        for (from, time) in moves {
            idle[kind] -= size * time;
            if let Some(from) = from {
                idle[bound.columns()[from].worker_type] += size * time;
            } else {
                free[member] -= time;
            }
        }
        throughput[member] += gained;
        gains = true;
    }
    let value = |time: &[f64]| bound.value(&bound.point(time));
    let improves = || match bound.objective().sense() {
        Sense::Maximize => value(&filled) >= value(class_time),
        Sense::Minimize => value(&filled) <= value(class_time),
    };
    (gains && improves()).then_some(filled)
}

/// Class time that fits into `room`, by its sources: `free` time, of source `None`, then that of columns.
fn moves(mut room: f64, free: f64, columns: impl Iterator<Item = (usize, f64)>) -> Vec<(Option<usize>, f64)> {
    let sources = [(None, free)].into_iter().chain(columns.map(|(from, time)| (Some(from), time)));
    let part = |(from, time): (Option<usize>, f64)| {
        let moved = room.min(time);
        room -= moved;
        (from, moved)
    };
    sources.map(part).collect()
}

/// A check that class times exceed no constraint by more than `class_time` does.
fn constraints_kept(bound: &BoundObjective<'_>, class_time: &[f64]) -> impl Fn(&[f64]) -> bool {
    let excesses = |time: &[f64]| bound.excesses(&bound.point(time));
    let most = excesses(class_time);
    move |time| excesses(time).iter().zip(&most).all(|(excess, most)| *excess <= most.max(0.0))
}

/// Moves class time to a column, from other columns or from time that was not used.
fn move_time(class_time: &mut [f64], to: usize, moves: &[(Option<usize>, f64)]) {
    for (from, time) in moves {
        class_time[to] += time;
        if let Some(from) = from {
            class_time[*from] -= time;
        }
    }
}
