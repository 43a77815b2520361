//! Forecasts compared with cases solved by hand, with actual events, and with models that are true.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::calibration::{Happening, Held};
use super::durations::{Durations, Work};
use super::future::Outlook;
use super::likeness::{Compared, Likeness, together};
use super::past::{Chronicle, Course, arrived_by, jobs_of};
use super::survival::{Observed, Survival, exponent};
use super::*;
use crate::sweep::simulation::begin_with;
use crate::sweep::{Inputs, Run};
use apportion::index::{Id, JobId};
use apportion::simulator::Simulation;
use apportion::solver::Interrupt;
use apportion::spec::run::RunSpec;
use apportion::spec::{Fidelity, Source};
use apportion::workload::random::SeedStreams;
use apportion::{Catalog, Seconds, Steps};

const MATRIX: &str = "format: apportion/throughputs-v1\nname: matrix\nunit: steps/s\n\
                      source: {who: the authors, when: '2026', licence: Apache-2.0, note: made up for a test}\n\
                      worker_types: [a]\nrows: [{job_type: x, scale_factor: 1, consolidated: [1.0]}]\n\
                      colocation: {model: measured, retained: {a: [{job_type: x, scale_factor: 1, beside: [0.6]}]}}\n";

/// A run of jobs with given steps and arrivals, s, named by position, in rounds of 100 s.
fn run_of(policy: &str, n_workers: u32, jobs: &[(f64, f64)]) -> Run {
    run_as(policy, n_workers, jobs, |_| {})
}

/// A run of jobs with given steps and arrivals, s, with other rules of a round.
fn run_as(policy: &str, n_workers: u32, jobs: &[(f64, f64)], rules: fn(&mut RunSpec)) -> Run {
    let line =
        |(position, (steps, arrival)): (usize, &(f64, f64))| format!("j{position},x,1,{steps},{arrival}\n");
    let lines: String = jobs.iter().enumerate().map(line).collect();
    let trace = format!("id,job_type,scale_factor,total_steps,arrival\n{lines}");
    let mut spec = RunSpec { policy: policy.to_owned(), ..RunSpec::default() };
    spec.cluster = format!("a={n_workers}").parse().unwrap();
    spec.throughputs.0 = "matrix".to_owned();
    spec.workload.trace = Some("trace".to_owned());
    spec.mechanism.round_length = Seconds::new(100.0);
    spec.mechanism.reset_interval = Seconds::new(100.0);
    rules(&mut spec);
    let inputs = Inputs::new(Catalog::embedded())
        .with_text(Source::new("trace", trace))
        .with_text(Source::new("matrix", MATRIX));
    inputs.load(&spec).unwrap()
}

/// Jobs of a Poisson process whose steps are exponential, with a mean of 2000 s alone.
fn exponential(seed: u64, n_jobs: usize, gap_s: f64) -> Vec<(f64, f64)> {
    let streams = SeedStreams::new(seed);
    let (mut gaps, mut steps) = (streams.stream("gaps"), streams.stream("steps"));
    let mut now = 0.0;
    let draw = |_| {
        let job = (steps.exponential(2000.0).ceil(), now);
        now += gaps.exponential(gap_s);
        job
    };
    (0..n_jobs).map(draw).collect()
}

fn certain() -> Settings {
    Settings { steps: JobSteps::Known, arriving: Arriving::None, n_forks: 3, ..Settings::default() }
}

fn chronicle(run: &Run) -> Chronicle {
    let jobs = jobs_of(run).unwrap().into();
    Chronicle::new(run, jobs, Interrupt::default(), Arc::new(AtomicBool::new(false))).unwrap()
}

fn forecast_of(run: &Run, job: &str, at_s: f64, settings: &Settings) -> Result<Forecast, ForecastError> {
    forecast(run, (job, Seconds::new(at_s)), settings, &Attended::default())
}

