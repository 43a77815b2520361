//! Sums and multiples of affine forms, and units for their values.

use super::standard::{Affine, Range};

/// A unit in which a value that lies in `range` is of order 1.
pub(super) fn unit(range: Range) -> f64 {
    let (low, high) = (range.lower.abs(), range.upper.abs());
    let same_side = range.lower * range.upper > 0.0 && low.is_finite() && high.is_finite();
    let unit = match (low.is_finite(), high.is_finite()) {
        // A range over many orders of magnitude says little of where the value lies, but its top is a size.
        (true, true) if same_side && low.max(high) <= 1e4 * low.min(high) => (low.sqrt()) * (high.sqrt()),
        (true, true) => low.max(high),
        (true, false) => low,
        (false, true) => high,
        (false, false) => 1.0,
    };
    if unit.is_finite() && unit > 0.0 { unit } else { 1.0 }
}

pub(super) fn form_of(column: usize) -> Affine {
    Affine { constant: 0.0, terms: vec![(column, 1.0)] }
}

/// factor · form + constant.
pub(super) fn shifted(form: &Affine, factor: f64, constant: f64) -> Affine {
    let mut shifted = scaled(form.clone(), factor);
    shifted.constant += constant;
    shifted
}

pub(super) fn scaled(mut form: Affine, factor: f64) -> Affine {
    form.constant *= factor;
    form.terms.iter_mut().for_each(|(_, value)| *value *= factor);
    form
}

pub(super) fn add(sum: &mut Affine, other: Affine, factor: f64) {
    sum.constant += factor * other.constant;
    sum.terms.extend(other.terms.into_iter().map(|(column, value)| (column, factor * value)));
}

/// Sorts terms by column, adds up those of one column and drops zeros.
pub(super) fn merge(terms: &mut Vec<(usize, f64)>) {
    terms.sort_by_key(|(column, _)| *column);
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    terms.retain(|(_, value)| *value != 0.0);
}
