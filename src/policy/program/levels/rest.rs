//! What is left to be shared once prices have settled the rest.
//!
//! Where workers hold a level, prices prove it: workers of a type that is worth something are all taken, and whoever's throughput
//! is worth something has time only where its price covers what that costs. That holds of every allocation in which all
//! have what they have then (complementary slackness), so of all that comes later. Members that do not stop there have
//! time only where it is free. Those that stop mostly have one way only to have what they have, and its workers are theirs:
//! what comes later is a smaller problem, of fewer members and worker types, with prices of its own. Those of the problem
//! as it was would be to those before them as little as these were to those before, a part in a thousand each time where
//! speeds are as far apart as that, until nothing is left of them but rounding.
//!
//! Where there may be more ways than one, types that are scarce remain, and members that may be about them.

use std::borrow::Cow;

use crate::decomposition::PrimalDual;
use crate::decomposition::SCARCE_MIN;
use crate::program::Instance;

/// Time whose cost exceeds what it is worth by less than this part of it may be had.
const TIGHT: f64 = 1e-6;
/// A type of which those that stop leave less than this part has none left.
const LEFT_MIN: f64 = 1e-9;
/// Directions of which less than this part is new are one direction.
const NEW_MIN: f64 = 1e-7;
/// A throughput may be lost by this part of it, where what is basic in a search is rounding.
const LOST_MAX: f64 = 1e-10;
/// Less time than this part of all is rounding.
const GIVEN_MIN: f64 = 1e-12;
/// A throughput that lacks less than this part of the most that a type makes takes all of the time there.
const FULL: f64 = 1e-9;

/// Members and worker types about which something is open.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct Rest<'a> {
    /// The numbers of these, with the workers that others leave them.
    pub(in crate::policy::program) instance: Cow<'a, Instance>,
    /// Which of all members they are, ascending.
    pub(in crate::policy::program) members: Vec<usize>,
    /// Which of all worker types.
    pub(in crate::policy::program) types: Vec<usize>,
}

/// A level, and who is held there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    pub(super) instance: &'a Instance,
    /// Prices that prove it.
    pub(super) shares: &'a PrimalDual,
    /// Class times there: [members × K].
    pub(super) given: &'a [f64],
    /// Who rises no more: [members].
    pub(super) frozen: &'a [bool],
    /// Types all of whose workers are needed: [K].
    pub(super) scarce: &'a [bool],
}

/// The ways in which a member may have what it has.
struct Ways {
    /// Where it may have time: [K].
    types: Vec<bool>,
    /// By how much time on each type changes from one way to another, [K] each.
    directions: Vec<Vec<f64>>,
}

impl<'a> Rest<'a> {
    /// Everything, as long as nothing is settled.
    pub(in crate::policy::program) fn all(instance: &'a Instance) -> Self {
        let (members, types) = ((0..instance.n_members()).collect(), (0..instance.n_types()).collect());
        Self { instance: Cow::Borrowed(instance), members, types }
    }
}

