//! Tests of floors of throughput that are far below the throughputs that are possible.

use std::sync::Arc;

use crate::index::{Id, JobId, JobIndex};
use crate::policy::Policy;
use crate::policy::program::ProgramPolicy;
use crate::policy::program::tests::options_of;
use crate::problem::{ActiveJob, ProblemBuilder};
use crate::program::{ConstraintText, ObjectiveText, Sense};

/// By hand: the second job is worth all of the worker but the part of it, 0.001/32000 = 3.1e-8, that the first one's floor asks for,
/// which is below the tolerance of solvers.
#[test]
fn a_floor_far_below_the_speed_of_a_job_is_kept_or_said_to_be_missed() {
    let mut builder = ProblemBuilder::new(Arc::new("fast=1".parse().unwrap()));
    for (position, (weight, speed)) in [(1e-6, 32_000.0), (1e6, 8_000.0)].into_iter().enumerate() {
        builder.job(ActiveJob { weight, ..ActiveJob::new(JobId::from_index(position)) }, &[speed]);
    }
    let problem = builder.build().unwrap();
    let text = ObjectiveText {
        for_each_job: vec![ConstraintText::hard("throughput >= 0.001[steps/s]")],
        ..ObjectiveText::new(Sense::Maximize, "sum_over_jobs(weight * throughput)")
    };
    let mut policy = ProgramPolicy::try_new(options_of(&text)).unwrap();
    let decision = policy.allocate(&problem).unwrap();
    let got = decision.allocation.effective_throughput()[JobIndex::from_index(0)];
    let objective = decision.objective.unwrap();
    let is_kept = got >= 0.001 * (1.0 - 1e-6);
    let is_said = !objective.optimal && objective.violation_max > 1e-6;
    assert_eq!((is_kept, is_said), (objective.optimal, !is_kept), "{got} {objective:?}");
    // Without any time, no job has its floor: all of it is missed.
    let decided = policy.solve(&problem).unwrap();
    let bound = policy.options.objective.bind(&decided.reduced.instance).unwrap();
    let nothing = bound.violation(&bound.point(&vec![0.0; decided.optimum.class_time.len()]));
    // The first column is of the job that runs at 8,000 steps/s.
    let missed = bound.violation(&bound.point(&[1e-8, 1.0 - 1e-8]));
    assert!((nothing - 1.0).abs() < 1e-12 && (missed - 0.92).abs() < 1e-9, "{nothing} {missed}");
}
