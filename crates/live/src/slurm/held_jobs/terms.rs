//! The properties that a Slurm job must have for apportion to steer it, with a remedy for its user if it lacks one.

use serde::{Deserialize, Serialize};

use super::jobs::HeldJob;

/// The workers that a job asks for: the number on each of its nodes, and the number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub(super) n_nodes: u32,
    pub(super) per_node: u32,
    /// Whether it asks for them in all, so that Slurm would look for some on other nodes, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_in_all: bool,
}

/// The workers that a job asks for, and their type as Slurm names it, if the job can be steered.
///
/// # Errors
/// Why it cannot be steered, with a remedy for its user, in words.
pub(super) fn check(job: &HeldJob, partition: &str, now_s: f64) -> Result<(Shape, Option<String>), String> {
    if job.is_many {
        return Err("it is of several components: submit each as a job of its own".to_owned());
    }
    if job.partitions.contains(',') {
        let update = format!("`scontrol update JobId={} Partition={partition}`", job.address());
        return Err(format!(
            "it may run in several partitions ({}), and apportion has `{partition}` alone: {update}",
            job.partitions
        ));
    }
    if !job.may_requeue {
        let update = format!("`scontrol update JobId={} Requeue=1`", job.address());
        return Err(format!(
            "Slurm may not put it back into the queue (`--no-requeue`), as it must when its workers are another's: {update}"
        ));
    }
    if !job.required_nodes.is_empty() || !job.excluded_nodes.is_empty() {
        let update = format!("`scontrol update JobId={} NodeList= ExcNodeList=`", job.address());
        return Err(format!("it names nodes, which apportion chooses: {update}"));
    }
    if !job.dependency.is_empty() {
        return Err(format!("it waits for other jobs ({}): submit it when they are over", job.dependency));
    }
    if f64::from(job.begins_s) > now_s && job.n_restarts == 0 {
        let update = format!("`scontrol update JobId={} StartTime=now`", job.address());
        return Err(format!("it is not to begin before a later time: {update} when it is to"));
    }
    asked(job)
}

/// The workers that a job asks for, and their type as Slurm names it, if apportion can give them.
///
/// # Errors
/// Why apportion cannot give them, with a remedy for the job's user, in words.
pub(super) fn asked(job: &HeldJob) -> Result<(Shape, Option<String>), String> {
    if !job.per_other.is_empty() {
        return Err(format!(
            "it asks for `{}` by task or socket: submit it with `--nodes=N --gres=gpu:G`, or `--gpus=G` on one node",
            job.per_other
        ));
    }
    if job.n_nodes_most > job.n_nodes {
        return Err("its number of nodes is a range: submit it with one number".to_owned());
    }
    let n_nodes = job.n_nodes.max(1);
    let is_in_all = job.per_node.is_empty() && !job.per_job.is_empty();
    if !job.per_job.is_empty() && (!is_in_all || n_nodes > 1) {
        return Err(format!(
            "it asks for `{}` in all, and not only so on one node: submit it with `--nodes=N --gres=gpu:G`",
            job.per_job
        ));
    }
    let (per_node, gres_type) = workers(if is_in_all { &job.per_job } else { &job.per_node })?;
    Ok((Shape { n_nodes, per_node, is_in_all }, gres_type))
}

