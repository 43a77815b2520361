//! Classes of jobs, and decisions saved in a snapshot: neither changes the decision.

use std::sync::Arc;

use apportion::catalog::PolicyOptions;
use apportion::index::{EntityId, Id, JobId};
use apportion::policy::{Decision, Refine};
use apportion::problem::{ActiveJob, Colocation, Entity, InnerRule, ProblemBuilder, matrix_columns};
use apportion::simulator::{Event, Limits, Observer, Options, Simulation};
use apportion::spec::snapshot::{Label, Snapshot};
use apportion::spec::{PolicyKind, Source};
use apportion::workload::{Listed, Native, WorkloadOptions};
use apportion::{Allocation, Catalog, Cluster, Problem, Seconds, Steps, Throughputs};
use proptest::prelude::*;

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").expect("embedded")
}

fn programs() -> Vec<String> {
    let catalog = Catalog::embedded();
    let is_program =
        |name: &&str| matches!(catalog.document(name).expect("a document").kind, PolicyKind::Program(_));
    catalog.names().into_iter().filter(is_program).map(str::to_owned).collect()
}

/// Jobs of one kind.
#[derive(Clone, Debug)]
struct Kind {
    job_type: &'static str,
    scale_factor: u32,
    weight: f64,
    hours: f64,
    slo_hours: f64,
    entity: usize,
    copies: usize,
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let types = prop::sample::select(vec![
        "ResNet-18 (batch size 64)",
        "ResNet-50 (batch size 32)",
        "LM (batch size 20)",
        "Transformer (batch size 64)",
        "LM (batch size 80)",
    ]);
    let sizes = prop::sample::select(vec![1_u32, 1, 2]);
    let kind = (types, sizes, 0.5_f64..3.0, 1.0_f64..20.0, 10.0_f64..90.0, 0_usize..3, 1_usize..5);
    let kind = kind.prop_map(|(job_type, scale_factor, weight, hours, slo_hours, entity, copies)| Kind {
        job_type,
        scale_factor,
        weight,
        hours,
        slo_hours,
        entity,
        copies,
    });
    prop::collection::vec(kind, 1..5)
}

/// The kinds' copies in turns, so that classes are not stretches of jobs; co-located throughputs by job type.
fn problem(kinds: &[Kind], workers: [u32; 3]) -> Problem {
    let throughputs = throughputs();
    let names = throughputs.worker_types().iter().cloned();
    let mut cluster = Cluster::try_new(names.zip(workers)).expect("a cluster");
    for (id, price) in cluster.clone().types().ids().zip([2.48, 1.46, 0.45]) {
        cluster.set_price(id, apportion::DollarsPerWorkerHour::new(price));
    }
    let columns = matrix_columns(&cluster, &throughputs).expect("columns");
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (name, inner) in [("a", InnerRule::Fairness), ("b", InnerRule::Fifo), ("c", InnerRule::Fairness)] {
        builder.entity(Entity {
            name: name.to_owned(),
            weight: 1.0 + name.len() as f64,
            inner,
            parent: None,
        });
    }
    let most = kinds.iter().map(|kind| kind.copies).max().unwrap_or(0);
    let mut id = 0;
    for copy in 0..most {
        for kind in kinds.iter().filter(|kind| copy < kind.copies) {
            let row = throughputs.find(kind.job_type, kind.scale_factor).expect("a row");
            let speeds: Vec<f64> = columns
                .iter()
                .map(|column| column.map_or(0.0, |column| throughputs.alone(row, column)))
                .collect();
            let job = ActiveJob {
                scale_factor: kind.scale_factor,
                weight: kind.weight,
                steps_remaining: Steps::new(kind.hours * 3600.0 * speeds[0]),
                elapsed: Seconds::new(600.0 * kind.hours),
                slo_remaining: Some(Seconds::new(kind.slo_hours * 3600.0)),
                entity: Some(EntityId::from_index(kind.entity)),
                row: Some(row),
                ..ActiveJob::new(JobId::from_index(id))
            };
            builder.job(job, &speeds);
            id += 1;
        }
    }
    builder.colocation(Colocation::Rows { throughputs, columns });
    builder.build().expect("a problem")
}

