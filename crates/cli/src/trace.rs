//! `apportion trace`: generate, convert and show traces of jobs, and make them of clusters' logs.

mod log;
mod convert;
mod nodes;
mod sketch;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) use self::nodes::NodesSummary;
pub(crate) use self::show::WorkloadSummary;

use self::convert::ConvertArguments;
use self::nodes::NodesArguments;
use self::show::ShowArguments;
use crate::Session;
use crate::conditions::number;
use crate::count::{JOBS_MAX, from_one_to};
use crate::exit::Failure;
use crate::file::{at, check_files, named, write_or_print};
use crate::paths::name_or_path;
use apportion::spec::trace::Number;
use apportion::spec::{Trace, TraceForm, TracedJob, WriteTraceError, load_throughputs, write_trace};
use apportion::throughput::Throughputs;
use apportion::units::{JobsPerHour, Seconds};
use apportion::workload::{Arrivals, Gavel, GeneratorError, JobTable, Native, WorkloadOptions};
use apportion_logs::form::FORMS;
use apportion_logs::read::SACCT_COMMAND;
use apportion_logs::rules;
use apportion_logs::tally::counted;
use apportion_studies::report::Table;

/// `apportion trace`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  apportion trace generate --rate 2 --jobs 1000 --multi-worker --out jobs.csv
  apportion trace convert jobs.csv --to gavel --out jobs.trace
  apportion trace convert cluster_job_log --from philly --throughputs osdi20 --seed 1 --out philly.csv
  apportion trace show sacct.txt.gz --from sacct --zone Europe/Berlin --cluster a100=64 --page log.html
  apportion trace cluster nodes.txt --from scontrol
  apportion trace show jobs.csv --throughputs osdi20")]
pub struct TraceArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Draw jobs at random.
    Generate(GenerateArguments),
    /// Go between our CSV and Gavel's form, and make traces of clusters' logs.
    Convert(ConvertArguments),
    /// Show what the jobs of a trace or of a cluster's log are like, and what is doubtful about a log.
    Show(ShowArguments),
    /// Make a cluster of a table of nodes.
    Cluster(NodesArguments),
    /// List the forms of clusters' logs that are read.
    Forms,
    /// Print the rules by which rows of a log become jobs where none are given, to start from.
    Rules,
    /// Print a call of Slurm's sacct; its output is what `--from sacct` reads.
    SacctCommand,
}

/// A form that traces are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Our CSV.
    #[default]
    Native,
    /// Gavel's ten tab-separated columns.
    Gavel,
}

impl From<Form> for TraceForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Native => Self::Native,
            Form::Gavel => Self::Gavel,
        }
    }
}

/// The generator of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Generator {
    /// Ours: independent streams, any throughput matrix.
    #[default]
    Native,
    /// The draws of the published simulator, bit for bit.
    Gavel,
    /// The draws of the published simulator from its older job table, which the paper's recorded runs were drawn from.
    #[value(name = "gavel_osdi20")]
    GavelOsdi20,
}

#[derive(Args, Debug)]
struct GenerateArguments {
    /// Arrivals as a Poisson process of this rate in jobs per hour, the first at 0
    #[arg(long, value_name = "JOBS_PER_HOUR", required_unless_present = "static_jobs", requires = "jobs", value_parser = number)]
    rate: Option<f64>,
    /// Number of jobs
    #[arg(long, value_name = "N", conflicts_with = "static_jobs", value_parser = from_one_to(JOBS_MAX))]
    jobs: Option<usize>,
    /// A number of jobs, all at time 0
    #[arg(long = "static", value_name = "N", conflicts_with = "rate", value_parser = from_one_to(JOBS_MAX))]
    static_jobs: Option<usize>,
    /// The generator of jobs
    #[arg(long, value_enum, default_value_t)]
    generator: Generator,
    /// The seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    kinds: Kinds,
    /// An embedded throughput matrix's name, or a file
    #[arg(long, default_value = "osdi20", value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: String,
    #[command(flatten)]
    target: Target,
}

/// The kinds of jobs to draw.
#[derive(Args, Debug)]
struct Kinds {
    /// Let some jobs need 2, 4 or 8 workers
    #[arg(long)]
    multi_worker: bool,
    /// Give one job in five weight 5
    #[arg(long)]
    multi_priority: bool,
    /// Give jobs SLOs of 1.2, 2 or 10 times their duration
    #[arg(long)]
    slos: bool,
    /// The duration of every job alone on the reference worker type, as 90, 90s, 15min, 2h or 3d; drawn by default
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Seconds>,
}

/// The file and the form of a trace.
#[derive(Args, Debug)]
struct Target {
    /// The form to write
    #[arg(long, value_enum, default_value_t)]
    to: Form,
    /// Where to write, `-` being standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn parse_time(text: &str) -> Result<Seconds, String> {
    Seconds::parse(text).ok_or_else(|| "expected a time as 90, 90s, 15min, 2h or 3d".to_owned())
}

pub(super) fn run(arguments: &TraceArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.action {
        Action::Generate(arguments) => generate(arguments, session),
        Action::Convert(arguments) => convert::run(arguments, session),
        Action::Show(arguments) => show::run(arguments, session),
        Action::Cluster(arguments) => nodes::run(arguments, session),
        Action::Forms => forms(session),
        Action::Rules => session.output.document(rules::DEFAULT),
        Action::SacctCommand => session.output.document(SACCT_COMMAND),
    }
}