/// The number and the type of GPUs in `gres:gpu:2`, `gres/gpu=2`, `gpu` or `gres:gpu:v100:2`; none for any type.
fn workers(text: &str) -> Result<(u32, Option<String>), String> {
    let strange = || {
        format!(
            "it asks for `{text}`: apportion gives GPUs, asked for by `--gres=gpu:G`, or by `--gres=gpu:TYPE:G` of one type"
        )
    };
    if text.is_empty() {
        return Err("it asks for no GPU: submit it with `--gres=gpu:G`".to_owned());
    }
    let plain = text.strip_prefix("gres:").or_else(|| text.strip_prefix("gres/")).unwrap_or(text);
    let is_type = |text: &str| !text.is_empty() && text.parse::<u64>().is_err() && !text.contains(',');
    let (count, gres_type) = match plain.split([':', '=']).collect::<Vec<_>>().as_slice() {
        ["gpu"] => (Some(1), None),
        ["gpu", gres_type] if is_type(gres_type) => (Some(1), Some((*gres_type).to_owned())),
        ["gpu", count] => (count.parse().ok(), None),
        ["gpu", gres_type, count] if is_type(gres_type) => {
            (count.parse().ok(), Some((*gres_type).to_owned()))
        }
        _ => (None, None),
    };
    let count = count.filter(|count| *count > 0).ok_or_else(strange)?;
    Ok((count, gres_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> HeldJob {
        HeldJob {
            id: 7,
            n_nodes: 1,
            per_node: "gres:gpu:2".to_owned(),
            may_requeue: true,
            ..HeldJob::default()
        }
    }

    #[test]
    fn the_usual_forms_of_gpus_are_counted() {
        for (text, n_workers) in [("gres:gpu:2", 2), ("gres/gpu=3", 3), ("gpu:1", 1), ("gres:gpu", 1)] {
            let (shape, gres_type) =
                check(&HeldJob { per_node: text.to_owned(), ..job() }, "gpu", 0.0).unwrap();
            assert_eq!((shape.per_node, shape.is_in_all, gres_type), (n_workers, false, None), "{text}");
        }
        for (text, n_workers) in [("gres:gpu:v100:2", 2), ("gres/gpu:v100=3", 3), ("gres:gpu:v100", 1)] {
            let asks = HeldJob { per_node: String::new(), per_job: text.to_owned(), ..job() };
            let (shape, gres_type) = check(&asks, "gpu", 0.0).unwrap();
            assert_eq!((shape.per_node, shape.is_in_all), (n_workers, true), "{text}");
            assert_eq!(gres_type.as_deref(), Some("v100"), "{text}");
        }
        assert_eq!(
            check(&HeldJob { n_nodes: 3, n_nodes_most: 3, ..job() }, "gpu", 0.0).unwrap().0.n_nodes,
            3
        );
        // After it was put back, Slurm lets it wait for a while.
        assert!(check(&HeldJob { begins_s: 9, n_restarts: 1, ..job() }, "gpu", 8.0).is_ok());
    }

    #[test]
    fn what_cannot_be_steered_is_refused_with_a_remedy() {
        let text = |text: &str| text.to_owned();
        for (refused, says) in [
            (HeldJob { may_requeue: false, ..job() }, "JobId=7 Requeue=1"),
            (HeldJob { is_many: true, ..job() }, "components"),
            (HeldJob { partitions: text("cpu,gpu"), ..job() }, "JobId=7 Partition=gpu"),
            (HeldJob { required_nodes: text("n1"), ..job() }, "NodeList= ExcNodeList="),
            (HeldJob { excluded_nodes: text("n1"), ..job() }, "names nodes"),
            (HeldJob { dependency: text("afterok:1(unfulfilled)"), ..job() }, "afterok:1"),
            (HeldJob { begins_s: 9, ..job() }, "StartTime=now"),
            (HeldJob { per_other: text("gres:gpu:2"), ..job() }, "by task or socket"),
            (HeldJob { per_job: text("gres:gpu:2"), ..job() }, "in all"),
            (HeldJob { per_node: text(""), per_job: text("gres:gpu:2"), n_nodes: 2, ..job() }, "--nodes=N"),
            (HeldJob { n_nodes_most: 2, ..job() }, "one number"),
            (HeldJob { per_node: text(""), ..job() }, "no GPU"),
            (HeldJob { per_node: text("gres:gpu:v100:0"), ..job() }, "--gres=gpu:TYPE:G"),
            (HeldJob { per_node: text("gres:shard:1"), ..job() }, "gres:shard:1"),
            (HeldJob { per_node: text("gres:gpu:0"), ..job() }, "gres:gpu:0"),
            (HeldJob { per_node: text("gres:gpu:1,gres:gpu:1"), ..job() }, "gpu:1,gres"),
        ] {
            let said = check(&refused, "gpu", 8.0).unwrap_err();
            assert!(said.contains(says), "{says}: {said}");
        }
    }
}