/// One worker: the first job has it from 0 to 1000 s, the second from then to 1500 s.
#[test]
fn two_jobs_on_one_worker_are_forecast_exactly() {
    let run = run_of("fifo", 1, &[(1000.0, 0.0), (500.0, 50.0)]);
    let found = forecast_of(&run, "j1", 250.0, &certain()).unwrap();
    let start = found.start.unwrap();
    for part in [0.0, 0.1, 0.5, 0.9, 1.0] {
        assert_eq!(start.quantile(part), Quantile::At(Seconds::new(750.0)));
        assert_eq!(found.end.quantile(part), Quantile::At(Seconds::new(1250.0)));
    }
    let first = forecast_of(&run, "j0", 250.0, &certain()).unwrap();
    assert_eq!((first.started, first.start), (Some(Seconds::ZERO), None));
    assert_eq!(first.end.interval(0.8), [Quantile::At(Seconds::new(750.0)); 2]);
}

#[test]
fn what_has_no_forecast_is_refused() {
    let run = run_of("fifo", 1, &[(1000.0, 0.0), (500.0, 50.0), (500.0, 5000.0)]);
    let refused = |job: &str, at_s: f64, settings: &Settings| {
        let error = forecast_of(&run, job, at_s, settings).unwrap_err();
        (error.to_string(), error.help().unwrap_or_default())
    };
    let known = certain();
    assert_eq!(refused("j9", 100.0, &known).1, "did you mean `j0`?");
    assert!(refused("j2", 100.0, &known).0.contains("arrives 1.39 h after the trace's first"));
    assert!(refused("j0", 1000.0, &known).0.contains("ended after 0.28 h"));
    assert!(forecast_of(&run, "j0", 999.0, &known).is_ok());
    let drawn = Settings { steps: JobSteps::Drawn, ..known };
    assert!(refused("j0", 500.0, &drawn).0.contains("no job has ended"));
    let resampled = Settings { arriving: Arriving::Resampled, history: Seconds::new(60.0), ..known };
    let said = refused("j0", 500.0, &resampled);
    assert!(
        said.0.contains("history: 60 s say too little of how jobs arrive, expected at least 1000 s"),
        "{said:?}"
    );
    let rare = run_of("fifo", 1, &[(9000.0, 0.0), (1.0, 5000.0)]);
    let long = Settings { history: Seconds::new(1000.0), ..resampled };
    let said = forecast_of(&rare, "j0", 2000.0, &long).unwrap_err().to_string();
    assert!(said.contains("no job arrived in the 0.28 h"), "{said}");
    assert!(refused("j0", 500.0, &Settings { n_forks: 0, ..known }).0.contains("forks: 0, expected"));
    assert!(refused("j0", 500.0, &Settings { limit: Seconds::ZERO, ..known }).0.contains("limit: "));
}

#[test]
fn an_end_after_the_limit_is_later_than_it() {
    let run = run_of("fifo", 1, &[(1000.0, 0.0), (500.0, 50.0)]);
    let limit = Seconds::new(800.0);
    let found = forecast_of(&run, "j1", 250.0, &Settings { limit, ..certain() }).unwrap();
    assert_eq!(found.start.unwrap().quantile(0.5), Quantile::At(Seconds::new(750.0)));
    assert_eq!((found.end.n_happened(), found.end.n_forks()), (0, 3));
    assert_eq!(found.end.quantile(0.1), Quantile::After(limit));
}

/// A fork with the future as it was is the simulation that never stopped: for rules, programs, and pairs.
#[test]
fn a_fork_with_the_actual_future_repeats_the_simulation() {
    let jobs = exponential(1, 40, 700.0);
    let published = |spec: &mut RunSpec| {
        spec.semantics = Fidelity::Published;
        spec.mechanism.preemption_cost = Seconds::new(130.0);
    };
    let rules: [fn(&mut RunSpec); 2] = [|_| {}, published];
    for policy in ["fifo", "las", "srtf", "gandiva", "themis", "max_min_fairness", "finish_time_fairness"] {
        for rules in rules {
            repeat(&run_as(policy, 3, &jobs, rules));
        }
    }
}

