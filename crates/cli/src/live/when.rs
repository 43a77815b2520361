//! `apportion when`: a forecast of a job's start and end in a running scheduler.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::number;
use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::exit::Failure;
use crate::forecast::forks::ForkArguments;
use crate::forecast::shown::{
    Assumed, Times, assumed_words, for_people, for_programs, in_words, interval_words,
};
use crate::forecast::{attended, failure};
use crate::output::{Answer, OutputFormat};
use crate::paths::name_or_path;
use crate::progress::Progress;
use crate::results::run_failure;
use apportion::index::JobId;
use apportion::scheduler::SchedulerState;
use apportion::solver::timing::Stopwatch;
use apportion::spec::Source;
use apportion::spec::policy::PolicyReference;
use apportion::spec::run::{PricesSpec, RunSpec, ThroughputsName, WorkerCounts};
use apportion::units::{Seconds, Steps};
use apportion_live::core::{How, PastView, SITUATION_FORMAT, SituationView};
use apportion_live::front::{Served, Situated};
use apportion_live::protocol::JobNumber;
use apportion_published::plugin;
use apportion_studies::forecast::arrivals::Blocks;
use apportion_studies::forecast::past::Course;
use apportion_studies::forecast::{
    Arriving, Forecast, ForecastError, JobSteps, KnownJob, Settings, Situation, forecast_from,
};
use apportion_studies::sweep::{Inputs, Run};

/// The name of the empty trace in place of the scheduler's jobs.
const NO_JOBS: &str = "jobs of the scheduler";

/// The largest relative deviation at which a completed job took as long as its steps were to take.
const NEAR: f64 = 0.1;

/// Forecast when a job of a running scheduler starts and ends
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion when 3
  apportion when 3 --draw-durations --forks 200 --limit 2d
  apportion when 3 --policy las

The scheduler is asked where it is, and the simulation forks from there, on this machine: jobs arrive as they arrived before, and take
the steps that they were submitted with. docs/forecast.md says what is assumed.")]
pub struct WhenArguments {
    /// The job's number
    #[arg(value_name = "JOB", value_parser = number)]
    job: u64,
    /// Draw the steps of active jobs from what others took, in place of those that they were submitted with
    #[arg(long)]
    draw_durations: bool,
    #[command(flatten)]
    forks: ForkArguments,
    /// The seed of all random streams
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Go on by this policy, a name or a file; by the scheduler's own where not given
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    policy: Option<String>,
    /// A throughput matrix's name, or a file; the scheduler's own where not given
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: Option<String>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// The forecast of a job of a running scheduler, as `apportion when --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct When<'a> {
    /// The job's number.
    job: u64,
    /// The name that its user gave it.
    name: Option<&'a str>,
    /// The time of the forecast, on the scheduler's clock.
    #[schemars(extend("x-unit" = "s"))]
    now_s: f64,
    /// The instant of its submission, on the scheduler's clock.
    #[schemars(extend("x-unit" = "s"))]
    submitted_s: f64,
    /// The number of its starts.
    starts: u32,
    /// The time until its first start; null if it has been started.
    start: Option<Times>,
    /// The time until its end.
    end: Times,
    /// The assumptions.
    assumed: Assumed,
    /// Whether the job has done the steps that it was submitted with, or, if it reports none, had workers for as long as they take:
    /// it is then assumed to do one more, and its end cannot be known.
    has_done_its_steps: bool,
    /// Jobs that report no steps: their steps are computed from the time that they had workers.
    n_reckoned: usize,
    /// Completed jobs among those that the scheduler remembers.
    n_completed: usize,
    /// Completed jobs that had workers for as long as their steps were to take, to within a tenth.
    n_as_submitted: usize,
    /// The policy that decides in the forks.
    policy: &'a str,
    /// The throughputs.
    throughputs: &'a str,
    /// The seed of all random streams.
    seed: u64,
}

