//! Tests of training documents: what is read, and what is refused.

use super::*;
use crate::systems;
use apportion::spec::Source;

const TEXT: &str = "\
format: apportion/training-v1
system: deepshare
world: { jobs: 10 }
ppo: { n_steps: 64, learning_rate: { from: 0.001, to: 0.0 } }
network: { hidden: [8] }
seed: 5
budget: { decisions: 128, validate_every: 1 }
validation: { seeds: [1, 2] }
test: { seeds: [3] }
";

fn read(text: &str) -> TrainingSpec {
    Source::new("training.yaml", text).parse_format(FORMAT).unwrap()
}

#[test]
fn a_document_becomes_a_learner() {
    let spec = read(TEXT);
    let system = systems::open(&spec.system, &spec.world).unwrap();
    let mut learner = spec.learner(&system).unwrap();
    assert_eq!(learner.update().unwrap().n_decisions, 64);
    let mean =
        TrainingSpec::judge(&system, &learner.model().actor().unwrap().into(), &spec.validation).unwrap();
    assert!(mean.is_finite());
    let provenance = spec.provenance((&system, None), (1, 64)).unwrap();
    assert_eq!(TrainingSpec::deserialize(&provenance.spec).unwrap(), spec);
}

#[test]
fn an_exploration_with_a_chance_is_read_and_written() {
    let text =
        TEXT.replace("ppo: { n_steps: 64, learning_rate: { from: 0.001, to: 0.0 } }", "actor_critic: {}");
    assert_eq!(read(&text).exploration, ExplorationName::AsDrawn);
    let spec = read(&format!("{text}exploration: {{ epsilon_greedy: {{ chance: 0.02 }} }}\n"));
    assert_eq!(spec.exploration, ExplorationName::EpsilonGreedy { chance: 0.02 });
    let written = serde_json::to_value(&spec).unwrap();
    assert_eq!(written["exploration"], serde_json::json!({ "epsilon_greedy": { "chance": 0.02 } }));
    assert_eq!(TrainingSpec::deserialize(&written).unwrap(), spec);
}

#[test]
fn weights_beside_a_document_are_its_own() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let weights: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "safetensors")).collect();
    assert_eq!(weights.len(), crate::weights::WEIGHTS.len(), "all ship: {weights:?}");
    for path in weights {
        let spec: TrainingSpec =
            Source::load(path.with_extension("yaml")).unwrap().parse_format(FORMAT).unwrap();
        spec.check().unwrap();
        let system = systems::open(&spec.system, &spec.world).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let made = apportion_learn::checkpoint::Checkpoint::from_bytes(&bytes).unwrap();
        assert_eq!(made.to_bytes().unwrap(), bytes, "{}", path.display());
        let own = spec.provenance((&system, None), (made.header.n_updates, made.header.n_decisions)).unwrap();
        // Headers have all options, so that files can be made again byte for byte; but PPO has options that are younger than DL2's
        // file.
        let younger = path.ends_with("dl2.safetensors");
        assert!(younger || made.header.spec == own.spec, "{}: {}", path.display(), own.spec);
        // An option that the header does not name is younger than the weights, and has its default.
        assert_eq!(TrainingSpec::deserialize(&made.header.spec).unwrap(), spec);
        assert_eq!((made.header.data_digest, made.header.network), (own.data_digest, own.network));
        let test = spec.test_episodes();
        let test = test.unwrap_or_else(|| panic!("{} is judged by nothing unseen", path.display()));
        assert_eq!(
            test.choice,
            spec.validation.choice,
            "{}: tests are played as validations",
            path.display()
        );
    }
}

#[test]
fn contradictions_are_refused() {
    let said = |from: &str, to: &str| read(&TEXT.replace(from, to)).check().unwrap_err().to_string();
    assert_eq!(
        said("seeds: [3]", "seeds: [4, 2]"),
        "`test.seeds` is 2, expected seeds that validation has not seen"
    );
    assert!(said("ppo: {", "summary: none # ").contains("expected one algorithm"));
    assert!(
        said("seed: 5", "seed: 5\nactor_critic: {}")
            .contains("`actor_critic` is given beside another algorithm")
    );
    assert!(said("validate_every: 1", "validate_every: 0").contains("`validate_every` is 0"));
    assert!(said("[8]", "[8, 0]").contains("`hidden` is [8, 0]"));
    assert!(said("[1, 2]", "[]").contains("`validation.seeds` is empty"));
    assert_eq!(said("[1, 2]", "[1, 2, 1]"), "`validation.seeds` is 1 twice, expected each seed once");
    assert_eq!(said("[3]", "[3, 3]"), "`test.seeds` is 3 twice, expected each seed once");
    let elsewhere = TEXT.replace("[1, 2]", "[1, 2], measure: service").replace("deepshare", "dl2");
    assert_eq!(
        read(&elsewhere).check().unwrap_err().to_string(),
        "`validation.measure` is service, expected `reward`, outside of `deepshare`"
    );
    let wrong = elsewhere.replace("service", "times");
    assert!(read(&wrong).check().unwrap_err().to_string().starts_with("`validation.measure` is times"));
    let fewest = TEXT.replace("seed: 5", "seed: 5\nexploration: { fewest_first: { chance: 0.4 } }");
    assert_eq!(
        read(&fewest).check().unwrap_err().to_string(),
        "`exploration` is fewest_first, expected another, outside of `elastic` with `sight: pairs`"
    );
}

