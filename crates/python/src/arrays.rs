//! Arrays that Python passes in.

use std::ops::Deref;

use numpy::ndarray::{Dimension, Ix1, Ix2};
use numpy::{Element, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// An array of numbers with aligned elements: one that is not aligned, as a part of a file may be, is copied.
pub(crate) struct Array<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

/// A one-dimensional array.
pub(crate) type Array1<'py, T> = Array<'py, T, Ix1>;

/// A two-dimensional array.
pub(crate) type Array2<'py, T> = Array<'py, T, Ix2>;

impl<'a, 'py, T: Element, D: Dimension + 'py> FromPyObject<'a, 'py> for Array<'py, T, D> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array: PyReadonlyArray<'py, T, D> = object.extract()?;
        let is_whole = |stride: &isize| stride.unsigned_abs().is_multiple_of(align_of::<T>());
        if array.data().is_aligned() && array.strides().iter().all(is_whole) {
            return Ok(Self(array));
        }
        Ok(Self(object.call_method0("copy")?.extract()?))
    }
}

impl<'py, T: Element, D: Dimension> Deref for Array<'py, T, D> {
    type Target = PyReadonlyArray<'py, T, D>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
