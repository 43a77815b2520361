//! `apportion forecast`: a forecast of a job's start and end in a trace.

mod calibrated;
pub(crate) mod forks;
pub(crate) mod shown;
mod forecasted;
mod rules;

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::Session;
use crate::conditions::time;
use crate::exit::Failure;
use crate::file::{at, check_files, print_page, write_page};
use crate::progress::Progress;
use crate::results::{run_failure, run_failure_of, warn};
use apportion::solver::Interrupt;
use apportion::solver::timing::Stopwatch;
use apportion::units::Seconds;
use apportion_published::plugin;
use apportion_studies::forecast::{Attended, ForecastError, JobSteps, Plan, Settings, calibrate, forecast};
use apportion_studies::report::forecast as page;
use apportion_studies::sweep::{Inputs, Run};
pub(super) use calibrated::Calibrated;
pub(super) use forecasted::Forecasted;
use forks::ForkArguments;
use rules::RuleArguments;

/// Forks of a calibration for each instant, by default.
const CALIBRATION_FORKS: usize = 200;

/// The fewest forks of a calibration.
const CALIBRATION_FORKS_MIN: usize = 10;

/// Forecast when a job of a trace starts and ends
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  apportion forecast --policy las --cluster v100=16 --trace jobs.csv --at 3d --job train-42
  apportion forecast --policy fifo --cluster v100=16 --trace jobs.csv --at 36h --job 17 --known-durations
  apportion forecast --policy las --cluster v100=16 --trace jobs.csv --at 3d --job train-42 --page train-42.html
  apportion forecast --policy las --cluster v100=16 --trace jobs.csv --calibrate --from 3d --to 6d --every 6h

The trace is simulated up to the time. Then the simulation forks: in each fork the steps of the active jobs are drawn from
what jobs like them took, and jobs arrive as they arrived before. Nothing that the trace has after the time is used.
docs/forecast.md says what is assumed, and how well such forecasts hold.")]
pub struct ForecastArguments {
    #[command(flatten)]
    rules: RuleArguments,
    /// The time of the forecast, from the trace's first arrival: 7200, 2h, 3d
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, required_unless_present = "calibrate")]
    at: Option<Seconds>,
    /// The job: its id in the trace, or its position from 0 in a trace without ids
    #[arg(long, value_name = "JOB", required_unless_present = "calibrate")]
    job: Option<String>,
    /// Jobs take the steps that the trace states
    #[arg(long)]
    known_durations: bool,
    #[command(flatten)]
    forks: ForkArguments,
    /// Forecast at many times, by 200 forks each where not given, and compare with the simulation of the whole trace
    #[arg(long, conflicts_with_all = ["at", "job"], help_heading = "Calibration")]
    calibrate: bool,
    /// The first time; half way to the last arrival where not given
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, requires = "calibrate", help_heading = "Calibration")]
    from: Option<Seconds>,
    /// The last time that is allowed; three quarters of the way to the last arrival where not given
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, requires = "calibrate", help_heading = "Calibration")]
    to: Option<Seconds>,
    /// The interval between two times; there are twenty times where not given
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, requires = "calibrate", help_heading = "Calibration")]
    every: Option<Seconds>,
    /// Active jobs at each time, drawn at random
    #[arg(
        long,
        value_name = "K",
        default_value_t = 5,
        requires = "calibrate",
        help_heading = "Calibration",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000)
    )]
    jobs_per_point: usize,
    /// Write a page with a picture here: one HTML file that needs no network; `-` is standard output, in place of the results
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

pub(super) fn run(arguments: &ForecastArguments, session: &Session) -> Result<(), Failure> {
    check_files(&arguments.rules.files(), &[at("--page", arguments.page.as_deref())])?;
    let run = Inputs::new(plugin::catalog()).load(&arguments.rules.spec()?);
    let run = run.map_err(|error| run_failure_of::<RuleArguments>(error, arguments.rules.entities()))?;
    warn(std::iter::once(&run), session);
    if arguments.calibrate && settings(arguments, CALIBRATION_FORKS).n_forks < CALIBRATION_FORKS_MIN {
        let message = format!(
            "--forks: fewer than {CALIBRATION_FORKS_MIN} say nothing of an interval of 80 %, which leaves out one in ten before and \
             one in ten after"
        );
        return Err(Failure::usage(message, Some("leave `--forks` out: 200 are taken".to_owned())));
    }
    if arguments.calibrate { calibration(arguments, session, &run) } else { single(arguments, session, &run) }
}