fn repeat(run: &Run) {
    let all = jobs_of(run).unwrap();
    let mut whole = chronicle(run);
    let times = [0.0, 150.0, 5000.0, 5050.0, 9999.0, 20_000.0].map(Seconds::new);
    let situations = times.map(|at| whole.situation(at).unwrap().unwrap());
    let ids: Vec<JobId> = (0..all.len()).map(JobId::from_index).collect();
    whole.finish(&ids, Seconds::new(1e9)).unwrap();
    let courses = whole.courses();
    assert!(courses.iter().all(|course| course.ended.is_some()), "{:?}", run.spec);
    for situation in &situations {
        let outlook = Outlook::new(run, situation, &certain()).unwrap();
        let later = all[situation.jobs.len()..].to_vec();
        let active: Vec<JobId> = situation.active.keys().copied().collect();
        let expected: Vec<Course> = active.iter().map(|id| courses[id.index()]).collect();
        let found = outlook.with_future(later, &active).unwrap();
        assert_eq!(found, expected, "{:?} at {}", run.spec, situation.at);
        // The situation is the same where nothing later is simulated.
        let jobs = arrived_by(&all, situation.at);
        let stop = Arc::new(AtomicBool::new(false));
        let mut past = Chronicle::new(run, jobs, Interrupt::default(), stop).unwrap();
        let told = past.situation(situation.at).unwrap().unwrap();
        assert_eq!(told.jobs, situation.jobs);
    }
}

/// The trace after the instant and the remaining steps of active jobs are not used, not even by rules that remember
/// remaining steps.
#[test]
fn a_forecast_knows_nothing_of_what_comes() {
    let jobs = exponential(2, 60, 500.0);
    let at_s = 20_050.0;
    let settings = Settings { n_forks: 40, ..Settings::default() };
    for policy in ["fifo", "las", "gandiva", "max_min_fairness"] {
        let run = run_of(policy, 3, &jobs);
        let situation = chronicle(&run).situation(Seconds::new(at_s)).unwrap().unwrap();
        let active: Vec<JobId> = situation.active.keys().copied().collect();
        assert!(active.len() > 3, "{policy}");
        let mut changed = jobs.clone();
        for id in &active {
            changed[id.index()].0 += 50_000.0;
        }
        changed.retain(|(_, arrival)| *arrival <= at_s);
        changed.push((7.0, at_s + 1.0));
        let name = format!("j{}", active.last().unwrap());
        let before = forecast_of(&run, &name, at_s, &settings).unwrap();
        let after = forecast_of(&run_of(policy, 3, &changed), &name, at_s, &settings).unwrap();
        assert_eq!(before, after, "{policy}");
        assert_ne!(before.end.quantile(0.1), before.end.quantile(0.9), "{policy}");
    }
}

/// Totals that are restated and then stated as they were change nothing, and what has run stays.
#[test]
fn restated_steps_leave_what_has_run_as_it_was() {
    let jobs = exponential(2, 60, 500.0);
    for policy in ["las", "themis", "finish_time_fairness"] {
        let run = run_of(policy, 3, &jobs);
        let situation = chronicle(&run).situation(Seconds::new(20_000.0)).unwrap().unwrap();
        let at = Some(&situation.checkpoint);
        let begin = || begin_with(&run, run.arrivals().unwrap(), at, Interrupt::default()).unwrap();
        let mut restated = begin();
        for more in [500.0, 0.0] {
            let steps = |id: JobId| Steps::new(situation.jobs[id.index()].job.total_steps.get() + more);
            restated.restate_steps(|id, _| steps(id)).unwrap();
        }
        // That steps were restated is kept by a policy that looks for rounding errors then.
        let mark = ",\"is_restated\":true";
        let saved = |simulation: &Simulation| {
            serde_json::to_string(&simulation.checkpoint()).unwrap().replace(mark, "")
        };
        assert_eq!(saved(&restated), saved(&begin()), "{policy}");
        let refusal = restated.restate_steps(|_, steps_run| steps_run).unwrap_err().to_string();
        assert!(refusal.contains("has run"), "{refusal}");
    }
}

