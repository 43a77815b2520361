//! A constraint in a policy document: its text, or a mapping with a penalty.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A constraint: its text, or text and penalty.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintDocument {
    /// Two expressions and `<=`, `>=` or `==`.
    pub constraint: String,
    /// The cost of a unit of violation, in units of the objective; hard if absent.
    pub soft: Option<f64>,
    /// Whether it may be dropped for jobs, as few as possible, where not all can keep it.
    pub droppable: bool,
    /// Whether it was written as a mapping.
    pub mapped: bool,
}

/// A constraint that need not be kept.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct MappedConstraint {
    /// Two expressions and `<=`, `>=` or `==`.
    constraint: String,
    /// The cost of a unit of violation, in units of the objective. Without it the constraint is hard.
    soft: Option<f64>,
    /// Whether the constraint is dropped for as few jobs as possible where not all can keep it.
    #[serde(default)]
    droppable: bool,
}

impl<'de> Deserialize<'de> for ConstraintDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrMapping;
        impl<'de> Visitor<'de> for TextOrMapping {
            type Value = ConstraintDocument;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a constraint, or a mapping of `constraint` and `soft` or `droppable`")
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ConstraintDocument {
                    constraint: text.to_owned(),
                    soft: None,
                    droppable: false,
                    mapped: false,
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let MappedConstraint { constraint, soft, droppable } =
                    MappedConstraint::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ConstraintDocument { constraint, soft, droppable, mapped: true })
            }
        }
        deserializer.deserialize_any(TextOrMapping)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConstraintDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Constraint".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mapped = generator.subschema_for::<MappedConstraint>();
        schemars::json_schema!({
            "description": "A constraint: two expressions and `<=`, `>=` or `==`; or a mapping that says what may become of it.",
            "anyOf": [{ "type": "string" }, mapped],
        })
    }
}
