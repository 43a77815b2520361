//! A pool's time → time of its members.
//!
//! Whoever asks for most is served first, with the stretch of time, fastest first, of which the mean speed is what a job of
//! it asks for. What is left serves the others as well as before: their demands are no larger, so those that go to faster
//! time than the stretch have enough of it, and those that do not are left what all had but what the first took.
//!
//! A job cannot run beside itself: of the time in which a pool's jobs run in pairs with each other it has half at most. So
//! slots of such time that are shorter than two jobs' time are mixed with time at the next speeds up to that, of which every
//! job that has some then has the same parts, if what is needed allows it.

use super::needs::Needs;
use super::profile::{Slot, tightest};

/// Jobs' time over which a slot of a pool's own pairs must be spread, so that nobody has more than half of it.
const SPREAD_MIN: f64 = 2.0;
/// Slots with less time than this part of the pool's are none.
const TIME_MIN: f64 = 1e-14;

/// Time of a pool at one speed, as columns have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// Steps/s.
    pub(super) speed: f64,
    /// Class time of the pool.
    pub(super) time: f64,
    /// Is it time of pairs within the pool?
    pub(super) own: bool,
}

/// A member's part of a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Position among what was given.
    pub(super) slot: usize,
    /// Place of the member among the needs.
    pub(super) place: usize,
    /// Class time of the member.
    pub(super) time: f64,
}

/// Time of which every member has the same parts.
#[derive(Clone, Debug)]
struct Mixed {
    /// Slots, and how much of each.
    slots: Vec<(usize, f64)>,
    time: f64,
    speed: f64,
    /// Must it be spread?
    own: bool,
}

impl Mixed {
    fn with(&self, other: &Self) -> Self {
        let time = self.time + other.time;
        let speed = (self.time * self.speed + other.time * other.speed) / time;
        let slots = self.slots.iter().chain(&other.slots).copied().collect();
        Self { slots, time, speed, own: (self.own || other.own) && time < SPREAD_MIN }
    }

    /// So much of it.
    fn of_time(&self, time: f64) -> Self {
        let part = time / self.time;
        Self { slots: self.slots.iter().map(|(slot, of)| (*slot, of * part)).collect(), time, ..*self }
    }

    /// This with as much of another as it needs to be spread, and what that leaves of the other.
    fn mixed(&self, other: &Self) -> (Self, Option<Self>) {
        let wanted = SPREAD_MIN - self.time;
        if other.own || other.time <= wanted {
            return (self.with(other), None);
        }
        (self.with(&other.of_time(wanted)), Some(other.of_time(other.time - wanted)))
    }
}

/// Divides what a pool of `jobs` was given, the fastest first, among its members, each of whom gets the same part of what it
/// needs, which comes first; nothing if that would be less than `least` or a job would run beside itself.
pub(super) fn divide(given: &[Given], jobs: f64, needs: &Needs, least: f64) -> Option<(f64, Vec<Part>)> {
    let used: f64 = given.iter().map(|slot| slot.time).sum();
    let slots = given.iter().enumerate().filter(|(_, slot)| slot.time > TIME_MIN * jobs);
    let alone = |(at, slot): (usize, &Given)| Mixed {
        slots: vec![(at, slot.time)],
        time: slot.time,
        speed: slot.speed,
        own: slot.own && slot.time < SPREAD_MIN,
    };
    let mut profile: Vec<Mixed> = slots.map(alone).collect();
    if jobs > used {
        profile.push(Mixed { slots: Vec::new(), time: jobs - used, speed: 0.0, own: false });
    }
    mix(&mut profile, needs, least)?;
    let part = part_of(&profile, needs);
    if part < least {
        return None;
    }
    // (rounding may have used a little more than all there is)
    let stretched = used.max(jobs) / jobs;
    let part = if part.is_finite() { part } else { 1.0 };
    let mut rest = Rest { slots: profile.iter().map(|slot| (slot.speed, slot.time)).collect(), from: 0 };
    let mut parts = Vec::new();
    for place in 0..needs.len() {
        let (time, speed) = (needs.jobs(place) * stretched, needs.throughput(place) * part);
        rest.take(time, speed, |mixed, taken| {
            for (slot, time) in &profile[mixed].slots {
                parts.push(Part { slot: *slot, place, time: taken * (time / profile[mixed].time) });
            }
        });
    }
    Some((part, parts))
}