#[test]
fn forecasts_are_the_same_on_any_number_of_threads() {
    let run = run_of("max_min_fairness", 3, &exponential(3, 60, 500.0));
    let at = Seconds::new(20_000.0);
    let situation = chronicle(&run).situation(at).unwrap().unwrap();
    let name = format!("j{}", situation.active.keys().last().unwrap());
    let settings = Settings { n_forks: 50, ..Settings::default() };
    let on = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| forecast_of(&run, &name, at.get(), &settings).unwrap())
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(7));
    let other = forecast_of(&run, &name, at.get(), &Settings { seed: 1, ..settings }).unwrap();
    assert_ne!(one.end, other.end);
}

/// The model is true: steps are exponential and arrivals Poisson, so that intervals hold as often as they say.
#[test]
fn forecasts_hold_where_the_model_is_true() {
    let run = run_of("fifo", 4, &exponential(5, 500, 600.0));
    let last = jobs_of(&run).unwrap().last().unwrap().arrival;
    let plan = Plan { from: last * 0.3, to: last * 0.9, every: last * 0.6 / 150.0, n_jobs: 2 };
    let settings = Settings { n_forks: 60, limit: Seconds::new(1e6), ..Settings::default() };
    let found = calibrate(&run, &plan, &settings, &Attended::default()).unwrap();
    for held in found.rows() {
        assert!(held.n > 60, "{held:?}");
        // Three standard errors of half as many forecasts: those close to one another are alike.
        let most = 3.0 * (held.level * (1.0 - held.level) / (held.n as f64 / 2.0)).sqrt();
        assert!((held.part() - held.level).abs() < most, "{held:?}");
    }
    assert_eq!(found.n_censored, 0);
}

/// Distribution of the work of a job that takes more than some work, from jobs that all count the same.
fn alike(mut observed: Vec<Observed>, above_s: f64) -> Survival {
    observed.sort_by(|one, other| one.work_s.total_cmp(&other.work_s));
    Survival::of(&observed, &vec![1.0; observed.len()], above_s, exponent(&observed))
}

/// Jobs that still run count: without them those that take long would be missing.
#[test]
fn jobs_that_have_not_ended_make_others_longer() {
    let mut stream = SeedStreams::new(1).stream("work");
    let observe = |censored: bool, stream: &mut apportion::workload::random::Stream| {
        let (work, seen) = (stream.exponential(1000.0), stream.uniform_in(0.0, 2000.0));
        let has_ended = !censored || work <= seen;
        Observed { work_s: if has_ended { work } else { seen }, has_ended }
    };
    let observed: Vec<Observed> = (0..4000).map(|_| observe(true, &mut stream)).collect();
    let ended: Vec<Observed> = observed.iter().copied().filter(|one| one.has_ended).collect();
    let median = 1000.0 * std::f64::consts::LN_2;
    let (of_all, of_ended) = (alike(observed.clone(), 0.0), alike(ended, 0.0));
    assert!((of_all.quantile(0.5) / median - 1.0).abs() < 0.08, "{}", of_all.quantile(0.5));
    assert!(of_ended.quantile(0.5) < 0.75 * median);
    // The exponential distribution has no memory: the remaining work after 500 s is distributed as the whole.
    assert!(((alike(observed, 500.0).quantile(0.5) - 500.0) / median - 1.0).abs() < 0.12);
}

