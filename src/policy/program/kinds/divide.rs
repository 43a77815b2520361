//! The division of a kind's time among its members.
//!
//! Time is laid out by speed, the fastest first, time without work at the end. Members are served in turn, the largest
//! requirement first, each with the contiguous stretch of time that has the required throughput as its mean speed. The
//! condition of [`feasibility`](super::feasibility) still holds for the remaining time and members, at every speed θ: where
//! θ is above the stretch, no time was taken from the left side; where θ is below the stretch, both sides lose the same;
//! and between the ends of the stretch, where no time remains, the left side is linear in θ and the right side convex.
//!
//! A job cannot run beside itself: of the time of pairs within the kind it has half at most. A slot of such time that
//! is at least as long as two jobs' whole time meets that by itself. A shorter one is mixed with time at the next
//! speeds up to that length, and every job that has some of the mixture has it in the same proportions. Where that
//! leaves requirements unmet, a linear program over the members decides.

use super::feasibility::{Required, tightest};
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::GaveUp;
use crate::program::{Program, Range, Sense};

/// The least length, in jobs' whole time, of a mixture with time of pairs within the kind: then no job has more than
/// half.
const SPREAD_MIN: f64 = 2.0;
/// A slot with less time than this fraction of the kind's is rounding.
const TIME_MIN: f64 = 1e-14;
/// Prices below this fraction of the largest price of throughput are rounding.
const PRICE_MIN: f64 = 1e-12;

/// Time of a kind in one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The column.
    pub(super) column: u32,
    /// Throughput of a job that has it, steps/s.
    pub(super) speed: f64,
    /// Class time of the kind.
    pub(super) time: f64,
    /// Whether it is time of pairs within the kind.
    pub(super) own: bool,
}

/// Time of a member in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberTime {
    pub(super) column: u32,
    pub(super) member: u32,
    /// Class time of the member.
    pub(super) time: f64,
}

/// Prices of the throughput, ω ≥ 0, and of the time, μ ≥ 0, of a job of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberPrice {
    pub(super) member: u32,
    pub(super) throughput: f64,
    pub(super) time: f64,
}

/// Time divided among members.
#[derive(Clone, Debug)]
pub(super) struct Divided {
    /// The fraction of its required throughput that every member has.
    pub(super) fraction: f64,
    pub(super) times: Vec<MemberTime>,
}

/// The outcome of a division.
#[derive(Clone, Debug)]
pub(super) enum Division {
    /// Every member has the same fraction of its required throughput.
    Done(Divided),
    /// No division gives every member enough: prices of members at which their requirements are worth more than the
    /// time, which proves it.
    Impossible(Vec<MemberPrice>),
}

/// Divides the time of a kind of `jobs` jobs, given as slots with the fastest first. Every member has the same
/// fraction, at least `least`, of its required throughput.
pub(super) fn divide(
    solver: &mut SolverContext,
    slots: &[Slot],
    jobs: f64,
    required: &Required,
    least: f64,
) -> Result<Division, GaveUp> {
    match by_stretches(slots, jobs, required, least) {
        Some(divided) => Ok(Division::Done(divided)),
        None => by_program(solver, slots, required, least),
    }
}

/// The division of time by stretches of the required mean speeds; `None` exactly where stretches would give members less
/// than `least` of their requirements, or have a job run beside itself. Another division may do better: a program decides.
fn by_stretches(slots: &[Slot], jobs: f64, required: &Required, least: f64) -> Option<Divided> {
    let used: f64 = slots.iter().map(|slot| slot.time).sum();
    let timed = slots.iter().enumerate().filter(|(_, slot)| slot.time > TIME_MIN * jobs);
    let unmixed = |(at, slot): (usize, &Slot)| Mixture {
        slots: vec![(at, slot.time)],
        time: slot.time,
        speed: slot.speed,
        own: slot.own && slot.time < SPREAD_MIN,
    };
    let mut mixtures: Vec<Mixture> = timed.map(unmixed).collect();
    if jobs > used {
        mixtures.push(Mixture { slots: Vec::new(), time: jobs - used, speed: 0.0, own: false });
    }
    let mixtures = mixed(mixtures, required, least)?;
    let fraction = fraction_of(&mixtures, required);
    if fraction < least {
        return None;
    }
    // Rounding may have used a little more than all there is.
    let stretched = used.max(jobs) / jobs;
    let fraction = if fraction.is_finite() { fraction } else { 1.0 };
    let left = mixtures.iter().map(|mixture| (mixture.speed, mixture.time)).collect();
    let mut left = TimeLeft { slots: left, from: 0 };
    let mut times = Vec::new();
    for (place, member) in required.members().iter().enumerate() {
        let (time, speed) = (required.jobs(place) * stretched, required.throughput(place) * fraction);
        left.take(time, speed, |mixture, taken| {
            for (slot, time) in &mixtures[mixture].slots {
                let time = taken * (time / mixtures[mixture].time);
                times.push(MemberTime { column: slots[*slot].column, member: *member, time });
            }
        });
    }
    Some(Divided { fraction, times })
}

