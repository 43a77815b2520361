//! The command line as a whole: global flags and the list of subcommands.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::allocate::AllocateArguments;
use crate::bench::BenchArguments;
use crate::check::CheckArguments;
use crate::compare::CompareArguments;
use crate::completions::{CompletionsArguments, ManArguments};
use crate::explain::ExplainArguments;
use crate::forecast::ForecastArguments;
use crate::gavel::GavelArguments;
use crate::help;
#[cfg(feature = "live")]
use crate::live::LiveCommand;
use crate::output::OutputFormat;
use crate::policies::PoliciesArguments;
use crate::progress::ProgressMode;
use crate::report::ReportArguments;
use crate::results::ResultsArguments;
use crate::schema::SchemaArguments;
use crate::simulate::SimulateArguments;
use crate::sweep::SweepArguments;
use crate::throughputs::ThroughputsArguments;
use crate::trace::TraceArguments;
use crate::train::TrainArguments;
use crate::world::WorldArguments;

/// Decides which deep-learning jobs run on which accelerators.
#[derive(Debug, Parser)]
#[command(name = "apportion", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Arguments {
    /// Flags that every subcommand has.
    #[command(flatten)]
    pub global: Global,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Reads a command line, the first word of which is the program's name.
    ///
    /// # Errors
    /// If it is refused, or asks for help.
    pub(crate) fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = help::in_paragraphs(Self::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    a bug, or the machine (a full disk, a lost file)
  2    bad input: a file, or a flag
  3    well-posed, but infeasible or unbounded
  4    a limit was hit, or an optimum (of water filling, its first level) is not proven; what there is is written and marked
  5    a comparison found a bound broken, or a check an untrue claim
  130  interrupted; run it again to resume

Ctrl-C lets a command finish what it holds, and once more ends it at once; one that keeps nothing on its way ends at
once. SIGTERM, which batch systems and `timeout` send once, gives it ten seconds; a sweep ends at once, as what it has
finished is kept.";

/// Flags that every subcommand has.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// How results are written to standard output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT", display_order = 900)]
    pub format: OutputFormat,
    /// Whether to show progress on standard error; `auto` does if that is a terminal
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", display_order = 901)]
    pub progress: ProgressMode,
    /// Say nothing but results and errors
    #[arg(long, global = true, display_order = 902)]
    pub quiet: bool,
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decide the time shares of the jobs in a snapshot
    Allocate(AllocateArguments),
    /// Explain why each job gets its share: route, binding constraints, prices
    Explain(ExplainArguments),
    /// List, show and check policies
    Policies(PoliciesArguments),
    /// Import, show or check throughput matrices; fit contention models.
    Throughputs(ThroughputsArguments),
    /// Generate, convert or show traces of jobs.
    Trace(TraceArguments),
    /// Simulate a cluster over time.
    Simulate(Box<SimulateArguments>),
    /// Forecast when a job of a trace starts and ends
    Forecast(Box<ForecastArguments>),
    /// Play learned schedulers' worlds: DeepShare's, DL2's, the elastic, the dual agents'.
    World(WorldArguments),
    /// Run many simulations and keep every result.
    Sweep(Box<SweepArguments>),
    /// Run a command line of Gavel's scripts as it is typed
    Gavel(GavelArguments),
    /// Train a learned scheduler.
    Train(TrainArguments),
    /// Look at the results of sweeps, and join them.
    Results(ResultsArguments),
    /// Measure what decisions cost, by policy, backend and size
    Bench(Box<BenchArguments>),
    /// Let policies decide random instances, and look for untrue claims
    Check(CheckArguments),
    /// Compare two sets of results, and check bounds.
    Compare(CompareArguments),
    /// Write a page with charts about results.
    Report(ReportArguments),
    /// Print the JSON Schema of a document
    Schema(SchemaArguments),
    /// Print a script that completes the command in a shell
    Completions(CompletionsArguments),
    /// Write manual pages
    Man(ManArguments),
    /// The commands around a live scheduler.
    #[cfg(feature = "live")]
    #[command(flatten)]
    Live(LiveCommand),
}
