//! Levels raised one after another without a program being written, where members are alone on worker types.

use super::leaves;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::program::{BoundObjective, Sharing, Wanted};
use crate::solver::structured::Climbed;

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

/// Where members are on their way up.
#[derive(Clone, Debug)]
struct Standing {
    /// Who rises no more: [members].
    frozen: Vec<bool>,
    /// The leaf of each: [members].
    reached: Vec<f64>,
    /// Class times at which they have that: [members × K].
    given: Vec<f64>,
}

/// How many levels to leap over, if any.
///
/// Where workers are not scarce, members stop rising one by one, each at its fastest. Where they would all be then can be
/// said without any allocation, and if there is one, the levels between need not be looked at.
#[derive(Clone, Copy, Debug)]
struct Leap {
    /// Levels in a row that one member alone held.
    alone: u32,
    levels: usize,
}

impl Leap {
    const NONE: Self = Self { alone: 0, levels: 16 };
    /// So many levels that one member holds make it likely that the next are, too.
    const ALONE: u32 = 3;
    const LEVELS_MIN: usize = 4;

    fn is_due(self) -> bool {
        self.alone >= Self::ALONE
    }

    /// The next one, if there was an allocation or not.
    fn next(self, done: bool) -> Self {
        match (done, self.levels / 8) {
            (true, _) => Self { levels: 4 * self.levels, ..self },
            (false, levels) if levels >= Self::LEVELS_MIN => Self { levels, ..self },
            _ => Self::NONE,
        }
    }
}

/// Raises all members from nothing, as [`fill`](super::fill) does; nothing where programs must be written. Do slopes
/// depend on who is `frozen`?
pub(in crate::policy::program) fn fill_shared(
    solving: &mut Solving,
    master: &Master<'_>,
    mut slopes: impl FnMut(&[bool]) -> Vec<f64>,
    by_frozen: bool,
) -> Option<FilledShared> {
    let bound = master.bound();
    let n_columns = bound.columns().len();
    if !solving.shares(n_columns) || master.is_priced() {
        return None;
    }
    let (n, k) = (master.reduced().instance.n_members(), master.reduced().instance.n_types());
    let mut standing = Standing { frozen: vec![false; n], reached: vec![0.0; n], given: vec![0.0; n * k] };
    let mut near = Vec::new();
    let mut first = None;
    let mut leap = Leap::NONE;
    loop {
        let slope = rising(&mut slopes, &standing.frozen);
        if first.is_some() && slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
        let sharing = bound.sharing(slope)?;
        if first.is_some() && standing.stop_at_fastest(&sharing) {
            continue;
        }
        if leap.is_due() {
            let ahead = standing.ahead(&sharing, &mut slopes, (leap.levels, by_frozen));
            let there = ahead.and_then(|ahead| arrive(solving, &bound, ahead));
            leap = leap.next(there.is_some());
            if let Some(there) = there {
                standing = there;
                continue;
            }
        }
        let wanted = Wanted::Above { base: &standing.reached, given: &standing.given };
        let (mut climbed, certificate) =
            solving.climb(&sharing, wanted, std::mem::take(&mut near), n_columns)?;
        leap.alone = if climbed.shares.asked == 1 && first.is_some() { leap.alone + 1 } else { 0 };
        near = std::mem::take(&mut climbed.near);
        standing.rise(&sharing, climbed)?;
        first.get_or_insert((certificate.bound, sharing.demand));
    }
    let (first, first_slope) = first?;
    let columns = bound.columns().iter();
    let class_time =
        columns.map(|column| standing.given[column.combination * k + column.worker_type]).collect::<Vec<_>>();
    let leaves = leaves(&bound, &class_time);
    Some(FilledShared { class_time, leaves, bound: first, first_slope })
}

/// What members rise by per unit of the level: [members].
fn rising(slopes: &mut impl FnMut(&[bool]) -> Vec<f64>, frozen: &[bool]) -> Vec<f64> {
    let mut slope = slopes(frozen);
    for (slope, frozen) in slope.iter_mut().zip(frozen) {
        *slope = if *frozen { 0.0 } else { *slope };
    }
    slope
}