/// Divides time by a linear program over members.
///
/// It maximizes t ≤ 1 with Σ_c v_c·z_ic ≥ t·n_i·r_i, Σ_c z_ic ≤ n_i and Σ_i z_ic = y_c, where a job has at most half of
/// the time of pairs within the kind. Where t is too small, the prices of throughput are minus the dual values of the
/// first inequalities (written behind the second ones), the prices of time the dual values of the second, both divided
/// by the largest price of throughput.
fn by_program(
    solver: &mut SolverContext,
    slots: &[Slot],
    required: &Required,
    least: f64,
) -> Result<Division, GaveUp> {
    let (n, n_slots) = (required.members().len(), slots.len());
    let fastest = slots.iter().fold(0.0_f64, |most, slot| most.max(slot.speed));
    let mut program = Program::new(Sense::Maximize);
    for place in 0..n {
        let jobs = required.jobs(place);
        for slot in slots {
            // The only upper bound is half of the time of pairs within the kind: a cut accounts for it by the mean of the
            // two largest worths, and has no term for the dual value of any other bound.
            let half = if slot.own && jobs < 2.0 { slot.time / 2.0 } else { f64::INFINITY };
            let implied = Range { lower: 0.0, upper: half.min(slot.time).min(jobs) };
            program.push_column(Range { lower: 0.0, upper: half }, implied, 0.0);
        }
    }
    let all = Range { lower: 0.0, upper: 1.0 };
    let fraction = program.push_column(all, all, 1.0);
    let of = |place: usize| place * n_slots..(place + 1) * n_slots;
    for place in 0..n {
        program.push_row(Range::at_most(required.jobs(place)), of(place).map(|column| (column, 1.0)));
    }
    for place in 0..n {
        let asked = (fraction, -required.jobs(place) * required.throughput(place) / fastest);
        let got = of(place).zip(slots).map(|(column, slot)| (column, slot.speed / fastest));
        program.push_row(Range::at_least(0.0), got.chain([asked]));
    }
    for (at, slot) in slots.iter().enumerate() {
        program.push_row(Range::exactly(slot.time), (0..n).map(|place| (place * n_slots + at, 1.0)));
    }
    let answer = solver.solve_from_basis(&program, None).map_err(|_| GaveUp::Undivided)?;
    let x = &answer.solution.columns;
    let members = || required.members().iter().copied().enumerate();
    if x[fraction] >= least {
        let of_member = |(place, member): (usize, u32)| {
            let times = of(place).zip(slots).map(|(column, slot)| (slot.column, x[column]));
            times.filter(|(_, time)| *time > 0.0).map(move |(column, time)| MemberTime {
                column,
                member,
                time,
            })
        };
        let times = members().flat_map(of_member).collect();
        return Ok(Division::Done(Divided { fraction: x[fraction], times }));
    }
    let duals = &answer.solution.row_duals;
    let most = duals[n..2 * n].iter().fold(0.0_f64, |most, dual| most.max(-dual));
    let price = |(place, member): (usize, u32)| MemberPrice {
        member,
        throughput: (-duals[n + place]).max(0.0) / most,
        time: duals[place].max(0.0) * fastest / most,
    };
    let mut prices: Vec<MemberPrice> = members().map(price).collect();
    prices.retain(|price| price.throughput > PRICE_MIN || price.time > PRICE_MIN * fastest);
    prices.sort_unstable_by_key(|price| price.member);
    Ok(Division::Impossible(prices))
}

