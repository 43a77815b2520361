//! Arrival rates that are found while the sweep runs: up to the knee, and beyond if asked for.

use schemars::JsonSchema;
use serde::Deserialize;

use super::axis::rounded;
use apportion::spec::run::RATE_MAX;

/// The most rungs of a ladder.
const RUNGS_MAX: usize = 200;

/// Distance between rungs above the knee: the mean gap between arrivals shrinks by this part of the knee's.
const BEYOND_STEP: f64 = 0.05;

/// Rules for raising the arrival rate, for each combination of the other axes' values.
///
/// 1. *Climb*: `from`, then each rate `factor` times the one before, at most `to`, until a run is past a bound.
/// 2. *Bisect* between the last rate within the bounds and the first past them, until the two lie within
///    `precision` of each other, relative to the lower. The upper one is the knee.
/// 3. *Beyond*, if asked for: on from the knee, the mean gap between arrivals a twentieth of the knee's shorter each
///    time, until the largest average completion time is `beyond` times the smallest.
///
/// A run is past the bounds if its utilization reaches `utilization`, if its average completion time reaches
/// `jct` times that at `from`, if it is provably saturated, if it ran out of wall time, or if it was given up as
/// `growing` or `starved`. A run that failed, or was given up as a `livelock`, ends the ladder. Which rates are run depends on results alone, so a resumed sweep climbs the same rungs.
///
/// Source: after Gavel's automatic sweep (its repository at c06ecbd), which halves the mean gap until utilization
/// is 0.98, looks for the knee at nine equal steps, and goes on by twentieths until completion times are tenfold.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Auto")]
pub struct AutoSpec {
    /// First rate.
    #[schemars(extend("x-unit" = "jobs/h"))]
    pub from: f64,
    /// Ratio of two rates while climbing, above 1.
    pub factor: f64,
    /// Largest rate; a million by default.
    #[schemars(extend("x-unit" = "jobs/h"))]
    pub to: Option<f64>,
    /// Utilization from which a run is past the knee; 0.98 by default, unless `jct` is given.
    pub utilization: Option<f64>,
    /// Multiple of the first run's average completion time from which a run is past the knee; not used by default.
    pub jct: Option<f64>,
    /// Precision of the knee, relative to it.
    pub precision: f64,
    /// Multiple of the smallest average completion time up to which rates beyond the knee are run; none are by default.
    pub beyond: Option<f64>,
}

impl Default for AutoSpec {
    fn default() -> Self {
        Self { from: 0.1, factor: 2.0, to: None, utilization: None, jct: None, precision: 0.05, beyond: None }
    }
}

/// Result of a run at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Arrival rate, jobs/h.
    pub rate: f64,
    /// Ending of the run.
    pub ending: RungEnding,
    /// Busy worker-time ÷ worker-time, where it was measured.
    pub utilization: Option<f64>,
    /// Average job completion time, s, where it was measured.
    pub average_jct: Option<f64>,
}

/// Ending of a run of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungEnding {
    /// The run ended with metrics.
    Done,
    /// The run was saturated, or out of time.
    Overloaded,
    /// The run ended with an error.
    Failed,
}

/// Next step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A run at this rate, jobs/h.
    Run(f64),
    /// No further run, as the ladder is done; with its knee, if any.
    Done(Option<Knee>),
}

/// Knee of a curve, between two rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Highest rate found within the bounds, jobs/h; none if `from` is past them.
    pub within: Option<f64>,
    /// Lowest rate found past the bounds, jobs/h.
    pub past: f64,
}

/// Reason to stop: a rate that is needed and not run yet, or an early end.
enum Break {
    Wanted(f64),
    Ended,
}

