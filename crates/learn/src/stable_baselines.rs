//! Import of policies that stable-baselines3 has trained: its `PPO("MlpPolicy")` files.
//!
//! The file is a zip archive whose entry `policy.pth` is itself an archive, as PyTorch saves: a pickle that names arrays, and an
//! entry for the memory of each.

mod pickle;

use std::borrow::Cow;
use std::io::{Cursor, Read};

use serde_json::{Value, json};
use thiserror::Error;
use zip::ZipArchive;

use self::pickle::Object;
use crate::checkpoint::{Checkpoint, NetworkKind, Provenance};
use crate::network::Activation;
use crate::tensors::Tensors;
use apportion::spec::run::sha256;

/// The most bytes of one entry when unpacked.
const ENTRY_BYTES_MAX: u64 = 1 << 28;

/// The most bytes of all arrays when unpacked, each counted with the whole entry that it is in.
const ARRAYS_BYTES_MAX: u64 = 1 << 29;

/// Why a file is no policy of dense layers.
#[derive(Debug, Error)]
#[error("not a saved PPO policy of dense layers: {reason}")]
pub struct ImportError {
    reason: String,
}

impl ImportError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Reads a file of stable-baselines3's PPO with an `MlpPolicy` as a checkpoint for decisions.
///
/// The arrays do not show the activation, which is assumed to be the default, tanh.
///
/// # Errors
/// If the file is damaged, or of another kind of policy.
pub fn import(bytes: &[u8]) -> Result<Checkpoint, ImportError> {
    let mut archive = open(bytes, "the file")?;
    let policy = entry(&mut archive, "policy.pth")?;
    let settings = entry(&mut archive, "data").ok().and_then(|text| serde_json::from_slice(&text).ok());
    let version = entry(&mut archive, "_stable_baselines3_version").ok();
    let version = version.and_then(|text| String::from_utf8(text).ok());
    let tensors = renamed(&arrays(&policy, ARRAYS_BYTES_MAX)?)?;
    let digest = sha256(bytes);
    let number = |key: &str| settings.as_ref().and_then(|all: &Value| all.get(key)).and_then(Value::as_u64);
    let provenance = Provenance {
        network: NetworkKind::Mlp { activation: Activation::Tanh, n_agents: 1 },
        spec: json!({ "imported_from": "stable-baselines3", "version": version, "file_digest": digest }),
        data_digest: String::new(),
        from_digest: None,
        raised: Vec::new(),
        seed: number("seed").unwrap_or_default(),
        n_updates: number("_n_updates").unwrap_or_default(),
        n_decisions: number("num_timesteps").unwrap_or_default(),
    };
    let checkpoint = Checkpoint::of_weights(provenance, &tensors);
    checkpoint.actor().map_err(|error| ImportError::new(error.to_string()))?;
    Ok(checkpoint)
}

fn open<'a>(bytes: &'a [u8], what: &str) -> Result<ZipArchive<Cursor<&'a [u8]>>, ImportError> {
    ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| ImportError::new(format!("{what} is no zip archive: {error}")))
}