/// Time of one slot or several neighboring ones; every member that has some of it has the same proportions of each.
#[derive(Clone, Debug)]
struct Mixture {
    /// Positions of slots, each with its time in the mixture.
    slots: Vec<(usize, f64)>,
    time: f64,
    /// The mean speed.
    speed: f64,
    /// Whether it has time of pairs within the kind and is shorter than [`SPREAD_MIN`], too short to be spread.
    own: bool,
}

impl Mixture {
    /// The two mixtures together.
    fn with(&self, other: &Self) -> Self {
        let time = self.time + other.time;
        let speed = (self.time * self.speed + other.time * other.speed) / time;
        let slots = self.slots.iter().chain(&other.slots).copied().collect();
        Self { slots, time, speed, own: (self.own || other.own) && time < SPREAD_MIN }
    }

    /// The mixture cut to this much time.
    fn of_time(&self, time: f64) -> Self {
        let part = time / self.time;
        Self { slots: self.slots.iter().map(|(slot, of)| (*slot, of * part)).collect(), time, ..*self }
    }

    /// The mixture extended by time of another until it can be spread, and the other's remaining time.
    fn spread(&self, other: &Self) -> (Self, Option<Self>) {
        let missing = SPREAD_MIN - self.time;
        if other.own || other.time <= missing {
            return (self.with(other), None);
        }
        (self.with(&other.of_time(missing)), Some(other.of_time(other.time - missing)))
    }
}

/// The largest fraction of the required throughputs that the mixtures can give all members.
fn fraction_of(mixtures: &[Mixture], required: &Required) -> f64 {
    tightest(mixtures.iter().map(|mixture| (mixture.speed, mixture.time)), required).fraction
}

/// The mixtures after each slot that must be spread was mixed with time of a neighbor, of two the one that leaves members
/// more; `None` exactly where a slot has no neighbor that leaves members the fraction `least`.
fn mixed(mut mixtures: Vec<Mixture>, required: &Required, least: f64) -> Option<Vec<Mixture>> {
    while let Some(at) = mixtures.iter().position(|mixture| mixture.own) {
        let with = |other: usize| {
            let (mixed, remaining) = mixtures[at].spread(&mixtures[other]);
            let mut next = mixtures.clone();
            next.splice(
                at.min(other)..=at.max(other),
                if at < other { [Some(mixed), remaining] } else { [remaining, Some(mixed)] }
                    .into_iter()
                    .flatten(),
            );
            (fraction_of(&next, required), next)
        };
        let others = [Some(at + 1).filter(|after| *after < mixtures.len()), at.checked_sub(1)];
        let (fraction, next) = others.into_iter().flatten().map(with).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if fraction < least {
            return None;
        }
        mixtures = next;
    }
    Some(mixtures)
}

/// The time that is not divided yet, the fastest first.
struct TimeLeft {
    /// Speed and time of each slot; the time may be 0.
    slots: Vec<(f64, f64)>,
    /// The first slot that is not used up.
    from: usize,
}

impl TimeLeft {
    /// Takes the stretch of this time with the mean speed nearest to `speed`; calls back with each slot and the time taken.
    fn take(&mut self, time: f64, speed: f64, mut each: impl FnMut(usize, f64)) {
        while self.from < self.slots.len() && self.slots[self.from].1 <= 0.0 {
            self.from += 1;
        }
        let (mut at, mut skip) = self.begin(time, speed * time);
        let mut missing = time;
        while missing > 0.0 && at < self.slots.len() {
            let left = &mut self.slots[at].1;
            let taken = (*left - skip).min(missing);
            if taken > 0.0 {
                *left -= taken;
                missing -= taken;
                each(at, taken);
            }
            skip = 0.0;
            at += 1;
        }
    }

