use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use apportion::catalog::PolicyOptions;
use apportion::cluster::Cluster;
use apportion::index::{Id, JobId, JobIndex, RowId, WorkerTypeId};
use apportion::policy::{Policy, ProgramOptions, ProgramPolicy, Refine, ThroughputView};
use apportion::problem::{ActiveJob, Colocation, Problem, ProblemBuilder, matrix_columns};
use apportion::program::expression::Vocabulary;
use apportion::program::{Objective, ObjectiveText, Sense};
use apportion::spec::Fidelity;
use apportion::units::{Seconds, Steps};
use apportion::workload::Combination;
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::{Actor, Choice, Scratch};
use apportion_learn::checker::{CheckOptions, check};
use apportion_learn::evaluation::evaluate;
use apportion_learn::tensors::Tensors;

/// Jobs of (workers, steps, steps/s per type).
fn problem(cluster: &str, jobs: &[(u32, f64, &[f64])]) -> Problem {
    let cluster: Cluster = cluster.parse().unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (id, (scale_factor, steps, throughput)) in jobs.iter().enumerate() {
        let active = ActiveJob {
            scale_factor: *scale_factor,
            steps_remaining: Steps::new(*steps),
            elapsed: Seconds::new(3600.0 * id as f64),
            ..ActiveJob::new(JobId::from_index(id))
        };
        builder.job(active, throughput);
    }
    builder.build().unwrap()
}

fn pairing(pairs: bool) -> Weighing {
    Weighing { pairs, ..Weighing::default() }
}

fn two_types() -> Problem {
    problem("fast=2,slow=2", &[(1, 7200.0, &[2.0, 1.0]), (2, 3600.0, &[1.0, 0.5]), (1, 900.0, &[4.0, 0.0])])
}

fn shares(decision: &apportion::policy::Decision, problem: &Problem) -> Vec<String> {
    let shares = decision.allocation.shares();
    let mut lines = Vec::new();
    for (row, jobs) in decision.allocation.combinations().enumerate() {
        for (share, kind) in shares.row(row).iter().zip(problem.cluster().types()) {
            // An interior-point solution keeps traces of unused shares.
            if *share > 1e-6 {
                lines.push(format!("{} {} {share:.2}", jobs.first(), kind.name));
            }
        }
    }
    lines.sort();
    lines
}

fn looked(
    observation_kind: ObservationKind,
    problem: &Problem,
    partial: &PartialDecision,
) -> (Observation, Vec<f32>, Vec<bool>) {
    let observation = observation_kind.observation(problem, partial);
    let (mut seen, mut mask) =
        (vec![9.0; observation.observation_length()], vec![false; observation.n_actions()]);
    observation.observe(problem, partial, &mut seen);
    observation.mask(problem, partial, &mut mask);
    (observation, seen, mask)
}

fn nothing(_: JobIndex) -> Option<WorkerTypeId> {
    None
}

