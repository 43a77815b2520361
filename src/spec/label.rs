//! The ids of jobs in documents, and their positions.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::index::{Id, JobId};
use crate::spec::snapshot::SnapshotJob;

/// A job's id in its document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Label {
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
}

/// The id of a job without another one: its position in the workload.
impl From<JobId> for Label {
    fn from(job: JobId) -> Self {
        Self::Number(i64::try_from(job.index()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => fmt::Display::fmt(number, f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelVisitor;
        impl Visitor<'_> for LabelVisitor {
            type Value = Label;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id: a whole number or text")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Label, E> {
                Ok(Label::Number(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Label, E> {
                let unexpected = serde::de::Unexpected::Unsigned(number);
                i64::try_from(number).map(Label::Number).map_err(|_| E::invalid_value(unexpected, &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Label, E> {
                Ok(Label::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(LabelVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Label {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Label".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["integer", "string"]})
    }
}

/// The positions of jobs by their ids.
#[derive(Clone, Debug)]
pub(super) enum Positions {
    /// The ids are numbers, each larger than the one before, as a simulation saves them.
    Ascending,
    /// Positions by the id as text: 5 and "5" are the same.
    ByText(BTreeMap<String, usize>),
}

impl Positions {
    /// Whether the ids are numbers, each larger than the one before.
    pub(super) fn ascend(jobs: &[SnapshotJob]) -> bool {
        let number = |job: &SnapshotJob| match job.id {
            Label::Number(number) => Some(number),
            Label::Text(_) => None,
        };
        jobs.iter().all(|job| number(job).is_some()) && jobs.is_sorted_by(|a, b| number(a) < number(b))
    }

    /// The position of the job with this id. `jobs` are those that these positions were made of.
    pub(super) fn of(&self, jobs: &[SnapshotJob], label: &Label) -> Option<usize> {
        match self {
            Self::ByText(positions) => positions.get(&label.to_string()).copied(),
            Self::Ascending => {
                let number = match label {
                    Label::Number(number) => *number,
                    Label::Text(text) => text.parse().ok().filter(|n: &i64| n.to_string() == *text)?,
                };
                jobs.binary_search_by(|job| job.id.cmp(&Label::Number(number))).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Snapshot, Source};

    fn snapshot(ids: &str) -> Snapshot {
        let job = |id: &str| format!("{{id: {id}, throughput: {{a: 1}}}}");
        let jobs: Vec<String> = ids.split(' ').map(job).collect();
        let text = format!("format: apportion/snapshot-v1\ncluster: {{a: 9}}\njobs: [{}]\n", jobs.join(", "));
        Snapshot::read(&Source::new("s.yaml", text)).unwrap()
    }

    #[test]
    fn a_number_and_its_digits_are_one_id_in_any_order() {
        for ids in ["3 5 8", "5 3 8", "'3' 5 x"] {
            let snapshot = snapshot(ids);
            for (label, text) in [(Label::Number(5), "5"), (Label::Number(3), "3")] {
                let place = snapshot.position(&label);
                assert_eq!(place, ids.replace('\'', "").split(' ').position(|id| id == text), "{ids}");
                assert_eq!(snapshot.position(&Label::Text(text.to_owned())), place, "{ids}");
            }
            for absent in [Label::Number(4), Label::Text("05".to_owned()), Label::Text("y".to_owned())] {
                assert_eq!(snapshot.position(&absent), None, "{ids}");
            }
        }
    }
}