/// The part of what they need that members can have of these.
fn part_of(profile: &[Mixed], needs: &Needs) -> f64 {
    let slots = profile.iter().map(|slot| Slot { speed: slot.speed, time: slot.time });
    tightest(slots, needs).part
}

/// Mixes slots that must be spread with as much of their neighbours as that takes, in the way that costs least.
fn mix(profile: &mut Vec<Mixed>, needs: &Needs, least: f64) -> Option<()> {
    while let Some(at) = profile.iter().position(|slot| slot.own) {
        let with = |other: usize| {
            let (mixed, rest) = profile[at].mixed(&profile[other]);
            let mut next = profile.clone();
            next.splice(
                at.min(other)..=at.max(other),
                if at < other { [Some(mixed), rest] } else { [rest, Some(mixed)] }.into_iter().flatten(),
            );
            (part_of(&next, needs), next)
        };
        let others = [Some(at + 1).filter(|after| *after < profile.len()), at.checked_sub(1)];
        let (part, next) = others.into_iter().flatten().map(with).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if part < least {
            return None;
        }
        *profile = next;
    }
    Some(())
}

/// What is left of a pool's time, the fastest first.
struct Rest {
    /// Speed and time; none of it may be left.
    slots: Vec<(f64, f64)>,
    /// All before this one are used up.
    from: usize,
}

impl Rest {
    /// Takes the stretch of so much time of which the mean speed is `speed`, or is nearest to it: calls back with each slot
    /// and the time taken.
    fn take(&mut self, time: f64, speed: f64, mut each: impl FnMut(usize, f64)) {
        while self.from < self.slots.len() && self.slots[self.from].1 <= 0.0 {
            self.from += 1;
        }
        let (start, skip) = self.begin(time, speed * time);
        let (mut at, mut skip, mut wanted) = (start, skip, time);
        while wanted > 0.0 && at < self.slots.len() {
            let left = &mut self.slots[at].1;
            let taken = (*left - skip).min(wanted);
            if taken > 0.0 {
                *left -= taken;
                wanted -= taken;
                each(at, taken);
            }
            skip = 0.0;
            at += 1;
        }
    }

