//! Quirks of the published system that a run is to do without.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Names of differences between the published mechanism and the corrected one: `none`, `all`, `ties,gangs`, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorrectionsSpec(Vec<String>);

impl CorrectionsSpec {
    /// The names, in order, each once; their meaning is not looked up.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<String> = names
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty() && name != "none")
            .collect();
        names.sort();
        names.dedup();
        Self(names)
    }
}

impl fmt::Display for CorrectionsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("none") } else { f.write_str(&self.0.join(",")) }
    }
}

impl std::str::FromStr for CorrectionsSpec {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::of(text.split(',')))
    }
}

impl Serialize for CorrectionsSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CorrectionsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CorrectionsVisitor)
    }
}

struct CorrectionsVisitor;

impl<'de> Visitor<'de> for CorrectionsVisitor {
    type Value = CorrectionsSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of differences: `none`, `all`, text such as `ties,gangs`, or a list")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CorrectionsSpec, E> {
        Ok(CorrectionsSpec::of(text.split(',')))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<CorrectionsSpec, A::Error> {
        let mut names: Vec<String> = Vec::new();
        while let Some(name) = seq.next_element()? {
            names.push(name);
        }
        Ok(CorrectionsSpec::of(names.iter().map(String::as_str)))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CorrectionsSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CorrectionsSpec".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Names of quirks: `none`, `all`, text such as `ties,gangs`, or a list.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        })
    }
}