fn entry(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, ImportError> {
    let entry = archive.by_name(name);
    let entry = entry.map_err(|error| ImportError::new(format!("its entry `{name}`: {error}")))?;
    let mut bytes = Vec::new();
    let read = entry.take(ENTRY_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| ImportError::new(format!("its entry `{name}`: {error}")))?;
    if bytes.len() as u64 > ENTRY_BYTES_MAX {
        return Err(ImportError::new(format!("its entry `{name}` has more than {ENTRY_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// The arrays of a dictionary that PyTorch saved, if their entries have at most `n_bytes_max` bytes.
fn arrays(bytes: &[u8], n_bytes_max: u64) -> Result<Tensors, ImportError> {
    let mut archive = open(bytes, "its entry `policy.pth`")?;
    let mut names = archive.file_names().filter_map(Result::ok);
    let pickle = names.find(|name| name.ends_with("data.pkl")).map(Cow::into_owned);
    drop(names);
    let pickle = pickle.ok_or_else(|| ImportError::new("its entry `policy.pth` holds no `data.pkl`"))?;
    let folder = pickle.trim_end_matches("data.pkl").to_owned();
    if entry(&mut archive, &format!("{folder}byteorder")).is_ok_and(|order| order == b"big") {
        return Err(ImportError::new("its arrays are big-endian"));
    }
    let Object::Dictionary(named) = pickle::read(&entry(&mut archive, &pickle)?).map_err(ImportError::new)?
    else {
        return Err(ImportError::new("its entry `policy.pth` holds no dictionary"));
    };
    let mut tensors = Tensors::default();
    let mut n_left = n_bytes_max;
    for (key, value) in named {
        let Object::Text(name) = key else {
            return Err(ImportError::new("its arrays have keys that are no text"));
        };
        let (shape, numbers) = array(&mut archive, &folder, (&value, &mut n_left))
            .map_err(|error| ImportError::new(format!("array `{name}`: {}", error.reason)))?;
        let inserted = tensors.insert(name, shape, numbers);
        inserted.map_err(|error| ImportError::new(error.to_string()))?;
    }
    Ok(tensors)
}

fn array(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    folder: &str,
    (value, n_left): (&Object, &mut u64),
) -> Result<(Vec<usize>, Vec<f32>), ImportError> {
    let Object::Array { storage, offset, shape, strides } = value else {
        return Err(ImportError::new("it is no array"));
    };
    let Object::Storage { kind, key } = &**storage else {
        return Err(ImportError::new("it has no memory"));
    };
    if kind != "torch.FloatStorage" {
        return Err(ImportError::new(format!("it is of `{kind}`, expected `torch.FloatStorage`")));
    }
    let sizes = |objects: &[Object]| -> Result<Vec<usize>, ImportError> {
        let size = |object: &Object| match object {
            Object::Integer(size) => usize::try_from(*size).ok(),
            _ => None,
        };
        objects
            .iter()
            .map(size)
            .collect::<Option<_>>()
            .ok_or_else(|| ImportError::new("its shape is no shape"))
    };
    let (shape, strides) = (sizes(shape)?, sizes(strides)?);
    let offset = usize::try_from(*offset).map_err(|_| ImportError::new("it begins before its memory"))?;
    let contiguous =
        strides.iter().rev().zip(shape.iter().rev()).try_fold(1_usize, |expected, (stride, extent)| {
            (*stride == expected || *extent == 1).then(|| expected.saturating_mul(*extent))
        });
    let n = contiguous.filter(|_| shape.len() == strides.len());
    let n = n.ok_or_else(|| ImportError::new("its numbers do not lie in order"))?;
    let memory = entry(archive, &format!("{folder}data/{key}"))?;
    *n_left = n_left
        .checked_sub(memory.len() as u64)
        .ok_or_else(|| ImportError::new("it and those before it lie in more bytes than a policy needs"))?;
    let (words, _) = memory.as_chunks::<4>();
    let words = offset.checked_add(n).and_then(|end| words.get(offset..end));
    let words = words.ok_or_else(|| ImportError::new("its memory is too short"))?;
    let numbers: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(ImportError::new("it holds a number that is not finite"));
    }
    Ok((shape, numbers))
}

/// The arrays with this program's names. The actor's layers are `mlp_extractor.policy_net.0`, `….2` and so on, then `action_net`;
/// the critic's are named likewise.
fn renamed(arrays: &Tensors) -> Result<Tensors, ImportError> {
    let mut renamed = Tensors::default();
    let mut n_renamed = 0;
    for (net, head, name) in [("policy_net", "action_net", "actor.0"), ("value_net", "value_net", "critic")] {
        let hidden = (0..).map(|layer| format!("mlp_extractor.{net}.{}", 2 * layer));
        let mut layers: Vec<String> =
            hidden.take_while(|layer| arrays.contains(&format!("{layer}.weight"))).collect();
        layers.push(head.to_owned());
        for (number, layer) in layers.iter().enumerate() {
            for part in ["weight", "bias"] {
                let found = arrays.get(&format!("{layer}.{part}"));
                let (shape, numbers) = found.map_err(|error| ImportError::new(error.to_string()))?;
                let inserted =
                    renamed.insert(format!("{name}.{number}.{part}"), shape.to_vec(), numbers.to_vec());
                inserted.map_err(|error| ImportError::new(error.to_string()))?;
                n_renamed += 1;
            }
        }
    }
    if n_renamed < arrays.iter().count() {
        let known = |name: &str| {
            ["mlp_extractor.policy_net.", "mlp_extractor.value_net.", "action_net.", "value_net."]
                .iter()
                .any(|start| name.starts_with(start))
        };
        let other =
            arrays.iter().map(|(name, ..)| name).find(|name| !known(name)).unwrap_or("a further layer");
        return Err(ImportError::new(format!("it has `{other}`, which dense layers do not have")));
    }
    Ok(renamed)
}

#[cfg(test)]
mod tests;