#[test]
fn numbers_of_a_world_are_finite() {
    let gangs = "format: apportion/training-v1\nsystem: gangs\nevolution: {}\nnetwork: { hidden: [8] }\nseed: 5\n\
                 budget: { decisions: 128, validate_every: 1 }\nvalidation: { seeds: [1] }\n";
    for number in [".nan", ".inf", "-.inf"] {
        let text = format!("{gangs}world: {{ actor: values, rates: [0.25, {number}] }}\n");
        let said = serde_yaml::from_str::<TrainingSpec>(&text).unwrap_err().to_string();
        assert!(said.contains(&format!("`{number}` is no finite number")), "{said}");
    }
}

#[test]
fn what_would_be_ignored_is_refused() {
    let said = |text: &str| read(text).check().unwrap_err().to_string();
    let end = "seed: 5\nbudget: { decisions: 128, validate_every: 1 }\nvalidation: { seeds: [1] }\n";
    let document = |text: &str| format!("format: apportion/training-v1\n{text}\n{end}");
    assert_eq!(
        said(&document("system: dual_agent\nevolution: {}\nnetwork: { hidden: [8] }")),
        "`network` is given, expected `sets`, which the networks of two agents are made by"
    );
    assert!(said(&format!("{TEXT}sets: {{ width: 8 }}\n")).contains("`sets` is given, expected `network`"));
    let values = "system: gangs\nworld: { actor: values }";
    assert_eq!(
        said(&document(&format!("{values}\nppo: {{}}"))),
        "`ppo` is given where `world.actor` is `values`, expected `evolution: {}`, by which alone values are learned"
    );
    let replay = "actor_critic: { batch: 8, replay: 8";
    assert!(
        said(&document(&format!("{values}\n{replay} }}")))
            .starts_with("`actor_critic` is given where `world")
    );
    assert!(read(&document(&format!("{values}\nevolution: {{}}"))).check().is_ok());
    let credit =
        |world: &str| document(&format!("system: elastic\nworld: {world}\n{replay}, credit: job }}"));
    assert_eq!(
        said(&credit("{}")),
        "`credit` is job, expected `round` or `decision`: whose a reward is, `elastic` alone says, with `reward: \
         own_progress`"
    );
    assert!(read(&credit("{ reward: own_progress }")).check().is_ok());
    let measured = TEXT.replace("seeds: [3]", "seeds: [3], measure: service");
    assert!(said(&measured).contains("`test.measure` is service, expected that of `validation`"));
}

#[test]
fn a_replay_that_cannot_fill_is_refused() {
    let text = |decisions: u64| {
        let text = TEXT
            .replace("deepshare", "elastic")
            .replace("decisions: 128", &format!("decisions: {decisions}"));
        text.replace(
            "ppo: { n_steps: 64, learning_rate: { from: 0.001, to: 0.0 } }",
            "actor_critic: { replay: 600 }",
        )
    };
    assert_eq!(
        read(&text(599)).check().unwrap_err().to_string(),
        "`decisions` is 599 where `actor_critic.replay` is 600, expected at least as many decisions as the replay has \
         places, for nothing is learned before it is full"
    );
    assert!(read(&text(600)).check().is_ok());
    let warmed = format!("{}warm_up: {{ teacher: drf, updates: 1 }}\n", text(1));
    assert!(read(&warmed).check().is_ok(), "what is copied from a teacher may be all that is wanted");
}

#[test]
fn networks_that_no_memory_holds_are_refused() {
    for hidden in ["[1000000, 1000000]", "[18446744073709551615, 18446744073709551615]"] {
        let spec = read(&TEXT.replace("[8]", hidden));
        let system = systems::open(&spec.system, &spec.world).unwrap();
        let error = spec.learner(&system).unwrap_err().to_string();
        assert!(error.contains("weights in all, expected layers that come to at most 10,000,000"), "{error}");
    }
    let sets = SetOptions { width: 1_000_000, ..SetOptions::default() };
    assert_eq!(
        sets.check().unwrap_err().to_string(),
        "`sets.width` is 1000000, expected a whole number from 1 to 1024"
    );
}

#[test]
fn the_budget_is_counted_in_what_it_is_spent_on() {
    assert_eq!(read(TEXT).counted(), ("decisions", 128));
    let text = TEXT
        .replace("ppo: { n_steps: 64, learning_rate: { from: 0.001, to: 0.0 } }", "evolution: { pairs: 3 }");
    // An update has 2 · 3 actors, each in 2 episodes: 12 episodes, and 11 updates reach 128.
    assert_eq!(read(&text).counted(), ("episodes", 132));
}
