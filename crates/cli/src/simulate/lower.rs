//! `--lower-bound`: a bound that no schedule of the jobs is below.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Session;
use crate::exit::Failure;
use crate::output::{Cell, Table};
use crate::progress::Progress;
use crate::results::run_failure;
use apportion::metrics::Summary;
use apportion::simulator::ShortSlice;
use apportion::solver::Interrupt;
use apportion::solver::timing::Stopwatch;
use apportion::units::{Decimals, Seconds};
use apportion::workload::Job;
use apportion_studies::bound::{Attended, Bound, BoundError, Instance, Settings, bound};
use apportion_studies::sweep::Run;

/// The flag of the lower bound.
#[derive(Args, Debug)]
#[command(next_help_heading = "How much is left")]
pub(super) struct LowerArguments {
    /// Prove a bound that the average completion time of no schedule of the same jobs is below, not even of one that knows the
    /// future: of no schedule in which each job has its workers to itself, or of none in which two may share them either
    #[arg(long, value_name = "SHARING", value_enum, conflicts_with = "measure")]
    lower_bound: Option<Sharing>,
}

/// The schedules that are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sharing {
    /// Schedules in which each job has its workers to itself
    Alone,
    /// Schedules in which two jobs may share workers, too
    Pairs,
}

/// A bound that no schedule of the jobs is below.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LowerBound {
    /// The bound: no schedule has a lower average completion time.
    #[schemars(extend("x-unit" = "s"))]
    average_jct_s: f64,
    /// The simulation's average completion time, divided by the bound.
    ratio: f64,
    /// The average completion time if each job ran at its fastest from its arrival.
    #[schemars(extend("x-unit" = "s"))]
    fastest_s: f64,
    /// Whether the bound also holds for schedules in which two jobs share workers.
    pairs: bool,
    /// Steps of the search for it.
    steps: usize,
    /// Allocations that were computed in the search.
    allocations: u64,
    /// Whether the search was broken off: the bound holds, and a longer search might have found a larger one.
    broken_off: bool,
    /// Wall time of the search.
    #[schemars(extend("x-unit" = "s"))]
    wall_seconds: f64,
}

impl LowerArguments {
    /// Refuses a run that may be below such bounds, before it begins.
    pub(super) fn check(&self, run: &Run) -> Result<(), Failure> {
        if self.lower_bound.is_none() {
            return Ok(());
        }
        if run.options.semantics.short_slice == ShortSlice::Fails {
            let message = "`--lower-bound` does not hold under `--semantics gavel`, where a job may be dropped with steps left";
            let help = "add `--correct short_slice`, or leave `--semantics` out".to_owned();
            return Err(Failure::usage(message, Some(help)));
        }
        Ok(())
    }

    /// The bound for a run with this summary; none if it was not asked for, or not all jobs are done.
    pub(super) fn find(
        &self,
        session: &Session,
        run: &Run,
        summary: &Summary,
    ) -> Result<Option<LowerBound>, Failure> {
        let (Some(sharing), Some(average_jct)) = (self.lower_bound, summary.average_jct) else {
            return Ok(None);
        };
        let mut arrivals = run.arrivals().map_err(run_failure)?;
        let jobs: Vec<Job> = std::iter::from_fn(|| arrivals.next_job()).collect();
        if summary.jobs.iter().filter(|record| record.jct.is_some()).count() < jobs.len() {
            session.note("no lower bound: not all jobs are done");
            return Ok(None);
        }
        let pairs = sharing == Sharing::Pairs;
        let instance = Instance { cluster: &run.cluster, throughputs: &run.throughputs, jobs: &jobs, pairs };
        let (settings, stopwatch) = (Settings::default(), Stopwatch::start());
        let bar = Progress::of_unlike(session, settings.steps_max as u64, "steps to the lower bound");
        let stepped = |bound: Seconds| {
            bar.message(format!("{} h", Decimals(bound.hours(), 3)));
            bar.advance();
        };
        let interrupt = Interrupt::default().with_flag(session.interrupt.flag());
        let attended = Attended { interrupt, stepped: Some(&stepped) };
        let found = bound(&instance, &settings, &attended);
        bar.finish();
        let found: Bound = found.map_err(failure)?;
        if found.is_broken_off {
            session.note("the search for the lower bound was broken off: it holds, and might be larger");
        }
        Ok(Some(LowerBound {
            average_jct_s: found.average_jct.get(),
            ratio: average_jct / found.average_jct.get(),
            fastest_s: found.fastest.get(),
            pairs,
            steps: found.n_steps,
            allocations: found.n_programs,
            broken_off: found.is_broken_off,
            wall_seconds: stopwatch.elapsed().as_secs_f64(),
        }))
    }
}

impl LowerBound {
    /// Adds the bound to the numbers of a simulation.
    pub(super) fn add_to(&self, table: &mut Table) {
        let label = format!("no schedule{} averages below", self.of());
        table.push(vec![label.into(), Cell::Number(self.average_jct_s / 3600.0, 2), "h".into()]);
        table.push(vec!["average completion time over that".into(), Cell::Number(self.ratio, 4), "".into()]);
    }

    /// The bound on the average completion time, and the ratio to it, in a sentence.
    pub(super) fn in_words(&self) -> String {
        let (hours, ratio) = (self.average_jct_s / 3600.0, self.ratio);
        format!(
            "no schedule{} averages below {} h; this one takes {} of it",
            self.of(),
            Decimals(hours, 2),
            Decimals(ratio, 4)
        )
    }

    fn of(&self) -> &'static str {
        if self.pairs { "" } else { " of jobs alone" }
    }
}

fn failure(error: BoundError) -> Failure {
    match error {
        BoundError::Policy(error) => error.into(),
        error => Failure::usage(format!("--lower-bound: {error}"), None),
    }
}
