//! The condition under which the time of a kind can be divided so that every member has its required throughput.
//!
//! A kind has y_c units of time at speed v_c, c = 1, …. A job i of it requires throughput r_i, and can have one unit of
//! time in all. The time can be divided among the jobs if and only if, for every speed θ ≥ 0,
//!
//!   Σ_c y_c·(v_c − θ)⁺ ≥ Σ_i (r_i − θ)⁺.
//!
//! *Necessary:* in one unit of time a job gets at most θ plus what its time gives above θ. *Sufficient:* the throughputs
//! that k jobs can have together are at most f(k) = min_θ (k·θ + Σ_c y_c·(v_c − θ)⁺), that of the k fastest units of time;
//! f is concave, so the feasible throughputs are the polymatroid of f (its vertices give the fastest unit to one job,
//! the next to another), and the k largest requirements are at most f(k) for every k if the condition holds for every θ. It is
//! the condition of Horvath, Lam and Sethi for preemptive schedules on machines of unequal speed (*A level algorithm for
//! preemptive scheduling*, J. ACM 1977), with time for machines. Between two speeds the left side is linear and the right
//! side convex, so it suffices to check θ = 0 and θ = v_c.

/// The throughputs that the members of a kind require, the largest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Required {
    members: Vec<u32>,
    /// Required throughput of one job, steps/s, descending: [members].
    throughput: Vec<f64>,
    /// Sums over the members before: [members + 1].
    sums: Vec<RequiredSum>,
}

/// The requirements of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberRequirement {
    pub(super) member: u32,
    /// The number of its jobs.
    pub(super) jobs: f64,
    /// The throughput that each of them requires, steps/s.
    pub(super) throughput: f64,
}

/// The requirements of several members together.
#[derive(Clone, Copy, Debug, Default)]
struct RequiredSum {
    /// The number of their jobs.
    jobs: f64,
    /// The throughput that all of these require, steps/s.
    throughput: f64,
}

impl Required {
    /// These requirements, in descending order of the throughput that a job requires.
    pub(super) fn of(required: impl IntoIterator<Item = MemberRequirement>) -> Self {
        let mut all: Vec<MemberRequirement> = required.into_iter().collect();
        all.sort_by(|a, b| b.throughput.total_cmp(&a.throughput).then(a.member.cmp(&b.member)));
        let mut sums = Vec::with_capacity(all.len() + 1);
        let mut sum = RequiredSum::default();
        sums.push(sum);
        for MemberRequirement { jobs, throughput, .. } in &all {
            sum.jobs += jobs;
            sum.throughput += jobs * throughput;
            sums.push(sum);
        }
        let (members, throughput) = all.iter().map(|one| (one.member, one.throughput)).unzip();
        Self { members, throughput, sums }
    }

    /// The members, in descending order of what a job requires.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Jobs of the member at a place.
    pub(super) fn jobs(&self, place: usize) -> f64 {
        self.sums[place + 1].jobs - self.sums[place].jobs
    }

    /// The throughput that a job of the member at a place requires, steps/s.
    pub(super) fn throughput(&self, place: usize) -> f64 {
        self.throughput[place]
    }

    /// The number of members that require more than a speed.
    pub(super) fn n_above(&self, speed: f64) -> usize {
        self.throughput.partition_point(|each| *each > speed)
    }

    /// The condition at a speed, where the time gives `above` beyond that speed: the fraction f with Σ (f·r − speed)⁺ =
    /// `above`.
    fn at_speed(&self, speed: f64, above: f64) -> Tightest {
        let fraction = |n: usize| {
            let RequiredSum { jobs, throughput } = self.sums[n];
            (above + speed * jobs) / throughput
        };
        // One more member lowers the fraction as long as that fraction of its requirement is above the speed.
        let lowers = |n: usize| n == 0 || self.throughput[n] * fraction(n) > speed;
        let (mut least, mut most) = (0, self.n_above(0.0));
        if most == 0 {
            return Tightest { fraction: f64::INFINITY, speed, n_members: 0 };
        }
        while least < most {
            let middle = least.midpoint(most);
            if lowers(middle) { least = middle + 1 } else { most = middle }
        }
        Tightest { fraction: fraction(least), speed, n_members: least }
    }
}

/// The tightest condition of a kind: the speed at which its members can have the smallest fraction of their requirements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tightest {
    /// The largest fraction of the requirements for which the condition holds; infinite if nothing is required.
    pub(super) fraction: f64,
    /// The speed θ.
    pub(super) speed: f64,
    /// The number of members that require more than the speed at that fraction of their requirements.
    pub(super) n_members: usize,
}

/// The tightest condition on time, (speed, class time) with the fastest first.
pub(super) fn tightest(slots: impl Iterator<Item = (f64, f64)>, required: &Required) -> Tightest {
    let n_members = required.members.len();
    let mut tightest = Tightest { fraction: f64::INFINITY, speed: 0.0, n_members };
    // time and throughput of the slots faster than the speed at hand
    let (mut time, mut throughput) = (0.0, 0.0);
    for (speed, of_slot) in slots.chain(std::iter::once((0.0, 0.0))) {
        let above = (throughput - speed * time).max(0.0);
        let here = required.at_speed(speed, above);
        if here.fraction < tightest.fraction {
            tightest = here;
        }
        time += of_slot;
        throughput += of_slot * speed;
    }
    tightest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirements of three members of one job each, steps/s.
    fn of_jobs(throughputs: [f64; 3]) -> Required {
        let of = |(member, throughput)| MemberRequirement { member, jobs: 1.0, throughput };
        Required::of((0_u32..).zip(throughputs).map(of))
    }

    #[test]
    fn the_fastest_time_limits_the_largest_requirement() {
        let slots = [(4.0, 0.5), (1.0, 2.5)];
        let required = of_jobs([2.0, 1.0, 1.0]);
        // the first can have half a unit of each: 2.5; all together 4.5 for 4
        let found = tightest(slots.into_iter(), &required);
        assert!((found.fraction - 1.125).abs() < 1e-15 && found.n_members == 3, "{found:?}");
        let required = of_jobs([2.4, 0.9, 0.9]);
        let found = tightest(slots.into_iter(), &required);
        assert!((found.fraction - 2.5 / 2.4).abs() < 1e-15 && found.n_members == 1, "{found:?}");
    }
}