/// The next job after four is the shortest, between two, or the longest of five, each with probability 1/5.
#[test]
fn four_jobs_leave_five_places_for_the_next() {
    let ended = |work_s| Observed { work_s, has_ended: true };
    let four = |above_s| alike([10.0, 20.0, 40.0, 80.0].map(ended).to_vec(), above_s);
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    close(four(0.0).quantile(0.1), 5.0);
    close(four(0.0).quantile(0.3), 15.0);
    close(four(0.0).quantile(0.7), 60.0);
    assert!(four(0.0).quantile(0.81) > 80.0);
    // Two jobs are beyond 20, which leaves three places.
    close(four(20.0).quantile(1.0 / 6.0), 30.0);
    close(four(20.0).quantile(0.5), 60.0);
    assert!(four(100.0).quantile(0.0) >= 100.0);
    // The next job after equal ones is equal, too, except for the first and the last place.
    let same = alike(vec![ended(50.0); 9], 0.0);
    for uniform in [0.11, 0.5, 0.89] {
        close(same.quantile(uniform), 50.0);
    }
    assert!(same.quantile(0.05) < 50.0 && same.quantile(0.95) > 50.0);
}

/// A job of weight 3 counts as three jobs that ended alike, except that it stands for the work up to there alone.
#[test]
fn weights_count_as_so_many_jobs() {
    let ended = |work_s| Observed { work_s, has_ended: true };
    let weighted = Survival::of(&[10.0, 20.0].map(ended), &[3.0, 1.0], 0.0, 2.0);
    // The job to come has the mean weight, 2, so that a half of all weight ends at 10.
    assert!((weighted.quantile(0.25) - 5.0).abs() < 1e-9, "{weighted:?}");
    assert!((weighted.quantile(0.5 + 1.0 / 12.0) - 15.0).abs() < 1e-9, "{weighted:?}");
    assert!(weighted.quantile(0.5 + 1.0 / 6.0 + 1e-6) > 20.0);
}

/// Jobs of some types and owners with works that depend on them by the rule, s.
fn compared(n_jobs: usize, median_s: impl Fn(usize, usize, usize) -> f64) -> Vec<Compared> {
    let mut stream = SeedStreams::new(7).stream("likeness");
    let job = |position: usize| {
        let (kind, owner) = (stream.below(8), stream.below(5));
        let work_s = median_s(position, kind, owner) * stream.uniform_in(-0.7, 0.7).exp();
        Compared { position, kind, owner: Some(owner), observed: Observed { work_s, has_ended: true } }
    };
    (0..n_jobs).map(job).collect()
}

/// Likeness is found where there is some, and none is found where there is none.
#[test]
fn likeness_is_found_where_it_is() {
    assert_eq!(Likeness::chosen(&compared(600, |_, _, _| 1000.0)), Likeness::ALL_ALIKE);
    let in_batches = compared(600, |position, _, _| [60.0, 9000.0, 800.0][position / 20 % 3]);
    let batches = Likeness::chosen(&in_batches);
    assert!(batches.halves_after_jobs.is_some_and(|half| half <= 30.0), "{batches:?}");
    let types = Likeness::chosen(&compared(600, |_, kind, _| 100.0 * 2.0_f64.powf(kind as f64)));
    assert!(types.other_type < 0.1 && types.other_owner > 0.2, "{types:?}");
    let owners = Likeness::chosen(&compared(600, |_, _, owner| 100.0 * 3.0_f64.powf(owner as f64)));
    assert!(owners.other_owner < 0.1 && owners.other_type > 0.2, "{owners:?}");
    // These are too few jobs to tell.
    assert_eq!(Likeness::chosen(&compared(20, |_, kind, _| 10.0_f64.powf(kind as f64))), Likeness::ALL_ALIKE);
    assert_eq!(Likeness::chosen(&[]), Likeness::ALL_ALIKE);
}

