//! The inverse of a block's own part of the Newton system, for up to two rows, without subtracting large numbers.
//!
//! With D = diag(d) of columns, rows a and v and diag(α, β) of their slacks, it inverts
//!
//!   [ D⁻¹  Aᵀ ]       [ N    U  ]        S = A D Aᵀ + diag(α, β),   A = [a; v]
//!   [ A   −αβ ]   to  [ Uᵀ  −S⁻¹ ]
//!
//! By the Cauchy–Binet formula the determinant of S, the diagonal of N and the factors of U are sums over the
//! minors M_ij = a_i v_j − a_j v_i: positive ones where a difference of large numbers would lose digits.

use crate::solver::lanes::F64x8;

/// The inverse for eight blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inverse<const K: usize> {
    /// N, symmetric.
    pub(super) n: [[F64x8; K]; K],
    /// U: `[column][row]`.
    pub(super) u: [[F64x8; 2]; K],
    /// S⁻¹: (1, 1), (1, 2), (2, 2).
    pub(super) s: [F64x8; 3],
}

impl<const K: usize> Inverse<K> {
    #[inline]
    pub(super) fn of(d: &[F64x8; K], a: &[F64x8; K], v: &[F64x8; K], alpha: F64x8, beta: F64x8) -> Self {
        let mut minors = [[F64x8::ZERO; K]; K];
        // Σ d a², Σ d v², Σ d a v and the determinant
        let (mut aa, mut vv, mut av, mut pairs) = (F64x8::ZERO, F64x8::ZERO, F64x8::ZERO, F64x8::ZERO);
        for i in 0..K {
            for j in i + 1..K {
                let minor = a[i] * v[j] - a[j] * v[i];
                minors[i][j] = minor;
                minors[j][i] = -minor;
                pairs += d[i] * d[j] * minor * minor;
            }
            aa += d[i] * a[i] * a[i];
            vv += d[i] * v[i] * v[i];
            av += d[i] * a[i] * v[i];
        }
        let det = pairs + alpha * vv + beta * aa + alpha * beta;
        let inverse = F64x8::ONE / det;
        let mut n = [[F64x8::ZERO; K]; K];
        let mut u = [[F64x8::ZERO; 2]; K];
        for i in 0..K {
            // the determinant without column i
            let mut without = alpha * beta;
            let (mut first, mut second) = (a[i] * beta, v[i] * alpha);
            for j in (0..K).filter(|j| *j != i) {
                without += d[j] * (alpha * v[j] * v[j] + beta * a[j] * a[j]);
                for l in (j + 1..K).filter(|l| *l != i) {
                    without += d[j] * d[l] * minors[j][l] * minors[j][l];
                }
                first += d[j] * v[j] * minors[i][j];
                second += d[j] * a[j] * minors[j][i];
            }
            let scaled = d[i] * inverse;
            n[i][i] = scaled * without;
            u[i] = [scaled * first, scaled * second];
            for j in i + 1..K {
                let mut sum = beta * a[i] * a[j] + alpha * v[i] * v[j];
                for l in (0..K).filter(|l| *l != i && *l != j) {
                    sum += d[l] * minors[i][l] * minors[j][l];
                }
                n[i][j] = -(scaled * d[j] * sum);
                n[j][i] = n[i][j];
            }
        }
        Self { n, u, s: [(vv + beta) * inverse, -(av * inverse), (aa + alpha) * inverse] }
    }

    /// The inverse times (columns, rows).
    #[inline]
    pub(super) fn times(&self, columns: &[F64x8; K], rows: &[F64x8; 2]) -> ([F64x8; K], [F64x8; 2]) {
        let mut out = [F64x8::ZERO; K];
        let s = &self.s;
        let mut of_rows = [-(s[0] * rows[0] + s[1] * rows[1]), -(s[1] * rows[0] + s[2] * rows[1])];
        for i in 0..K {
            out[i] = self.u[i][0] * rows[0] + self.u[i][1] * rows[1];
            for (n, column) in self.n[i].iter().zip(columns) {
                out[i] += *n * *column;
            }
            of_rows[0] += self.u[i][0] * columns[i];
            of_rows[1] += self.u[i][1] * columns[i];
        }
        (out, of_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [D⁻¹ Aᵀ; A −diag(α, β)] times its inverse is one.
    #[test]
    fn the_inverse_inverts() {
        let d = [F64x8::all(2.0), F64x8::all(1e-3), F64x8::all(30.0), F64x8::all(0.7)];
        let a = [F64x8::ONE, F64x8::ONE, F64x8::all(0.5), F64x8::ONE];
        let v = [F64x8::all(-0.2), F64x8::all(-1.0), F64x8::all(-0.9), F64x8::ZERO];
        for (alpha, beta) in [(0.3, 4.0), (0.0, 1e-4), (5.0, 0.0)] {
            let inverse = Inverse::of(&d, &a, &v, F64x8::all(alpha), F64x8::all(beta));
            for unit in 0..6 {
                let mut columns = [F64x8::ZERO; 4];
                let mut rows = [F64x8::ZERO; 2];
                if unit < 4 {
                    columns[unit] = F64x8::ONE;
                } else {
                    rows[unit - 4] = F64x8::ONE;
                }
                let (x, y) = inverse.times(&columns, &rows);
                for i in 0..4 {
                    let back = x[i] / d[i] + a[i] * y[0] + v[i] * y[1];
                    assert!((back.0[3] - columns[i].0[3]).abs() < 1e-11, "{unit} {i}: {back:?}");
                }
                for (i, (row, slack)) in [(a, alpha), (v, beta)].into_iter().enumerate() {
                    let form = (0..4).fold(F64x8::ZERO, |sum, j| sum + row[j] * x[j]);
                    let back = form - y[i] * slack;
                    assert!((back.0[0] - rows[i].0[0]).abs() < 1e-9, "{unit} row {i}: {back:?}");
                }
            }
        }
    }
}
