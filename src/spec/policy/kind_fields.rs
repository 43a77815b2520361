//! The fields of a policy document that only its kind has.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::document::COMMON;

/// A mapping without the keys that documents of every kind have. The text's own reader still knows line and column of
/// what is left, as it would not of a copy.
pub(super) struct KindFields<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KindFields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KindFieldsVisitor(PhantomData)).map(KindFields)
    }
}

struct KindFieldsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for KindFieldsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(WithoutCommon(map)))
    }
}

struct WithoutCommon<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutCommon<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        // A seed is used once, so a key is looked at as text before the seed reads it.
        let mut seed = Some(seed);
        loop {
            let own = KindKey { seed: &mut seed };
            match self.0.next_key_seed(own)? {
                None => return Ok(None),
                Some(Some(value)) => return Ok(Some(value)),
                Some(None) => drop(self.0.next_value::<IgnoredAny>()?),
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Reads a key with the seed, unless documents of every kind have it.
struct KindKey<'a, K> {
    seed: &'a mut Option<K>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KindKey<'_, K> {
    type Value = Option<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for KindKey<'_, K> {
    type Value = Option<K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        if COMMON.contains(&key) {
            return Ok(None);
        }
        let Some(seed) = self.seed.take() else { return Ok(None) };
        seed.deserialize(serde::de::value::StrDeserializer::new(key)).map(Some)
    }
}