impl Answer for When<'_> {
    const KIND: &'static str = "when";
}

/// The known data of a scheduler's jobs.
#[derive(Debug, Default)]
struct Known {
    jobs: Vec<(Option<JobId>, KnownJob)>,
    n_reckoned: usize,
    /// Active jobs that have done all their steps.
    overrun: BTreeSet<JobNumber>,
    n_completed: usize,
    n_as_submitted: usize,
}

impl Known {
    /// The jobs of a scheduler that have had workers, or wait for some.
    fn of(situation: &SituationView, state: &SchedulerState, run: &Run) -> Self {
        let mut known = Self::default();
        for past in &situation.jobs {
            match past.ended_s {
                None => known.add_active(past, state, run),
                Some(ended) if past.starts > 0 => known.add_ended(past, Seconds::new(ended), run),
                Some(_) => {}
            }
        }
        known
    }

    fn add_active(&mut self, past: &PastView, state: &SchedulerState, run: &Run) {
        // A job that fits no worker type waits for another cluster, and is not in the scheduler's state.
        let Some(id) = state.find(&past.number.to_string()) else { return };
        let reckoned = reckoned(past, run);
        let is_silent = past.steps <= 0.0 && past.received_s.values().any(|received_s| *received_s > 0.0);
        self.n_reckoned += usize::from(is_silent);
        let steps_run = Steps::new(if is_silent { reckoned } else { past.steps });
        // A job that has done all its steps and goes on does at least one step more; so does a job that is being stopped.
        let submitted = if past.cancelled { Steps::ZERO } else { past.job.total_steps };
        let total_steps = submitted.max(steps_run + Steps::new(1.0));
        if steps_run >= past.job.total_steps {
            self.overrun.insert(past.number);
        }
        // The instant of its first start is not kept: only that it was started counts.
        let course = Course { started: (past.starts > 0).then_some(past.job.arrival), ended: None };
        let job = past.job.clone().total_steps(total_steps);
        self.jobs.push((Some(id), KnownJob { job, steps_run, course }));
    }

    /// Adds an ended job. A job that was given up or cancelled left its workers like one that was completed.
    fn add_ended(&mut self, past: &PastView, ended: Seconds, run: &Run) {
        let reckoned = reckoned(past, run);
        if past.how == Some(How::Completed) {
            let submitted = past.job.total_steps.get();
            self.n_completed += 1;
            self.n_as_submitted += usize::from((reckoned - submitted).abs() <= NEAR * submitted);
        }
        let steps_run = Steps::new(reckoned.max(1.0));
        let course = Course { started: Some(past.job.arrival), ended: Some(ended) };
        let job = past.job.clone().total_steps(steps_run);
        self.jobs.push((None, KnownJob { job, steps_run, course }));
    }
}

/// The throughput of a job alone on a worker type, in steps/s; 0 if it cannot run there.
fn speed(past: &PastView, run: &Run, kind: &str) -> f64 {
    match (&past.job.throughput, run.throughputs.find(&past.job.job_type, past.job.scale_factor)) {
        (Some(own), _) => own.iter().find(|(name, _)| name == kind).map_or(0.0, |(_, speed)| speed.get()),
        (None, Some(row)) => {
            let column = run.throughputs.find_worker_type(kind);
            column.map_or(0.0, |column| run.throughputs.alone(row, column))
        }
        (None, None) => 0.0,
    }
}

/// The steps that a job does alone in the time that it had workers.
fn reckoned(past: &PastView, run: &Run) -> f64 {
    past.received_s.iter().map(|(kind, received_s)| received_s * speed(past, run, kind)).sum::<f64>().floor()
}

