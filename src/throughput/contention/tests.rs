use std::collections::BTreeMap;

use ndarray::Array3;
use proptest::prelude::*;

use super::fit::{FitError, FitSettings};
use super::network::{Configuration, Growth, MeasuredRow, MeasuredSet, NetworkModel, Traffic};
use super::resource::{Demands, ResourceModel, SharedWorker, retained};
use super::{ContentionError, ContentionModel, fit_network, fit_resource};
use crate::index::Id;
use crate::throughput::{Measured, RowKey, Throughputs};

/// Job types `t0`, `t1`, … at scale factor 1, which run at 10, 11, … steps/s on one worker type.
fn matrix(n_jobs: u32) -> Throughputs {
    let rows: Vec<RowKey> =
        (0..n_jobs).map(|job| RowKey { job_type: format!("t{job}"), scale_factor: 1 }).collect();
    let n = rows.len();
    let measured = Measured {
        name: "planted".to_owned(),
        worker_types: vec!["fast".to_owned()],
        consolidated: (0..n_jobs).map(|job| vec![10.0 + f64::from(job)]).collect(),
        spread: vec![vec![None]; n],
        rows,
        colocated: Array3::zeros((1, n, n)),
    };
    Throughputs::try_new(measured).unwrap()
}

/// A model in which job `k` demands a little more of the first resource and a little less of the second than job `k − 1`.
fn planted(n_jobs: u32) -> ResourceModel {
    let demands = (0..n_jobs).map(|job| {
        let part = (f64::from(job) + 0.5) / f64::from(n_jobs);
        let demand = vec![0.35 + 0.6 * part, 0.95 - 0.7 * part];
        (format!("t{job}"), Demands { demand, weight: vec![1.0 + part, 1.0 / (1.0 + part)] })
    });
    let shared = SharedWorker { efficiency: 0.9, demands: demands.collect(), cannot_share: Vec::new() };
    ResourceModel {
        resources: vec!["compute".to_owned(), "memory_bandwidth".to_owned()],
        worker_types: BTreeMap::from([("fast".to_owned(), shared)]),
    }
}

#[test]
fn shares_of_one_resource_worked_by_hand() {
    // If both fit: 0.4 + 0.5 ≤ 1. If neither fits: an even split. If the other wants little: the rest that it leaves.
    for (demand, other, fair, expected) in [
        (0.4, 0.5, 0.5, 1.0),
        (1.0, 1.0, 0.5, 0.5),
        (0.8, 0.4, 0.5, 0.75),
        (1.0, 1.0, 0.2, 0.2),
        (0.0, 1.0, 0.1, 1.0),
    ] {
        let got = retained(demand, other, fair);
        assert!((got - expected).abs() < 1e-15, "{demand} beside {other} at {fair}: {got}");
    }
}

#[test]
fn a_resource_is_never_given_out_twice() {
    let grid = || (0..=20).map(|k| f64::from(k) / 20.0);
    for (one, other) in grid().flat_map(|one| grid().map(move |other| (one, other))) {
        for fair in [0.1, 0.5, 0.7] {
            let taken = one * retained(one, other, fair) + other * retained(other, one, 1.0 - fair);
            assert!(taken <= (one + other).min(1.0) + 1e-12, "{one} + {other} at {fair} took {taken}");
            let work_conserving = (one + other).min(1.0);
            assert!(taken >= work_conserving - 1e-12, "{one} + {other} at {fair} took only {taken}");
        }
    }
}

#[test]
fn equal_jobs_keep_equal_parts_of_the_bottleneck() {
    let model = planted(6);
    let shared = &model.worker_types["fast"];
    // Job t5 demands 0.9 of the first resource: beside itself half of the capacity, times efficiency.
    let expected = 0.9 * 0.5 / 0.9;
    let got = shared.retention("t5", "t5").unwrap();
    assert!((got - expected).abs() < 1e-12, "{got}");
}

#[test]
fn planted_demands_are_recovered_from_what_they_retain() {
    let truth = planted(12);
    let throughputs = ContentionModel::Resource(truth).apply(&matrix(12)).unwrap();
    let names = ["compute".to_owned(), "memory_bandwidth".to_owned()];
    let settings = FitSettings { starts: 16, ..FitSettings::default() };
    let (fitted, report) = fit_resource(&throughputs, &names, &settings).unwrap();
    fitted.check().unwrap();
    assert!(report.model.in_sample.rmse < 0.01, "{report:?}");
    assert!(report.model.held_out.rmse < 0.025, "{report:?}");
    let mean = &report.baselines[1];
    assert!(report.model.held_out.rmse < 0.4 * mean.held_out.rmse, "{report:?}");
    let again = ContentionModel::Resource(fitted).apply(&throughputs).unwrap();
    for (row, other) in throughputs.rows().ids().flat_map(|a| throughputs.rows().ids().map(move |b| (a, b))) {
        let (was, is) = (
            throughputs.colocated(row, other, Id::from_index(0)),
            again.colocated(row, other, Id::from_index(0)),
        );
        assert!(
            (was - is).abs() < 0.06 * throughputs.alone(row, Id::from_index(0)),
            "{row}|{other}: {was} {is}"
        );
    }
}