    /// The beginning of the stretch with this time and throughput: its first slot, and the slot's time before it.
    fn begin(&self, time: f64, throughput: f64) -> (usize, f64) {
        let slots = &self.slots;
        // the stretch that begins at the first slot: where it ends, and its throughput
        let (mut end, mut into, mut reached, mut missing) = (self.from, 0.0, 0.0, time);
        while end < slots.len() && missing > 0.0 {
            let taken = slots[end].1.min(missing);
            (reached, missing, into) = (reached + taken * slots[end].0, missing - taken, taken);
            if taken < slots[end].1 {
                break;
            }
            (end, into) = (end + 1, 0.0);
        }
        let (mut start, mut skip) = (self.from, 0.0);
        // it moves on, one slot's end at a time, until its throughput is no more than `throughput`
        while reached > throughput && start < slots.len() {
            while end < slots.len() && slots[end].1 - into <= 0.0 {
                (end, into) = (end + 1, 0.0);
            }
            if end >= slots.len() {
                break;
            }
            let step = (slots[start].1 - skip).min(slots[end].1 - into);
            let loss = slots[start].0 - slots[end].0;
            if loss * step >= reached - throughput && loss > 0.0 {
                skip += (reached - throughput) / loss;
                return (start, skip);
            }
            reached -= loss * step;
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
    use crate::policy::program::kinds::feasibility::MemberRequirement;
    use proptest::prelude::*;

    /// Slots of a kind, and requirements that they can meet: any mixture of them is one.
    fn kinds() -> impl Strategy<Value = (Vec<Slot>, Vec<(f64, f64)>)> {
        let slot = (0.1_f64..10.0, 0.01_f64..1.0, any::<bool>());
        let members = prop::collection::vec((1_u32..3, prop::collection::vec(0.0_f64..1.0, 5)), 2..9);
        (prop::collection::vec(slot, 1..6), members).prop_map(|(mut slots, members)| {
            slots.sort_by(|a, b| b.0.total_cmp(&a.0));
            let jobs: f64 = members.iter().map(|(jobs, _)| f64::from(*jobs)).sum();
            let scale = 0.9 * jobs / slots.iter().map(|slot| slot.1).sum::<f64>();
            let given: Vec<Slot> = (0..)
                .zip(slots)
                .map(|(column, (speed, time, own))| Slot { column, speed, time: time * scale, own })
                .collect();
            // all members' parts of every slot, in proportion to weights, but none more than its time
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

    /// This part of what members require, each given by its number of jobs and what one of them requires.
    fn requirements(members: &[(f64, f64)], part: f64) -> Required {
        let of = |(member, (jobs, each)): (u32, &(f64, f64))| MemberRequirement {
            member,
            jobs: *jobs,
            throughput: part * each,
        };
        Required::of((0_u32..).zip(members).map(of))
    }

    proptest! {
        #[test]
        fn what_a_mixture_gives_can_be_divided((mut given, members) in kinds()) {
            for slot in &mut given {
                slot.own = false;
            }
            let needs = requirements(&members, 1.0);
            let jobs = members.iter().map(|member| member.0).sum();
            let Divided { fraction: part, times: parts } = by_stretches(&given, jobs, &needs, 1.0 - 1e-9).unwrap();
            prop_assert!(part >= 1.0 - 1e-12, "{part}");
            check(&given, &needs, part, &parts)?;
        }

        #[test]
        fn no_job_runs_beside_itself((given, members) in kinds()) {
            let needs = requirements(&members, 0.7);
            let jobs = members.iter().map(|member| member.0).sum();
            if let Some(Divided { fraction: part, times: parts }) = by_stretches(&given, jobs, &needs, 1.0) {
                check(&given, &needs, part, &parts)?;
            }
        }
    }

    fn check(given: &[Slot], needs: &Required, part: f64, parts: &[MemberTime]) -> Result<(), TestCaseError> {
        let mut of_slots = vec![0.0; given.len()];
        for place in 0..needs.members().len() {
            let mine = || parts.iter().filter(|part| part.member == needs.members()[place]);
            let time: f64 = mine().map(|part| part.time).sum();
            let got: f64 = mine().map(|part| part.time * given[part.column as usize].speed).sum();
            prop_assert!(time <= needs.jobs(place) * (1.0 + 1e-12));
            let asked = needs.jobs(place) * needs.throughput(place) * part;
            prop_assert!(got >= asked * (1.0 - 1e-9), "{place}: {got} of {asked}");
            for (slot, sum) in of_slots.iter_mut().enumerate() {
                let here: f64 =
                    mine().filter(|part| part.column as usize == slot).map(|part| part.time).sum();
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
