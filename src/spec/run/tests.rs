use serde_json::json;

use super::*;

fn spec() -> RunSpec {
    serde_json::from_value(json!({
        "policy": "fifo", "cluster": {"v100": 4, "k80": 2}, "workload": {"rate": 2.0, "jobs": 10}
    }))
    .unwrap()
}

#[test]
fn the_canonical_form_is_golden() {
    let expected = concat!(
        r#"{"cluster":{"k80":2,"v100":4},"correct":"none","faults":{"contention":0.0,"job_attempts":5,"job_failure":0.0,"#,
        r#""noise":0.0,"straggling":0.0,"straggling_rounds":null,"worker_mtbf":null,"worker_mttr":null},"measure":null,"mechanism":{"ideal":false,"#,
        r#""preemption_cost":0.0,"reset_interval":1920.0,"round_length":360.0},"policy":"fifo","prices":{},"#,
        r#""profiling":{"fraction":null,"reference_models":null,"smoothing":null},"#,
        r#""seed":0,"semantics":"corrected","servers":{},"solver":{"backend":null,"refine":null},"#,
        r#""throughputs":"osdi20","workload":{"duration":null,"entities":[],"generator":"native","jobs":10,"#,
        r#""multi_priority":false,"multi_worker":false,"rate":2.0,"slos":false,"static":null,"steady_state":false,"trace":null}}"#,
    );
    assert_eq!(spec().canonical(), expected);
    // Runs from before there was such a group keep their digests.
    let mut live = spec();
    live.live.stop = Seconds::new(10.0);
    let group = r#""live":{"look_ahead":0.0,"measured":false,"refill":"never","start_up":0.0,"stop":10.0},"#;
    assert_eq!(live.canonical().replace(group, ""), expected);
    assert_ne!(live.canonical(), expected);
}

#[test]
fn the_digest_covers_version_spec_and_data() {
    let data = BTreeMap::from([("throughputs".to_owned(), "aa".to_owned())]);
    let text = format!(
        r#"{{"apportion":"{}","data":{{"throughputs":"aa"}},"run":{}}}"#,
        env!("CARGO_PKG_VERSION"),
        spec().canonical()
    );
    assert_eq!(spec().digest(&data), sha256(text.as_bytes()));
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_ne!(spec().digest(&data), spec().digest(&BTreeMap::new()));
    let mut other = spec();
    other.seed = 1;
    assert_ne!(other.digest(&data), spec().digest(&data));
}

#[test]
fn the_order_of_worker_types_is_not_part_of_the_digest() {
    let mut other = spec();
    other.cluster.0.reverse();
    assert_eq!(other.canonical(), spec().canonical());
}

#[test]
fn what_is_written_is_read_back() {
    let spec = spec();
    let again: RunSpec = serde_json::from_str(&spec.canonical()).unwrap();
    assert_eq!(again.canonical(), spec.canonical());
}

#[test]
fn counts_and_times_are_read_in_both_forms() {
    let counts: WorkerCounts = serde_json::from_value(json!("v100=4, k80=2")).unwrap();
    assert_eq!(counts, spec().cluster);
    let spec: MechanismSpec = serde_json::from_value(json!({"round_length": "6min"})).unwrap();
    assert_eq!(spec.round_length, Seconds::new(360.0));
    for bad in [json!("soon"), json!(-1), json!([])] {
        assert!(serde_json::from_value::<MechanismSpec>(json!({"round_length": bad})).is_err());
    }
}

#[test]
fn each_bad_value_is_one_complaint_about_its_field() {
    assert_eq!(spec().complaints(), []);
    let cases = [
        (json!({"policy": " "}), "policy"),
        (json!({"cluster": {}}), "cluster"),
        (json!({"cluster": {"v100": 0}}), "cluster"),
        (json!({"servers": {"a100": 4}}), "servers"),
        (json!({"prices": {"v100": -1.0}}), "prices"),
        (json!({"workload": {"jobs": null}}), "workload.rate"),
        (json!({"workload": {"rate": 0.0}}), "workload.rate"),
        (json!({"workload": {"rate": null, "jobs": null}}), "workload"),
        (json!({"workload": {"static": 3}}), "workload"),
        (json!({"workload": {"jobs": 0}}), "workload.jobs"),
        (json!({"workload": {"duration": 0}}), "workload.duration"),
        (json!({"measure": [5, 5]}), "measure"),
        (json!({"measure": [5, 50]}), "measure"),
        (json!({"mechanism": {"round_length": 0}}), "mechanism.round_length"),
        (json!({"faults": {"worker_mtbf": "1h"}}), "faults.worker_mtbf"),
        (json!({"faults": {"noise": 1.5}}), "faults.noise"),
        (json!({"faults": {"job_attempts": 0}}), "faults.job_attempts"),
        (json!({"faults": {"straggling_rounds": 0}}), "faults.straggling_rounds"),
        (json!({"faults": {"contention": -1.0}}), "faults.contention"),
        (json!({"live": {"look_ahead": 360}}), "live.look_ahead"),
        (json!({"live": {"start_up": "5min", "stop": "1min"}}), "live.start_up"),
        (json!({"live": {"stop": "6min"}}), "live.stop"),
        (json!({"live": {"stop": 1}, "mechanism": {"ideal": true}}), "live.stop"),
        (json!({"live": {"refill": "completion"}, "mechanism": {"ideal": true}}), "live.refill"),
        (json!({"faults": {"job_failure": 0.5}, "mechanism": {"ideal": true}}), "faults.job_failure"),
        (json!({"mechanism": {"ideal": true, "preemption_cost": 300}}), "mechanism.preemption_cost"),
        (json!({"profiling": {"fraction": 0.5}}), "profiling"),
        (json!({"profiling": {"smoothing": 0.5}}), "profiling.smoothing"),
        (json!({"profiling": {"fraction": 1.5, "reference_models": 4}}), "profiling.fraction"),
        (json!({"profiling": {"fraction": 0.5, "reference_models": 0}}), "profiling.reference_models"),
    ];
    for (change, field) in cases {
        let mut tree = serde_json::to_value(spec()).unwrap();
        merge(&mut tree, &change);
        let complaints = serde_json::from_value::<RunSpec>(tree).unwrap().complaints();
        let fields: Vec<&str> = complaints.iter().map(|complaint| complaint.field.as_str()).collect();
        assert_eq!(fields, [field], "{change}");
    }
}

fn merge(tree: &mut serde_json::Value, change: &serde_json::Value) {
    for (key, value) in change.as_object().unwrap() {
        match value.as_object() {
            Some(inner) if !inner.is_empty() && tree[key].is_object() && key != "cluster" => {
                merge(&mut tree[key], value);
            }
            _ => tree[key] = value.clone(),
        }
    }
}
