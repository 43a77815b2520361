//! The residual problem of a level: the jobs and worker types whose times may change once the level is kept for good.
//!
//! A type is *scarce* if the prices that prove the level give its workers a positive price. By complementary
//! slackness, in every allocation that keeps the level, and so at all later levels, all workers of scarce types are
//! used, a job with a positive price of its throughput has time only on types where it pays for the workers, and a
//! job that can rise further has time only on types that are not scarce. Most jobs that stop at the level have a
//! single way to keep their throughput: their times are fixed, and their workers are taken out of the problem. Later
//! levels are levels of the problem that remains, over the other jobs and types, with prices of its own. Prices of
//! the whole problem would shrink by the ratio of speeds, say 1e-3, at every level, and soon vanish in rounding.
//!
//! Jobs that stop, but might exchange scarce workers with one another and keep their throughputs, stay in the problem,
//! and so do the scarce types.

use std::borrow::Cow;

use crate::decomposition::PrimalDual;
use crate::decomposition::SCARCE_MIN;
use crate::program::Instance;

/// The fraction of the cost of time by which it may exceed its value, as rounding, if the time pays for its workers.
const TIGHT: f64 = 1e-6;
/// A type of which the jobs outside the residual problem leave less than this part has no workers left.
const LEFT_MIN: f64 = 1e-9;
/// A direction of which less than this part is orthogonal to others is dependent on them.
const NEW_MIN: f64 = 1e-7;
/// The part of its throughput that a job may lose to rounding in a search.
const LOST_MAX: f64 = 1e-10;
/// Time below this part of a job's whole time is rounding.
const GIVEN_MIN: f64 = 1e-12;
/// A throughput within this part of the highest one takes all of a job's time.
const FULL: f64 = 1e-9;

/// The problem over the members and worker types that are undecided.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct ResidualProblem<'a> {
    /// The data of the problem, with the workers that all other members leave.
    pub(in crate::policy::program) instance: Cow<'a, Instance>,
    /// Positions of its members among all, ascending.
    pub(in crate::policy::program) members: Vec<usize>,
    /// Positions of its worker types among all.
    pub(in crate::policy::program) types: Vec<usize>,
}

/// A level that is kept for good.
#[derive(Clone, Copy, Debug)]
pub(in crate::policy::program) struct FixedLevel<'a> {
    pub(in crate::policy::program) instance: &'a Instance,
    /// Prices that prove the level.
    pub(in crate::policy::program) prices: &'a PrimalDual,
    /// Class times at the level: [members × K].
    pub(in crate::policy::program) given: &'a [f64],
    /// Members that rise no more: [members].
    pub(in crate::policy::program) frozen: &'a [bool],
    /// Whether a type is scarce, every worker of it being in use at any optimum: [K].
    pub(in crate::policy::program) scarce: &'a [bool],
}

/// The ways in which a member that stops may keep its throughput.
struct Alternatives {
    /// Types on which it may have time: [K].
    types: Vec<bool>,
    /// Changes of time, [K] each, that leave its throughput as it is and span all such changes.
    directions: Vec<Vec<f64>>,
}

/// The workers of some members.
struct Workers {
    /// Workers that all other members leave to them: [K].
    left: Vec<f64>,
    /// Workers that they use: [K].
    used: Vec<f64>,
}

impl<'a> ResidualProblem<'a> {
    /// The residual problem before any level is fixed: the whole problem.
    pub(in crate::policy::program) fn all(instance: &'a Instance) -> Self {
        let (members, types) = ((0..instance.n_members()).collect(), (0..instance.n_types()).collect());
        Self { instance: Cow::Borrowed(instance), members, types }
    }
}