fn decide(policy: &str, problem: &Problem, refine: Option<Refine>) -> Decision {
    // A backend that is named sees every job; by default the centre over jobs is found over classes, too.
    let backend = refine.map(|_| "clarabel".to_owned());
    let options = PolicyOptions { refine, backend, ..PolicyOptions::default() };
    let mut policy = Catalog::embedded().build(policy, &options).expect("a policy");
    policy.allocate(problem).unwrap_or_else(|error| panic!("{}: {error}", policy.name()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// The refinement `interior` groups nothing, leaves no pair out, and is solved by another method; the optimum
    /// is the same. Every program policy is asked, with pairs, entities and droppable constraints where it has them.
    #[test]
    fn classes_lose_nothing_under_any_policy(kinds in kinds(), workers in [2_u32..6, 2_u32..6, 2_u32..6]) {
        let problem = problem(&kinds, workers);
        for name in programs() {
            let grouped = decide(&name, &problem, None);
            let singly = decide(&name, &problem, Some(Refine::Interior));
            let sizes = [&grouped, &singly].map(|decision| decision.solve.as_ref().expect("solved").size.classes);
            prop_assert_eq!(sizes[1], problem.n_jobs(), "{}", name);
            prop_assert!(sizes[0] <= sizes[1]);
            prop_assert_eq!(grouped.dropped.len(), singly.dropped.len(), "{}", name);
            if !grouped.dropped.is_empty() {
                // Several choices of jobs with dropped constraints may be as few, and differ in the objective.
                continue;
            }
            let value = |decision: &Decision| decision.objective.as_ref().expect("a program").value;
            let (one, other) = (value(&grouped), value(&singly));
            let off = (one - other).abs() / one.abs().max(other.abs()).max(1e-3);
            prop_assert!(off <= 2e-6, "{name}: {one} in {} classes, {other} in {}", sizes[0], sizes[1]);
        }
    }
}

/// The problems that a simulation posed, as it saves them, and the answers that it was given.
#[derive(Debug, Default)]
struct Saved(Vec<(String, Allocation)>);

impl Observer for Saved {
    fn observe(&mut self, _: &Event<'_>) {}

    fn decided(&mut self, _now: Seconds, problem: &Problem, decision: &Decision) {
        self.0.push((problem.to_snapshot(Label::from).to_json(), decision.allocation.clone()));
    }
}

#[test]
fn a_saved_snapshot_is_decided_as_in_the_simulation() {
    for name in [
        "max_min_fairness_perf",
        "max_min_fairness_packed",
        "max_min_fairness_water_filling_perf",
        "min_total_duration_perf",
        "max_sum_throughput_perf",
    ] {
        let throughputs = throughputs();
        let cluster: Cluster = "v100=4,p100=3,k80=3".parse().expect("a cluster");
        let options = WorkloadOptions::continuous(Seconds::new(3000.0)).jobs(14).multi_worker(true);
        let mut native = Native::try_new(options, &throughputs, 5).expect("a generator");
        let jobs: Vec<_> = std::iter::from_fn(|| apportion::workload::Arrivals::next_job(&mut native))
            .filter(|job| job.scale_factor <= 2)
            .collect();
        let policy = Catalog::embedded().policy(name).expect("a policy");
        let arrivals = Box::new(Listed::new(jobs));
        let system = (&cluster, Arc::clone(&throughputs));
        let mut simulation =
            Simulation::new(system, arrivals, policy, Options::corrected()).expect("a simulation");
        let mut saved = Saved::default();
        let limits = Limits { rounds: Some(400), ..Limits::default() };
        simulation.run(&mut saved, &limits).expect("rounds");
        assert!(saved.0.len() >= 5, "{name}: {} decisions", saved.0.len());
        for (number, (text, allocation)) in saved.0.iter().enumerate() {
            let snapshot = Snapshot::read(&Source::new("saved.json", text.as_str())).expect("a snapshot");
            let problem = Problem::from_snapshot(&snapshot, &throughputs).expect("a problem");
            assert_eq!(decide(name, &problem, None).allocation, *allocation, "{name}: decision {number}");
        }
    }
}

/// Four jobs that are alike, each of which needs 45 % of all workers to meet its deadline: two can. As a class they need more
/// workers than there are, and that says nothing of one of them.
#[test]
fn as_few_deadlines_are_dropped_of_jobs_that_are_alike_as_of_others() {
    let job = |id: usize| {
        format!(
            "  - {{id: {id}, scale_factor: 4, steps_remaining: 17900, slo_remaining: 2440, throughput: {{a: 16.3}}}}\n"
        )
    };
    for (n_jobs, n_dropped) in [(1, 0), (2, 0), (3, 1), (4, 2), (6, 4)] {
        let jobs: String = (0..n_jobs).map(job).collect();
        let text =
            format!("format: apportion/snapshot-v1\ncluster: {{a: 4}}\nprices: {{a: 1}}\njobs:\n{jobs}");
        let snapshot = Snapshot::read(&Source::new("s.yaml", text)).expect("a snapshot");
        let problem = Problem::from_snapshot(&snapshot, &throughputs()).expect("a problem");
        for policy in ["perf_SLOs", "packed_SLOs"] {
            let name = format!("max_sum_throughput_normalized_by_cost_{policy}");
            let mut policy = Catalog::embedded().policy(&name).expect("a policy");
            let decision = policy.allocate(&problem).expect("a decision");
            assert_eq!(decision.dropped.len(), n_dropped, "{name}, {n_jobs} jobs");
            for (job, speed) in decision.allocation.effective_throughput().iter().enumerate() {
                let kept = speed * 2440.0 >= 17_900.0 * (1.0 - 1e-6);
                assert!(kept || decision.dropped.contains(&Id::from_index(job)), "job {job}: {speed}");
            }
        }
    }
}
