//! Contention models and the estimator on published measurements.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stderr, reason = "what is skipped is said, and errors are shown")]

use std::path::Path;
use std::sync::Arc;

use apportion::Throughputs;
use apportion::index::{Id, JobId, RowId};
use apportion::spec::contention_table::read_contention_table;
use apportion::spec::throughputs::write_modelled;
use apportion::spec::{Source, ThroughputsFile, read_throughputs};
use apportion::throughput::contention::network::Configuration;
use apportion::throughput::contention::{ContentionModel, FitReport, FitSettings, fit_network, fit_resource};
use apportion::throughput::estimator::{Estimator, ProfileColumns, Profiling};

fn show(title: &str, report: &FitReport) {
    eprintln!("{title}, {} folds", report.folds);
    let all = std::iter::once(&report.model).chain(&report.by_worker_type);
    for judged in all.chain(&report.rejected).chain(&report.baselines) {
        eprintln!("  {:<55} in sample {}; held out {}", judged.name, judged.in_sample, judged.held_out);
    }
}

#[test]
fn resource_demands_predict_pairs_of_the_paper_that_they_were_not_fitted_to() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let resources = ["compute".to_owned(), "memory_bandwidth".to_owned()];
    let settings = FitSettings { starts: 2, ..FitSettings::default() };
    let (model, report) = fit_resource(&throughputs, &resources, &settings).unwrap();
    show("osdi20", &report);
    model.check().unwrap();
    let [no_contention, mean, job_mean] = &report.baselines[..] else { panic!("{:?}", report.baselines) };
    assert!(report.model.held_out.rmse < 0.11, "{}", report.model.held_out);
    assert!(report.model.held_out.rmse < 0.3 * no_contention.held_out.rmse);
    assert!(report.model.held_out.rmse < 0.65 * mean.held_out.rmse);
    assert!(report.model.held_out.rmse < 0.75 * job_mean.held_out.rmse);
    // Co-location on the fastest type was measured to cost many pairs nothing, with no pattern in their demands.
    for (judged, bound) in report.by_worker_type.iter().zip([0.18, 0.07, 0.05]) {
        assert!(judged.held_out.rmse < bound, "{}: {}", judged.name, judged.held_out);
    }
    // Exactly the pairs that were measured to stand still stay apart.
    let modelled = ContentionModel::Resource(model).apply(&throughputs).unwrap();
    for column in throughputs.worker_types().ids() {
        for (row, other) in
            throughputs.rows().ids().flat_map(|a| throughputs.rows().ids().map(move |b| (a, b)))
        {
            if throughputs.rows()[row].scale_factor == 1 && throughputs.rows()[other].scale_factor == 1 {
                let together = |matrix: &Throughputs| matrix.colocated(row, other, column) > 0.0;
                assert_eq!(together(&throughputs), together(&modelled), "{row} beside {other} on {column}");
            }
        }
    }
}

fn configuration(job_type: &str, workers: u32, servers: u32) -> Configuration {
    Configuration { job_type: job_type.to_owned(), workers, servers }
}

#[test]
fn traffic_predicts_pairs_of_deepshare_that_it_was_not_fitted_to() {
    let path =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/deepshare/shared_thp_ratio.csv"));
    if !path.exists() {
        eprintln!("skipped: no measurements at {}", path.display());
        return;
    }
    let measured = read_contention_table(&Source::load(path).unwrap()).unwrap();
    let (model, report) = fit_network(measured, 8, &FitSettings::default()).unwrap();
    show("DeepShare", &report);
    model.check().unwrap();
    let [no_contention, mean, job_mean] = &report.baselines[..] else { panic!("{:?}", report.baselines) };
    // Repetitions of a configuration scatter by about 0.1 themselves.
    assert!(report.model.held_out.rmse < 0.115, "{}", report.model.held_out);
    assert!(report.model.held_out.rmse < 0.45 * no_contention.held_out.rmse);
    assert!(report.model.held_out.rmse < 0.65 * mean.held_out.rmse);
    assert!(report.model.held_out.rmse < 0.7 * job_mean.held_out.rmse);
    // What was measured comes back as it was.
    let (mixture, sharded) = (configuration("MoE", 8, 2), configuration("FSDP", 8, 2));
    let row = model.measured.iter().position(|row| row.job == mixture).unwrap();
    let column = model.measured.iter().position(|row| row.job == sharded).unwrap();
    let kept = model.retention(&mixture, std::slice::from_ref(&sharded)).unwrap();
    assert_eq!(Some(kept), model.measured[row].beside[column]);
    // A second neighbour costs more than either alone.
    let quiet = configuration("GraphSage", 8, 2);
    let both = model.retention(&mixture, &[sharded, quiet]).unwrap();
    assert!(both <= kept && both > 0.1, "{both} of {kept}");
}