fn settings(arguments: &ForecastArguments, n_forks: usize) -> Settings {
    let steps = if arguments.known_durations { JobSteps::Known } else { JobSteps::Drawn };
    arguments.forks.settings(n_forks, arguments.rules.seed(), steps)
}

/// The way in which forks are stopped and counted: no fork begins after the user has asked to stop, and running forks are broken
/// off if they have not ended some time after that.
pub(crate) fn attended<'a>(session: &Session, forked: &'a (dyn Fn() + Sync)) -> Attended<'a> {
    let interrupt = Interrupt::default().with_flag(session.interrupt.overdue());
    Attended { stop: session.interrupt.flag(), interrupt, forked: Some(forked) }
}

fn single(arguments: &ForecastArguments, session: &Session, run: &Run) -> Result<(), Failure> {
    let settings = settings(arguments, Settings::default().n_forks);
    let (Some(at), Some(job)) = (arguments.at, &arguments.job) else {
        return Err(Failure::usage(
            "neither a time nor a job",
            Some("give `--at TIME --job JOB`".to_owned()),
        ));
    };
    let stopwatch = Stopwatch::start();
    let bar = Progress::new(session, settings.n_forks as u64, "forks");
    let found = forecast(run, (job, at), &settings, &attended(session, &|| bar.advance()));
    bar.finish();
    let found = found.map_err(|error| failure(error, session))?;
    session.note(format!("{} forks in {:.1} s", settings.n_forks, stopwatch.elapsed().as_secs_f64()));
    let level = arguments.forks.interval;
    let page = match &arguments.page {
        Some(path) => {
            let beside = forecasted::beside(run, &found, level, &settings)?;
            Some((&**path, page::page(&forecasted::on_page(&found), beside)))
        }
        None => None,
    };
    if print_page(session, &page)? {
        return Ok(());
    }
    forecasted::show(session, run, &found, level, &settings)?;
    write_page(session, &page)
}

fn calibration(arguments: &ForecastArguments, session: &Session, run: &Run) -> Result<(), Failure> {
    let settings = settings(arguments, CALIBRATION_FORKS);
    let usual = Plan::of(run).map_err(|error| failure(error, session))?;
    let (from, to) = (arguments.from.unwrap_or(usual.from), arguments.to.unwrap_or(usual.to));
    let every = arguments.every.unwrap_or(((to - from) / 19.0).max(Seconds::new(1.0)));
    let plan = Plan { from, to, every, n_jobs: arguments.jobs_per_point };
    let stopwatch = Stopwatch::start();
    let bar = Progress::new(session, 0, "forks");
    let found = calibrate(run, &plan, &settings, &attended(session, &|| bar.advance()));
    bar.finish();
    let found = found.map_err(|error| failure(error, session))?;
    session.note(format!("{} times in {:.1} s", found.n_times, stopwatch.elapsed().as_secs_f64()));
    let page = match &arguments.page {
        Some(path) => {
            let beside = calibrated::beside(run, &found, &plan, &settings)?;
            Some((&**path, page::calibration_page(&calibrated::on_page(&found, &settings), beside)))
        }
        None => None,
    };
    if print_page(session, &page)? {
        return Ok(());
    }
    calibrated::show(session, run, &found, &plan, &settings)?;
    write_page(session, &page)
}

/// The failure of a command without a forecast. Work that is in progress when the user asks to stop may fail.
pub(crate) fn failure(error: ForecastError, session: &Session) -> Failure {
    let help = error.help();
    match error {
        ForecastError::Interrupted { .. } => {
            Failure::Interrupted { message: "before all forks were done; nothing is kept".to_owned() }
        }
        ForecastError::Run(_) if session.interrupt.is_raised() => {
            Failure::Interrupted { message: "in a fork; nothing is kept".to_owned() }
        }
        ForecastError::Run(error) => run_failure(error),
        error if error.setting_at_fault().is_some() => Failure::usage(format!("--{error}"), help),
        error => Failure::usage(error.to_string(), help),
    }
}
