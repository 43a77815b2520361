//! What the members of a pool ask for, the largest first.

/// Members by what a job of theirs asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// Position of the member among the pool's.
    members: Vec<u32>,
    /// Steps/s of one job, descending: [members].
    throughput: Vec<f64>,
    /// Jobs of those before, and what they ask for together: [members + 1].
    sums: Vec<(f64, f64)>,
}

impl Needs {
    /// Of (member, jobs, steps/s that a job asks for).
    pub(super) fn of(needs: impl IntoIterator<Item = (u32, f64, f64)>) -> Self {
        let mut all: Vec<(u32, f64, f64)> = needs.into_iter().collect();
        all.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(&other.0)));
        let mut sums = Vec::with_capacity(all.len() + 1);
        sums.push((0.0, 0.0));
        let (mut jobs, mut throughput) = (0.0, 0.0);
        for (_, n, each) in &all {
            jobs += n;
            throughput += n * each;
            sums.push((jobs, throughput));
        }
        Self {
            members: all.iter().map(|need| need.0).collect(),
            throughput: all.iter().map(|need| need.2).collect(),
            sums,
        }
    }

    /// How many members.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Positions of the members, those that ask for most first.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Jobs of a member of this place.
    pub(super) fn jobs(&self, place: usize) -> f64 {
        self.sums[place + 1].0 - self.sums[place].0
    }

    /// What a job of the member of this place asks for, steps/s.
    pub(super) fn throughput(&self, place: usize) -> f64 {
        self.throughput[place]
    }

    /// How many members ask for more than this.
    pub(super) fn above(&self, speed: f64) -> usize {
        self.throughput.partition_point(|each| *each > speed)
    }

    /// The part of all needs for which Σ (part·r − speed)⁺ is `above`, and how many ask for more than the speed then.
    pub(super) fn part(&self, above: f64, speed: f64) -> (f64, usize) {
        let part = |n: usize| {
            let (jobs, throughput) = self.sums[n];
            (above + speed * jobs) / throughput
        };
        // Each member more lowers it as long as what it asks for of that is above the speed.
        let lowers = |n: usize| n == 0 || self.throughput[n] * part(n) > speed;
        let (mut least, mut most) = (0, self.throughput.partition_point(|each| *each > 0.0));
        if most == 0 {
            return (f64::INFINITY, 0);
        }
        while least < most {
            let middle = least.midpoint(most);
            if lowers(middle) { least = middle + 1 } else { most = middle }
        }
        (part(least), least)
    }
}
