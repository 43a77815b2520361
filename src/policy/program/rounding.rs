//! Rounding between an optimum and the shares that are given. The objective is that of the rounded shares.

use crate::allocation::{Allocation, AllocationError};
use crate::policy::program::reduce::Reduced;
use crate::policy::program::tolerances::SHARE_MIN;
use crate::program::{BoundObjective, Column};

/// The fraction of an objective's value by which dropping shares as rounding may change it.
const CHANGE_MAX: f64 = 1e-9;

/// A droppable constraint counts as kept up to this violation, relative to the larger of its sides: solvers are no more exact.
pub(super) const MISSED_MAX: f64 = 5e-7;

/// Workers or time given away beyond what there is, relative to that, that are a solver's inaccuracy.
const EXCESS_MAX: f64 = 1e-4;

/// Class times without shares that are rounding.
#[derive(Clone, Debug)]
pub(super) struct Rounded {
    /// Class time of the columns: [columns].
    pub(super) class_time: Vec<f64>,
    /// The largest share that is rounding; none if no share is rounded.
    pub(super) share_min: Option<f64>,
}

/// An allocation, and the class times of which it is.
#[derive(Debug)]
pub(super) struct FittedAllocation {
    pub(super) allocation: Allocation,
    /// Class time of the columns: [columns].
    pub(super) class_time: Vec<f64>,
}

/// The class times without shares that are rounding. They are all class times, with a largest share of 0, where the
/// objective, or whether a droppable constraint is met, depends on such small shares.
pub(super) fn without_rounding(reduced: &Reduced, bound: &BoundObjective<'_>, class_time: &[f64]) -> Rounded {
    // A solver's times a little below 0 become shares of 0, so the objective is not evaluated at them either.
    let class_time: Vec<f64> = class_time.iter().map(|time| time.max(0.0)).collect();
    let class_time = class_time.as_slice();
    let rounded = rounded(reduced, bound.columns(), class_time);
    let is_whole = rounded.iter().zip(class_time).all(|(rounded, time)| *rounded >= *time);
    let value = |time: &[f64]| bound.value(&bound.point(time));
    let changes = || {
        let [all, kept] = [class_time, &rounded].map(value);
        let change = (all - kept).abs();
        let is_small = change.is_finite() && change <= CHANGE_MAX * all.abs().max(kept.abs());
        all.to_bits() != kept.to_bits() && !is_small
    };
    let breaks = || {
        let missed = |time: &[f64]| bound.missed(&bound.point(time), MISSED_MAX);
        bound.has_droppable() && missed(&rounded) != missed(class_time)
    };
    if is_whole || !(changes() || breaks()) {
        Rounded { class_time: rounded, share_min: Some(SHARE_MIN) }
    } else {
        Rounded { class_time: class_time.to_vec(), share_min: Some(0.0) }
    }
}

/// The class times of which shares above [`SHARE_MIN`] remain: [columns]. The share of a pair of classes is that of all its
/// pairs of jobs.
fn rounded(reduced: &Reduced, columns: &[Column], class_time: &[f64]) -> Vec<f64> {
    let n_members = reduced.instance.n_members();
    let n_sharing = |combination: usize| {
        if combination < n_members { reduced.classes.members(combination).len() as f64 } else { 1.0 }
    };
    let is_kept = |column: &Column, time: f64| time / n_sharing(column.combination) > SHARE_MIN;
    let kept = |(column, time): (&Column, &f64)| if is_kept(column, *time) { *time } else { 0.0 };
    columns.iter().zip(class_time).map(kept).collect()
}

/// The allocation of class times. Where these exceed time or workers by rounding, all are scaled down
/// to fit, and the objective with them.
pub(super) fn scaled_to_fit(
    mut class_time: Vec<f64>,
    allocation: impl Fn(&[f64]) -> Result<Allocation, AllocationError>,
) -> Result<FittedAllocation, AllocationError> {
    loop {
        let error = match allocation(&class_time) {
            Ok(allocation) => return Ok(FittedAllocation { allocation, class_time }),
            Err(error) => error,
        };
        let excess = match error {
            AllocationError::Share { share, .. } if share > 1.0 => share - 1.0,
            AllocationError::Time { time, .. } => time - 1.0,
            AllocationError::Capacity { workers, capacity, .. } if capacity > 0.0 => workers / capacity - 1.0,
            _ => return Err(error),
        };
        if excess.is_nan() || excess > EXCESS_MAX {
            return Err(error);
        }
        for time in &mut class_time {
            *time /= 1.0 + excess;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allocation without jobs.
    fn nothing() -> Allocation {
        let cluster: crate::Cluster = "v100=1".parse().unwrap();
        let problem = crate::problem::ProblemBuilder::new(std::sync::Arc::new(cluster)).build().unwrap();
        Allocation::check(&problem, []).unwrap()
    }

    #[test]
    fn a_little_too_much_of_a_share_a_job_or_a_type_makes_all_shares_smaller_and_more_is_an_error() {
        let share = |share| AllocationError::Share { combination: 0, worker_type: 0, share };
        let time = |time| AllocationError::Time { job: 0, time };
        let capacity = |workers| AllocationError::Capacity { worker_type: 0, workers, capacity: 1.0 };
        for error in [&share as &dyn Fn(f64) -> AllocationError, &time, &capacity] {
            let tried = |most: f64| {
                let given = scaled_to_fit(vec![most, 0.25], |times| match times {
                    [first, _] if *first > 1.0 + 1e-6 => Err(error(*first)),
                    _ => Ok(nothing()),
                });
                given.map(|fitted| fitted.class_time)
            };
            let times = tried(1.0 + 2.5e-6).unwrap();
            assert!((times[0] - 1.0).abs() < 1e-12 && (times[1] - 0.25 / (1.0 + 2.5e-6)).abs() < 1e-12);
            assert_eq!(tried(1.01), Err(error(1.01)));
        }
    }
}
