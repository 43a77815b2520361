//! Counts of workers by type.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::WORKERS_PER_TYPE_MAX;

/// Workers by type, in the order of the document; written `{v100: 36, k80: 4}` or `v100=36,k80=4`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts(pub Vec<(String, u32)>);

impl fmt::Display for WorkerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces: Vec<String> = self.0.iter().map(|(name, count)| format!("{name}={count}")).collect();
        f.write_str(&pieces.join(","))
    }
}

impl Serialize for WorkerCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
    }
}

impl<'de> Deserialize<'de> for WorkerCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountsVisitor)
    }
}

struct CountsVisitor;

impl<'de> Visitor<'de> for CountsVisitor {
    type Value = WorkerCounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("workers by type, such as {v100: 36, k80: 4} or v100=36,k80=4")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WorkerCounts, A::Error> {
        let mut counts = Vec::new();
        while let Some((name, count)) = map.next_entry::<String, u32>()? {
            counts.push((name, count));
        }
        distinct(counts).map_err(A::Error::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WorkerCounts, E> {
        text.parse().map_err(E::custom)
    }
}

impl std::str::FromStr for WorkerCounts {
    type Err = String;

    /// Reads `v100=36,k80=4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let entry = |piece: &str| {
            let piece = piece.trim();
            let (name, count) = piece.split_once('=').unwrap_or_default();
            let name = name.trim();
            if name.is_empty() {
                return Err(format!("`{piece}` is not `worker_type=count`"));
            }
            let n_workers = count.trim().parse().ok().filter(|n_workers| *n_workers <= WORKERS_PER_TYPE_MAX);
            let out_of_range =
                || format!("`{piece}`: expected a whole number of workers from 0 to {WORKERS_PER_TYPE_MAX}");
            Ok((name.to_owned(), n_workers.ok_or_else(out_of_range)?))
        };
        distinct(text.split(',').map(entry).collect::<Result<_, _>>()?)
    }
}

/// Counts in which no worker type occurs twice.
fn distinct(counts: Vec<(String, u32)>) -> Result<WorkerCounts, String> {
    let mut names = BTreeSet::new();
    match counts.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(format!("worker type `{name}` is named twice")),
        None => Ok(WorkerCounts(counts)),
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for WorkerCounts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WorkerCounts".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Workers by worker type: a mapping such as `{v100: 36, k80: 4}`, or text such as `v100=36,k80=4`.",
            "x-unit": "workers",
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                {"type": "string"}
            ]
        })
    }
}
