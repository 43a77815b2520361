//! `apportion trace`: generate, convert and show traces of jobs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};

use crate::Session;
use crate::count::{JOBS_MAX, from_one_to};
use crate::exit::Failure;
use crate::file::write_or_print;
use crate::paths::name_or_path;
use apportion::spec::{
    LogOrigin, NotUnderstood, Source, Trace, TraceForm, TraceOrder, TracedJob, import_log, load_throughputs,
    read_trace, write_trace,
};
use apportion::throughput::Throughputs;
use apportion::units::{JobsPerHour, Seconds};
use apportion::workload::{Arrivals, Gavel, JobTable, Native, WorkloadOptions};
use apportion_studies::report::{Cell, Table};

/// `apportion trace`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  apportion trace generate --rate 2 --jobs 1000 --multi-worker --out jobs.csv
  apportion trace convert jobs.csv --to gavel --out jobs.trace
  apportion trace convert cluster_job_log --from philly --throughputs osdi20 --seed 1 --out philly.csv
  apportion trace show jobs.csv")]
pub struct TraceArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Draw jobs at random.
    Generate(GenerateArguments),
    /// Go between our CSV and Gavel's form.
    Convert(ConvertArguments),
    /// Count a trace's jobs by type and scale factor.
    Show(ShowArguments),
}

/// The most complaints about a log that are shown where jobs are left out.
const COMPLAINTS_SHOWN: usize = 5;

/// A form that traces are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Our CSV.
    #[default]
    Native,
    /// Gavel's ten tab-separated columns.
    Gavel,
}

/// Whose log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Log {
    /// Microsoft's, 2017.
    Philly,
    /// Alibaba's, 2020.
    Pai,
    /// SenseTime's, 2020.
    Helios,
}

impl From<Log> for LogOrigin {
    fn from(log: Log) -> Self {
        match log {
            Log::Philly => Self::Philly,
            Log::Pai => Self::Pai,
            Log::Helios => Self::Helios,
        }
    }
}

impl From<Form> for TraceForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Native => Self::Native,
            Form::Gavel => Self::Gavel,
        }
    }
}

/// Whose generator draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Generator {
    /// Ours: independent streams, any throughput matrix.
    #[default]
    Native,
    /// What the published simulator draws, bit for bit.
    Gavel,
    /// The same from its older job table, which the paper's recorded runs were drawn from.
    #[value(name = "gavel_osdi20")]
    GavelOsdi20,
}

#[derive(Args, Debug)]
struct GenerateArguments {
    /// Arrivals as a Poisson process of so many jobs per hour, the first at 0
    #[arg(long, value_name = "JOBS_PER_HOUR", required_unless_present = "static_jobs", requires = "jobs")]
    rate: Option<f64>,
    /// How many jobs
    #[arg(long, value_name = "N", conflicts_with = "static_jobs", value_parser = from_one_to(JOBS_MAX))]
    jobs: Option<usize>,
    /// So many jobs, all at time 0
    #[arg(long = "static", value_name = "N", conflicts_with = "rate", value_parser = from_one_to(JOBS_MAX))]
    static_jobs: Option<usize>,
    /// Whose draws
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

/// Which kinds of job to draw.
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

/// Where a trace goes, and in which form.
#[derive(Args, Debug)]
struct Target {
    /// The form to write
    #[arg(long, value_enum, default_value_t)]
    to: Form,
    /// Where to write; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct ConvertArguments {
    /// The trace, in any form, or the log of a cluster; `-` is standard input
    #[arg(value_parser = name_or_path())]
    file: String,
    /// Take the jobs from a cluster's log: Philly's cluster_job_log, PAI's pai_task_table.csv, Helios' cluster_log.csv.
    /// Job types are drawn from the throughputs, steps follow from running times
    #[arg(long, value_enum, value_name = "LOG", requires = "throughputs", conflicts_with = "drop_unknown")]
    from: Option<Log>,
    /// The seed of the job types drawn for a log
    #[arg(long, default_value_t = 0, requires = "from")]
    seed: u64,
    /// Leave out jobs of a log of which something is not understood, or whose name an earlier job has, and say how many
    #[arg(long, requires = "from")]
    skip_unreadable: bool,
    /// Sort jobs that are not in order of arrival
    #[arg(long)]
    sort: bool,
    /// Check job types against this matrix (an embedded name, or a file), and take Gavel's durations from it
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: Option<String>,
    /// Leave out jobs that the matrix has no throughputs for
    #[arg(long, requires = "throughputs")]
    drop_unknown: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Args, Debug)]
struct ShowArguments {
    /// The trace, in any form; `-` is standard input
    #[arg(value_parser = name_or_path())]
    file: String,
    /// Check job types against this matrix: an embedded name, or a file
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: Option<String>,
}