#[test]
fn a_window_worked_by_hand() {
    let problem = two_types();
    let held = |job: JobIndex| (job.index() == 1).then(|| WorkerTypeId::from_index(1));
    let mut partial = PartialDecision::new("test", &problem, held).unwrap();
    let observation_kind = ObservationKind::Window { n_slots: 4 };
    let (observation, seen, mask) = looked(observation_kind, &problem, &partial);
    assert_eq!((seen.len(), mask.len()), (36, 13));
    let column = |slot: usize| (0..N_WINDOW_ROWS).map(|row| seen[row * 4 + slot]).collect::<Vec<f32>>();
    // Speeds over the fastest; job 0 has an hour left and has just come.
    assert_eq!(column(0), [1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // Job 1 needs both slow workers, which it held: a dominant share of 1, all of the second type. It arrived an hour ago.
    let hour = 2f32.ln() / 4.0;
    let close =
        |found: &[f32], expected: [f32; 9]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close(&column(1), [1.0, 0.5, 0.0, hour, 0.0, 1.0, 0.0, 1.0, 1.0 / 3.0]), "{:?}", column(1));
    assert_eq!(column(3), [0.0; 9], "nobody");
    // The third job does not run on the slow type; there is no third type, and no stopping before a job has workers.
    let allowed: Vec<usize> = (0..13).filter(|action| mask[*action]).collect();
    assert_eq!(allowed, [0, 1, 3, 4, 6]);
    let (job, kind) = observation.decode(4).unwrap();
    assert_eq!((job.index(), kind.index(), observation.encode(job, kind)), (1, 1, Some(4)));
    assert_eq!((observation.decode(11), observation.decode(12)), (None, None));

    partial.place(&problem, job, kind);
    let (observation, _, mask) = looked(observation_kind, &problem, &partial);
    let allowed: Vec<usize> = (0..13).filter(|action| mask[*action]).collect();
    assert_eq!(allowed, [0, 3, 12], "the others move up, the slow type is full, and one may stop");
    assert_eq!(observation.decode(3).unwrap().0.index(), 2);
}

#[test]
fn a_window_shows_the_head_and_the_tail() {
    let jobs: Vec<(u32, f64, &[f64])> = (0..9).map(|_| (1, 100.0, [1.0].as_slice())).collect();
    let problem = problem("only=9", &jobs);
    let mut partial = PartialDecision::new("test", &problem, nothing).unwrap();
    let seen = |partial: &PartialDecision| -> Vec<usize> {
        let observation = ObservationKind::Window { n_slots: 5 }.observation(&problem, partial);
        (0..15).step_by(3).filter_map(|action| Some(observation.decode(action)?.0.index())).collect()
    };
    assert_eq!(seen(&partial), [0, 1, 2, 7, 8]);
    partial.place(&problem, JobIndex::from_index(1), WorkerTypeId::from_index(0));
    assert_eq!(seen(&partial), [0, 2, 3, 7, 8]);
}

#[test]
fn features_of_pairs_are_those_of_the_table_and_do_not_depend_on_the_order() {
    let problem = two_types();
    let held = |job: JobIndex| (job.index() == 0).then(|| WorkerTypeId::from_index(1));
    let partial = PartialDecision::new("test", &problem, held).unwrap();
    let (observation, seen, mask) = looked(ObservationKind::Pairs { n_slots: None }, &problem, &partial);
    assert_eq!((observation.n_actions(), seen.len()), (7, 7 * N_FEATURES));
    let row = |action: usize| &seen[action * N_FEATURES..(action + 1) * N_FEATURES];
    // Job 0 on the slow type: two hours there, one on the fast one; half as fast, as job 1 is: the mean is ln ½.
    let crowding = 0.0; // 4 workers wanted, 4 free
    let expected =
        [2f32.ln() / 4.0, 0.0, 0.5f32.ln() / 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, crowding, 0.5, 0.0];
    for (found, expected) in row(1).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{:?}", row(1));
    }
    assert_eq!((row(0)[7], row(0)[8]), (0.0, 1.0), "held elsewhere");
    assert_eq!(row(5), [0.0; N_FEATURES], "the third job does not run there");
    assert_eq!(row(6)[12], 1.0);
    assert_eq!(mask, [true, true, true, true, true, false, false]);
    let (_, padded, mask) = looked(ObservationKind::Pairs { n_slots: Some(5) }, &problem, &partial);
    assert_eq!((padded.len(), mask.len()), (11 * N_FEATURES, 11));
    assert_eq!(padded[..6 * N_FEATURES], seen[..6 * N_FEATURES]);
    assert_eq!(padded[10 * N_FEATURES..], seen[6 * N_FEATURES..]);
}

/// A scorer of one layer: the negative of the logarithm of the remaining time on the type, and −2 for stopping.
fn shortest() -> Scorer {
    by_time(-4.0)
}

/// A scorer of one layer: `weight` times a quarter of the logarithm of the remaining time on the type, and −2 for stopping.
fn by_time(weight: f32) -> Scorer {
    let mut weights = vec![0.0; N_FEATURES];
    (weights[0], weights[N_FEATURES - 1]) = (weight, -20.0);
    let mut tensors = Tensors::default();
    tensors.insert("actor.0.0.weight", vec![1, N_FEATURES], weights).unwrap();
    tensors.insert("actor.0.0.bias", vec![1], vec![0.0]).unwrap();
    Scorer::from_tensors(&tensors).unwrap()
}

fn sequential(observation_kind: ObservationKind) -> GangPolicy {
    let actor: Arc<dyn Actor> = Arc::new(shortest());
    let decider = Decider::Sequential(Sequential { actor, observation_kind, choice: Choice::MostProbable });
    GangPolicy::new("shortest", decider, Asked::Events, 0)
}