/// Refuses a job that would wait in every fork until its limit: servers stay as they are in a forecast.
fn check_can_run(past: &PastView, situation: &SituationView, run: &Run) -> Result<(), Failure> {
    let Some(up) = &situation.workers_up else { return Ok(()) };
    if past.job.sizes.len() > 1 {
        return Ok(()); // (it may run on fewer)
    }
    let can_run =
        |(kind, n_up): (&String, &u32)| *n_up >= past.job.scale_factor && speed(past, run, kind) > 0.0;
    if up.iter().any(can_run) {
        return Ok(());
    }
    let number = past.number;
    let message = format!(
        "job {number} needs {}, and no worker type that it can run on has so many that may be given jobs now: as servers \
         stay as they are in a forecast, it would never run",
        match past.job.scale_factor {
            1 => "a worker".to_owned(),
            several => format!("{several} workers"),
        }
    );
    Err(Failure::usage(message, Some(format!("`apportion why {number}` and `apportion servers` say why"))))
}

/// Runs the command.
///
/// # Errors
/// If there is no scheduler that answers, no such job, or its end cannot be forecast.
pub(super) fn run(arguments: &WhenArguments, session: &Session) -> Result<(), Failure> {
    let (served, situation) = asked(arguments, session)?;
    let past = find(&situation, arguments.job)?;
    let not_read = |error: serde_json::Error| {
        Failure::usage(
            format!("the scheduler's state cannot be read: {error}"),
            Some("take this command from the version of the scheduler".to_owned()),
        )
    };
    let state: SchedulerState = serde_json::from_value(situation.scheduler.clone()).map_err(not_read)?;
    let state = if arguments.policy.is_some() { state.without_policy() } else { state };
    let run = simulated(&served, &situation)?;
    let known = Known::of(&situation, &state, &run);
    let Some(id) = state.find(&past.number.to_string()) else {
        let message = format!("job {} fits no worker type of the cluster", past.number);
        return Err(Failure::usage(message, Some(format!("`apportion why {}` says why", past.number))));
    };
    check_can_run(past, &situation, &run)?;
    let (settings, too_short) = settings(arguments, &situation);
    let at = Seconds::new(situation.now_s);
    let from = Situation::taking_over(&run, &state, at, known.jobs.clone());
    let from = from.map_err(|error| no_forecast(error, session))?;
    let stopwatch = Stopwatch::start();
    let bar = Progress::new(session, settings.n_forks as u64, "forks");
    let name = past.number.to_string();
    let found = forecast_from(&run, &from, (&name, id), &settings, &attended(session, &|| bar.advance()));
    bar.finish();
    let found = found.map_err(|error| no_forecast(error, session))?;
    session.note(format!("{} forks in {:.1} s", settings.n_forks, stopwatch.elapsed().as_secs_f64()));
    Shown {
        found: &found,
        settings: &settings,
        level: arguments.forks.interval,
        past,
        known: &known,
        served: &served,
        too_short,
    }
    .show(session)
}

/// The failure of a command without a forecast.
fn no_forecast(error: ForecastError, session: &Session) -> Failure {
    let as_submitted =
        || Some("without `--draw-durations` they take the steps that they were submitted with".to_owned());
    match error {
        ForecastError::NothingEnded { .. } => {
            let message =
                "no job of this scheduler is over that had workers, so nothing says how long jobs take";
            Failure::usage(message, as_submitted())
        }
        error @ ForecastError::Remembers { .. } => Failure::usage(format!("--{error}"), as_submitted()),
        error => failure(error, session),
    }
}

/// The documents and the state of the scheduler.
fn asked(arguments: &WhenArguments, session: &Session) -> Result<(Served, SituationView), Failure> {
    let answer = Remote::new(&arguments.remote)?.get_noting("/v1/situation", session)?;
    let help = "take this command from the version of the scheduler";
    if answer["format"].as_str() != Some(SITUATION_FORMAT) {
        let message = format!(
            "the scheduler's situation is of the format {}, expected {SITUATION_FORMAT}",
            answer["format"]
        );
        return Err(Failure::usage(message, Some(help.to_owned())));
    }
    let Situated { mut served, situation } = serde_json::from_value(answer).map_err(|error| {
        Failure::usage(format!("the scheduler's situation cannot be read: {error}"), Some(help.to_owned()))
    })?;
    if let Some(policy) = &arguments.policy {
        served.policy.clone_from(policy);
    }
    if let Some(throughputs) = &arguments.throughputs {
        served.throughputs.clone_from(throughputs);
    }
    Ok((served, situation))
}

