//! What the members of a pool can have of the time that it has: how much of their demands, and what is in the way.
//!
//! **When time suffices.** A pool has y_c units of time at speed v_c, c = 1, …, and a job of it asks for throughput r_i
//! in one unit of time at most. The time can be divided among the jobs if and only if, for every speed θ ≥ 0,
//!
//!   Σ_c y_c·(v_c − θ)⁺ ≥ Σ_i (r_i − θ)⁺.
//!
//! *Necessary:* in one unit of time a job gets at most θ plus what its time gives above θ. *Sufficient:* the throughputs
//! that k jobs can have together are at most f(k) = min_θ (k·θ + Σ_c y_c·(v_c − θ)⁺), that of the k fastest units of time;
//! f is concave, so the throughputs that can be had are the polymatroid of f (its vertices give the fastest unit to one job,
//! the next to another), and the k largest demands are at most f(k) for every k if the condition holds for every θ. It is the
//! condition of Horvath, Lam and Sethi for preemptive schedules on machines of unequal speed (*A level algorithm for
//! preemptive scheduling*, J. ACM 1977), with time for machines. Between two speeds the left side is linear and the right
//! side convex, so θ = 0 and θ = v_c say it all.

use super::needs::Needs;

/// Time at one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slot {
    /// Throughput of a job that has it, steps/s.
    pub(super) speed: f64,
    /// Class time of the pool.
    pub(super) time: f64,
}

/// What keeps members from more: the largest of them, at a speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tightest {
    /// The part of their demands that all can have.
    pub(super) part: f64,
    /// The speed θ.
    pub(super) speed: f64,
    /// How many members ask for more than that.
    pub(super) n_members: usize,
}

/// The largest part of what members need that slots, the fastest first, can give each; infinite if nobody needs anything.
pub(super) fn tightest(slots: impl Iterator<Item = Slot> + Clone, needs: &Needs) -> Tightest {
    let mut tightest = Tightest { part: f64::INFINITY, speed: 0.0, n_members: needs.len() };
    // time and throughput of the slots faster than the speed at hand
    let (mut time, mut throughput) = (0.0, 0.0);
    let end = Slot { speed: 0.0, time: 0.0 };
    for slot in slots.chain(std::iter::once(end)) {
        let above = (throughput - slot.speed * time).max(0.0);
        let (part, n_members) = needs.part(above, slot.speed);
        if part < tightest.part {
            tightest = Tightest { part, speed: slot.speed, n_members };
        }
        time += slot.time;
        throughput += slot.time * slot.speed;
    }
    tightest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_time_limits_the_largest_demand() {
        let slots = [Slot { speed: 4.0, time: 0.5 }, Slot { speed: 1.0, time: 2.5 }];
        let needs = Needs::of([(0_u32, 1.0, 2.0), (1, 1.0, 1.0), (2, 1.0, 1.0)]);
        // the first can have half a unit of each: 2.5; all together 4.5 for 4
        let found = tightest(slots.into_iter(), &needs);
        assert!((found.part - 1.125).abs() < 1e-15 && found.n_members == 3, "{found:?}");
        let needs = Needs::of([(0_u32, 1.0, 2.4), (1, 1.0, 0.9), (2, 1.0, 0.9)]);
        let found = tightest(slots.into_iter(), &needs);
        assert!((found.part - 2.5 / 2.4).abs() < 1e-15 && found.n_members == 1, "{found:?}");
    }
}
