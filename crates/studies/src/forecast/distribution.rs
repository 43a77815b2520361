//! When something happens, over all forks.

use crate::forecast::whole::whole;
use apportion::units::Seconds;

/// A quantile of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// This time.
    At(Seconds),
    /// Some time after this, at which forks end that did not come to it.
    After(Seconds),
}

/// The times from the instant of the forecast at which something happened in each fork.
///
/// Forks in which it did not happen count as later than the limit. There is no mean: one over the others would be too
/// early.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// In order.
    times: Vec<Seconds>,
    n_forks: usize,
    limit: Seconds,
}

impl Distribution {
    /// Of these times, none where it did not happen before the limit.
    pub fn of(times: impl IntoIterator<Item = Option<Seconds>>, limit: Seconds) -> Self {
        let mut n_forks = 0;
        let mut happened: Vec<Seconds> = times.into_iter().inspect(|_| n_forks += 1).flatten().collect();
        happened.sort_by(Seconds::total_cmp);
        Self { times: happened, n_forks, limit }
    }

    /// Forks.
    pub fn n_forks(&self) -> usize {
        self.n_forks
    }

    /// The times of the forks in which it happened, in order.
    pub fn times(&self) -> &[Seconds] {
        &self.times
    }

    /// Forks in which it happened.
    pub fn n_happened(&self) -> usize {
        self.times.len()
    }

    /// The first time by which it has happened in at least this part of the forks, from 0 to 1.
    pub fn quantile(&self, part: f64) -> Quantile {
        let rank = whole((part * self.n_forks as f64).ceil().max(1.0));
        self.times.get(rank - 1).map_or(Quantile::After(self.limit), |time| Quantile::At(*time))
    }

    /// The interval between the quantiles that leave out as much before as after: of 0.8, from 0.1 to 0.9.
    pub fn interval(&self, level: f64) -> [Quantile; 2] {
        [self.quantile((1.0 - level) / 2.0), self.quantile(f64::midpoint(1.0, level))]
    }

    /// How long the interval of a level is, if what is later than the limit is at the limit.
    pub fn width(&self, level: f64) -> Seconds {
        let [from, to] = self.interval(level).map(|(Quantile::At(time) | Quantile::After(time))| time);
        to - from
    }

    /// Where a time stands among those of the forks, from 0 to 1; none is one after the limit. Of `n` forks it stands in any of
    /// `n + 1` places, each as likely if the forecast is true; among equal times the place is drawn by `uniform`, from 0 to
    /// 1. The answer is then uniform however many times are equal, as they are where rounds start.
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