    /// Where a stretch of this throughput begins: the slot, and how much of it lies before.
    fn begin(&self, time: f64, throughput: f64) -> (usize, f64) {
        let slots = &self.slots;
        // what the stretch has that begins at the first slot
        let (mut end, mut into, mut had, mut wanted) = (self.from, 0.0, 0.0, time);
        while end < slots.len() && wanted > 0.0 {
            let taken = slots[end].1.min(wanted);
            (had, wanted, into) = (had + taken * slots[end].0, wanted - taken, taken);
            if taken < slots[end].1 {
                break;
            }
            (end, into) = (end + 1, 0.0);
        }
        let (mut start, mut skip) = (self.from, 0.0);
        // it moves on, one slot's end at a time, until it has no more than is asked for
        while had > throughput && start < slots.len() {
            while end < slots.len() && slots[end].1 - into <= 0.0 {
                (end, into) = (end + 1, 0.0);
            }
            if end >= slots.len() {
                break;
            }
            let step = (slots[start].1 - skip).min(slots[end].1 - into);
            let loss = slots[start].0 - slots[end].0;
            if loss * step >= had - throughput && loss > 0.0 {
                skip += (had - throughput) / loss;
                return (start, skip);
            }
            had -= loss * step;
            (skip, into) = (skip + step, into + step);
            if slots[start].1 - skip <= 0.0 {
                (start, skip) = (start + 1, 0.0);
            }
        }
        (start, skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Slots of a pool, and demands that they can meet: any mixture of them is one.
    fn pools() -> impl Strategy<Value = (Vec<Given>, Vec<(f64, f64)>)> {
        let slot = (0.1_f64..10.0, 0.01_f64..1.0, any::<bool>());
        let members = prop::collection::vec((1_u32..3, prop::collection::vec(0.0_f64..1.0, 5)), 2..9);
        (prop::collection::vec(slot, 1..6), members).prop_map(|(mut slots, members)| {
            slots.sort_by(|a, b| b.0.total_cmp(&a.0));
            let jobs: f64 = members.iter().map(|(jobs, _)| f64::from(*jobs)).sum();
            let scale = 0.9 * jobs / slots.iter().map(|slot| slot.1).sum::<f64>();
            let given: Vec<Given> = slots
                .iter()
                .map(|(speed, time, own)| Given { speed: *speed, time: time * scale, own: *own })
                .collect();
            // everyone's parts of every slot, in proportion to weights, but nobody more than its time
            let sums: Vec<f64> = (0..given.len())
                .map(|slot| members.iter().map(|(jobs, of)| f64::from(*jobs) * (0.2 + of[slot])).sum())
                .collect();
            let needs = members.iter().map(|(jobs, of)| {
                let part = |slot: usize| given[slot].time * (0.2 + of[slot]) / sums[slot];
                let spent: f64 = (0..given.len()).map(part).sum();
                let got: f64 = (0..given.len()).map(|slot| part(slot) * given[slot].speed).sum();
                (f64::from(*jobs), got / spent.max(1.0))
            });
            let needs = needs.collect();
            (given, needs)
        })
    }

    proptest! {
        #[test]
        fn what_a_mixture_gives_can_be_divided((mut given, members) in pools()) {
            for slot in &mut given {
                slot.own = false;
            }
            let needs = Needs::of((0_u32..).zip(&members).map(|(place, (jobs, each))| (place, *jobs, *each)));
            let jobs = members.iter().map(|member| member.0).sum();
            let (part, parts) = divide(&given, jobs, &needs, 1.0 - 1e-9).unwrap();
            prop_assert!(part >= 1.0 - 1e-12, "{part}");
            check(&given, &needs, part, &parts)?;
        }

        #[test]
        fn what_is_divided_has_nobody_beside_itself((given, members) in pools()) {
            let needs = Needs::of((0_u32..).zip(&members).map(|(place, (jobs, each))| (place, *jobs, 0.7 * each)));
            let jobs = members.iter().map(|member| member.0).sum();
            if let Some((part, parts)) = divide(&given, jobs, &needs, 1.0) {
                check(&given, &needs, part, &parts)?;
            }
        }
    }

    fn check(given: &[Given], needs: &Needs, part: f64, parts: &[Part]) -> Result<(), TestCaseError> {
        let mut of_slots = vec![0.0; given.len()];
        for place in 0..needs.len() {
            let mine = || parts.iter().filter(|part| part.place == place);
            let time: f64 = mine().map(|part| part.time).sum();
            let got: f64 = mine().map(|part| part.time * given[part.slot].speed).sum();
            prop_assert!(time <= needs.jobs(place) * (1.0 + 1e-12));
            let asked = needs.jobs(place) * needs.throughput(place) * part;
            prop_assert!(got >= asked * (1.0 - 1e-9), "{place}: {got} of {asked}");
            for (slot, sum) in of_slots.iter_mut().enumerate() {
                let here: f64 = mine().filter(|part| part.slot == slot).map(|part| part.time).sum();
                *sum += here;
                let half = given[slot].time / 2.0 * (1.0 + 1e-9);
                prop_assert!(!given[slot].own || needs.jobs(place) > 1.0 || here <= half, "{here} of {half}");
            }
        }
        for (slot, sum) in given.iter().zip(of_slots) {
            prop_assert!((slot.time - sum).abs() <= 1e-9 * slot.time, "{sum} of {}", slot.time);
        }
        Ok(())
    }
}
