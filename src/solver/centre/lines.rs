//! Products of a sparse matrix with vectors.

use std::cmp::Reverse;

/// Number of lines whose products are summed side by side.
const LINES_ABREAST: usize = 4;

/// Lines of a sparse matrix, in an order in which four products with a vector are summed side by side, so that an
/// addition need not wait for the one before. Each sum is in the order of its line's terms.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// The lines, longest first, four of about the same length together.
    order: Vec<usize>,
    /// Position of the first terms of each four lines, then the number of all: [fours + 1].
    starts: Vec<usize>,
    /// Places of the terms of four lines. Shorter lines are filled up with terms of value 0 at place 0.
    places: Vec<[u32; LINES_ABREAST]>,
    /// Coefficients of the terms of four lines.
    values: Vec<[f64; LINES_ABREAST]>,
}

impl Lines {
    /// The layout of lines given as (place, coefficient) terms.
    pub(super) fn of(lines: &[Vec<(usize, f64)>]) -> Self {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|line| Reverse(lines[*line].len()));
        let n_terms = order.iter().step_by(LINES_ABREAST).map(|longest| lines[*longest].len()).sum();
        let (mut places, mut values) = (Vec::with_capacity(n_terms), Vec::with_capacity(n_terms));
        let mut starts = vec![0];
        for four in order.chunks(LINES_ABREAST) {
            let start = places.len();
            places.resize(start + lines[four[0]].len(), [0; LINES_ABREAST]);
            values.resize(start + lines[four[0]].len(), [0.0; LINES_ABREAST]);
            for (lane, line) in four.iter().enumerate() {
                for (term, (place, value)) in lines[*line].iter().enumerate() {
                    places[start + term][lane] = u32::try_from(*place).expect("fewer than 2^32 places");
                    values[start + term][lane] = *value;
                }
            }
            starts.push(places.len());
        }
        Self { order, starts, places, values }
    }

    /// Adds to each of `sums`, [lines], the product of its line with `x`.
    pub(super) fn add_products(&self, x: &[f64], sums: &mut [f64]) {
        for (four, ends) in self.order.chunks(LINES_ABREAST).zip(self.starts.windows(2)) {
            let mut partial = [0.0; LINES_ABREAST];
            for (partial, line) in partial.iter_mut().zip(four) {
                *partial = sums[*line];
            }
            let terms = self.places[ends[0]..ends[1]].iter().zip(&self.values[ends[0]..ends[1]]);
            for (places, values) in terms {
                let at = places.map(|place| x[place as usize]);
                for lane in 0..LINES_ABREAST {
                    partial[lane] += values[lane] * at[lane];
                }
            }
            for (partial, line) in partial.iter().zip(four) {
                sums[*line] = *partial;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_lines_in_turn() {
        let lines: Vec<Vec<(usize, f64)>> = (0..11)
            .map(|line| (0..line % 4).map(|term| (term, (1 + line + term) as f64)).collect())
            .collect();
        let x = [0.5, -2.0, 4.0];
        let mut sums: Vec<f64> = (0..11).map(f64::from).collect();
        let expected: Vec<f64> = sums
            .iter()
            .zip(&lines)
            .map(|(sum, line)| line.iter().fold(*sum, |sum, (place, value)| sum + value * x[*place]))
            .collect();
        Lines::of(&lines).add_products(&x, &mut sums);
        assert_eq!(sums, expected);
    }
}
