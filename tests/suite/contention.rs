//! Contention models and the estimator on published measurements.
#![expect(clippy::print_stderr, reason = "what is skipped is said, and errors are shown")]

use std::path::Path;

use apportion::Throughputs;
use apportion::throughput::contention::network::{Configuration, MeasuredRow};
use apportion::throughput::contention::{ContentionModel, FitReport, FitSettings, fit_network, fit_resource};

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
    let mut reader = csv::Reader::from_path(path).unwrap();
    let measured: Vec<MeasuredRow> = reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            let key: Vec<&str> = record[0].split(',').collect();
            let job = configuration(key[0], key[1].parse().unwrap(), key[2].parse().unwrap());
            MeasuredRow {
                job,
                beside: record.iter().skip(1).map(|value| Some(value.parse().unwrap())).collect(),
            }
        })
        .collect();
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
