//! Named arrays of numbers, and the safetensors files that hold them.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use thiserror::Error;

/// Named arrays of 32-bit floats, in order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    by_name: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

/// Why tensors cannot be read, made or found.
#[derive(Debug, Error)]
pub enum TensorsError {
    /// The bytes are no safetensors file.
    #[error("not a whole safetensors file: {0}")]
    Damaged(#[from] SafeTensorError),
    /// A tensor has numbers of another type.
    #[error("`{name}` holds {found}, expected F32")]
    Kind {
        /// The tensor.
        name: String,
        /// The type of its numbers.
        found: String,
    },
    /// A tensor is missing.
    #[error("there is no tensor `{name}`")]
    Missing {
        /// The name of the tensor.
        name: String,
    },
    /// A tensor's numbers are more or fewer than its shape needs.
    #[error("`{name}` has {found} numbers, its shape {shape:?} needs another count")]
    Count {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of its numbers.
        found: usize,
    },
    /// A tensor has a number that is not finite.
    #[error("`{name}` holds a number that is not finite")]
    NotFinite {
        /// The tensor.
        name: String,
    },
}

impl Tensors {
    /// Adds or replaces a tensor; the last index runs fastest.
    ///
    /// # Errors
    /// If the numbers are more or fewer than the shape needs.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        shape: Vec<usize>,
        numbers: Vec<f32>,
    ) -> Result<(), TensorsError> {
        let name = name.into();
        let n_expected = shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        if n_expected != Some(numbers.len()) {
            return Err(TensorsError::Count { name, shape, found: numbers.len() });
        }
        self.by_name.insert(name, (shape, numbers));
        Ok(())
    }

    /// Removes a tensor, if there is one of the name.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Whether there is a tensor of the name.
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// A tensor's shape and numbers.
    ///
    /// # Errors
    /// If there is no tensor of the name.
    pub fn get(&self, name: &str) -> Result<(&[usize], &[f32]), TensorsError> {
        let found = self.by_name.get(name).map(|(shape, numbers)| (shape.as_slice(), numbers.as_slice()));
        found.ok_or_else(|| TensorsError::Missing { name: name.to_owned() })
    }

    /// Names, shapes and numbers, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        self.by_name
            .iter()
            .map(|(name, (shape, numbers))| (name.as_str(), shape.as_slice(), numbers.as_slice()))
    }

    /// The tensors whose names begin with `prefix`, without the prefix.
    #[must_use]
    pub fn below(&self, prefix: &str) -> Self {
        let inside = |(name, tensor): (&String, &(Vec<usize>, Vec<f32>))| {
            name.strip_prefix(prefix).map(|rest| (rest.to_owned(), tensor.clone()))
        };
        Self { by_name: self.by_name.iter().filter_map(inside).collect() }
    }

    /// Adds all tensors of `other`, with `prefix` before their names.
    pub fn extend(&mut self, prefix: &str, other: &Self) {
        for (name, tensor) in &other.by_name {
            self.by_name.insert(format!("{prefix}{name}"), tensor.clone());
        }
    }

    /// Count of the numbers in all tensors.
    pub fn n_numbers(&self) -> usize {
        self.by_name.values().map(|(_, numbers)| numbers.len()).sum()
    }

    /// The bytes of a safetensors file with one entry of metadata, which depend on nothing else.
    ///
    /// # Errors
    /// If the header would be larger than the format allows.
    pub fn to_safetensors(&self, (key, value): (&str, &str)) -> Result<Vec<u8>, TensorsError> {
        let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = self
            .by_name
            .iter()
            .map(|(name, (shape, numbers))| {
                (name, shape, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
            })
            .collect();
        let views: Vec<(&String, TensorView)> = bytes
            .iter()
            .map(|(name, shape, bytes)| Ok((*name, TensorView::new(Dtype::F32, (*shape).clone(), bytes)?)))
            .collect::<Result<_, SafeTensorError>>()?;
        // The library writes metadata in order of their hashes, so only a single entry has a fixed order.
        let metadata = std::iter::once((key.to_owned(), value.to_owned())).collect();
        Ok(safetensors::serialize(views, Some(metadata))?)
    }

    /// The tensors of a safetensors file, and its metadata's entry `key`.
    ///
    /// # Errors
    /// If it is damaged, or holds numbers other than finite 32-bit floats.
    pub fn from_safetensors(bytes: &[u8], key: &str) -> Result<(Self, Option<String>), TensorsError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let value = header.metadata().as_ref().and_then(|metadata| metadata.get(key).cloned());
        let file = SafeTensors::deserialize(bytes)?;
        let mut tensors = Self::default();
        for (name, view) in file.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(TensorsError::Kind {
                    name: name.to_owned(),
                    found: format!("{:?}", view.dtype()),
                });
            }
            let (words, _) = view.data().as_chunks::<4>();
            let numbers: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
            if numbers.iter().any(|number| !number.is_finite()) {
                return Err(TensorsError::NotFinite { name: name.to_owned() });
            }
            tensors.insert(name, view.shape().to_vec(), numbers)?;
        }
        Ok((tensors, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Tensors {
        let mut tensors = Tensors::default();
        tensors.insert("b", vec![2, 2], vec![1.0, -0.0, f32::MIN_POSITIVE, 1e30]).unwrap();
        tensors.insert("a.weight", vec![0], vec![]).unwrap();
        tensors.insert("c", vec![], vec![7.5]).unwrap();
        tensors
    }

    #[test]
    fn a_file_gives_back_what_was_written() {
        let bytes = some().to_safetensors(("k", "v")).unwrap();
        assert_eq!(bytes, some().to_safetensors(("k", "v")).unwrap());
        let (tensors, value) = Tensors::from_safetensors(&bytes, "k").unwrap();
        assert_eq!((tensors, value.as_deref()), (some(), Some("v")));
        let (_, other) = Tensors::from_safetensors(&bytes, "other").unwrap();
        assert_eq!(other, None);
    }

    #[test]
    fn damaged_files_are_refused() {
        let bytes = some().to_safetensors(("k", "v")).unwrap();
        for end in 0..bytes.len() {
            assert!(Tensors::from_safetensors(&bytes[..end], "k").is_err(), "cut at {end}");
        }
        let mut infinite = some();
        infinite.insert("b", vec![1], vec![f32::INFINITY]).unwrap();
        let error =
            Tensors::from_safetensors(&infinite.to_safetensors(("k", "v")).unwrap(), "k").unwrap_err();
        assert_eq!(error.to_string(), "`b` holds a number that is not finite");
    }

    #[test]
    fn a_shape_holds_as_many_numbers_as_it_says() {
        let mut tensors = Tensors::default();
        assert!(tensors.insert("x", vec![2, 3], vec![0.0; 5]).is_err());
        assert!(tensors.insert("x", vec![usize::MAX, 3], vec![0.0; 5]).is_err());
        tensors.insert("x", vec![2, 3], vec![0.0; 6]).unwrap();
        let mut all = Tensors::default();
        all.extend("model.", &tensors);
        assert!(all.contains("model.x"));
        assert_eq!((all.below("model."), all.n_numbers()), (tensors, 6));
    }
}