/// Of thirteen batches of twenty jobs four are short, the last one among them. Once three quarters of it have ended, a job of it
/// is drawn short more often than the three tenths of all jobs that are. While only one has, jobs of it are drawn alike.
#[test]
fn a_batch_is_drawn_as_its_jobs_that_ended_and_alike() {
    let steps = |batch: usize, job: usize| [80.0, 6000.0, 6000.0, 6000.0][batch % 4] + job as f64;
    let job = |batch: usize, job: usize| (steps(batch, job), 20_000.0 * batch as f64 + 5.0 * job as f64);
    let mut jobs: Vec<_> = (0..13).flat_map(|batch| (0..20).map(move |place| job(batch, place))).collect();
    // Some jobs of the last batch take longer than its others, but not as long as those of long batches.
    jobs.iter_mut().rev().take(5).for_each(|(steps, _)| *steps = 400.0);
    let run = run_of("fifo", 40, &jobs);
    let begun = chronicle(&run).situation(Seconds::new(240_000.0 + 300.0)).unwrap().unwrap();
    assert_eq!(begun.active.len(), 5);
    let durations = Durations::of(&run, &begun).unwrap();
    let (id, known) = begun.active().next().unwrap();
    let short = durations.work(&run, id, &KnownJob { steps_run: Steps::ZERO, ..known.clone() });
    assert!(short.at(0.4).get() < 200.0 && short.at(0.99).get() > 1000.0, "{:?}", durations.likeness);
    assert!(matches!(short, Work::Drawn(drawn) if drawn.n_effective < 120.0));

    // Any two jobs of the last batch are drawn at the same place as often as `shared` says, the first and the last as often
    // as neighbours; and each place is equally likely.
    let fresh = chronicle(&run).situation(Seconds::new(240_000.0 + 99.0)).unwrap().unwrap();
    assert_eq!(fresh.active.len(), 19);
    let durations = Durations::of(&run, &fresh).unwrap();
    assert!(durations.shared > 0.05, "{}", durations.shared);
    let mut stream = SeedStreams::new(9).stream("places");
    let drawn = |_| durations.places(&mut stream).into_values().collect::<Vec<f64>>();
    let forks: Vec<Vec<f64>> = (0..4000).map(drawn).collect();
    let part = |holds: &dyn Fn(&[f64]) -> bool| {
        forks.iter().filter(|places| holds(places.as_slice())).count() as f64 / 4000.0
    };
    for (one, other) in [(0, 1), (7, 8), (0, 18)] {
        let equal = part(&|places| places[one].total_cmp(&places[other]).is_eq());
        assert!((equal - durations.shared).abs() < 0.03, "{one} {other}: {equal}");
    }
    for place in [0, 18] {
        assert!((part(&|places| places[place] < 0.25) - 0.25).abs() < 0.03);
    }
}

/// The variance of what is common to a stretch of jobs is found, whether they have ended or not; without it there is none.
#[test]
fn what_jobs_near_one_another_have_in_common_is_found() {
    let of = |common: f64, is_cut: bool| {
        let mut stream = SeedStreams::new(3).stream("common");
        let mut factor = 1.0;
        let job = |position: usize| {
            if position.is_multiple_of(40) {
                // The factor has variance 0.25: it is 1.5 or 0.5.
                factor = if stream.uniform() < 0.5 { 1.0 + common } else { 1.0 - common };
            }
            let (work_s, seen_s) = (stream.exponential(1000.0 / factor), stream.uniform_in(0.0, 3000.0));
            let has_ended = !is_cut || work_s < seen_s;
            let observed = Observed { work_s: if has_ended { work_s } else { seen_s }, has_ended };
            Compared { position, kind: 0, owner: None, observed }
        };
        together(&(0..3000).map(job).collect::<Vec<_>>())
    };
    for is_cut in [false, true] {
        assert!(of(0.0, is_cut) < 0.03, "{}", of(0.0, is_cut));
        assert!((of(0.5, is_cut) - 0.25).abs() < 0.12, "{}", of(0.5, is_cut));
    }
    assert!(together(&[]).total_cmp(&0.0).is_eq());
}

