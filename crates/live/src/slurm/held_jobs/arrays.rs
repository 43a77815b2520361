//! Held arrays of jobs: Slurm keeps their waiting tasks as one job until a request names one of them.

use super::commands::steer;
use super::intake::{NotTaken, check_held, unsteerable};
use super::jobs::HeldJob;

/// The most tasks that are taken out of arrays at one look: each takes a request to Slurm.
const AT_ONCE: usize = 10;

/// Makes the first waiting tasks of a held array jobs of their own, which are then taken in: Slurm does so on a request for one
/// task.
pub(super) fn take_apart(job: &HeldJob) -> Result<(), NotTaken> {
    check_held(job)?;
    let (list, limit) = job.tasks.split_once('%').unwrap_or((&job.tasks, "0"));
    if limit != "0" {
        let why = format!(
            "of its array only {limit} tasks may run at once, and apportion says when each does: `scontrol update JobId={} \
             ArrayTaskThrottle=0`",
            job.id
        );
        return Err(NotTaken::Refused(why));
    }
    let strange =
        || NotTaken::Refused(format!("its array has the tasks `{list}`, which is no list that is known"));
    for task in first_tasks(list, AT_ONCE).ok_or_else(strange)? {
        steer(&format!("{}_{task}", job.id), &["uhold"]).map_err(unsteerable)?;
    }
    Ok(())
}

/// The first tasks of a list in Slurm's form: `0-3,7,10-30:5`, cut off if it is long. None if its form is unknown.
fn first_tasks(list: &str, most: usize) -> Option<Vec<u64>> {
    let mut tasks = Vec::new();
    for part in list.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last), Ok(step)) =
            (first.parse::<u64>(), last.parse::<u64>(), step.parse::<usize>())
        else {
            // Tasks that are cut off are shown once the ones before them have left the array.
            break;
        };
        tasks.extend((first..=last).step_by(step.max(1)).take(most - tasks.len()));
        if tasks.len() >= most {
            break;
        }
    }
    (!tasks.is_empty()).then_some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tasks_are_read_as_far_as_they_are_asked_for() {
        for (list, tasks) in [
            ("3", &[3][..]),
            ("0-3", &[0, 1, 2, 3]),
            ("0-1,3", &[0, 1, 3]),
            ("0-98:7", &[0, 7, 14, 21, 28]),
            ("2,4-99999999", &[2, 4, 5, 6, 7]),
            ("1,2,...", &[1, 2]),
        ] {
            assert_eq!(first_tasks(list, 5).as_deref(), Some(tasks), "{list}");
        }
        assert_eq!((first_tasks("...", 5), first_tasks("", 5), first_tasks("9-1", 5)), (None, None, None));
    }
}