#[test]
fn a_scorer_decides_gang_by_gang() {
    // 1/16 h for job 2 on the fast type, then an hour for 0 there; the slow ones are left for job 1.
    let mut policy = sequential(ObservationKind::Pairs { n_slots: None });
    let problem = two_types();
    let decision = policy.allocate(&problem).unwrap();
    assert_eq!(shares(&decision, &problem), ["0 fast 1.00", "1 slow 1.00", "2 fast 1.00"]);
    assert!(decision.rules.skip_zero_priority);
    let error = Scorer::from_tensors(&Tensors::default()).unwrap_err().to_string();
    assert!(error.contains("no layer"), "{error}");
}

#[test]
fn a_policy_asked_at_events_repeats_itself_until_one_and_survives_a_restart() {
    let mut policy = GangPolicy::new("random", Decider::Rule(Rule::UniformBusy), Asked::Events, 3);
    let problem =
        problem("a=3,b=3", &[(1, 10.0, &[1.0, 1.0]), (2, 10.0, &[1.0, 1.0]), (1, 10.0, &[1.0, 1.0])]);
    let first = shares(&policy.allocate(&problem).unwrap(), &problem);
    for _ in 0..5 {
        assert_eq!(shares(&policy.allocate(&problem).unwrap(), &problem), first);
    }
    let mut rounds = GangPolicy::new("random", Decider::Rule(Rule::UniformBusy), Asked::Rounds, 3);
    let different: BTreeSet<_> =
        (0..8).map(|_| shares(&rounds.allocate(&problem).unwrap(), &problem)).collect();
    assert!(different.len() > 1);
    let mut resumed = GangPolicy::new("random", Decider::Rule(Rule::UniformBusy), Asked::Rounds, 9);
    resumed.restore(&rounds.state()).unwrap();
    for _ in 0..4 {
        let (one, other) = (rounds.allocate(&problem).unwrap(), resumed.allocate(&problem).unwrap());
        assert_eq!(shares(&one, &problem), shares(&other, &problem));
    }
    assert!(resumed.restore(&serde_json::json!({"given": 3})).is_err());
}

#[test]
fn rules_give_what_fits_and_never_leave_a_cluster_empty() {
    let problem = two_types();
    let mut least = GangPolicy::new("least", Decider::Rule(Rule::LeastService), Asked::Events, 0);
    let decision = least.allocate(&problem).unwrap();
    assert_eq!(shares(&decision, &problem), ["0 fast 1.00", "1 slow 1.00", "2 fast 1.00"]);
    for seed in 0..20 {
        let mut random = GangPolicy::new("random", Decider::Rule(Rule::Uniform), Asked::Events, seed);
        assert!(!shares(&random.allocate(&problem).unwrap(), &problem).is_empty());
    }
}

#[test]
fn values_are_placed_by_an_optimum() {
    // Completions per hour: job 0 2 or 1, job 1 8 or 6. One worker of each type: 2 + 6 beats 8 + 1? No: 9 > 8.
    let mut values = ByValues::new("values", None, Weighing::default(), &PolicyOptions::default()).unwrap();
    let made = problem("fast=1,slow=1", &[(1, 3600.0, &[2.0, 1.0]), (1, 3600.0, &[8.0, 6.0])]);
    let partial = PartialDecision::new("values", &made, nothing).unwrap();
    let decision = values.decide("values", &made, &partial).unwrap();
    assert_eq!(shares(&decision, &made), ["0 slow 1.00", "1 fast 1.00"]);
    let report = decision.objective.unwrap();
    assert!(report.optimal && (report.value * 3600.0 - 9.0).abs() < 1e-8, "{report:?}");
    // 3 + 6 < 8 + 2: but 3 + 7.5 > 8 + 2, so the job that gains less by speed makes room.
    let made = problem("fast=1,slow=1", &[(1, 3600.0, &[3.0, 2.0]), (1, 3600.0, &[8.0, 7.5])]);
    let partial = PartialDecision::new("values", &made, nothing).unwrap();
    let decision = values.decide("values", &made, &partial).unwrap();
    assert_eq!(shares(&decision, &made), ["0 fast 1.00", "1 slow 1.00"]);
    // With scores: the network prefers short jobs so much that their time counts twice.
    let mut scored =
        ByValues::new("values", Some(Arc::new(shortest())), Weighing::default(), &PolicyOptions::default())
            .unwrap();
    let decision = scored.decide("values", &made, &partial).unwrap();
    // V = rate², as the score is ln of the rate: 9 + 56.25 < 64 + 4.
    assert_eq!(shares(&decision, &made), ["0 slow 1.00", "1 fast 1.00"]);
}

