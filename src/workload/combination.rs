//! Job combinations: a job alone, or two jobs that share the same workers.

use serde::{Deserialize, Serialize};

/// Jobs that share workers: one, or an unordered pair with the smaller id first.
///
/// It is generic over the identifier, because a round knows jobs by [`JobId`](crate::index::JobId) and a problem by
/// [`JobIndex`](crate::index::JobIndex).
/// A job alone is kept as a pair with itself: a million combinations are two numbers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(
    from = "Members<J>",
    into = "Members<J>",
    bound = "J: Copy + Ord + Serialize + serde::de::DeserializeOwned"
)]
pub struct Combination<J> {
    first: J,
    second: J,
}

/// Jobs that share workers, or a job alone.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Members<J> {
    /// The job, or the one with the smaller id.
    first: J,
    /// The other; none if the first is alone.
    second: Option<J>,
}

#[cfg(feature = "schema")]
impl<J: schemars::JsonSchema> schemars::JsonSchema for Combination<J> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Combination".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Members::<J>::json_schema(generator)
    }
}

impl<J: Copy + Ord> From<Members<J>> for Combination<J> {
    fn from(members: Members<J>) -> Self {
        Self { first: members.first, second: members.second.unwrap_or(members.first) }
    }
}

impl<J: Copy + Ord> From<Combination<J>> for Members<J> {
    fn from(combination: Combination<J>) -> Self {
        Self { first: combination.first, second: combination.second() }
    }
}

impl<J: Copy + Ord> Combination<J> {
    /// A job alone.
    pub fn single(job: J) -> Self {
        Self { first: job, second: job }
    }

    /// Two jobs that share workers.
    ///
    /// # Panics
    /// If the two are the same job.
    pub fn pair(one: J, other: J) -> Self {
        assert!(one != other, "a job cannot share workers with itself");
        Self { first: one.min(other), second: one.max(other) }
    }

    /// The members, in order: one or two.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = J> + use<J> {
        std::iter::once(self.first).chain(self.second())
    }

    /// The number of members.
    pub fn n_members(&self) -> usize {
        1 + usize::from(self.is_pair())
    }

    /// The job, or the one with the smaller id.
    pub fn first(&self) -> J {
        self.first
    }

    /// The job with the larger id; none if this is no pair.
    pub fn second(&self) -> Option<J> {
        self.is_pair().then_some(self.second)
    }

    /// Whether it is a pair.
    pub fn is_pair(&self) -> bool {
        self.first != self.second
    }

    /// Whether `job` is a member.
    pub fn contains(&self, job: J) -> bool {
        self.first == job || self.second == job
    }

    /// This combination with other identifiers.
    pub fn map<I: Copy + Ord>(&self, mut rename: impl FnMut(J) -> I) -> Combination<I> {
        match self.second() {
            None => Combination::single(rename(self.first)),
            Some(second) => Combination::pair(rename(self.first), rename(second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_no_order() {
        assert_eq!(Combination::pair(7, 3), Combination::pair(3, 7));
        assert_eq!(Combination::pair(7, 3).members().collect::<Vec<_>>(), [3, 7]);
    }
    #[test]
    fn documents_say_whether_there_is_a_second_job() {
        for (combination, text) in [
            (Combination::single(3_u32), r#"{"first":3,"second":null}"#),
            (Combination::pair(7, 3), r#"{"first":3,"second":7}"#),
        ] {
            assert_eq!(serde_json::to_string(&combination).unwrap(), text);
            assert_eq!(serde_json::from_str::<Combination<u32>>(text).unwrap(), combination);
        }
    }
}