impl Rest<'_> {
    /// What is left of a level; nothing if members that rise have more than next to nothing of types that are scarce.
    pub(super) fn of(held: Held<'_>) -> Option<Rest<'static>> {
        let Held { instance, frozen, scarce, .. } = held;
        let k = instance.n_types();
        let undecided = held.undecided();
        let settled = undecided.is_empty();
        let mut undecided = undecided.into_iter().peekable();
        let (mut members, mut allowed) = (Vec::new(), Vec::new());
        for (member, frozen) in frozen.iter().enumerate() {
            if let Some((_, types)) = undecided.next_if(|(of, _)| *of == member) {
                members.push(member);
                allowed.extend(types);
            } else if !frozen {
                members.push(member);
                allowed.extend(scarce.iter().map(|scarce| !scarce));
            }
        }
        let (left, had) = held.left(&members);
        let open = |j: &usize| !(settled && scarce[*j]) && left[*j] > LEFT_MIN * instance.capacity[*j];
        let types: Vec<usize> = (0..k).filter(open).collect();
        for (member, allowed) in members.iter().zip(allowed.chunks_exact_mut(k)) {
            for (j, allowed) in allowed.iter_mut().enumerate() {
                *allowed &= open(&j);
            }
            if !held.can_do_without(*member, allowed) {
                return None;
            }
        }
        let mut throughput = Vec::with_capacity(members.len() * types.len());
        for (member, allowed) in members.iter().zip(allowed.chunks_exact(k)) {
            let runs = |j: usize| allowed[j] && instance.runs_alone(*member, j);
            let speed = instance.alone(*member);
            throughput.extend(types.iter().map(|j| if runs(*j) { speed[*j] } else { 0.0 }));
        }
        let of = |values: &[f64]| members.iter().map(|member| values[*member]).collect();
        let instance = Instance {
            // what they have is theirs, whatever was rounded
            capacity: types.iter().map(|j| left[*j].max(had[*j])).collect(),
            multiplicity: of(&instance.multiplicity),
            scale_factor: of(&instance.scale_factor),
            throughput,
            // a gang that is settled elsewhere leaves workers that others may have
            oversized: true,
            ..Instance::default()
        };
        Some(Rest { instance: Cow::Owned(instance), members, types })
    }

    /// These members' values, of all members'.
    pub(in crate::policy::program) fn of_members<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.members.iter().map(|member| all[*member]).collect()
    }

    /// These members' class times of these types: of [all members × all K types], [members × types].
    pub(in crate::policy::program) fn times(&self, all: &[f64], k: usize) -> Vec<f64> {
        let times =
            self.members.iter().flat_map(|member| self.types.iter().map(move |kind| member * k + kind));
        times.map(|at| all[at]).collect()
    }

    /// Puts these members' class times of these types, [members × types], among all, [all members × all K types]; of
    /// others they have none then.
    pub(in crate::policy::program) fn put(&self, time: &[f64], all: &mut [f64], k: usize) {
        for (member, times) in self.members.iter().zip(time.chunks_exact(self.types.len().max(1))) {
            all[member * k..(member + 1) * k].fill(0.0);
            for (kind, time) in self.types.iter().zip(times) {
                all[member * k + kind] = *time;
            }
        }
    }

    /// What is left of a level that `prices` prove and that members have at some class times, [members × K]; nothing if no
    /// workers are scarce there.
    pub(in crate::policy::program) fn of_level(
        instance: &Instance,
        prices: &PrimalDual,
        given: &[f64],
    ) -> Option<Rest<'static>> {
        let worth =
            || prices.worker_price.iter().zip(&instance.capacity).map(|(price, workers)| price * workers);
        let all: f64 = worth().sum();
        let scarce: Vec<bool> = worth().map(|worth| worth > SCARCE_MIN * all).collect();
        if !scarce.contains(&true) {
            return None;
        }
        let stops = |(member, given): (usize, &[f64])| {
            let speed = instance.alone(member);
            let throughput: f64 = speed.iter().zip(given).map(|(speed, given)| speed * given).sum();
            let free = (0..scarce.len()).filter(|j| !scarce[*j] && instance.runs_alone(member, *j));
            let free = free.map(|j| speed[j]).fold(0.0, f64::max);
            free - throughput / instance.multiplicity[member] <= FULL * free
        };
        let frozen: Vec<bool> = given.chunks_exact(scarce.len()).enumerate().map(stops).collect();
        Self::of(Held { instance, shares: prices, given, frozen: &frozen, scarce: &scarce })
    }

    /// Takes from these members what they have where they can do without it.
    pub(super) fn leave(&self, all: &mut [f64], k: usize) {
        let mut times = self.times(all, k);
        for (time, speed) in times.iter_mut().zip(&self.instance.throughput) {
            *time = if *speed > 0.0 { *time } else { 0.0 };
        }
        self.put(&times, all, k);
    }

    /// The same of all members and types, of what was left before.
    pub(super) fn within(self, before: &Rest<'_>) -> Self {
        let of = |all: &[usize], these: &[usize]| these.iter().map(|one| all[*one]).collect();
        Self { members: of(&before.members, &self.members), types: of(&before.types, &self.types), ..self }
    }
}

