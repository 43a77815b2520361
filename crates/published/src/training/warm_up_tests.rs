//! Tests of a warm-up that copies a policy of the engine.

use serde_json::json;

use crate::gangs::training_scorer::ScorerModel;
use crate::systems;
use apportion::policy::Policy;
use apportion::policy::heuristic::{ShortestParameters, Srtf};
use apportion::workload::random::SeedStreams;
use apportion_learn::training::TrainingError;
use apportion_learn::training::cloning::CloningOptions;
use apportion_learn::training::model::MlpOptions;
use apportion_learn::training::warm_up::WarmUp;

#[test]
fn a_scorer_learns_what_another_policy_does() {
    let world = json!({ "workers": 2, "jobs": 12, "rates": [0.3], "slots": 6 });
    let system = systems::open("gangs", &world).unwrap();
    let model = ScorerModel::new(&MlpOptions::default(), SeedStreams::new(1)).unwrap();
    let cloning = CloningOptions { batch: 32, capacity: 64, learning_rate: 0.01 };
    let warm_up = WarmUp { teacher: "srtf".to_owned(), updates: 80, examples_per_update: 1, cloning };
    let policy = |name: &str| -> Result<Box<dyn Policy>, String> {
        match name {
            "srtf" => Ok(Box::new(Srtf::new(ShortestParameters::default()))),
            _ => Err(format!("no policy `{name}`")),
        }
    };
    let (first, last) = warm_up.run(&system, &model, (&policy, &|| false), SeedStreams::new(2)).unwrap();
    assert!(last < 0.7 * first, "{first} {last}");
    let unknown = WarmUp { teacher: "nobody".to_owned(), ..warm_up.clone() };
    let error =
        unknown.run(&system, &model, (&policy, &|| false), SeedStreams::new(2)).unwrap_err().to_string();
    assert!(error.contains("no policy `nobody`"), "{error}");
    let stopped = warm_up.run(&system, &model, (&policy, &|| true), SeedStreams::new(2));
    assert!(matches!(stopped, Err(TrainingError::Stopped)));
    let silent = systems::open("deepshare", &serde_json::Value::Null).unwrap();
    let error =
        warm_up.run(&silent, &model, (&policy, &|| false), SeedStreams::new(2)).unwrap_err().to_string();
    let expected = "`warm_up` is given in `deepshare`, expected none where no policy can show what it does";
    assert_eq!(error, expected);
}
