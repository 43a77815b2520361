//! Conversion of computed numbers to whole numbers.

/// A whole number of at least 0 from a number that was rounded; 0 for negative numbers, and the largest for larger ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast does what the text says"
)]
pub(super) fn whole(value: f64) -> usize {
    value as usize
}