#[test]
fn with_a_floor_every_job_has_a_part_of_an_isolated_share() {
    let made = problem("only=1", &[(1, 7200.0, &[1.0]), (1, 3600.0, &[1.0]), (1, 36e6, &[1.0])]);
    let partial = PartialDecision::new("values", &made, nothing).unwrap();
    for (floor, expected) in [(None, [0.0, 1.0, 0.0]), (Some(0.25), [1.0 / 12.0, 10.0 / 12.0, 1.0 / 12.0])] {
        let floored = Weighing { floor, ..Weighing::default() };
        let mut values = ByValues::new("values", None, floored, &PolicyOptions::default()).unwrap();
        let decision = values.decide("values", &made, &partial).unwrap();
        for (jobs, row) in decision.allocation.combinations().iter().zip(decision.allocation.shares().rows())
        {
            assert!((row[0] - expected[jobs.first().index()]).abs() < 1e-9, "{floor:?} {jobs:?} {row:?}");
        }
        assert!(floor.is_none() || decision.allocation.combinations().len() == 3);
    }
}

#[test]
fn beside_a_job_that_is_almost_done_a_long_one_has_its_part_of_the_type_that_it_is_fast_on() {
    // Two jobs that keep the first type busy, and one that is much longer, and much slower on the second type.
    let short: (u32, f64, &[f64]) = (1, 1.0, &[10.0, 0.0]);
    for (steps, slow) in [(1e3, 0.1), (1e5, 0.1), (1e5, 0.001), (1e6, 0.1), (1e6, 0.001), (1e7, 0.001)] {
        let problem = problem("v100=2,k80=1", &[short, short, (1, steps, &[10.0, slow])]);
        let partial = PartialDecision::new("values", &problem, nothing).unwrap();
        // A third of two workers of the first type, and of one of the second.
        let isolated = (10.0 * 2.0 + slow) / 3.0;
        // The network's value is the rate to the power of −2: it prefers the slower type.
        let scored: Arc<dyn Actor> = Arc::new(by_time(12.0));
        for (scorer, part) in [(None, 0.25), (Some(scored), 0.25 / 4.0)] {
            let options = PolicyOptions::default();
            let floored = Weighing { floor: Some(0.25), ..Weighing::default() };
            let mut values = ByValues::new("values", scorer, floored, &options).unwrap();
            let decision = values.decide("values", &problem, &partial).unwrap();
            let throughput = decision.allocation.effective_throughput().as_slice()[2];
            assert!(throughput >= part * isolated * (1.0 - 1e-6), "{steps} {slow} {part}: {throughput}");
        }
    }
}

/// One worker and two jobs, of two hours and of one hour, which each keep this part of their speed beside the other.
fn shared(kept: f64) -> Problem {
    let mut builder = ProblemBuilder::new(Arc::new("only=1".parse().unwrap()));
    for (id, steps) in [7200.0, 3600.0].into_iter().enumerate() {
        let active =
            ActiveJob { steps_remaining: Steps::new(steps), ..ActiveJob::new(JobId::from_index(id)) };
        builder.job(active, &[1.0]);
    }
    let pair = Combination::pair(JobIndex::from_index(0), JobIndex::from_index(1));
    builder.colocation(Colocation::Pairs([(pair, vec![[kept, kept]])].into()));
    builder.build().unwrap()
}

#[test]
fn values_have_jobs_share_workers_where_that_is_worth_it() {
    // Completions per hour: 1 with the short job alone, 1.5 × the part that they keep with both.
    for (kept, together, pairs) in [(0.7, true, true), (0.6, false, true), (0.7, false, false)] {
        let made = shared(kept);
        let mut values = ByValues::new("values", None, pairing(pairs), &PolicyOptions::default()).unwrap();
        let partial = PartialDecision::new("values", &made, nothing).unwrap();
        let decision = values.decide("values", &made, &partial).unwrap();
        let shares = decision.allocation.shares();
        for (row, jobs) in decision.allocation.combinations().enumerate() {
            let expected =
                f64::from(u8::from(jobs.is_pair() == together && (together || jobs.first().index() == 1)));
            assert!((shares.row(row)[0] - expected).abs() < 1e-9, "{kept} {pairs}: {jobs:?}");
        }
        let best = if together { 1.5 * kept } else { 1.0 };
        assert!((decision.objective.unwrap().value * 3600.0 - best).abs() < 1e-9, "{kept} {pairs}");
    }
}