/// Root of the mean squared error of estimated retention over all pairs of one job a type, averaged over seeds.
fn error_of_estimates(profiling: Profiling, n_seeds: u64) -> f64 {
    let truth = Throughputs::embedded("osdi20").unwrap();
    let single = |row: &RowId| truth.rows()[*row].scale_factor == 1;
    let rows: Vec<RowId> = truth.rows().ids().filter(single).collect();
    let jobs: Vec<JobId> = (0..rows.len()).map(Id::from_index).collect();
    let mut errors = Vec::new();
    for seed in 0..n_seeds {
        let mut estimator = Estimator::try_new(Arc::clone(&truth), profiling, seed).unwrap();
        jobs.iter().zip(&rows).for_each(|(job, row)| estimator.arrive(*job, *row));
        let believed = estimator.believed(&jobs);
        let mut squares = Vec::new();
        for (i, k) in
            (0..rows.len()).flat_map(|i| (0..rows.len()).map(move |k| (i, k))).filter(|(i, k)| i != k)
        {
            for column in truth.worker_types().ids() {
                let steps = believed.throughputs.colocated(believed.rows[i], believed.rows[k], column);
                let miss = (steps - truth.colocated(rows[i], rows[k], column)) / truth.alone(rows[i], column);
                squares.push(miss * miss);
            }
        }
        errors.push((squares.iter().sum::<f64>() / squares.len() as f64).sqrt());
    }
    errors.iter().sum::<f64>() / errors.len() as f64
}

#[test]
fn estimates_of_the_paper_degrade_as_less_is_profiled() {
    let by_fraction =
        [1.0, 0.6, 0.3, 0.1, 0.0].map(|fraction| error_of_estimates(Profiling::new(fraction, 26), 20));
    eprintln!("estimated retention, 26 references, fraction 1, 0.6, 0.3, 0.1, 0: rmse {by_fraction:.4?}");
    let by_references =
        [26, 16, 8, 4].map(|references| error_of_estimates(Profiling::new(1.0, references), 20));
    eprintln!("estimated retention, fraction 1, references 26, 16, 8, 4: rmse {by_references:.4?}");
    let published = [16, 8, 4].map(|references| {
        error_of_estimates(
            Profiling { columns: ProfileColumns::Published, ..Profiling::new(1.0, references) },
            20,
        )
    });
    eprintln!(
        "the same, profiled in the columns that Gavel reads: references 16, 8, 4: rmse {published:.4?}"
    );
    assert!(by_fraction[0] < 1e-9, "every type is its own reference");
    assert!(by_fraction.is_sorted() && by_references.is_sorted());
    assert!(published.iter().zip(&by_references[1..]).all(|(published, corrected)| published > corrected));
}

/// Two job types on one worker type, with this `colocation` section.
fn document(colocation: &str) -> String {
    format!(
        "format: apportion/throughputs-v1\nname: small\nunit: steps/s\nworker_types: [fast]\nrows:\n\
         \x20 - {{job_type: a, scale_factor: 8, consolidated: [10]}}\n\
         \x20 - {{job_type: b, scale_factor: 8, consolidated: [4]}}\n{colocation}"
    )
}

const RESOURCE: &str = "\
colocation:
  model: resource
  resource:
    resources: [compute]
    worker_types:
      fast:
        efficiency: 0.9
        demands:
          a: {demand: [0.8], weight: [1]}
          b: {demand: [0.4], weight: [1]}
";

const NETWORK: &str = "\
colocation:
  model: network
  network:
    workers_per_server: 4
    efficiency: 1
    job_types:
      a: {communication: 0.5, flows: 1}
      b: {communication: 0.5, flows: 2}
    measured:
      - {job: {job_type: a, workers: 8, servers: 2}, beside: [null, 0.4]}
      - {job: {job_type: b, workers: 8, servers: 2}, beside: [null, null]}
";

fn steps(file: &ThroughputsFile) -> Vec<f64> {
    file.measured.colocated.iter().copied().collect()
}

#[test]
fn models_are_read_from_files_and_written_back() {
    // a beside b: what b leaves, 0.6 of 0.8; a beside a: a half of the capacity, 0.5 of 0.8; b fits.
    let by_resource = [0.9 * 0.625 * 10.0, 0.9 * 0.75 * 10.0, 0.9 * 4.0, 0.9 * 4.0];
    // 1/(1 + 0.5·1), measured 0.4, 1/(1 + 0.5·1), 1/(1 + 0.5·2).
    let by_network = [10.0 / 1.5, 4.0, 4.0 / 1.5, 2.0];
    for (section, expected) in [(RESOURCE, by_resource), (NETWORK, by_network)] {
        let read = |text: &str| read_throughputs(&Source::new("small.yaml", text), "small").unwrap();
        let file = read(&document(section));
        let found = steps(&file);
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{found:?}"
        );
        let again = read(&write_modelled(&file.header, &file.measured, &file.model));
        assert_eq!(again.model, file.model);
        assert_eq!(steps(&again), found);
    }
}

#[test]
fn faults_in_models_are_told_with_their_place() {
    let complaint = |section: &str| {
        let source = Source::new("small.yaml", document(section));
        read_throughputs(&source, "small").unwrap_err().to_string()
    };
    let message = complaint(&RESOURCE.replace("0.9", "1.9"));
    assert!(message.starts_with("small.yaml:14:21:") && message.contains("efficiency is 1.9"), "{message}");
    let message = complaint(&RESOURCE.replace("          b: {demand: [0.4], weight: [1]}\n", ""));
    assert!(message.contains("no parameters of `b` on `fast`"), "{message}");
    let message = complaint(&RESOURCE.replace("model: resource", "model: network"));
    assert!(
        message.contains("no `network` section") && message.contains("not read by this `model`"),
        "{message}"
    );
    let message = complaint(&NETWORK.replace("0.4]", "1.4]"));
    assert!(message.contains("is 1.4, expected a fraction above 0, at most 1"), "{message}");
    let message = complaint(&RESOURCE.replace("demand: [0.8]", "demands: [0.8]"));
    assert!(message.contains("small.yaml:16:"), "{message}");
}
