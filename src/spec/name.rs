//! Names that occur again and again, kept once.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Name {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The most distinct names that are searched for: a document with more saves nothing by it.
const KNOWN_MAX: usize = 256;

/// The names so far, so that a million jobs of one type keep one copy of its name.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Vec<Name>,
}

impl Names {
    /// Makes `name` share the copy of an equal name before.
    pub(super) fn share(&mut self, name: &mut Name) {
        match self.known.iter().find(|known| *known == name) {
            Some(known) => *name = known.clone(),
            None if self.known.len() < KNOWN_MAX => self.known.push(name.clone()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_one_copy() {
        let mut names = Names::default();
        let (mut one, mut other, mut third) = (Name::from("a"), Name::from("a".to_owned()), Name::from("b"));
        for name in [&mut one, &mut other, &mut third] {
            names.share(name);
        }
        assert!(Arc::ptr_eq(&one.0, &other.0));
        assert_eq!((&*other, &*third), ("a", "b"));
    }
}