#[test]
fn demands_on_one_contended_resource_are_identified() {
    // All demands above 1 − the others' and weights equal: ρ = max(1/2, 1 − d_b) / d_a has one solution.
    let mut truth = planted(8);
    truth.resources.truncate(1);
    let shared = truth.worker_types.get_mut("fast").unwrap();
    shared.efficiency = 0.95;
    for (job, demands) in shared.demands.values_mut().enumerate() {
        *demands =
            Demands { demand: vec![0.3 + 0.08 * f64::from(u32::try_from(job).unwrap())], weight: vec![1.0] };
    }
    let expected = truth.clone();
    let throughputs = ContentionModel::Resource(truth).apply(&matrix(8)).unwrap();
    let settings = FitSettings { starts: 8, ..FitSettings::default() };
    let (fitted, report) = fit_resource(&throughputs, &["compute".to_owned()], &settings).unwrap();
    for (job, demands) in &fitted.worker_types["fast"].demands {
        let planted = expected.worker_types["fast"].demands[job].demand[0];
        assert!(
            (demands.demand[0] - planted).abs() < 0.06,
            "{job}: {} not {planted}\n{report:?}",
            demands.demand[0]
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let throughputs = ContentionModel::Resource(planted(8)).apply(&matrix(8)).unwrap();
    let names = ["compute".to_owned(), "pcie".to_owned()];
    let fit = |seed| {
        let settings = FitSettings { starts: 2, seed, ..FitSettings::default() };
        serde_json::to_string(&fit_resource(&throughputs, &names, &settings).unwrap()).unwrap()
    };
    assert_eq!(fit(3), fit(3));
    assert_ne!(fit(3), fit(4));
}

#[test]
fn pairs_that_stand_still_are_kept_apart_and_unmeasured_sizes_are_not() {
    let throughputs = ContentionModel::Resource(planted(8)).apply(&matrix(8)).unwrap();
    let ids = || throughputs.rows().ids();
    let steps: Vec<f64> = ids()
        .flat_map(|row| ids().map(move |other| (row, other)))
        .map(|(row, other)| throughputs.colocated(row, other, Id::from_index(0)))
        .collect();
    let mut colocated = Array3::from_shape_vec((1, 8, 8), steps).unwrap();
    (colocated[[0, 2, 5]], colocated[[0, 5, 2]]) = (0.0, 0.0);
    let throughputs = throughputs.with_colocated(colocated).unwrap();
    let settings = FitSettings { starts: 1, ..FitSettings::default() };
    let (fitted, _) = fit_resource(&throughputs, &["compute".to_owned()], &settings).unwrap();
    let shared = &fitted.worker_types["fast"];
    assert_eq!(shared.cannot_share, [["t2".to_owned(), "t5".to_owned()]]);
    assert_eq!(shared.retention("t5", "t2"), Some(0.0));
    assert!(shared.retention("t5", "t3").unwrap() > 0.0);
}

#[test]
fn too_little_to_judge_by_is_said() {
    let settings = FitSettings::default();
    let names = ["compute".to_owned()];
    assert_eq!(
        fit_resource(&matrix(3), &names, &settings).unwrap_err(),
        FitError::TooFew { found: 0, expected: 5 }
    );
    assert_eq!(fit_resource(&matrix(3), &[], &settings).unwrap_err(), FitError::NoResource);
    let settings = FitSettings { held_out: 0.0, ..settings };
    assert_eq!(fit_resource(&matrix(3), &names, &settings).unwrap_err(), FitError::HeldOut { value: 0.0 });
}

#[test]
fn faults_of_a_model_are_named() {
    let faulty = |damage: &dyn Fn(&mut SharedWorker)| {
        let mut model = planted(2);
        damage(model.worker_types.get_mut("fast").unwrap());
        ContentionModel::Resource(model).apply(&matrix(2)).unwrap_err()
    };
    let error = faulty(&|shared| shared.efficiency = 0.0);
    assert_eq!(error.to_string(), "worker_types.fast.efficiency is 0, expected a number above 0, at most 1");
    let error = faulty(&|shared| shared.demands.get_mut("t1").unwrap().demand[0] = f64::NAN);
    assert_eq!(error.path(), Some("worker_types.fast.demands.t1.demand"));
    let error = faulty(&|shared| shared.demands.get_mut("t1").unwrap().weight.truncate(1));
    assert!(matches!(error, ContentionError::Length { found: 1, expected: 2, .. }), "{error}");
    let error = faulty(&|shared| drop(shared.demands.remove("t1")));
    assert_eq!(error.to_string(), "the contention model has no parameters of `t1` on `fast`");
    let error = ContentionModel::Resource(ResourceModel { resources: vec![], worker_types: BTreeMap::new() });
    assert!(matches!(error.apply(&matrix(1)), Err(ContentionError::UnknownWorkerType { .. })));
}

#[test]
fn no_contention_model_means_no_pairs_and_measured_means_as_it_is() {
    let throughputs = ContentionModel::Resource(planted(3)).apply(&matrix(3)).unwrap();
    let (row, column) = (Id::from_index(1), Id::from_index(0));
    let none = ContentionModel::None.apply(&throughputs).unwrap();
    assert!(none.colocated(row, row, column).abs() < f64::EPSILON);
    let measured = ContentionModel::Measured.apply(&throughputs).unwrap();
    assert_eq!(
        measured.colocated(row, row, column).to_bits(),
        throughputs.colocated(row, row, column).to_bits()
    );
}

fn configuration(job_type: &str, workers: u32, servers: u32) -> Configuration {
    Configuration { job_type: job_type.to_owned(), workers, servers }
}

fn network() -> NetworkModel {
    let traffic = |communication, flows| Traffic { communication, flows };
    NetworkModel {
        workers_per_server: 4,
        efficiency: 1.0,
        job_types: BTreeMap::from([
            ("chatty".to_owned(), traffic(0.5, 2.0)),
            ("quiet".to_owned(), traffic(0.1, 0.2)),
            ("third".to_owned(), traffic(0.3, 1.0)),
        ]),
        growth: Growth::default(),
        measured: Vec::new(),
        measured_sets: Vec::new(),
    }
}

#[test]
fn a_fair_link_slows_communication_by_its_flows() {
    let model = network();
    let (chatty, quiet) = (configuration("chatty", 8, 2), configuration("quiet", 8, 2));
    let kept = |job: &Configuration, beside: &[Configuration]| model.retention(job, beside).unwrap();
    // Half its step communicates; two more flows make that thrice as long: 0.5 + 0.5·3 = 2.
    assert!((kept(&chatty, std::slice::from_ref(&chatty)) - 0.5).abs() < 1e-12);
    // Flows add: 0.5 + 0.5·(1 + 2 + 0.2) = 2.1.
    assert!((kept(&chatty, &[chatty.clone(), quiet.clone()]) - 1.0 / 2.1).abs() < 1e-12);
    // Nothing crosses servers, nothing contends.
    assert!((kept(&configuration("chatty", 4, 1), std::slice::from_ref(&chatty)) - 1.0).abs() < 1e-12);
    assert!((kept(&chatty, &[configuration("chatty", 4, 1)]) - 1.0).abs() < 1e-12);
    assert!(model.retention(&configuration("unheard of", 8, 2), &[chatty]).is_err());
}

#[test]
fn what_was_measured_answers_first() {
    let mut model = network();
    let (chatty, quiet) = (configuration("chatty", 8, 2), configuration("quiet", 8, 2));
    model.measured = vec![
        MeasuredRow { job: chatty.clone(), beside: vec![None, Some(0.8)] },
        MeasuredRow { job: quiet.clone(), beside: vec![Some(0.7), None] },
    ];
    let set = vec![quiet.clone(), chatty.clone()];
    model.check().unwrap();
    let kept = |model: &NetworkModel, beside: &[Configuration]| model.retention(&chatty, beside).unwrap();
    assert!((kept(&model, std::slice::from_ref(&quiet)) - 0.8).abs() < 1e-15);
    assert!((kept(&model, std::slice::from_ref(&chatty)) - 0.5).abs() < 1e-12, "not measured, so modelled");
    // A measured delay of 1/0.8 − 1 = 0.25 and a modelled one of 0.5·2 = 1.
    assert!((kept(&model, &set) - 1.0 / 2.25).abs() < 1e-12);
    model.measured_sets = vec![MeasuredSet {
        job: chatty.clone(),
        beside: vec![chatty.clone(), quiet.clone()],
        retained: 0.31,
    }];
    assert!((kept(&model, &set) - 0.31).abs() < 1e-15, "in any order");
}

#[test]
fn planted_traffic_is_recovered() {
    let mut truth = network();
    truth.efficiency = 0.95;
    truth.growth = Growth {
        communication_servers: 0.4,
        communication_workers: -0.3,
        flows_servers: -0.2,
        flows_workers: 0.5,
    };
    let names = ["chatty", "quiet", "third"];
    let sizes = [(2, 2), (4, 2), (4, 4), (8, 2), (8, 4), (8, 8)];
    let all: Vec<Configuration> = names
        .iter()
        .flat_map(|name| sizes.map(|(workers, servers)| configuration(name, workers, servers)))
        .collect();
    let row = |job: &Configuration| MeasuredRow {
        job: job.clone(),
        beside: all.iter().map(|other| Some(truth.modelled(job, other).unwrap())).collect(),
    };
    let (fitted, report) = fit_network(all.iter().map(row).collect(), 8, &FitSettings::default()).unwrap();
    fitted.check().unwrap();
    assert!(report.model.held_out.rmse < 0.004, "{report:?}");
    assert!(report.model.name.contains("grows"), "{report:?}");
    assert!((fitted.efficiency - truth.efficiency).abs() < 0.02, "{fitted:?}");
    for name in names {
        let (found, planted) = (fitted.job_types[name], truth.job_types[name]);
        let (found, planted) = (found.communication * found.flows, planted.communication * planted.flows);
        assert!((found - planted).abs() < 0.1 * planted + 0.02, "{name}: {found} not {planted}");
    }
}

fn any_demands() -> impl Strategy<Value = Demands> {
    (prop::collection::vec(0.0..=1.0, 3), prop::collection::vec(0.01..100.0, 3))
        .prop_map(|(demand, weight)| Demands { demand, weight })
}

proptest! {
    #[test]
    fn retention_is_a_fraction_and_never_rises_with_demand(
        own in any_demands(), other in any_demands(), resource in 0..3_usize, more in 0.0..1.0_f64,
    ) {
        let kept = own.beside(&other);
        prop_assert!(kept > 0.0 && kept <= 1.0, "{}", kept);
        let greedier = |demands: &Demands| {
            let mut demands = demands.clone();
            demands.demand[resource] = (demands.demand[resource] + more).min(1.0);
            demands
        };
        prop_assert!(greedier(&own).beside(&other) <= kept);
        prop_assert!(own.beside(&greedier(&other)) <= kept);
    }

    #[test]
    fn plain_max_min_leaves_everybody_a_half(own in any_demands(), other in any_demands()) {
        let plain = |demands: &Demands| Demands { weight: vec![1.0; 3], ..demands.clone() };
        prop_assert!(plain(&own).beside(&plain(&other)) >= 0.5);
    }

    #[test]
    fn more_neighbours_never_help(
        communication in 0.01..0.99_f64, flows in prop::collection::vec(0.0..5.0_f64, 1..4), grow in -2.0..2.0_f64,
    ) {
        let mut model = network();
        model.growth.flows_workers = grow;
        model.job_types.insert("own".to_owned(), Traffic { communication, flows: 0.0 });
        let own = configuration("own", 8, 2);
        let mut beside = Vec::new();
        let mut kept = 1.0;
        for (position, flows) in flows.into_iter().enumerate() {
            let name = format!("n{position}");
            model.job_types.insert(name.clone(), Traffic { communication: 0.5, flows });
            beside.push(configuration(&name, 4, 4));
            let now = model.retention(&own, &beside).unwrap();
            prop_assert!(now > 0.0 && now <= kept);
            kept = now;
        }
    }

    #[test]
    fn whatever_was_measured_the_fit_is_finite(
        values in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..2.0_f64, Just(1e-300)], 36),
        seed in any::<u64>(),
    ) {
        let base = matrix(6);
        let colocated =
            Array3::from_shape_fn((1, 6, 6), |(_, row, other)| values[row * 6 + other] * base.alone(Id::from_index(row), Id::from_index(0)));
        let throughputs = base.with_colocated(colocated).unwrap();
        let settings = FitSettings { starts: 1, seed, ..FitSettings::default() };
        match fit_resource(&throughputs, &["compute".to_owned(), "pcie".to_owned()], &settings) {
            Ok((model, report)) => {
                prop_assert!(model.check().is_ok(), "{model:?}");
                prop_assert!(report.model.held_out.rmse.is_finite());
                prop_assert!(ContentionModel::Resource(model).apply(&throughputs).is_ok());
            }
            Err(error) => prop_assert!(matches!(error, FitError::TooFew { .. }), "{error}"),
        }
    }
}