#[test]
fn more_pairs_than_memory_holds_are_refused() {
    let decided = |n: usize, pairs: bool| {
        let mut builder = ProblemBuilder::new(Arc::new("only=1".parse().unwrap()));
        for id in 0..n {
            let steps_remaining = Steps::new(3600.0);
            builder.job(ActiveJob { steps_remaining, ..ActiveJob::new(JobId::from_index(id)) }, &[1.0]);
        }
        let made = builder.build().unwrap();
        let partial = PartialDecision::new("values", &made, nothing).unwrap();
        ByValues::new("values", None, pairing(pairs), &PolicyOptions::default())
            .unwrap()
            .decide("values", &made, &partial)
    };
    let error = decided(8_001, true).unwrap_err().to_string();
    assert!(error.contains("`values` cannot decide: 8001 jobs are active"), "{error}");
    assert!(error.contains("at most 8000"), "{error}");
    assert!(decided(8_001, false).is_ok());
}

#[test]
fn jobs_that_share_workers_still_do_at_the_next_round_and_after_a_restart() {
    let made = shared(0.7);
    let policy = || {
        let values = ByValues::new("values", None, pairing(true), &PolicyOptions::default()).unwrap();
        GangPolicy::new("values", Decider::Values(Box::new(values)), Asked::Events, 0)
    };
    let mut first = policy();
    let decided = first.allocate(&made).unwrap();
    assert!(decided.allocation.combinations().iter().any(Combination::is_pair));
    let mut resumed = policy();
    resumed.restore(&first.state()).unwrap();
    for policy in [&mut first, &mut resumed] {
        let again = policy.allocate(&made).unwrap();
        assert!(again.objective.is_none(), "nothing was decided anew");
        let given = |decision: &apportion::policy::Decision| -> Vec<_> {
            let shares = decision.allocation.shares();
            let rows = decision.allocation.combinations().enumerate();
            let rows = rows.map(|(row, jobs)| (*jobs, shares.row(row).to_vec()));
            rows.filter(|(_, shares)| shares[0] > 0.0).collect()
        };
        assert_eq!(given(&again), given(&decided));
    }
    // Jobs that share workers hold them.
    let held = first.held(&made);
    let mut held = held.iter();
    assert!(held.all(|kind| *kind == Some(WorkerTypeId::from_index(0))));
}

fn completion_rate(pairs: bool, exponent: f64) -> ProgramPolicy {
    let text = format!(
        "sum_over_jobs(throughput / steps_remaining * (steps_remaining / fastest_throughput / 3600[s])^{exponent})"
    );
    let text = ObjectiveText::new(Sense::Maximize, text);
    ProgramPolicy::try_new(ProgramOptions {
        name: "rate".to_owned(),
        objective: Objective::check(&text, Vocabulary::default()).unwrap(),
        view: ThroughputView::Measured,
        pairs,
        refine: Refine::None,
        hierarchical: false,
        discounted: false,
        fidelity: Fidelity::Corrected,
        backend: Some("clarabel".to_owned()),
        strategy: None,
        time_limit: None,
        interrupt: apportion::solver::Interrupt::default(),
    })
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Values without scores against the same program in the policy language, solved by an interior-point method over all pairs.
    #[test]
    fn values_without_scores_complete_as_many_jobs_as_the_written_program(
        jobs in prop::collection::vec((any::<prop::sample::Index>(), 0.1_f64..50.0), 1..12),
        workers in 1_u32..4,
        pairs in any::<bool>(),
        exponent in prop::sample::select(vec![0.0, 0.75, -0.5]),
    ) {
        let throughputs = apportion::Throughputs::embedded("osdi20").unwrap();
        let kinds = ["v100", "p100", "k80"].map(|name| (name, workers));
        let cluster = Cluster::try_new(kinds).unwrap();
        let columns = matrix_columns(&cluster, &throughputs).unwrap();
        let fits = |row: &RowId| throughputs.rows()[*row].scale_factor <= workers;
        let rows: Vec<RowId> = throughputs.rows().ids().filter(fits).collect();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        for (id, (row, hours)) in jobs.iter().enumerate() {
            let row = rows[row.index(rows.len())];
            let speeds: Vec<f64> =
                columns.iter().map(|column| column.map_or(0.0, |column| throughputs.alone(row, column))).collect();
            let active = ActiveJob {
                scale_factor: throughputs.rows()[row].scale_factor,
                steps_remaining: Steps::new(hours * 3600.0 * speeds[0]),
                row: Some(row),
                ..ActiveJob::new(JobId::from_index(id))
            };
            builder.job(active, &speeds);
        }
        builder.colocation(Colocation::Rows { throughputs, columns });
        let made = builder.build().unwrap();
        let completed = |decision: &apportion::policy::Decision| -> f64 {
            let speeds = decision.allocation.effective_throughput();
            let worth = |(job, active): (JobIndex, &ActiveJob)| {
                let steps = active.steps_remaining.get();
                let fastest = made.throughput().row(job).iter().copied().fold(0.0, f64::max);
                speeds[job] / steps * (steps / fastest / 3600.0).powf(exponent)
            };
            made.jobs().enumerate().map(worth).sum()
        };
        let partial = PartialDecision::new("values", &made, nothing).unwrap();
        let decision = ByValues::new("values", None, Weighing { exponent, ..pairing(pairs) }, &PolicyOptions::default()).unwrap().decide("values", &made, &partial).unwrap();
        let written = completion_rate(pairs, exponent).allocate(&made).unwrap();
        let (one, other) = (completed(&decision), completed(&written));
        prop_assert!((one - other).abs() <= 1e-6 * other, "{one} {other}");
    }
}

