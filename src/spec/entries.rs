//! A mapping in order, with distinct keys.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spec::name::{Name, Names};

/// Names and values in the order of the document, each name once: `{v100: 4, p100: 4}`. A `BTreeMap` would sort the names and
/// quietly keep the last of two; this keeps the order and refuses the second.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<T> {
    items: Vec<(Name, T)>,
    /// Positions in the order of the names; empty for a few entries, which are searched one by one.
    by_name: Box<[usize]>,
}

/// The largest number of entries that are searched one by one.
const FEW: usize = 16;

impl<T> Entries<T> {
    fn new(items: Vec<(Name, T)>) -> Self {
        let n_sorted = if items.len() > FEW { items.len() } else { 0 };
        let mut by_name: Box<[usize]> = (0..n_sorted).collect();
        by_name.sort_by(|one, other| items[*one].0[..].cmp(&items[*other].0));
        Self { items, by_name }
    }

    /// The entries in the order of the document.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.items.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        if self.by_name.is_empty() {
            return self.items.iter().find(|(other, _)| &**other == name).map(|(_, value)| value);
        }
        let found = self.by_name.binary_search_by(|position| (*self.items[*position].0).cmp(name)).ok()?;
        Some(&self.items[self.by_name[found]].1)
    }

    /// Makes its names share copies with equal names before, and drops spare capacity.
    pub(super) fn share_names(&mut self, names: &mut Names) {
        self.items.shrink_to_fit();
        for (name, _) in &mut self.items {
            names.share(name);
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T> FromIterator<(String, T)> for Entries<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(items: I) -> Self {
        Self::new(items.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl<T> IntoIterator for Entries<T> {
    type Item = (String, T);
    type IntoIter = std::iter::Map<std::vec::IntoIter<(Name, T)>, fn((Name, T)) -> (String, T)>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter().map(|(name, value)| (name.to_string(), value))
    }
}

impl<T: Serialize> Serialize for Entries<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.items.len()))?;
        for (name, value) in &self.items {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut items: Vec<(Name, T)> = Vec::new();
                let mut seen: BTreeSet<Name> = BTreeSet::new();
                while let Some(name) = map.next_key::<Name>()? {
                    let is_there = if items.len() <= FEW {
                        items.iter().any(|(other, _)| *other == name)
                    } else {
                        if seen.is_empty() {
                            seen.extend(items.iter().map(|(other, _)| other.clone()));
                        }
                        !seen.insert(name.clone())
                    };
                    if is_there {
                        return Err(A::Error::custom(format_args!("duplicate field `{}`", &*name)));
                    }
                    items.push((name, map.next_value()?));
                }
                Ok(Entries::new(items))
            }
        }

        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Entries_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Source;

    #[test]
    fn order_is_kept() {
        let entries: Entries<u32> = Source::new("d", "z: 1\na: 2").parse().unwrap();
        assert_eq!(entries.iter().collect::<Vec<_>>(), [("z", &1), ("a", &2)]);
        assert_eq!(serde_json::to_string(&entries).unwrap(), r#"{"z":1,"a":2}"#);
    }

    #[test]
    fn many_entries_are_found_by_name_and_none_comes_twice() {
        let line = |n: usize| format!("k{}: {n}\n", n * 7 % 40);
        let text: String = (0..40).map(line).collect();
        let entries: Entries<u32> = Source::new("d", text.as_str()).parse().unwrap();
        for n in 0..40 {
            assert_eq!(entries.get(&format!("k{}", n * 7 % 40)), Some(&n));
        }
        assert_eq!(entries.get("k40"), None);
        let entry = |n: usize| format!("\"k{n}\": {n}, ");
        let json = format!("{{{}\"k3\": 1}}", (0..40).map(entry).collect::<String>());
        let error = Source::new("d", json).parse::<Entries<u32>>().unwrap_err();
        assert!(error.to_string().ends_with(": key `k3` is given twice"), "{error}");
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        let error = Source::new("d", r#"{"z": 1, "z": 2}"#).parse::<Entries<u32>>().unwrap_err();
        assert_eq!(error.to_string(), "d:1:10: key `z` is given twice");
    }
}
