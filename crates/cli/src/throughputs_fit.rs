//! `apportion throughputs fit`: fits a contention model to measured pairs, and reports how well it predicts others.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Session;
use crate::conditions::number;
use crate::count::from_one_to;
use crate::exit::Failure;
use crate::file::{at, check_files, named, no_standard_output, write_bytes};
use crate::output::{Answer, OutputFormat};
use crate::paths::name_or_path;
use apportion::spec::contention_table::read_contention_table;
use apportion::spec::lookup::Embedded;
use apportion::spec::throughputs::{EMBEDDED, file_stem, write_contention, write_modelled};
use apportion::spec::{Source, SpecError, ThroughputsFile, read_throughputs};
use apportion::throughput::contention::{FitError, fit_network, fit_resource};
use apportion::throughput::contention::{FitReport, FitSettings, NetworkModel, ResourceModel};
use apportion::throughput::{ContentionModel, Throughputs};
use apportion_studies::report::{Cell, Table};

/// The most random starts of a fit.
const STARTS_MAX: u64 = 100_000;

/// `apportion throughputs fit`.
#[derive(Args, Debug)]
#[command(after_help = "\
Errors are in retained fraction: how far the predicted part of its isolated throughput that a job keeps beside
another is from the measured one. Held-out pairs are predicted by a model that was fitted without them.

Example:
  apportion throughputs fit osdi20 --model resource --out osdi20-resource.yaml
  apportion throughputs fit shared_thp_ratio.csv --model network")]
pub(super) struct FitArguments {
    /// An embedded matrix's name, a throughput file, or (for `network`) a CSV table of pairs of
    /// `JOB TYPE,WORKERS,SERVERS`
    #[arg(value_parser = name_or_path())]
    matrix: String,
    /// The model to fit
    #[arg(long, value_enum)]
    model: FittedModel,
    /// The fraction of pairs held out at a time, above 0, at most 0.5
    #[arg(long, default_value_t = 0.2, value_name = "FRACTION", value_parser = number)]
    held_out: f64,
    /// Random starts; the best is kept
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = from_one_to(STARTS_MAX))]
    starts: usize,
    /// The seed of starts and of the folds that are held out
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Names of the shared resources of `resource`; only their number matters, three predict best on `osdi20`
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "compute,memory_bandwidth,pcie",
        value_name = "NAMES"
    )]
    resources: Vec<String>,
    /// Workers of one server, for `network`
    #[arg(long, default_value_t = 8, value_name = "WORKERS", value_parser = clap::value_parser!(u32).range(1..))]
    workers_per_server: u32,
    /// Where to write the throughputs with the fitted model; of a CSV table, its `colocation` section; `-` is standard output, in
    /// place of the tables
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FittedModel {
    /// Max-min shares of resources
    Resource,
    /// Fair shares of the links between servers
    Network,
}

/// A fitted contention model, as `apportion throughputs fit --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Fitted<'a> {
    /// The quality of its predictions.
    report: &'a FitReport,
    /// The model, if it is a resource model.
    resource: Option<&'a ResourceModel>,
    /// The model, if it is a network model.
    network: Option<&'a NetworkModel>,
}

impl Answer for Fitted<'_> {
    const KIND: &'static str = "fit";
}

pub(super) fn run(arguments: &FitArguments, session: &Session) -> Result<(), Failure> {
    check_files(&[named("the matrix", Some(&arguments.matrix))], &[at("--out", arguments.out.as_deref())])?;
    let settings =
        FitSettings { held_out: arguments.held_out, starts: arguments.starts, seed: arguments.seed };
    let (model, report, file) = fit(arguments, &settings)?;
    let text = arguments.out.as_ref().map(|_| match &file {
        Some(file) => write_modelled(&file.header, &file.measured, &model),
        None => write_contention(&model),
    });
    let out = no_standard_output(arguments.out.as_deref());
    if let (None, Some(text)) = (out, &text) {
        return session.output.text(text);
    }
    match session.output.format() {
        OutputFormat::Json => {
            let (mut resource, mut network) = (None, None);
            match &model {
                ContentionModel::Resource(fitted) => resource = Some(fitted),
                ContentionModel::Network(fitted) => network = Some(fitted),
                ContentionModel::None | ContentionModel::Measured => {}
            }
            session.output.answer(&Fitted { report: &report, resource, network })
        }
        OutputFormat::Csv => session.output.table(&errors(&report)),
        OutputFormat::Table => {
            session.output.table(&errors(&report))?;
            session.output.text("")?;
            session.output.table(&parameters(&model))
        }
    }?;
    match out.zip(text) {
        Some((out, text)) => write_bytes(session, out, text.as_bytes()),
        None => Ok(()),
    }
}

/// The model, its errors, and the throughputs that it belongs to.
type Outcome = (ContentionModel, FitReport, Option<ThroughputsFile>);