impl ResidualProblem<'_> {
    /// The residual problem of a level; `None` exactly where prices and class times contradict each other: a member has
    /// more than rounding on a type where it may have no time, as when a member that rises has time on a scarce type. Then
    /// nothing is known to be decided, and the problem before stands.
    pub(in crate::policy::program) fn of(fixed: FixedLevel<'_>) -> Option<ResidualProblem<'static>> {
        let FixedLevel { instance, frozen, scarce, .. } = fixed;
        let k = instance.n_types();
        let undecided = fixed.undecided();
        let all_decided = undecided.is_empty();
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
        let Workers { left, used } = fixed.workers_left(&members);
        let open = |j: &usize| !(all_decided && scarce[*j]) && left[*j] > LEFT_MIN * instance.capacity[*j];
        let types: Vec<usize> = (0..k).filter(open).collect();
        for (member, allowed) in members.iter().zip(allowed.chunks_exact_mut(k)) {
            for (j, allowed) in allowed.iter_mut().enumerate() {
                *allowed &= open(&j);
            }
            if !fixed.can_do_without(*member, allowed) {
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
            // At least what these members use, whatever was rounded.
            capacity: types.iter().map(|j| left[*j].max(used[*j])).collect(),
            multiplicity: of(&instance.multiplicity),
            scale_factor: of(&instance.scale_factor),
            throughput,
            // Decided jobs may leave fewer workers here than a scale factor.
            oversized: true,
            ..Instance::default()
        };
        Some(ResidualProblem { instance: Cow::Owned(instance), members, types })
    }

    /// The values of its members, among those of all.
    pub(in crate::policy::program) fn of_members<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.members.iter().map(|member| all[*member]).collect()
    }

    /// The class times of its members on its types, [members × types], among all, [all members × all K types].
    pub(in crate::policy::program) fn times(&self, all: &[f64], k: usize) -> Vec<f64> {
        let times =
            self.members.iter().flat_map(|member| self.types.iter().map(move |kind| member * k + kind));
        times.map(|at| all[at]).collect()
    }

    /// Puts the class times of its members, [members × types], among all, [all members × all K types]; they have none on
    /// other types then.
    pub(in crate::policy::program) fn write_times(&self, time: &[f64], all: &mut [f64], k: usize) {
        for (member, times) in self.members.iter().zip(time.chunks_exact(self.types.len().max(1))) {
            all[member * k..(member + 1) * k].fill(0.0);
            for (kind, time) in self.types.iter().zip(times) {
                all[member * k + kind] = *time;
            }
        }
    }

    /// The residual problem of a level that `prices` prove, at the class times `given`, [members × K]; `None` if no
    /// type is scarce, or as [`of`](Self::of).
    pub(in crate::policy::program) fn of_level(
        instance: &Instance,
        prices: &PrimalDual,
        given: &[f64],
    ) -> Option<ResidualProblem<'static>> {
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
        Self::of(FixedLevel { instance, prices, given, frozen: &frozen, scarce: &scarce })
    }

    /// Removes from `all`, [all members × all K types], the time of its members on types where they have none in it.
    pub(in crate::policy::program) fn clear_excluded_times(&self, all: &mut [f64], k: usize) {
        let mut times = self.times(all, k);
        for (time, speed) in times.iter_mut().zip(&self.instance.throughput) {
            *time = if *speed > 0.0 { *time } else { 0.0 };
        }
        self.write_times(&times, all, k);
    }

    /// This residual problem with places among all members and types, not among the members and types of the problem
    /// `before` it.
    pub(in crate::policy::program) fn with_places_of(self, before: &ResidualProblem<'_>) -> Self {
        let of = |all: &[usize], these: &[usize]| these.iter().map(|one| all[*one]).collect();
        Self { members: of(&before.members, &self.members), types: of(&before.types, &self.types), ..self }
    }
}