#[test]
fn a_scorer_scores_each_row_alone() {
    let (scorer, mut scratch) = (shortest(), Scratch::default());
    let mut stream = SeedStreams::new(1).stream("rows");
    let rows: Vec<f32> = (0..5 * N_FEATURES).map(|_| stream.uniform_in(-1.0, 1.0) as f32).collect();
    let mut logits = [0.0; 5];
    scorer.logits(0, &rows, &mut scratch, &mut logits).unwrap();
    for (row, logit) in rows.chunks_exact(N_FEATURES).zip(logits) {
        assert_eq!(scorer.score(row, &mut scratch), logit);
    }
}

fn scenario(n_jobs: usize) -> Scenario {
    Scenario {
        cluster: "v100=8,p100=8,k80=8".parse().unwrap(),
        throughputs: apportion::Throughputs::embedded("osdi20").unwrap(),
        rates: vec![apportion::JobsPerHour::new(2.0), apportion::JobsPerHour::new(1.0)],
        n_jobs,
        multi_worker: true,
    }
}

fn environment(observation_kind: ObservationKind, reward: Reward, step_limit: u64) -> GangEnvironment {
    let options = GangEnvironmentOptions { scenario: scenario(12), observation_kind, reward, step_limit };
    GangEnvironment::new(options).unwrap()
}

#[test]
fn environments_pass_the_check() {
    for (observation_kind, reward) in [
        (ObservationKind::Window { n_slots: 4 }, Reward::Progress),
        (ObservationKind::Pairs { n_slots: Some(6) }, Reward::Presence),
    ] {
        let options = CheckOptions { n_episodes: 3, ..CheckOptions::default() };
        let report = check(|| environment(observation_kind, reward, 100_000), options);
        report.assert_passed();
        assert_eq!(report.n_terminated, 3);
        check(|| environment(observation_kind, reward, 9), options).assert_passed();
    }
}

#[test]
fn an_episode_is_the_simulation_of_a_policy_that_decides_alike() {
    // Twelve jobs fit the slots, so a policy's observation is the environment's.
    let observation_kind = ObservationKind::Pairs { n_slots: Some(12) };
    for seed in 0..3 {
        let played = evaluate(
            || environment(observation_kind, Reward::Presence, 100_000),
            &shortest(),
            Choice::MostProbable,
            &[seed],
        );
        let played = played.unwrap()[0];
        let simulated = scenario(12).completion_h(seed, Box::new(sequential(observation_kind))).unwrap();
        assert!(simulated > 1.0);
        assert!((played.total_reward + simulated).abs() < 1e-3 * simulated, "{played:?} {simulated}");
        let progress = evaluate(
            || environment(observation_kind, Reward::Progress, 100_000),
            &shortest(),
            Choice::MostProbable,
            &[seed],
        );
        assert!((progress.unwrap()[0].total_reward - 12.0).abs() < 1e-3, "every job is done once");
    }
}