/// An active job by its number.
fn find(situation: &SituationView, number: u64) -> Result<&PastView, Failure> {
    let Some(past) = situation.jobs.iter().find(|past| past.number.0 == number) else {
        let last = situation.jobs.iter().map(|past| past.number.0).max();
        let message = match last {
            Some(last) if number < last => {
                format!("the scheduler does not remember job {number}: it was over long ago")
            }
            Some(last) => format!("there is no job {number}: the last is {last}"),
            None => format!("there is no job {number}: the scheduler has had none"),
        };
        return Err(Failure::usage(message, Some("`apportion jobs` lists them".to_owned())));
    };
    if past.ended_s.is_none() && past.cancelled {
        let message = format!("job {number} is being stopped: its user cancelled it");
        return Err(Failure::usage(message, Some(format!("`apportion why {number}` says more"))));
    }
    if past.ended_s.is_none() {
        return Ok(past);
    }
    let how = match past.how {
        Some(How::Completed) => "it was completed",
        Some(How::Cancelled) => "it was cancelled",
        Some(How::Failed) | None => "it was given up",
    };
    let message = format!("job {number} is over: {how}");
    Err(Failure::usage(message, Some(format!("`apportion why {number}` says more"))))
}

/// Refuses a document that is a file of the scheduler's machine and not of this one.
fn check_here(flag: &str, named: &str) -> Result<(), Failure> {
    let path = Path::new(named);
    if !path.is_absolute() || path.exists() {
        return Ok(());
    }
    let message = format!("the scheduler has its {flag} from {named}, and there is no such file here");
    Err(Failure::usage(message, Some(format!("`--{flag} NAME|FILE` names them here"))))
}

/// A run that continues the scheduler's.
fn simulated(served: &Served, situation: &SituationView) -> Result<Run, Failure> {
    check_here("policy", PolicyReference::new(&served.policy).policy)?;
    check_here("throughputs", &served.throughputs)?;
    let counts = |text: &str| {
        text.parse::<WorkerCounts>()
            .map_err(|error| Failure::usage(format!("the scheduler's cluster cannot be read: {error}"), None))
    };
    let servers: Vec<String> =
        situation.workers_per_server.iter().map(|(kind, workers)| format!("{kind}={workers}")).collect();
    let mut spec = RunSpec {
        policy: served.policy.clone(),
        throughputs: ThroughputsName(served.throughputs.clone()),
        cluster: counts(&situation.cluster)?,
        servers: counts(&servers.join(","))?,
        ..RunSpec::default()
    };
    spec.prices = PricesSpec::Constant(situation.prices.clone());
    spec.workload.trace = Some(NO_JOBS.to_owned());
    spec.mechanism.round_length = Seconds::new(situation.round_length_s);
    spec.mechanism.reset_interval = Seconds::new(situation.reset_interval_s);
    let no_jobs = Source::new(NO_JOBS, "job_type,scale_factor,total_steps,arrival\n");
    Inputs::new(plugin::catalog()).with_text(no_jobs).load(&spec).map_err(run_failure)
}

/// The settings of the forecast: they look back no further than the scheduler remembers all jobs. If that is too short to estimate
/// arrivals, no job arrives, and the second value is that time.
fn settings(arguments: &WhenArguments, situation: &SituationView) -> (Settings, Option<Seconds>) {
    let steps = if arguments.draw_durations { JobSteps::Drawn } else { JobSteps::Known };
    let settings = arguments.forks.settings(Settings::default().n_forks, arguments.seed, steps);
    let first = situation.jobs.iter().map(|past| past.job.arrival.get()).fold(f64::INFINITY, f64::min);
    let known = Seconds::new(situation.now_s - situation.complete_since_s.max(first));
    let needed = Blocks::history_min(Seconds::new(situation.round_length_s));
    if settings.arriving == Arriving::Resampled && known < needed {
        return (Settings { arriving: Arriving::None, ..settings }, Some(known));
    }
    (Settings { history: settings.history.min(known), ..settings }, None)
}

