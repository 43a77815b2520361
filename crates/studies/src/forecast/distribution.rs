//! Distribution of the time of an event over all forks.

use crate::forecast::whole::whole;
use apportion::units::Seconds;

/// A quantile of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// The quantile is this time.
    At(Seconds),
    /// The quantile is later than this time, at which the forks end.
    After(Seconds),
}

/// Times from the instant of the forecast to an event, over the forks.
///
/// Forks in which the event did not happen count as later than the limit. There is no mean: one over the other forks would
/// be too early.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Times in ascending order.
    times: Vec<Seconds>,
    n_forks: usize,
    limit: Seconds,
}

impl Distribution {
    /// A distribution of the forks' times; none stands for a fork in which the event did not happen before the limit.
    pub fn of(times: impl IntoIterator<Item = Option<Seconds>>, limit: Seconds) -> Self {
        let mut n_forks = 0;
        let mut happened: Vec<Seconds> = times.into_iter().inspect(|_| n_forks += 1).flatten().collect();
        happened.sort_by(Seconds::total_cmp);
        Self { times: happened, n_forks, limit }
    }

    /// Number of forks.
    pub fn n_forks(&self) -> usize {
        self.n_forks
    }

    /// Times of the forks in which it happened, in ascending order.
    pub fn times(&self) -> &[Seconds] {
        &self.times
    }

    /// Number of forks in which it happened.
    pub fn n_happened(&self) -> usize {
        self.times.len()
    }

    /// The first time by which the event has happened in at least this part of the forks, from 0 to 1.
    pub fn quantile(&self, part: f64) -> Quantile {
        let rank = whole((part * self.n_forks as f64).ceil().max(1.0));
        self.times.get(rank - 1).map_or(Quantile::After(self.limit), |time| Quantile::At(*time))
    }

    /// The central interval of a level: 0.8 gives the quantiles 0.1 and 0.9.
    pub fn interval(&self, level: f64) -> [Quantile; 2] {
        [self.quantile((1.0 - level) / 2.0), self.quantile(f64::midpoint(1.0, level))]
    }

    /// Length of the interval of a level, with times after the limit taken as the limit.
    pub fn width(&self, level: f64) -> Seconds {
        let [from, to] = self.interval(level).map(|(Quantile::At(time) | Quantile::After(time))| time);
        to - from
    }

    /// Rank of a time among those of the forks, from 0 to 1; none and times after the limit are the latest. A time has any
    /// of `n + 1` places among `n` forks, each with the same probability if the forecast is true; among equal times the
    /// place is drawn by `uniform`, from 0 to 1. So the rank is uniform however many times are equal, as they are where
    /// rounds start.
    pub fn rank(&self, time: Option<Seconds>, uniform: f64) -> f64 {
        let (n_before, n_until) = match time.filter(|time| *time <= self.limit) {
            Some(time) => (
                self.times.partition_point(|other| *other < time),
                self.times.partition_point(|other| *other <= time),
            ),
            None => (self.times.len(), self.n_forks),
        };
        (n_before as f64 + uniform * (n_until - n_before + 1) as f64) / (self.n_forks + 1) as f64
    }
}
