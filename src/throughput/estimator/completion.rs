//! Completion of a row from a few of its entries, by low-rank factors of complete rows.
//!
//!   minimise over U, V   ‖R − U Vᵀ‖² + μ (‖U‖² + ‖V‖²)          R [reference × column], rank ≤ r
//!
//! has the closed solution V = V_r √(Σ_r − μ)₊ from R's singular value decomposition (the factorization is what
//! probabilistic matrix factorization looks for by alternation). A new row x of which the entries Ω are known gets
//! the factor u that minimises Σ_Ω (x_c − u·V_c)² + μ ‖u‖², and x̂_c = u·V_c elsewhere: O(|Ω| r² + r³).

use nalgebra::{DMatrix, DVector};

/// Low-rank factors of complete rows.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    /// V: [column × rank].
    columns: DMatrix<f64>,
    /// Mean of the complete rows: [column].
    mean: Vec<f64>,
    /// μ.
    ridge: f64,
}

impl Factors {
    /// Factors of `rows`, at most `rank` of them.
    pub(super) fn of(rows: &[Vec<f64>], rank: usize, ridge: f64) -> Self {
        let (n_rows, n_columns) = (rows.len(), rows.first().map_or(0, Vec::len));
        let mean =
            (0..n_columns).map(|c| rows.iter().map(|row| row[c]).sum::<f64>() / n_rows as f64).collect();
        let mean: Vec<f64> = mean;
        let matrix = DMatrix::from_fn(n_rows, n_columns, |row, column| rows[row][column] - mean[column]);
        let decomposition = matrix.svd(false, true);
        let kept = rank.min(decomposition.singular_values.len());
        let columns = match decomposition.v_t {
            Some(v_t) => DMatrix::from_fn(n_columns, kept, |column, factor| {
                v_t[(factor, column)] * (decomposition.singular_values[factor] - ridge).max(0.0).sqrt()
            }),
            None => DMatrix::zeros(n_columns, kept),
        };
        Self { columns, mean, ridge }
    }

    /// A row completed from its known entries; the rows' mean if none is known.
    pub(super) fn complete(&self, known: &[Option<f64>]) -> Vec<f64> {
        let rank = self.columns.ncols();
        let mut normal = DMatrix::from_diagonal_element(rank, rank, self.ridge);
        let mut right = DVector::zeros(rank);
        for (column, value) in known.iter().enumerate() {
            if let Some(value) = value {
                let factor = self.columns.row(column);
                normal += factor.transpose() * factor;
                right += factor.transpose() * (value - self.mean[column]);
            }
        }
        let own = normal.cholesky().map_or_else(|| DVector::zeros(rank), |factor| factor.solve(&right));
        let guess = &self.columns * own;
        let fill = |(known, (guess, mean)): (&Option<f64>, (&f64, &f64))| {
            known.unwrap_or((guess + mean).clamp(0.0, 1.0))
        };
        known.iter().zip(guess.iter().zip(&self.mean)).map(fill).collect()
    }
}

/// The cosine of the angle between two rows; 0 if either is all zeros.
pub(super) fn cosine_similarity(one: &[f64], other: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let norms = (dot(one, one) * dot(other, other)).sqrt();
    if norms > 0.0 { dot(one, other) / norms } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows a_i b_c + c_i d_c, of rank 2.
    fn rank_two(n_rows: u32, n_columns: u32) -> Vec<Vec<f64>> {
        let entry = |row: u32, column: u32| {
            let (row, column) = (f64::from(row), f64::from(column));
            0.3 + 0.02 * row * (1.0 + (column * 0.9).sin()) + 0.01 * column
        };
        (0..n_rows).map(|row| (0..n_columns).map(|column| entry(row, column)).collect()).collect()
    }

    #[test]
    fn a_row_in_the_span_of_the_others_is_completed_from_a_third_of_it() {
        let mut rows = rank_two(9, 18);
        let truth = rows.remove(4);
        let known: Vec<_> =
            truth.iter().enumerate().map(|(c, value)| (c % 3 == 0).then_some(*value)).collect();
        let completed = Factors::of(&rows, 4, 1e-6).complete(&known);
        for (completed, truth) in completed.iter().zip(&truth) {
            assert!((completed - truth).abs() < 1e-4, "{completed} not {truth}");
        }
    }

    #[test]
    fn a_row_of_which_nothing_is_known_is_the_mean_and_a_complete_one_itself() {
        let rows = vec![vec![0.2, 0.4], vec![0.4, 0.8]];
        let factors = Factors::of(&rows, 2, 0.01);
        let mean = factors.complete(&[None, None]);
        assert!((mean[0] - 0.3).abs() < 1e-15 && (mean[1] - 0.6).abs() < 1e-15, "{mean:?}");
        assert_eq!(factors.complete(&[Some(0.9), Some(0.1)]), [0.9, 0.1]);
    }

    #[test]
    fn similarity_ignores_length_and_survives_zeros() {
        assert!((cosine_similarity(&[1.0, 2.0], &[2.0, 4.0]) - 1.0).abs() < 1e-12);
        assert!(cosine_similarity(&[1.0, 0.0], &[0.0, 1.0]).abs() < 1e-12);
        assert!(cosine_similarity(&[0.0, 0.0], &[0.0, 1.0]).abs() < 1e-12);
    }
}
