//! Text in one canonical form, and its digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hmac_sha256::Hash;

/// SHA-256 in lowercase hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Hash::hash(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
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