fn parse_time(text: &str) -> Result<Seconds, String> {
    Seconds::parse(text).ok_or_else(|| "expected a time as 90, 90s, 15min, 2h or 3d".to_owned())
}

pub(super) fn run(arguments: &TraceArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.action {
        Action::Generate(arguments) => generate(arguments, session),
        Action::Convert(arguments) => convert(arguments, session),
        Action::Show(arguments) => show(arguments, session),
    }
}

fn generate(arguments: &GenerateArguments, session: &Session) -> Result<(), Failure> {
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
    write(&trace, &arguments.target, Some(&throughputs), session)
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
    made.map_err(|error| Failure::usage(error.to_string(), None))
}

fn convert(arguments: &ConvertArguments, session: &Session) -> Result<(), Failure> {
    let throughputs = arguments.throughputs.as_deref().map(load_throughputs).transpose()?;
    let order = if arguments.sort { TraceOrder::Sort } else { TraceOrder::Refuse };
    let source = Source::load(&arguments.file)?;
    if let (Some(log), Some(throughputs)) = (arguments.from, &throughputs) {
        let policy = if arguments.skip_unreadable { NotUnderstood::LeaveOut } else { NotUnderstood::Refuse };
        let imported = import_log(&source, log.into(), throughputs, (arguments.seed, policy))?;
        let (n_jobs, n_left_out) = (imported.trace.jobs.len(), imported.n_left_out);
        session.note(format!("{n_jobs} jobs; {n_left_out} without accelerators or times left out"));
        if imported.n_not_understood > 0 {
            let n = imported.n_not_understood;
            session.note(format!("{n} jobs that are not understood left out, the first of them:"));
            for complaint in imported.complaints.iter().take(COMPLAINTS_SHOWN) {
                session.note(complaint.to_string());
            }
        }
        if imported.n_cut > 0 {
            session.note(format!("{} jobs were given the largest scale factor there is", imported.n_cut));
        }
        return write(&imported.trace, &arguments.target, Some(throughputs), session);
    }
    let trace = if let (true, Some(throughputs)) = (arguments.drop_unknown, &throughputs) {
        let mut trace = read_trace(&source, None, order)?;
        let n_dropped = trace.retain_known(throughputs);
        let name = throughputs.name();
        session.note(format!("left out {n_dropped} jobs that throughputs `{name}` do not have"));
        trace
    } else {
        read_trace(&source, throughputs.as_deref(), order)?
    };
    write(&trace, &arguments.target, throughputs.as_deref(), session)
}

fn write(
    trace: &Trace,
    target: &Target,
    throughputs: Option<&Throughputs>,
    session: &Session,
) -> Result<(), Failure> {
    let written = write_trace(trace, target.to.into(), throughputs)
        .map_err(|error| Failure::usage(error.to_string(), None))?;
    if written.n_cut_steps > 0 {
        session.note(format!("cut the fraction of a step off {} jobs", written.n_cut_steps));
    }
    if written.n_without_entity > 0 {
        session.note(format!("left out the entity of {} jobs", written.n_without_entity));
    }
    write_or_print(session, target.out.as_deref(), &written.text)
}

fn show(arguments: &ShowArguments, session: &Session) -> Result<(), Failure> {
    let throughputs = arguments.throughputs.as_deref().map(load_throughputs).transpose()?;
    let trace = read_trace(&Source::load(&arguments.file)?, throughputs.as_deref(), TraceOrder::Refuse)?;
    let mut kinds: BTreeMap<(&str, u32), (u64, f64)> = BTreeMap::new();
    for TracedJob { job, .. } in &trace.jobs {
        let (n_jobs, steps) = kinds.entry((&job.job_type, job.scale_factor)).or_default();
        *n_jobs += 1;
        *steps += job.total_steps.get();
    }
    let mut table = Table::new(["job_type", "scale_factor", "jobs", "mean_steps"]);
    for ((job_type, scale_factor), (n_jobs, steps)) in kinds {
        let mean = Cell::Number(steps / n_jobs as f64, 0);
        table.push(vec![job_type.into(), Cell::Count(scale_factor.into()), Cell::Count(n_jobs), mean]);
    }
    session.note(in_words(&trace));
    session.output.table(&table)
}

fn in_words(trace: &Trace) -> String {
    let form = match trace.form {
        TraceForm::Native => "our CSV",
        TraceForm::Gavel => "Gavel's ten columns",
        TraceForm::GavelSeven => "Gavel's seven columns",
    };
    let hours = |job: Option<&TracedJob>| job.map_or(0.0, |traced| traced.job.arrival.hours());
    let (first, last) = (hours(trace.jobs.first()), hours(trace.jobs.last()));
    format!("{} jobs in {form}, arriving from {first:.2} h to {last:.2} h", trace.jobs.len())
}