impl Held<'_> {
    /// Members that stop, but may do so in more ways than one as far as scarce workers go, and where they may have time,
    /// [K].
    fn undecided(&self) -> Vec<(usize, Vec<bool>)> {
        let (mut undecided, mut space, mut settled) = (Vec::new(), Space::default(), true);
        let mut of = Vec::with_capacity(self.scarce.len());
        for member in (0..self.frozen.len()).filter(|member| self.frozen[*member]) {
            let Some(ways) = self.ways(member, &mut of) else { continue };
            settled = settled && ways.directions.iter().all(|direction| space.adds(direction, self.scarce));
            undecided.push((member, ways.types));
        }
        if settled { Vec::new() } else { undecided }
    }

    /// Workers that others leave to these members, ascending, and those that they have: [K] each.
    fn left(&self, members: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let Held { instance, given, .. } = self;
        let mut left = instance.capacity.clone();
        let mut had = vec![0.0; left.len()];
        let mut members = members.iter().peekable();
        for (member, given) in given.chunks_exact(left.len()).enumerate() {
            let size = instance.scale_factor[member];
            let theirs = members.next_if(|of| **of == member).is_some();
            for (j, given) in given.iter().enumerate() {
                if theirs {
                    had[j] += size * given;
                } else {
                    left[j] -= size * given;
                }
            }
        }
        (left, had)
    }

    /// Has a member next to nothing of types on which it is not `allowed`, [K]?
    fn can_do_without(&self, member: usize, allowed: &[bool]) -> bool {
        let k = allowed.len();
        let throughputs = self.instance.alone(member).iter().zip(&self.given[member * k..(member + 1) * k]);
        let (mut kept, mut lost) = (0.0, 0.0);
        for ((speed, given), allowed) in throughputs.zip(allowed) {
            *(if *allowed { &mut kept } else { &mut lost }) += speed * given;
        }
        lost <= LOST_MAX * kept
    }

    /// Where a member that stops may have time, and how it may change about; nothing if it cannot. `of`: room for types.
    fn ways(&self, member: usize, of: &mut Vec<usize>) -> Option<Ways> {
        let Held { instance, shares, .. } = self;
        let k = instance.n_types();
        let (jobs, size) = (instance.multiplicity[member], instance.scale_factor[member]);
        let (throughput_price, time_price) =
            (shares.throughput_price[member] / jobs, shares.time_price[member]);
        let speed = instance.alone(member);
        let given = &self.given[member * k..(member + 1) * k];
        let (mut throughput, mut fastest) = (0.0, 0.0_f64);
        of.clear();
        for j in 0..k {
            throughput += speed[j] * given[j] / jobs;
            let (gain, rent) = (throughput_price * speed[j], size * shares.worker_price[j]);
            let covers = rent + time_price - gain <= TIGHT * (rent + time_price);
            let may = instance.runs_alone(member, j)
                && if throughput_price > 0.0 { covers } else { !self.scarce[j] };
            if may || given[j] > GIVEN_MIN * jobs {
                fastest = fastest.max(speed[j]);
                of.push(j);
            }
        }
        // whoever needs all of its time where it is fastest has none elsewhere
        let full = throughput >= fastest * (1.0 - FULL);
        if full {
            of.retain(|j| speed[*j] >= fastest * (1.0 - FULL));
        }
        let slowest = of.iter().fold(fastest, |least, j| least.min(speed[*j]));
        let all_time = full || time_price > TIGHT * throughput_price * fastest;
        let two = all_time && fastest - slowest > FULL * fastest;
        if of.len() <= 1 + usize::from(two) {
            return None;
        }
        let mut types = vec![false; k];
        for j in &*of {
            types[*j] = true;
        }
        Some(Ways { types, directions: directions(of, speed, two, k) })
    }
}

/// How time on some types may change while the throughput stays the same, and where it is between `two` speeds, all of the time.
fn directions(of: &[usize], speed: &[f64], two: bool, k: usize) -> Vec<Vec<f64>> {
    let by_speed = |one: &&usize, other: &&usize| speed[**one].total_cmp(&speed[**other]);
    let (Some(slow), Some(fast)) = (of.iter().min_by(by_speed), of.iter().max_by(by_speed)) else {
        return Vec::new();
    };
    let apart = speed[*fast] - speed[*slow];
    let others = of.iter().filter(|j| *j != fast && !(two && *j == slow));
    let direction = |j: &usize| {
        let mut direction = vec![0.0; k];
        if two {
            direction[*slow] = (speed[*j] - speed[*fast]) / apart;
            direction[*fast] = (speed[*slow] - speed[*j]) / apart;
        } else {
            direction[*fast] = -speed[*j] / speed[*fast];
        }
        direction[*j] += 1.0;
        direction
    };
    others.map(direction).collect()
}

/// What directions change of types that are scarce: independent ones, orthogonal and of length 1.
#[derive(Debug, Default)]
struct Space {
    basis: Vec<Vec<f64>>,
}

impl Space {
    /// Is a direction another one than all those before it?
    fn adds(&mut self, direction: &[f64], scarce: &[bool]) -> bool {
        if self.basis.len() >= scarce.len() {
            return false;
        }
        let length = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>().sqrt();
        let whole = length(direction);
        let mut new: Vec<f64> =
            direction.iter().zip(scarce).map(|(x, scarce)| if *scarce { *x / whole } else { 0.0 }).collect();
        // (twice is enough)
        for _ in 0..2 {
            for of in &self.basis {
                let along: f64 = new.iter().zip(of).map(|(x, of)| x * of).sum();
                for (x, of) in new.iter_mut().zip(of) {
                    *x -= along * of;
                }
            }
        }
        let rest = length(&new);
        if rest <= NEW_MIN {
            return false;
        }
        for x in &mut new {
            *x /= rest;
        }
        self.basis.push(new);
        true
    }
}

#[cfg(test)]
#[path = "rest_tests.rs"]
mod tests;