/// A forecast, with the data that it came from.
#[derive(Debug)]
struct Shown<'a> {
    found: &'a Forecast,
    settings: &'a Settings,
    level: f64,
    past: &'a PastView,
    known: &'a Known,
    served: &'a Served,
    /// The time for which arrivals are known, if it is too short to estimate further ones.
    too_short: Option<Seconds>,
}

impl Shown<'_> {
    fn show(&self, session: &Session) -> Result<(), Failure> {
        let Self { found, settings, level, .. } = self;
        match session.output.format() {
            OutputFormat::Json => session.output.answer(&self.document()),
            OutputFormat::Csv => session.output.table(&for_programs(found, *level, settings)),
            OutputFormat::Table => {
                session.output.table(&for_people(found, *level))?;
                session.output.words(&self.words())
            }
        }
    }

    fn document(&self) -> When<'_> {
        let Self { found, settings, level, past, known, served, .. } = self;
        When {
            job: past.number.0,
            name: past.name.as_deref(),
            now_s: found.at.get(),
            submitted_s: past.job.arrival.get(),
            starts: past.starts,
            start: found.start.as_ref().map(|start| Times::of(start, *level)),
            end: Times::of(&found.end, *level),
            assumed: Assumed::of(found, settings),
            has_done_its_steps: known.overrun.contains(&past.number),
            n_reckoned: known.n_reckoned,
            n_completed: known.n_completed,
            n_as_submitted: known.n_as_submitted,
            policy: &served.policy,
            throughputs: &served.throughputs,
            seed: settings.seed,
        }
    }

    /// The forecast and its assumptions, in words.
    fn words(&self) -> String {
        let Self { found, settings, level, past, known, served, too_short } = self;
        let name = past.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let started = match past.starts {
            0 => "has not started".to_owned(),
            1 => "has been started once".to_owned(),
            times => format!("has been started {times} times"),
        };
        let since = in_words(found.at - past.job.arrival);
        let mut lines = vec![
            format!("\nJob {}{name} was submitted {since} ago and {started}.", past.number),
            interval_words(*level),
        ];
        if found.start.is_some() {
            lines.push("A start is that of a round: 0 is the next one.".to_owned());
        }
        if known.overrun.contains(&past.number) {
            lines.push(
                "It has done what it was to do, as far as is known, and goes on: one more step is assumed, and nothing says when it ends."
                    .to_owned(),
            );
        }
        lines.extend([
            format!(
                "Assumed: {} decides, the round that runs counts as over, servers stay as they are, and no job fails.",
                served.policy
            ),
        ]);
        if found.drawn_from.is_none() {
            lines.push("Active jobs take the steps that they were submitted with.".to_owned());
        }
        if known.n_completed > 0 {
            lines.push(format!(
                "Of {} that were completed, {} had workers for as long as their steps were to take, to within a tenth.",
                known.n_completed, known.n_as_submitted
            ));
        }
        if known.n_reckoned > 0 {
            let (jobs, they) = match known.n_reckoned {
                1 => ("job reports", "it has run is reckoned from the time that it"),
                _ => ("jobs report", "they have run is reckoned from the time that they"),
            };
            lines.push(format!("{} active {jobs} no steps: what {they} had workers.", known.n_reckoned));
        }
        if let Some(known) = too_short {
            lines.push(format!(
                "Jobs have come for {} only, which does not say how more will.",
                in_words(*known)
            ));
        }
        lines.extend(assumed_words(found, settings));
        lines.join("\n")
    }
}
