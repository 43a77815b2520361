//! The systems that can be learned, by name.

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use crate::deepshare;
use crate::dl2;
use crate::dual_agent;
use crate::elastic;
use crate::gangs;
use crate::rounds;
use apportion::spec::nearest::name_list;
use apportion_learn::system::{Registered, System, SystemError};

/// All systems.
pub const SYSTEMS: &[Registered] =
    &[deepshare::SYSTEM, dl2::SYSTEM, elastic::SYSTEM, gangs::SYSTEM, dual_agent::SYSTEM, rounds::SYSTEM];

/// JSON Schemas of the options of each system's world: (system's name, schema).
pub fn worlds(generator: &mut SchemaGenerator) -> [(&'static str, Schema); 6] {
    [
        (deepshare::SYSTEM.name, generator.subschema_for::<deepshare::DeepShareWorld>()),
        (dl2::SYSTEM.name, generator.subschema_for::<dl2::Dl2World>()),
        (elastic::SYSTEM.name, generator.subschema_for::<elastic::ElasticWorld>()),
        (gangs::SYSTEM.name, generator.subschema_for::<gangs::GangsWorld>()),
        (dual_agent::SYSTEM.name, generator.subschema_for::<dual_agent::DualAgentWorld>()),
        (rounds::SYSTEM.name, generator.subschema_for::<rounds::RoundsWorld>()),
    ]
}

/// The system of a name in a world of these options; null means the default options.
///
/// # Errors
/// If there is no system of the name, or its world refuses the options.
pub fn open(name: &str, world: &Value) -> Result<System, SystemError> {
    match SYSTEMS.iter().find(|system| system.name == name) {
        Some(system) => (system.open)(world),
        None => Err(SystemError::Unknown {
            name: name.to_owned(),
            known: name_list(SYSTEMS.iter().map(|system| system.name)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use apportion_learn::checker::{CheckOptions, check};

    #[test]
    fn every_system_passes_the_check() {
        for &Registered { name, .. } in SYSTEMS {
            // Long episodes are made short, because the check looks at every action.
            let long = ["dual_agent", "elastic", "rounds"].contains(&name);
            let world = if long { json!({ "jobs": 12 }) } else { Value::Null };
            assert!(open(name, &Value::Null).is_ok());
            let system = open(name, &world).unwrap();
            assert_eq!(system.name, name);
            assert_eq!(system.data_digest.len(), 64);
            check(|| system.environment(), CheckOptions { n_episodes: 3, ..CheckOptions::default() })
                .assert_passed();
        }
    }

    #[test]
    fn a_world_has_the_options_of_its_schema_and_no_others() {
        let mut generator = SchemaGenerator::default();
        let worlds = worlds(&mut generator);
        assert_eq!(
            worlds.clone().map(|(name, _)| name).to_vec(),
            SYSTEMS.iter().map(|s| s.name).collect::<Vec<_>>()
        );
        for (name, schema) in worlds {
            let place = schema.get("$ref").and_then(Value::as_str).unwrap();
            let world = &generator.definitions()[place.trim_start_matches("#/$defs/")];
            assert_eq!(world["additionalProperties"], false, "{name}");
            let error = open(name, &json!({ "nothing": 1 })).unwrap_err().to_string();
            for option in world["properties"].as_object().unwrap().keys() {
                assert!(error.contains(&format!("`{option}`")), "{name}: {option}: {error}");
            }
            assert_eq!(
                error.matches('`').count() / 2 - 1,
                world["properties"].as_object().unwrap().len(),
                "{error}"
            );
        }
    }

    #[test]
    fn names_and_options_that_do_not_exist_are_refused() {
        let error = open("deepshaer", &Value::Null).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown system `deepshaer`, expected one of `deepshare`, `dl2`, "),
            "{error}"
        );
        let said = |world: Value| open("deepshare", &world).unwrap_err().to_string();
        assert!(said(json!({ "jobs": 0 })).contains("`jobs` is 0"));
        assert!(said(json!({ "mix": "nothing" })).contains("unknown mix `nothing`"));
        assert!(said(json!({ "job": 3 })).contains("unknown key `job`"));
        let said = |world: Value| open("gangs", &world).unwrap_err().to_string();
        assert!(said(json!({ "rates": [] })).contains("`rates` is []"));
        assert!(said(json!({ "actor": "uniform" })).contains("`actor` is a rule"));
        assert!(said(json!({ "colocation": "pairs" })).contains("`colocation` is pairs, expected none"));
        assert!(open("gangs", &json!({ "actor": "values", "colocation": "pairs" })).is_ok());
        assert!(said(json!({ "throughputs": "osdi21" })).contains("osdi21"));
        assert!(said(json!({ "multi_worker": true })).contains("`workers` is 4, expected at least 8"));
        for (name, field) in [
            ("dl2", "window"),
            ("elastic", "window"),
            ("gangs", "slots"),
            ("dual_agent", "seen_jobs"),
            ("dual_agent", "seen_servers"),
        ] {
            let world: Value = [(field.to_owned(), json!(100_000_000_000_u64))].into_iter().collect();
            let error = open(name, &world).unwrap_err().to_string();
            assert_eq!(error, format!("`{field}` is 100000000000, expected at most 1024"));
        }
    }
}