fn generate(arguments: &GenerateArguments, session: &Session) -> Result<(), Failure> {
    let out = arguments.target.out.as_deref();
    check_files(&[named("--throughputs", Some(&arguments.throughputs))], &[at("--out", out)])?;
    let throughputs = load_throughputs(&arguments.throughputs)?;
    let mut source = arrivals(arguments, &throughputs)?;
    let mut jobs = Vec::new();
    while let Some(job) = source.next_job() {
        if session.interrupt.is_raised() {
            let message = "no trace was written".to_owned();
            return Err(Failure::Interrupted { message });
        }
        jobs.push(TracedJob { job, id: jobs.len().to_string(), command: None });
    }
    let trace = Trace { form: TraceForm::Native, jobs };
    let Target { to, out } = &arguments.target;
    let written = write_trace(&trace, (*to).into(), Some(&throughputs));
    let written = written.map_err(|error| not_held(arguments, &error))?;
    note_not_held(written.n_cut_steps, written.n_without_entity, session);
    write_or_print(session, out.as_deref(), &written.text)
}

/// The failure to write drawn jobs: it names the flag of a number that a trace cannot hold.
fn not_held(arguments: &GenerateArguments, error: &WriteTraceError) -> Failure {
    let is_given = arguments.kinds.duration.is_some();
    let flag = match error {
        WriteTraceError::OutOfRange { what: Number::Arrival, .. } => Some(("--rate", "a higher rate")),
        WriteTraceError::OutOfRange { what: Number::TotalSteps | Number::Slo, value, .. } if is_given => {
            Some(("--duration", if *value > 1.0 { "a shorter time" } else { "a longer time" }))
        }
        WriteTraceError::NoWholeStep { .. } if is_given => Some(("--duration", "a longer time")),
        _ => None,
    };
    match flag {
        Some((flag, remedy)) => Failure::usage(format!("{flag}: {error}"), Some(format!("give {remedy}"))),
        None => not_written(error),
    }
}

/// The failure to write a trace in a form that cannot hold it.
fn not_written(error: &WriteTraceError) -> Failure {
    let remedy = match error {
        WriteTraceError::NoDuration { .. } => {
            "write our CSV, or give throughputs that have the job's type and scale factor by `--throughputs`"
        }
        WriteTraceError::Separator { .. } => "give it a name without tabs, commas, quotes and ends of lines",
        WriteTraceError::Sizes { .. } | WriteTraceError::Seven => "write our CSV: `--to native`",
        WriteTraceError::NoWholeStep { .. } => "write our CSV, which holds fractions: `--to native`",
        _ => "change the number in the trace",
    };
    Failure::usage(error.to_string(), Some(remedy.to_owned()))
}

fn arrivals(
    arguments: &GenerateArguments,
    throughputs: &Arc<Throughputs>,
) -> Result<Box<dyn Arrivals>, Failure> {
    let options = match (arguments.static_jobs, arguments.rate) {
        (Some(n_jobs), _) => WorkloadOptions::at_once(n_jobs),
        (None, Some(rate)) if rate.is_finite() && rate > 0.0 => {
            let options = WorkloadOptions::continuous(JobsPerHour::new(rate).mean_gap());
            options.jobs(arguments.jobs.unwrap_or(0))
        }
        (None, rate) => {
            let rate = rate.unwrap_or(0.0);
            return Err(Failure::usage(format!("--rate is {rate}, expected a number above 0"), None));
        }
    };
    let Kinds { multi_worker, multi_priority, slos, duration } = arguments.kinds;
    let options =
        options.multi_worker(multi_worker).multi_priority(multi_priority).slos(slos).duration(duration);
    let gavel = |table| {
        Gavel::try_new(options, Arc::clone(throughputs), arguments.seed)
            .map(|source| Box::new(source.with_job_table(table)) as _)
    };
    let made: Result<Box<dyn Arrivals>, _> = match arguments.generator {
        Generator::Native => {
            Native::try_new(options, throughputs, arguments.seed).map(|source| Box::new(source) as _)
        }
        Generator::Gavel => gavel(JobTable::Released),
        Generator::GavelOsdi20 => gavel(JobTable::Osdi20),
    };
    made.map_err(|error| {
        let flag = match error {
            GeneratorError::MeanGap { .. } => "--rate: ",
            GeneratorError::Duration { .. } => "--duration: ",
            _ => "",
        };
        Failure::usage(format!("{flag}{error}"), None)
    })
}

/// Lists the forms of logs.
fn forms(session: &Session) -> Result<(), Failure> {
    let mut table = Table::new(["form", "log"]);
    for entry in &FORMS {
        table.push(vec![entry.name.into(), entry.summary.into()]);
    }
    session.output.table(&table)
}

fn write(
    trace: &Trace,
    (form, out): (TraceForm, Option<&Path>),
    throughputs: Option<&Throughputs>,
    session: &Session,
) -> Result<(), Failure> {
    let written = write_trace(trace, form, throughputs).map_err(|error| not_written(&error))?;
    note_not_held(written.n_cut_steps, written.n_without_entity, session);
    write_or_print(session, out, &written.text)
}

/// Notes values that a form could not hold.
fn note_not_held(n_cut_steps: usize, n_without_entity: usize, session: &Session) {
    if n_cut_steps > 0 {
        session.note(format!("cut the fraction of a step off {}", counted(n_cut_steps as u64, "job")));
    }
    if n_without_entity > 0 {
        session.note(format!("left out the entity of {}", counted(n_without_entity as u64, "job")));
    }
}