/// An allocation that gives all members what they have where they stand, if there is one.
fn arrive(solving: &mut Solving, bound: &BoundObjective<'_>, ahead: Standing) -> Option<Standing> {
    let sharing = bound.sharing(ahead.reached.clone())?;
    let (shares, _) = solving.share(&sharing, Wanted::Level, bound.columns().len())?;
    let mut there = Standing { given: shares.time, ..ahead };
    (shares.level >= 1.0 - LACK_MAX).then(|| {
        there.take_down(&sharing);
        there
    })
}

impl Standing {
    /// Freezes those that have all that they can have.
    fn stop_at_fastest(&mut self, sharing: &Sharing<'_>) -> bool {
        let mut any = false;
        for (member, frozen) in self.frozen.iter_mut().enumerate() {
            let most = sharing.fastest(member);
            if sharing.demand[member] > 0.0 && most - self.reached[member] <= LACK_MAX * most {
                (*frozen, any) = (true, true);
            }
        }
        any
    }

    /// Takes what a level gave.
    fn rise(&mut self, sharing: &Sharing<'_>, climbed: Climbed) -> Option<()> {
        let slope = &sharing.demand;
        for (frozen, binding) in self.frozen.iter_mut().zip(&climbed.binding) {
            *frozen |= *binding;
        }
        if !climbed.binding.contains(&true) {
            // (nobody binds by much: the one whose leaf is worth most does)
            let share = |member: &usize| climbed.shares.leaf_price[*member] * slope[*member];
            let most = (0..slope.len()).max_by(|a, b| share(a).total_cmp(&share(b)))?;
            self.frozen[most] = true;
        }
        let rise = climbed.shares.level.max(0.0);
        self.given = climbed.shares.time;
        for (reached, slope) in self.reached.iter_mut().zip(slope) {
            *reached += slope * rise;
        }
        self.take_down(sharing);
        Some(())
    }

    /// Nobody has more than what it is given makes.
    fn take_down(&mut self, sharing: &Sharing<'_>) {
        let instance = sharing.instance();
        let times = self.given.chunks_exact(instance.n_types());
        for (member, (reached, times)) in self.reached.iter_mut().zip(times).enumerate() {
            let leaf =
                instance.alone(member).iter().zip(times).map(|(speed, time)| speed * time).sum::<f64>();
            *reached = reached.min((leaf / instance.multiplicity[member]).max(0.0));
        }
    }

    /// Where members would stand so many levels on, or where none rises, if workers were never scarce: with nothing given.
    /// `by_frozen`: slopes change with who is frozen, so that levels are gone through one by one.
    fn ahead(
        &self,
        sharing: &Sharing<'_>,
        slopes: &mut impl FnMut(&[bool]) -> Vec<f64>,
        (levels, by_frozen): (usize, bool),
    ) -> Option<Self> {
        let (mut frozen, mut reached) = (self.frozen.clone(), self.reached.clone());
        let fastest: Vec<f64> = (0..reached.len()).map(|member| sharing.fastest(member)).collect();
        let mut slope = sharing.demand.clone();
        let (turns, at_once) = if by_frozen { (levels, 1) } else { (1, levels) };
        let mut limits = Vec::with_capacity(reached.len());
        for _ in 0..turns {
            limits.clear();
            let left = slope.iter().zip(fastest.iter().zip(&reached));
            limits.extend(
                left.filter(|(slope, _)| **slope > 0.0).map(|(slope, (most, at))| (most - at) / slope),
            );
            let Some(last) = limits.len().checked_sub(1) else { break };
            let rise = if by_frozen {
                limits.iter().copied().fold(f64::INFINITY, f64::min)
            } else {
                *limits.select_nth_unstable_by(last.min(at_once - 1), f64::total_cmp).1
            };
            for (member, slope) in slope.iter().enumerate().filter(|(_, slope)| **slope > 0.0) {
                let full = (fastest[member] - reached[member]) / slope <= rise;
                frozen[member] |= full;
                reached[member] = if full { fastest[member] } else { reached[member] + slope * rise };
            }
            if by_frozen {
                slope = rising(slopes, &frozen);
            }
        }
        reached.iter().all(|reached| reached.is_finite()).then_some(Self {
            frozen,
            reached,
            given: Vec::new(),
        })
    }
}
