#![expect(clippy::float_cmp, reason = "these numbers are exact by construction")]

use std::sync::Arc;

use super::*;
use crate::workload::{Arrivals, Job};

/// Jobs drawn by the published simulator, for several seeds and options.
const RECORDED: &str = include_str!("../../../tests/fixtures/gavel_jobs.tsv");

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

/// Options, job table and seed of a fixture's heading: `# seed=0 mean_gap=1800.0 multi_worker=1 …`.
fn heading(line: &str) -> (WorkloadOptions, JobTable, u64) {
    let value = |name: &str| {
        line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap()
    };
    let (flag, mean_gap) = (|name| value(name) == "1", value("mean_gap").parse().unwrap());
    let mut options = WorkloadOptions::continuous(Seconds::new(mean_gap))
        .multi_worker(flag("multi_worker"))
        .multi_priority(flag("multi_priority"))
        .slos(flag("slos"))
        .duration(value("duration").parse().ok().map(Seconds::new));
    if mean_gap == 0.0 {
        options = WorkloadOptions { arrivals: ArrivalProcess::AtOnce, n_jobs: Some(usize::MAX), ..options };
    }
    let table = if line.ends_with("job_table=osdi20") { JobTable::Osdi20 } else { JobTable::Released };
    (options, table, value("seed").parse().unwrap())
}

fn line(job: &Job) -> String {
    let bits = |value: f64| format!("{:016x}", value.to_bits());
    let Job { job_type, scale_factor, weight, .. } = job;
    let (steps, arrival) = (bits(job.total_steps.get()), bits(job.arrival.get()));
    let slo = job.slo.map_or("-".to_owned(), |slo| bits(slo.get()));
    format!("{job_type}\t{scale_factor}\t{steps}\t{arrival}\t{weight}\t{slo}")
}

#[test]
fn jobs_are_those_that_the_published_simulator_drew() {
    let mut source: Option<Gavel> = None;
    for (number, recorded) in RECORDED.lines().enumerate() {
        if recorded.starts_with('#') {
            let (options, table, seed) = heading(recorded);
            source = Some(Gavel::try_new(options, throughputs(), seed).unwrap().with_job_table(table));
        } else {
            let job = source.as_mut().unwrap().next_job().unwrap();
            assert_eq!(line(&job), recorded, "line {}", number + 1);
        }
    }
}

#[test]
fn the_job_types_drawn_are_those_of_the_matrix() {
    let alone: Vec<_> = throughputs().rows().iter().filter(|row| row.scale_factor == 1).cloned().collect();
    let mut types = Gavel::job_types();
    assert_eq!(types.len(), alone.len());
    types.retain(|job_type| alone.iter().all(|row| row.job_type != *job_type));
    assert_eq!(types, [] as [String; 0]);
}

#[test]
fn options_out_of_range_are_refused() {
    let throughputs = throughputs();
    let refused = |options| Native::try_new(options, &throughputs, 0).unwrap_err();
    for gap in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = WorkloadOptions::continuous(Seconds::new(gap));
        assert!(matches!(refused(options), GeneratorError::MeanGap { .. }), "{gap}");
        assert!(Gavel::try_new(options, Arc::clone(&throughputs), 0).is_err());
    }
    let endless = WorkloadOptions { n_jobs: None, ..WorkloadOptions::at_once(3) };
    assert_eq!(refused(endless), GeneratorError::Endless);
    let no_time = WorkloadOptions::at_once(3).duration(Some(Seconds::ZERO));
    assert!(matches!(refused(no_time), GeneratorError::Duration { .. }));
}

#[test]
fn further_options_do_not_shift_other_draws() {
    let options = WorkloadOptions::continuous(Seconds::new(900.0)).jobs(200);
    let jobs = |options| {
        let mut source = Native::try_new(options, &throughputs(), 5).unwrap();
        std::iter::from_fn(move || source.next_job()).collect::<Vec<_>>()
    };
    let (plain, all) = (jobs(options), jobs(options.multi_worker(true).multi_priority(true).slos(true)));
    assert_eq!(plain.len(), 200);
    for (one, other) in plain.iter().zip(&all) {
        assert_eq!((one.arrival, one.duration), (other.arrival, other.duration));
    }
    assert!(plain.iter().all(|job| job.scale_factor == 1 && job.weight == 1.0 && job.slo.is_none()));
    assert!(plain.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
}

#[test]
fn both_generators_draw_the_stated_distributions() {
    const N: usize = 20_000;
    let options = WorkloadOptions::continuous(Seconds::new(900.0)).jobs(N).multi_worker(true);
    let options = options.multi_priority(true).slos(true);
    let sources: [Box<dyn Arrivals>; 2] = [
        Box::new(Gavel::try_new(options, throughputs(), 1).unwrap()),
        Box::new(Native::try_new(options, &throughputs(), 1).unwrap()),
    ];
    for mut source in sources {
        let jobs: Vec<Job> = std::iter::from_fn(|| source.next_job()).collect();
        let share =
            |wanted: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| wanted(job)).count() as f64 / N as f64;
        // Within about five standard errors.
        for (scale_factor, expected) in [(1, 0.7), (2, 0.1), (4, 0.15), (8, 0.05)] {
            assert!((share(&|job| job.scale_factor == scale_factor) - expected).abs() < 0.016);
        }
        assert!((share(&|job| job.weight == 5.0) - 0.2).abs() < 0.015);
        assert!((share(&|job| job.duration.unwrap().get() >= 60_000.0) - 0.2).abs() < 0.015);
        let slo = |job: &Job| job.slo.unwrap() / job.duration.unwrap();
        assert!((share(&|job| slo(job) < 1.5) - 0.33).abs() < 0.017);
        assert!((share(&|job| slo(job) > 5.0) - 0.33).abs() < 0.017);
        let mean_gap = jobs[N - 1].arrival.get() / (N - 1) as f64;
        assert!((mean_gap / 900.0 - 1.0).abs() < 0.04, "{mean_gap}");
    }
}

#[test]
fn a_backlog_is_at_time_0_and_the_others_come_as_they_would_without() {
    let options = WorkloadOptions::continuous(Seconds::new(1800.0)).multi_worker(true);
    let draw = |backlog: &[u32]| -> Vec<Job> {
        let generator = Gavel::try_new(options, throughputs(), 3).unwrap();
        let mut jobs = generator.with_backlog(backlog.iter().copied());
        (0..60).map(|_| jobs.next_job().unwrap()).collect()
    };
    let (plain, full) = (draw(&[]), draw(&[10, 7]));
    let mut n_waiting = 0;
    for n_workers in [10_u32, 7] {
        let mut left = n_workers;
        while left > 0 {
            left = left.saturating_sub(plain[n_waiting].scale_factor);
            n_waiting += 1;
        }
    }
    for (position, job) in full.iter().enumerate() {
        let arrival = position.checked_sub(n_waiting).map_or(Seconds::ZERO, |shifted| plain[shifted].arrival);
        assert_eq!(job, &plain[position].clone().arrival(arrival));
    }
}
