//! The number of jobs of an episode of the dual-agent scheduler's world.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The number of jobs of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Jobs {
    /// A fixed number for every episode.
    Fixed(usize),
    /// A number that grows while a training goes on.
    Growing {
        /// The number at the beginning of the training.
        from: usize,
        /// The number at the end of the training, and outside of trainings.
        to: usize,
    },
}

impl Jobs {
    #[expect(clippy::cast_sign_loss, reason = "between two counts")]
    pub(super) fn at(self, share: f64) -> usize {
        match self {
            Self::Fixed(n) => n,
            Self::Growing { from, to } => {
                (from as f64 + (to as f64 - from as f64) * share.clamp(0.0, 1.0)).round() as usize
            }
        }
    }
}

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JobsVisitor)
    }
}

/// Reader of a number of jobs; the error for any other value says what is expected.
struct JobsVisitor;

/// The keys of a growing number.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: usize,
    to: usize,
}

impl<'de> Visitor<'de> for JobsVisitor {
    type Value = Jobs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number above 0, or numbers such as {from: 10, to: 100} for more and more")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Jobs, E> {
        let wrong = |_| E::invalid_value(Unexpected::Unsigned(n), &self);
        usize::try_from(n).map(Jobs::Fixed).map_err(wrong)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Jobs, E> {
        let wrong = |_| E::invalid_value(Unexpected::Signed(n), &self);
        usize::try_from(n).map(Jobs::Fixed).map_err(wrong)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Jobs, A::Error> {
        let Range { from, to } = Range::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Jobs::Growing { from, to })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::systems::open;

    #[test]
    fn jobs_are_a_number_or_grow() {
        let read = |value| serde_json::from_value::<Jobs>(value).unwrap();
        assert_eq!(read(json!(7)), Jobs::Fixed(7));
        assert_eq!(read(json!({"from": 2, "to": 9})), Jobs::Growing { from: 2, to: 9 });
    }

    #[test]
    fn what_is_no_number_of_jobs_is_refused_with_field_and_value() {
        let expected =
            "expected a whole number above 0, or numbers such as {from: 10, to: 100} for more and more";
        let refused =
            |jobs: serde_json::Value| open("dual_agent", &json!({"jobs": jobs})).unwrap_err().to_string();
        for (jobs, found) in [
            (json!("x"), "the text \"x\""),
            (json!(-1), "`-1`"),
            (json!(1.5), "`1.5`"),
            (json!([3]), "a list"),
            (json!(null), "empty"),
        ] {
            let said = refused(jobs);
            assert!(said.contains(&format!("`jobs` is {found}, {expected}")), "{said}");
        }
        assert!(refused(json!({"from": 5})).contains("has no `to`"));
        assert!(refused(json!({"from": "x", "to": 5})).contains("`jobs.from` is the text"));
    }
}
