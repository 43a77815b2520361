//! Whole numbers that were computed.

/// A whole number that is not negative, such as one that was rounded; 0 for what is negative, and the largest for what is
/// larger.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast does what the text says"
)]
pub(super) fn whole(value: f64) -> usize {
    value as usize
}
