//! Text in one canonical form, and its digest.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use hmac_sha256::Hash;

/// SHA-256 in lowercase hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let mut digest = Sha256::default();
    digest.push(bytes);
    digest.hexadecimal()
}

/// A SHA-256 digest of bytes that come one after the other.
#[derive(Clone, Copy, Default)]
pub struct Sha256(Hash);

impl Sha256 {
    /// Adds more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far, in lowercase hexadecimal.
    pub fn hexadecimal(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sha256").field(&self.hexadecimal()).finish()
    }
}

/// JSON text in one canonical form: keys sorted, no spaces.
pub fn canonical(value: &serde_json::Value) -> String {
    sorted(value.clone()).to_string()
}

fn sorted(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let entries: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