#[test]
fn the_length_of_an_interval_ends_at_the_limit() {
    let times = |n: u32| (0..n).map(|time| (time < 90).then(|| Seconds::new(f64::from(time))));
    let found = Distribution::of(times(100), Seconds::new(500.0));
    assert_eq!(found.width(0.5), Seconds::new(50.0));
    assert_eq!(found.width(0.9), Seconds::new(500.0 - 4.0));
}

#[test]
fn ranks_are_uniform_however_many_times_are_equal() {
    let mut stream = SeedStreams::new(4).stream("ties");
    let mut ranks = Vec::new();
    for _ in 0..20_000 {
        // Starts of rounds are at few instants, and some forks do not reach one.
        let mut time = || Some(Seconds::new(100.0 * stream.below(4) as f64)).filter(|t| t.get() < 250.0);
        let times: Vec<_> = (0..9).map(|_| time()).collect();
        let happened = time();
        ranks.push(Distribution::of(times, Seconds::new(250.0)).rank(happened, stream.uniform()));
    }
    for level in calibration::LEVELS {
        let held = ranks.iter().filter(|rank| (**rank - 0.5).abs() <= level / 2.0).count() as f64;
        assert!((held / ranks.len() as f64 - level).abs() < 0.015, "{level}");
    }
}

proptest! {
    #[test]
    fn quantiles_ascend(
        times in prop::collection::vec(prop::option::of(0.0_f64..1000.0), 1..60),
        parts in prop::collection::vec(0.0_f64..=1.0, 2..20),
    ) {
        let limit = Seconds::new(1000.0);
        let found = Distribution::of(times.iter().map(|time| time.map(Seconds::new)), limit);
        let mut parts = parts;
        parts.sort_by(f64::total_cmp);
        let value = |part: &f64| match found.quantile(*part) {
            Quantile::At(time) => time.get(),
            Quantile::After(limit) => limit.get() + 1.0,
        };
        let quantiles: Vec<f64> = parts.iter().map(value).collect();
        prop_assert!(quantiles.is_sorted());
        for (part, quantile) in parts.iter().zip(&quantiles) {
            let n_by = times.iter().flatten().filter(|time| *time <= quantile).count();
            prop_assert!(*quantile > limit.get() || n_by as f64 >= part * times.len() as f64);
        }
    }

    #[test]
    fn work_ascends_and_is_above_what_is_done(
        observed in prop::collection::vec((0.5_f64..100.0, any::<bool>()), 1..40),
        above_s in 0.0_f64..120.0,
        uniforms in prop::collection::vec(0.0_f64..1.0, 2..20),
    ) {
        let observed = observed.iter().map(|(work_s, has_ended)| Observed {
            work_s: work_s.round(), has_ended: *has_ended,
        });
        let survival = alike(observed.collect(), above_s);
        let mut uniforms = uniforms;
        uniforms.sort_by(f64::total_cmp);
        let works: Vec<f64> = uniforms.iter().map(|uniform| survival.quantile(*uniform)).collect();
        prop_assert!(works.is_sorted(), "{works:?}");
        prop_assert!(works.iter().all(|work| *work >= above_s && work.is_finite()), "{works:?}");
    }
}

#[test]
fn the_error_of_what_always_held_is_not_nothing() {
    let held = |n: usize, n_held: usize| Held {
        happening: Happening::End,
        level: 0.8,
        n,
        n_held,
        n_before: 0,
        n_after: n - n_held,
        width: Seconds::ZERO,
    };
    // Wilson's interval at one standard error around 1 of 1 is 0.5 to 1.
    assert!((held(1, 1).standard_error() - 0.25).abs() < 1e-15);
    assert!((held(10_000, 8_000).standard_error() - 0.004).abs() < 1e-6);
}
