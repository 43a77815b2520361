//! Prices of workers in a run.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Prices of workers: constant, such as `{v100: 2.48, p100: 1.46}`, or the path of a file of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "$/h")))]
#[serde(untagged)]
pub enum PricesSpec {
    /// Prices in $/h, by worker type.
    Constant(BTreeMap<String, f64>),
    /// The path of a file of prices over time, or of constant ones.
    File(String),
}

impl PricesSpec {
    /// The prices in the spec itself; none if they are in a file.
    pub fn constant(&self) -> impl Iterator<Item = (&String, &f64)> {
        let map = match self {
            Self::Constant(map) => Some(map),
            Self::File(_) => None,
        };
        map.into_iter().flatten()
    }
}

impl Default for PricesSpec {
    fn default() -> Self {
        Self::Constant(BTreeMap::new())
    }
}

impl<'de> Deserialize<'de> for PricesSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PricesVisitor)
    }
}

struct PricesVisitor;

impl<'de> Visitor<'de> for PricesVisitor {
    type Value = PricesSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("prices by worker type, such as {v100: 2.48, k80: 0.45}, or the path of a file of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PricesSpec, A::Error> {
        let mut prices = BTreeMap::new();
        while let Some((name, price)) = map.next_entry::<String, f64>()? {
            if prices.contains_key(&name) {
                return Err(de::Error::custom(format!("worker type `{name}` is given twice")));
            }
            prices.insert(name, price);
        }
        Ok(PricesSpec::Constant(prices))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PricesSpec, E> {
        Ok(PricesSpec::File(text.to_owned()))
    }
}