impl AutoSpec {
    /// Invalid fields, each with a message.
    pub(super) fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let above = |limit: f64, value: f64| value.is_finite() && value > limit;
        let mut check = |field, value: Option<f64>, limit: f64, what: &str| {
            if let Some(value) = value.filter(|value| !above(limit, *value)) {
                found.push((field, format!("{value}, expected {what} above {limit}")));
            }
        };
        check("from", Some(self.from), 0.0, "a rate in jobs/h");
        check("factor", Some(self.factor), 1.0, "a ratio");
        check("to", self.to, self.from, "a rate in jobs/h");
        check("utilization", self.utilization, 0.0, "a fraction");
        check("jct", self.jct, 1.0, "a ratio");
        check("precision", Some(self.precision), 0.0, "a fraction");
        check("beyond", self.beyond, 1.0, "a ratio");
        if self.to.is_some_and(|to| to > RATE_MAX) {
            found.push(("to", format!("expected at most {RATE_MAX} jobs/h")));
        }
        if self.utilization.is_some_and(|bound| bound > 1.0) {
            found.push(("utilization", "no run has more than 1".to_owned()));
        }
        if self.precision > 0.0 && self.precision < 1e-4 {
            found.push(("precision", format!("{}, expected at least 0.0001", self.precision)));
        }
        found
    }

    /// The next step after these runs, which are all runs of this ladder so far, in order.
    pub fn next(&self, rungs: &[Rung]) -> Step {
        if rungs.len() >= RUNGS_MAX {
            return Step::Done(None);
        }
        let mut made = rungs.iter();
        let mut ask = |rate: f64| match made.next() {
            None => Err(Break::Wanted(rate)),
            Some(rung) if rung.ending == RungEnding::Failed => Err(Break::Ended),
            Some(rung) => Ok(*rung),
        };
        match self.climb(&mut ask) {
            Err(Break::Wanted(rate)) => Step::Run(rate),
            Err(Break::Ended) | Ok(None) => Step::Done(None),
            Ok(Some(knee)) => {
                let beyond = made.as_slice();
                let has_failed = beyond.iter().any(|rung| rung.ending == RungEnding::Failed);
                let next = self.beyond(knee, rungs, beyond.len()).filter(|_| !has_failed);
                next.map_or(Step::Done(Some(knee)), Step::Run)
            }
        }
    }

    /// Climbs and bisects. Returns the knee, if there is one below `to`.
    fn climb(&self, ask: &mut impl FnMut(f64) -> Result<Rung, Break>) -> Result<Option<Knee>, Break> {
        let first = ask(rounded(self.from))?;
        if self.is_past(&first, &first) {
            return Ok(Some(Knee { within: None, past: first.rate }));
        }
        let (mut within, mut past) = (first.rate, f64::INFINITY);
        let rate_max = self.to.unwrap_or(RATE_MAX);
        while past.is_infinite() {
            if within >= rate_max {
                return Ok(None);
            }
            let rung = ask(rounded((within * self.factor).min(rate_max)))?;
            if self.is_past(&rung, &first) { past = rung.rate } else { within = rung.rate }
        }
        while past - within > self.precision * within {
            let rung = ask(rounded(f64::midpoint(within, past)))?;
            if self.is_past(&rung, &first) { past = rung.rate } else { within = rung.rate }
        }
        Ok(Some(Knee { within: Some(within), past }))
    }

    /// The next rate beyond the knee, if there is to be one; the last `n_beyond` runs were beyond it.
    fn beyond(&self, knee: Knee, rungs: &[Rung], n_beyond: usize) -> Option<f64> {
        let wanted = self.beyond?;
        if rungs[rungs.len() - n_beyond..].iter().any(|rung| rung.ending == RungEnding::Overloaded) {
            return None;
        }
        let jcts = rungs.iter().filter_map(|rung| rung.average_jct);
        let (least, most) =
            jcts.fold((f64::INFINITY, 0.0_f64), |(least, most), jct| (least.min(jct), most.max(jct)));
        let gap = 1.0 - BEYOND_STEP * (n_beyond + 1) as f64;
        let rate = rounded(knee.past / gap);
        let is_done = most >= wanted * least || gap < BEYOND_STEP || rate > self.to.unwrap_or(RATE_MAX);
        (!is_done).then_some(rate)
    }

    fn is_past(&self, rung: &Rung, first: &Rung) -> bool {
        let bound = match (self.utilization, self.jct) {
            (None, None) => Some(0.98),
            (given, _) => given,
        };
        let reaches = |value: Option<f64>, bound: Option<f64>| {
            value.zip(bound).is_some_and(|(value, bound)| value >= bound)
        };
        let slow = self.jct.zip(first.average_jct).map(|(ratio, jct)| ratio * jct);
        rung.ending == RungEnding::Overloaded
            || reaches(rung.utilization, bound)
            || reaches(rung.average_jct, slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs on a cluster whose utilization is rate / `capacity` and whose completion times are those of a queue.
    fn climb(auto: &AutoSpec, capacity: f64) -> (Vec<f64>, Option<Knee>) {
        let mut rungs = Vec::new();
        loop {
            match auto.next(&rungs) {
                Step::Done(knee) => return (rungs.iter().map(|rung: &Rung| rung.rate).collect(), knee),
                Step::Run(rate) => {
                    let load = rate / capacity;
                    let average_jct = Some(if load < 1.0 { 1.0 / (1.0 - load) } else { 1e3 * load });
                    let ending = RungEnding::Done;
                    rungs.push(Rung { rate, ending, utilization: Some(load.min(1.0)), average_jct });
                }
            }
        }
    }

    #[test]
    fn rates_double_and_then_close_in_on_the_knee() {
        let auto = AutoSpec { from: 0.5, utilization: Some(0.9), precision: 0.1, ..AutoSpec::default() };
        let (rates, knee) = climb(&auto, 5.0);
        assert_eq!(rates, [0.5, 1.0, 2.0, 4.0, 8.0, 6.0, 5.0, 4.5, 4.25]);
        assert_eq!(knee, Some(Knee { within: Some(4.25), past: 4.5 }));
    }

    #[test]
    fn completion_times_may_be_the_bound() {
        let auto = AutoSpec { from: 1.0, jct: Some(3.0), precision: 0.01, ..AutoSpec::default() };
        // 1/(1 − λ/10) = 3/(1 − 1/10) at λ = 7.
        let (_, knee) = climb(&auto, 10.0);
        let knee = knee.unwrap();
        assert!(knee.within.unwrap() <= 7.0 && knee.past >= 7.0 && knee.past < 7.1, "{knee:?}");
    }

    #[test]
    fn the_largest_rate_and_the_first_one_are_bounds() {
        let auto = AutoSpec { from: 1.0, factor: 3.0, to: Some(8.0), ..AutoSpec::default() };
        assert_eq!(climb(&auto, 1000.0), (vec![1.0, 3.0, 8.0], None));
        let (rates, knee) = climb(&auto, 0.5);
        assert_eq!((rates, knee), (vec![1.0], Some(Knee { within: None, past: 1.0 })));
    }

    #[test]
    fn beyond_the_knee_gaps_shrink_by_twentieths_until_times_are_tenfold() {
        let auto = AutoSpec { from: 1.0, utilization: Some(0.5), beyond: Some(10.0), ..AutoSpec::default() };
        let (rates, knee) = climb(&auto, 4.0);
        // At 2 of 4 the bound is met, and this is also the upper end of a bracket that closes in from below.
        let past = knee.unwrap().past;
        assert!((past - 2.0).abs() < 1e-12);
        let beyond = &rates[rates.len() - 10..];
        for (step, rate) in (1..).zip(beyond) {
            assert!((rate - past / (1.0 - 0.05 * f64::from(step))).abs() < 1e-9, "{beyond:?}");
        }
        // 1/(1 − λ/4) ≥ 10 · 1/(1 − 1/4) from λ = 3.7 on; 2 / 0.5 = 4 is the first of the steps that is.
        assert!((beyond[9] - 4.0).abs() < 1e-9);
    }

    #[test]
    fn overload_is_past_the_knee_and_a_failure_ends_the_ladder() {
        let auto = AutoSpec { from: 1.0, precision: 0.5, ..AutoSpec::default() };
        let rung = |rate, ending| Rung { rate, ending, utilization: None, average_jct: None };
        let overloaded = rung(2.0, RungEnding::Overloaded);
        assert_eq!(auto.next(&[rung(1.0, RungEnding::Done), overloaded]), Step::Run(1.5));
        assert_eq!(auto.next(&[rung(1.0, RungEnding::Failed)]), Step::Done(None));
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        let auto = AutoSpec {
            from: 0.0,
            factor: 1.0,
            to: Some(-1.0),
            utilization: Some(1.5),
            jct: Some(1.0),
            precision: 0.0,
            beyond: Some(f64::NAN),
        };
        let fields: Vec<&str> = auto.complaints().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["from", "factor", "to", "jct", "precision", "beyond", "utilization"]);
    }
}