impl FixedLevel<'_> {
    /// Members that stop and may exchange scarce workers, each with the types on which it may have time, [K]. Empty if
    /// all their changes of time on scarce types are linearly independent: then every exchange changes the use of one.
    fn undecided(&self) -> Vec<(usize, Vec<bool>)> {
        let (mut undecided, mut space, mut independent) = (Vec::new(), Space::default(), true);
        let mut usable = Vec::with_capacity(self.scarce.len());
        for member in (0..self.frozen.len()).filter(|member| self.frozen[*member]) {
            let Some(alternatives) = self.alternatives(member, &mut usable) else { continue };
            independent = independent
                && alternatives.directions.iter().all(|direction| space.adds(direction, self.scarce));
            undecided.push((member, alternatives.types));
        }
        if independent { Vec::new() } else { undecided }
    }

    /// The workers of `members`, which are in ascending order.
    fn workers_left(&self, members: &[usize]) -> Workers {
        let FixedLevel { instance, given, .. } = self;
        let mut left = instance.capacity.clone();
        let mut used = vec![0.0; left.len()];
        let mut members = members.iter().peekable();
        for (member, given) in given.chunks_exact(left.len()).enumerate() {
            let size = instance.scale_factor[member];
            let theirs = members.next_if(|of| **of == member).is_some();
            for (j, given) in given.iter().enumerate() {
                if theirs {
                    used[j] += size * given;
                } else {
                    left[j] -= size * given;
                }
            }
        }
        Workers { left, used }
    }

    /// Whether a member's throughput on types that are not `allowed`, [K], is no more than rounding.
    fn can_do_without(&self, member: usize, allowed: &[bool]) -> bool {
        let k = allowed.len();
        let throughputs = self.instance.alone(member).iter().zip(&self.given[member * k..(member + 1) * k]);
        let (mut kept, mut lost) = (0.0, 0.0);
        for ((speed, given), allowed) in throughputs.zip(allowed) {
            *(if *allowed { &mut kept } else { &mut lost }) += speed * given;
        }
        lost <= LOST_MAX * kept
    }

    /// The alternatives of a member that stops; `None` if it can keep its throughput in one way only. `usable`: a buffer
    /// for the types on which it may have time.
    fn alternatives(&self, member: usize, usable: &mut Vec<usize>) -> Option<Alternatives> {
        let FixedLevel { instance, prices, .. } = self;
        let k = instance.n_types();
        let (jobs, size) = (instance.multiplicity[member], instance.scale_factor[member]);
        let (throughput_price, time_price) =
            (prices.throughput_price[member] / jobs, prices.time_price[member]);
        let speed = instance.alone(member);
        let given = &self.given[member * k..(member + 1) * k];
        let (mut throughput, mut fastest) = (0.0, 0.0_f64);
        usable.clear();
        for j in 0..k {
            throughput += speed[j] * given[j] / jobs;
            let (gain, rent) = (throughput_price * speed[j], size * prices.worker_price[j]);
            let covers = rent + time_price - gain <= TIGHT * (rent + time_price);
            let may = instance.runs_alone(member, j)
                && if throughput_price > 0.0 { covers } else { !self.scarce[j] };
            if may || given[j] > GIVEN_MIN * jobs {
                fastest = fastest.max(speed[j]);
                usable.push(j);
            }
        }
        // A member that needs all of its time on its fastest types has none elsewhere.
        let full = throughput >= fastest * (1.0 - FULL);
        if full {
            usable.retain(|j| speed[*j] >= fastest * (1.0 - FULL));
        }
        let slowest = usable.iter().fold(fastest, |least, j| least.min(speed[*j]));
        let all_time = full || time_price > TIGHT * throughput_price * fastest;
        let two = all_time && fastest - slowest > FULL * fastest;
        if usable.len() <= 1 + usize::from(two) {
            return None;
        }
        let mut types = vec![false; k];
        for j in &*usable {
            types[*j] = true;
        }
        Some(Alternatives { types, directions: directions(usable, speed, two, k) })
    }
}

/// Changes of time on the types `usable` that keep the throughput and, if `two` constraints bind, the total time, too: a
/// basis of all such changes, [K] each.
fn directions(usable: &[usize], speed: &[f64], two: bool, k: usize) -> Vec<Vec<f64>> {
    let by_speed = |one: &&usize, other: &&usize| speed[**one].total_cmp(&speed[**other]);
    let (Some(slow), Some(fast)) = (usable.iter().min_by(by_speed), usable.iter().max_by(by_speed)) else {
        return Vec::new();
    };
    let difference = speed[*fast] - speed[*slow];
    let others = usable.iter().filter(|j| *j != fast && !(two && *j == slow));
    let direction = |j: &usize| {
        let mut direction = vec![0.0; k];
        if two {
            direction[*slow] = (speed[*j] - speed[*fast]) / difference;
            direction[*fast] = (speed[*slow] - speed[*j]) / difference;
        } else {
            direction[*fast] = -speed[*j] / speed[*fast];
        }
        direction[*j] += 1.0;
        direction
    };
    others.map(direction).collect()
}

/// The span of changes of time on scarce types, as an orthonormal basis.
#[derive(Debug, Default)]
struct Space {
    basis: Vec<Vec<f64>>,
}

impl Space {
    /// Adds a direction's changes on scarce types to the basis; false if they depend on the directions before.
    fn adds(&mut self, direction: &[f64], scarce: &[bool]) -> bool {
        if self.basis.len() >= scarce.len() {
            return false;
        }
        let length = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>().sqrt();
        let length_of_all = length(direction);
        let mut new: Vec<f64> = direction
            .iter()
            .zip(scarce)
            .map(|(x, scarce)| if *scarce { *x / length_of_all } else { 0.0 })
            .collect();
        // Gram-Schmidt, twice: enough against rounding.
        for _ in 0..2 {
            for of in &self.basis {
                let along: f64 = new.iter().zip(of).map(|(x, of)| x * of).sum();
                for (x, of) in new.iter_mut().zip(of) {
                    *x -= along * of;
                }
            }
        }
        let independent = length(&new);
        if independent <= NEW_MIN {
            return false;
        }
        for x in &mut new {
            *x /= independent;
        }
        self.basis.push(new);
        true
    }
}

#[cfg(test)]
#[path = "residual_tests.rs"]
mod tests;