fn fit(arguments: &FitArguments, settings: &FitSettings) -> Result<Outcome, Failure> {
    let is_table = arguments.matrix.to_ascii_lowercase().ends_with(".csv");
    if is_table {
        let FittedModel::Network = arguments.model else {
            let message = "a table of configurations tells nothing of `resource`";
            return Err(Failure::usage(
                message,
                Some("give a throughput file, or say `--model network`".to_owned()),
            ));
        };
        let measured = read_contention_table(&Source::load(&arguments.matrix)?)?;
        let fitted = fit_network(measured, arguments.workers_per_server, settings);
        let (model, report) = fitted.map_err(|error| refused(&error))?;
        return Ok((ContentionModel::Network(model), report, None));
    }
    let embedded: &[Embedded] = &EMBEDDED;
    let source = Source::find("throughputs", &arguments.matrix, embedded)?;
    let file = read_throughputs(&source, &file_stem(&arguments.matrix))?;
    if let FittedModel::Network = arguments.model {
        let ContentionModel::Network(known) = &file.model else {
            let message = format!("`{}` has no pairs of configurations on several servers", arguments.matrix);
            return Err(Failure::usage(
                message,
                Some("give a CSV table, or a file of model `network`".to_owned()),
            ));
        };
        let fitted = fit_network(known.measured.clone(), known.workers_per_server, settings);
        let (mut model, report) = fitted.map_err(|error| refused(&error))?;
        model.measured_sets.clone_from(&known.measured_sets);
        return Ok((ContentionModel::Network(model), report, Some(file)));
    }
    let ContentionModel::Measured = file.model else {
        let message = format!("`{}` has no measured pairs to fit to", arguments.matrix);
        return Err(Failure::usage(
            message,
            Some("give a matrix whose `colocation` is `measured`".to_owned()),
        ));
    };
    let throughputs = Throughputs::try_new(file.measured.clone())
        .map_err(|error| SpecError::about(source.name, error.to_string(), None))?;
    let fitted = fit_resource(&throughputs, &arguments.resources, settings);
    let (model, report) = fitted.map_err(|error| refused(&error))?;
    Ok((ContentionModel::Resource(model), report, Some(file)))
}

fn refused(error: &FitError) -> Failure {
    let help = match error {
        FitError::TooFew { .. } => Some("hold out a larger fraction, or measure more pairs".to_owned()),
        _ => None,
    };
    Failure::usage(error.to_string(), help)
}

/// A table of in-sample and held-out errors of the model, of its rejected variants, and of trivial predictions.
fn errors(report: &FitReport) -> Table {
    let mut table = Table::new([
        "prediction",
        "of",
        "measurements",
        "rmse_fitted",
        "rmse_held_out",
        "mae_held_out",
        "max_held_out",
    ]);
    let overall = std::iter::once((&report.model, "all"));
    let parts = report.by_worker_type.iter().map(|judged| (judged, judged.name.as_str()));
    let rejected = report.rejected.iter().chain(&report.baselines).map(|judged| (judged, "all"));
    for (judged, of) in overall.chain(parts).chain(rejected) {
        let name = if of == "all" { &judged.name } else { &report.model.name };
        let held_out = judged.held_out;
        table.push(vec![
            name.as_str().into(),
            of.into(),
            Cell::Count(judged.in_sample.count as u64),
            Cell::Number(judged.in_sample.rmse, 4),
            Cell::Number(held_out.rmse, 4),
            Cell::Number(held_out.mae, 4),
            Cell::Number(held_out.max, 4),
        ]);
    }
    table
}

fn parameters(model: &ContentionModel) -> Table {
    match model {
        ContentionModel::Resource(model) => of_resource(model),
        ContentionModel::Network(model) => of_network(model),
        ContentionModel::None | ContentionModel::Measured => Table::default(),
    }
}

fn of_resource(model: &ResourceModel) -> Table {
    let demands = model.resources.iter().map(|name| format!("{name} demand"));
    let weights = model.resources.iter().map(|name| format!("{name} weight"));
    let head = ["worker_type", "efficiency", "job_type"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(demands).chain(weights));
    for (worker_type, shared) in &model.worker_types {
        for (job_type, demands) in &shared.demands {
            let numbers = demands.demand.iter().chain(&demands.weight);
            let mut row = vec![
                worker_type.as_str().into(),
                Cell::Number(shared.efficiency, 3),
                job_type.as_str().into(),
            ];
            row.extend(numbers.map(|value| Cell::Number(*value, 3)));
            table.push(row);
        }
    }
    table
}

fn of_network(model: &NetworkModel) -> Table {
    let mut table = Table::new(["parameter", "communication", "flows"]);
    for (job_type, traffic) in &model.job_types {
        let (communication, flows) = (Cell::Number(traffic.communication, 4), Cell::Number(traffic.flows, 4));
        table.push(vec![job_type.as_str().into(), communication, flows]);
    }
    let growth = &model.growth;
    for (name, communication, flows) in [
        ("exponent of servers", growth.communication_servers, growth.flows_servers),
        ("exponent of workers", growth.communication_workers, growth.flows_workers),
    ] {
        table.push(vec![name.into(), Cell::Number(communication, 4), Cell::Number(flows, 4)]);
    }
    table.push(vec!["efficiency beside others".into(), Cell::Number(model.efficiency, 4), Cell::Empty]);
    table
}
