//! The dense layer as a single operation of automatic differentiation.
//!
//! The library's own product asks the operating system for the number of cores at every call (27 µs of processor time, as much as a
//! small layer takes) and may use several threads. This operation does neither, so that a training gives the same bits on any
//! number of threads, and it adds the bias on the way.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, Layout, Result, Shape, Tensor};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ShapeBuilder};

/// The output x Wᵀ + b of a dense layer, [… × outputs], for x [… × inputs], W [outputs × inputs], b `[outputs]`.
///
/// # Errors
/// If the shapes do not fit.
pub fn linear(input: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let mut shape = input.dims().to_vec();
    let flat =
        if shape.len() == 2 { input.clone() } else { input.flatten_to(shape.len().saturating_sub(2))? };
    let output = flat.apply_op3(&weight.t()?, &bias.unsqueeze(0)?, MultiplyAdd)?;
    if shape.len() == 2 {
        return Ok(output);
    }
    if let Some(last) = shape.last_mut() {
        *last = output.dim(1)?;
    }
    output.reshape(shape)
}

/// The operation A B + c, for A [m × k], B [k × n], c [1 × n].
struct MultiplyAdd;

impl CustomOp3 for MultiplyAdd {
    fn name(&self) -> &'static str {
        "multiply-add"
    }

    fn cpu_fwd(
        &self,
        left: &CpuStorage,
        left_layout: &Layout,
        right: &CpuStorage,
        right_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let left = view(left, left_layout)?;
        let right = view(right, right_layout)?;
        let bias = view(bias, bias_layout)?;
        let (m, n) = (left.nrows(), right.ncols());
        if left.ncols() != right.nrows() || bias.dim() != (1, n) {
            candle_core::bail!("{:?} × {:?} + {:?} do not fit", left.dim(), right.dim(), bias.dim());
        }
        let bias: Vec<f32> = bias.iter().copied().collect();
        let mut output = Vec::with_capacity(m * n);
        for _ in 0..m {
            output.extend_from_slice(&bias);
        }
        let mut output = Array2::from_shape_vec((m, n), output).map_err(candle_core::Error::wrap)?;
        general_mat_mul(1.0, &left, &right, 1.0, &mut output);
        let (output, _) = output.into_raw_vec_and_offset();
        Ok((CpuStorage::F32(output), (m, n).into()))
    }

    fn bwd(
        &self,
        left: &Tensor,
        right: &Tensor,
        _bias: &Tensor,
        _output: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let product = |one: &Tensor, other: &Tensor| {
            let zeros = Tensor::zeros((1, other.dim(1)?), one.dtype(), one.device())?;
            one.apply_op3_no_bwd(other, &zeros, &MultiplyAdd)
        };
        let left_gradient = if left.track_op() { Some(product(gradient, &right.t()?)?) } else { None };
        // Aᵀ G as (Gᵀ A)ᵀ, which has the memory layout of the transposed weight.
        let right_gradient = product(&gradient.t()?, left)?.t()?;
        Ok((left_gradient, Some(right_gradient), Some(gradient.apply_op1_no_bwd(&SumOfRows)?)))
    }
}

/// The operation that sums the rows of [m × n] to [1 × n], row after row. The library's own sum goes through indices one by one.
struct SumOfRows;

impl CustomOp1 for SumOfRows {
    fn name(&self) -> &'static str {
        "sum-of-rows"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = view(storage, layout)?;
        let mut sums = vec![0.0_f32; rows.ncols()];
        for row in rows.rows() {
            for (sum, number) in sums.iter_mut().zip(row) {
                *sum += number;
            }
        }
        let shape = (1, sums.len());
        Ok((CpuStorage::F32(sums), shape.into()))
    }
}

fn view<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<ArrayView2<'a, f32>> {
    let numbers = storage.as_slice::<f32>()?;
    let &[rows, columns] = layout.dims() else {
        candle_core::bail!("a matrix, not {:?}", layout.dims());
    };
    let &[row_stride, column_stride] = layout.stride() else {
        candle_core::bail!("a matrix, not {:?}", layout.dims());
    };
    let shape = (rows, columns).strides((row_stride, column_stride));
    ArrayView2::from_shape(shape, &numbers[layout.start_offset()..]).map_err(candle_core::Error::wrap)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use apportion::workload::random::SeedStreams;

    fn random(shape: &[usize], name: &str) -> Var {
        let mut stream = SeedStreams::new(2).stream(name);
        let numbers = (0..shape.iter().product()).map(|_| stream.normal(0.0, 1.0) as f32).collect::<Vec<_>>();
        Var::from_vec(numbers, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn values_and_gradients_are_those_of_the_library() {
        let (x, w, b) = (random(&[3, 4, 5], "x"), random(&[2, 5], "w"), random(&[2], "b"));
        let ours = linear(&x, &w, &b).unwrap();
        let theirs = x.broadcast_matmul(&w.t().unwrap()).unwrap().broadcast_add(&b).unwrap();
        assert_eq!(ours.dims(), [3, 4, 2]);
        let scale = random(&[3, 4, 2], "scale");
        let gradients = [&ours, &theirs]
            .map(|output| (output * scale.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap());
        let close = |one: &Tensor, other: &Tensor| {
            let apart = (one - other).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            assert!(apart.to_scalar::<f32>().unwrap() < 1e-5);
        };
        close(&ours, &theirs);
        for variable in [&x, &w, &b] {
            close(gradients[0].get(variable).unwrap(), gradients[1].get(variable).unwrap());
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (x, w, b) = (random(&[4, 3], "x"), random(&[2, 3], "w"), random(&[2], "b"));
        let loss = || linear(&x, &w, &b).unwrap().tanh().unwrap().sum_all().unwrap();
        let gradients = loss().backward().unwrap();
        for variable in [&x, &w, &b] {
            let exact = gradients.get(variable).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let numbers = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for (place, slope) in exact.iter().enumerate() {
                let at = |step: f32| {
                    let mut moved = numbers.clone();
                    moved[place] += step;
                    variable.set(&Tensor::from_vec(moved, variable.shape(), &Device::Cpu).unwrap()).unwrap();
                    f64::from(loss().to_scalar::<f32>().unwrap())
                };
                let estimate = (at(1e-2) - at(-1e-2)) / 2e-2;
                at(0.0);
                assert!((estimate - f64::from(*slope)).abs() < 2e-3, "{estimate} {slope}");
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(linear(&random(&[4, 3], "x"), &random(&[2, 4], "w"), &random(&[2], "b")).is_err());
        assert!(linear(&random(&[4, 3], "x"), &random(&[2, 3], "w"), &random(&[3], "b")).is_err());
    }
}
