//! The test whether a job that Slurm shows is the one that it showed under the same number before.
//!
//! A controller that is killed forgets all that it had not saved, and gives numbers out again. A number alone is no identity: a job
//! also has the instant of its submission, which Slurm sets anew each time that it puts the job back.

use std::cmp::Ordering;

/// Whether a job that had been put back `n_before` times, and one that is shown as put back `n_now` times, can be the same.
/// `submitted` compares the present instant of submission with the earlier one.
///
/// Slurm counts a job as put back while its processes end, and sets the instant once they have ended. A controller that has
/// forgotten that it put the job back shows the earlier instant.
pub(crate) fn may_be_same(n_before: u32, n_now: u32, submitted: Ordering) -> bool {
    match n_now.cmp(&n_before) {
        Ordering::Greater => true,
        Ordering::Equal if n_now > 0 => submitted != Ordering::Less,
        Ordering::Equal => submitted == Ordering::Equal,
        Ordering::Less => submitted != Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_put_back_is_the_same_and_one_that_was_submitted_later_is_not() {
        for (n_before, n_now, before, now, is_same) in [
            (0, 0, 50, 50, true),
            (0, 0, 50, 58, false),
            (0, 1, 50, 50, true),
            (1, 1, 50, 58, true),
            (1, 0, 58, 50, true),
            (1, 0, 58, 70, false),
            (0, 0, 50, 40, false),
        ] {
            let said = may_be_same(n_before, n_now, now.cmp(&before));
            assert_eq!(said, is_same, "{n_before} {n_now} {before} {now}");
        }
    }
}
