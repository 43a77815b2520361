//! The meaning of the flags of Gavel's scripts: fields and axes of a sweep.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::Meaning;
use super::scripts::{Continuous, Generated, Many, N_JOB_TYPES, One, Paid, Static, THROUGHPUTS_FILE, Traced};
use crate::exit::Failure;
use apportion::spec::run::sha256;
use apportion::spec::{Source, load_throughputs, path_text};

/// The name of the published throughputs in this program.
const PUBLISHED: &str = "osdi20";

impl Continuous {
    pub(super) fn meaning(self) -> Result<Meaning, Failure> {
        let Self { many, window_start, window_end, .. } = &self;
        if window_start >= window_end {
            return Err(Failure::usage("--window-start must be below --window-end", None));
        }
        let bounds = (self.throughput_lower_bound, self.throughput_upper_bound);
        let (Some(from), Some(to)) = bounds else {
            return Err(Failure::usage("both bounds of the throughput are needed", None));
        };
        let mut rates = evenly(from, to, self.num_data_points)?;
        if rates.first() == Some(&0.0) {
            rates.remove(0);
        }
        for part in &self.profiling_percentages {
            profiled(*part, 1)?;
        }
        for n in &self.num_reference_models {
            profiled(1.0, *n)?;
        }
        let mut meaning = many.meaning("run_sweep_continuous")?;
        meaning.run.push(("measure", json!([window_start, window_end]).to_string()));
        flag(&mut meaning, "multi_priority", self.generate_multi_priority_jobs);
        flag(&mut meaning, "steady_state", self.simulate_steady_state);
        let estimates = self.profiling_percentages.iter().any(|part| *part < 1.0)
            || self.num_reference_models.iter().any(|n| *n < N_JOB_TYPES);
        if estimates {
            put(
                &mut meaning,
                "fraction",
                self.profiling_percentages.iter().map(|part| json!(part)).collect(),
            );
            put(
                &mut meaning,
                "reference_models",
                self.num_reference_models.iter().map(|n| json!(n)).collect(),
            );
        }
        let rates = rates.into_iter().map(|rate| json!(rate)).collect();
        let rates = distinct(&mut meaning, ("jobs/h", "several points are of so many"), rates);
        meaning.axes.insert(1, ("rate", json!(rates).to_string()));
        if let Some(path) = &self.cutoff_throughputs_file {
            meaning.skip = cutoffs(path, many)?;
        }
        if self.checkpoint_threshold.is_some() {
            meaning
                .notes
                .push("--checkpoint-threshold: not needed, a sweep that was stopped goes on".to_owned());
        }
        Ok(meaning)
    }
}

impl Static {
    pub(super) fn meaning(self) -> Result<Meaning, Failure> {
        self.paid.check()?;
        let bounds = (self.num_total_jobs_lower_bound, self.num_total_jobs_upper_bound);
        let (Some(from), Some(to)) = bounds else {
            return Err(Failure::usage("both bounds of the number of jobs are needed", None));
        };
        let mut numbers = evenly(from as f64, to as f64, self.num_data_points)?;
        if numbers.first() == Some(&0.0) {
            numbers.remove(0);
        }
        let mut meaning = self.many.meaning("run_sweep_static")?;
        flag(&mut meaning, "slos", self.paid.assign_slos);
        name_logs(&mut meaning, &numbers);
        // Jobs are added until their number is reached, so that a part of a job counts as one.
        let whole = numbers.iter().map(|number| format!("{:.0}", number.ceil())).collect();
        let whole = distinct(&mut meaning, ("jobs", "several points are of so many"), whole);
        meaning.axes.insert(1, ("static", format!("[{}]", whole.join(", "))));
        Ok(meaning)
    }
}

impl Generated {
    pub(super) fn meaning(self) -> Result<Meaning, Failure> {
        self.paid.check()?;
        let Self { one, window_start, window_end, .. } = &self;
        if self.output_trace_file_name.is_some() {
            let help = "`apportion trace generate --generator gavel --to gavel --out FILE` writes the trace";
            let message = "--output_trace_file_name: no trace is written by a run";
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
        if window_start >= window_end {
            return Err(Failure::usage("--window-start must be below --window-end", None));
        }
        profiled(self.profiling_percentage, self.num_reference_models)?;
        let mut meaning = one.meaning("generated", self.seed, self.interval)?;
        meaning.run.push(("generator", "gavel".to_owned()));
        match self.lam {
            Some(0.0) => meaning.run.push(("static", (window_end - window_start).to_string())),
            Some(lam) if lam.is_finite() && lam > 0.0 => {
                meaning.run.push(("rate", json!(3600.0 / lam).to_string()));
            }
            _ => {
                return Err(Failure::usage(
                    "--lam: expected the mean time between arrivals in s, at least 0",
                    None,
                ));
            }
        }
        meaning.run.push(("measure", json!([window_start, window_end]).to_string()));
        if let Some(duration) = self.fixed_job_duration {
            meaning.run.push(("duration", format!("{duration}s")));
        }
        flag(&mut meaning, "multi_worker", self.generate_multi_gpu_jobs);
        flag(&mut meaning, "multi_priority", self.generate_multi_priority_jobs);
        flag(&mut meaning, "steady_state", self.simulate_steady_state);
        flag(&mut meaning, "slos", self.paid.assign_slos);
        if self.profiling_percentage < 1.0 {
            meaning.run.push(("fraction", self.profiling_percentage.to_string()));
            meaning.run.push(("reference_models", N_JOB_TYPES.to_string()));
        }
        if self.num_reference_models < N_JOB_TYPES {
            let note = "--num_reference_models: the published script does not pass it on, so all are used";
            meaning.notes.push(note.to_owned());
        }
        Ok(named(meaning, "simulate_scheduler_with_generated_jobs"))
    }
}

impl Traced {
    pub(super) fn meaning(self) -> Result<Meaning, Failure> {
        let mut meaning = self.one.meaning("trace", self.seed, self.time_per_iteration)?;
        let path = absolute(&self.trace_file.unwrap_or_default())?;
        meaning.run.push(("trace", json!(path).to_string()));
        match (self.window_start, self.window_end) {
            (Some(start), Some(end)) => meaning.run.push(("measure", json!([start, end]).to_string())),
            (None, None) => {}
            _ => meaning
                .notes
                .push("a window with one end only: all jobs are measured, as published".to_owned()),
        }
        Ok(named(meaning, "simulate_scheduler_with_trace"))
    }
}

impl Many {
    fn meaning(&self, name: &str) -> Result<Meaning, Failure> {
        let mut run = fixed(&self.throughputs_file, &self.num_gpus_per_server, self.interval)?;
        run.push(("generator", "gavel".to_owned()));
        if let Some(duration) = self.fixed_job_duration {
            run.push(("duration", format!("{duration}s")));
        }
        let clusters: Result<Vec<Value>, Failure> =
            self.cluster_spec.iter().map(|spec| counts(spec)).collect();
        let mut meaning = Meaning {
            name: name.to_owned(),
            run,
            axes: Vec::new(),
            skip: Vec::new(),
            timeout: self.timeout,
            processes: self.processes,
            log_dir: Some(self.log_dir.clone()),
            log_names: BTreeMap::new(),
            notes: exact(self.solver.as_deref()),
        };
        let policies = distinct(&mut meaning, ("policy", GIVEN_AGAIN), self.policies.clone());
        let seeds = distinct(&mut meaning, ("seed", GIVEN_AGAIN), self.seeds.clone());
        meaning.axes.push(("policy", json!(policies).to_string()));
        meaning.axes.push(("seed", json!(seeds).to_string()));
        put(&mut meaning, "cluster", clusters?);
        unpriced(&mut meaning, &self.policies)?;
        flag(&mut meaning, "multi_worker", self.generate_multi_gpu_jobs);
        flag(&mut meaning, "ideal", self.ideal);
        Ok(meaning)
    }
}

impl One {
    fn meaning(&self, name: &str, seed: u64, round: u64) -> Result<Meaning, Failure> {
        let mut run = fixed(&self.throughputs_file, &self.num_gpus_per_server, round)?;
        run.push(("cluster", counts(&self.cluster_spec)?.to_string()));
        let mut notes = exact(self.solver.as_deref());
        if self.checkpoint_threshold.is_some() || self.checkpoint_file.is_some() {
            notes.push("checkpoints: not needed, the run begins anew".to_owned());
        }
        let mut meaning = Meaning {
            name: name.to_owned(),
            run,
            axes: vec![("policy", json!([self.policy]).to_string()), ("seed", json!([seed]).to_string())],
            skip: Vec::new(),
            timeout: None,
            processes: None,
            log_dir: None,
            log_names: BTreeMap::new(),
            notes,
        };
        unpriced(&mut meaning, std::slice::from_ref(&self.policy))?;
        Ok(meaning)
    }
}

impl Paid {
    /// Refuses flags that would change results and are not supported.
    fn check(&self) -> Result<(), Failure> {
        if self.per_instance_type_prices_dir.is_some() {
            let help = "make a CSV of `time,worker_type,price` of them: `prices:` in a sweep, or `simulate --prices`";
            let message = "--per_instance_type_prices_dir: folders of prices are not read";
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
        if self.enable_global_queue {
            let message = "--enable_global_queue: a global queue is none of the mechanisms here";
            return Err(Failure::usage(message, Some("leave the flag out".to_owned())));
        }
        Ok(())
    }
}

/// Sets all prices to 1 for policies that read prices, as the published code does without a price file.
fn unpriced(meaning: &mut Meaning, policies: &[String]) -> Result<(), Failure> {
    if policies.iter().any(|policy| policy.contains("normalized_by_cost")) {
        let prices: Value = worker_types()?.into_iter().map(|name| (name, Value::from(1))).collect();
        meaning.run.push(("prices", prices.to_string()));
        let note =
            "without prices, a worker of each type counts as 1 $/h, as published: costs are worker-hours";
        meaning.notes.push(note.to_owned());
    }
    Ok(())
}

/// The fields that all scripts have in common.
fn fixed(throughputs: &Path, servers: &str, round: u64) -> Result<Vec<(&'static str, String)>, Failure> {
    let ships = throughputs == Path::new(THROUGHPUTS_FILE) && !throughputs.exists();
    let throughputs = if ships { json!(PUBLISHED) } else { json!(absolute(throughputs)?) };
    let mut run = vec![
        ("semantics", "gavel".to_owned()),
        ("throughputs", throughputs.to_string()),
        ("round_length", format!("{round}s")),
    ];
    let servers = counts(servers)?;
    if servers != counts("1:1:1")? {
        run.push(("servers", servers.to_string()));
    }
    Ok(run)
}

/// The published worker types, in the order of `36:36:36`.
pub(super) fn worker_types() -> Result<Vec<String>, Failure> {
    let published = load_throughputs(PUBLISHED)?;
    Ok(published.worker_types().iter().cloned().collect())
}

/// Workers by type from `36:36:36`.
fn counts(spec: &str) -> Result<Value, Failure> {
    let numbers: Option<Vec<u32>> = spec.split(':').map(|part| part.parse().ok()).collect();
    let types = worker_types()?;
    let numbers = numbers.filter(|numbers| numbers.len() == types.len());
    let wrong = || {
        let help = format!("workers of {}, such as 36:36:36", types.join(", "));
        Failure::usage(format!("`{spec}` is no cluster"), Some(help))
    };
    Ok(types.iter().cloned().zip(numbers.ok_or_else(wrong)?.into_iter().map(Value::from)).collect())
}

/// `n` evenly spaced numbers from `from` to `to`, both included, computed as numpy's `linspace` does.
fn evenly(from: f64, to: f64, n: usize) -> Result<Vec<f64>, Failure> {
    /// The most points.
    const POINTS_MAX: usize = 100_000;
    if !(from.is_finite() && to.is_finite() && 0.0 <= from && from <= to) || n == 0 || n > POINTS_MAX {
        let help = format!("give `-a` from 0 to what `-b` has, and `-n` from 1 to {POINTS_MAX}");
        return Err(Failure::usage(format!("{n} points from {from} to {to}: no such range"), Some(help)));
    }
    let step = (to - from) / (n.max(2) - 1) as f64;
    let mut points: Vec<f64> = (0..n).map(|point| from + point as f64 * step).collect();
    if let Some(last) = points.last_mut().filter(|_| n > 1) {
        *last = to;
    }
    Ok(points)
}

/// Names logs as the published script does: by the number of jobs rounded down, while the run has it rounded up. If two runs have
/// one name, the log of the later run replaces the other, as in the published script.
fn name_logs(meaning: &mut Meaning, numbers: &[f64]) {
    let whole = |number: f64| format!("{number:.0}").parse::<u64>().unwrap_or(u64::MAX);
    for number in numbers {
        let (name, jobs) = (whole(number.floor()), whole(number.ceil()));
        if let Some(before) = meaning.log_names.insert(name, jobs).filter(|before| *before != jobs) {
            meaning.notes.push(format!(
                "num_total_jobs={name}.log is the log of {before} and of {jobs} jobs in the published script: it is that of {jobs} \
                 jobs; results.sqlite has both"
            ));
        }
    }
}

/// The reason for which a value is run once although it was given more than once.
const GIVEN_AGAIN: &str = "it is given more than once";

/// The distinct values, in the order of their first occurrences. Adds a note to `meaning` for each value that occurs again.
fn distinct<T: PartialEq + ToString>(
    meaning: &mut Meaning,
    (what, why): (&str, &str),
    values: Vec<T>,
) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(values.len());
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
            continue;
        }
        let note = format!("{what} {}: {why}, and run once", value.to_string());
        if !meaning.notes.contains(&note) {
            meaning.notes.push(note);
        }
    }
    kept
}

/// Adds a field if there is one value, or an axis of several.
fn put(meaning: &mut Meaning, field: &'static str, values: Vec<Value>) {
    let values = distinct(meaning, (field, GIVEN_AGAIN), values);
    match values.as_slice() {
        [one] => meaning.run.push((field, one.to_string())),
        several => meaning.axes.push((field, json!(several).to_string())),
    }
}

fn flag(meaning: &mut Meaning, field: &'static str, is_set: bool) {
    if is_set {
        meaning.run.push((field, "true".to_owned()));
    }
}

/// Refuses fractions outside of 0 to 1, and more reference models than the published table has job types.
fn profiled(part: f64, n_models: u64) -> Result<(), Failure> {
    let wrong = if !(0.0..=1.0).contains(&part) {
        format!("--profiling_percentage: {part} of co-located throughputs, expected a number from 0 to 1")
    } else if !(1..=N_JOB_TYPES).contains(&n_models) {
        format!(
            "--num_reference_models: {n_models} reference models, expected 1 to {N_JOB_TYPES}, the job types of the published \
             table"
        )
    } else {
        return Ok(());
    };
    Err(Failure::usage(wrong, None))
}

/// The skip rules that correspond to a file of cut-offs.
fn cutoffs(path: &Path, many: &Many) -> Result<Vec<String>, Failure> {
    let source = Source::load(path_text::of(path))?;
    let cutoffs: BTreeMap<String, BTreeMap<String, f64>> = source.parse()?;
    let mut rules = Vec::new();
    for (cluster, by_policy) in cutoffs.iter().filter(|(cluster, _)| many.cluster_spec.contains(cluster)) {
        for (policy, rate) in by_policy.iter().filter(|(policy, _)| many.policies.contains(policy)) {
            let mut rule = json!({"policy": policy, "rate": {"from": rate}});
            if many.cluster_spec.len() > 1 {
                rule["cluster"] = counts(cluster)?;
            }
            rules.push(rule.to_string());
        }
    }
    Ok(rules)
}

fn exact(solver: Option<&str>) -> Vec<String> {
    solver.map(|solver| format!("--solver {solver}: not asked, every optimum is exact")).into_iter().collect()
}

/// Names a sweep of one run after the script and a digest of its document, so that runs of one script do not share a folder.
fn named(mut meaning: Meaning, script: &str) -> Meaning {
    script.clone_into(&mut meaning.name);
    meaning.name = format!("{script}-{}", &sha256(meaning.document().as_bytes())[..8]);
    meaning
}

/// A path that is valid from wherever the sweep file is.
fn absolute(path: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(path).map_err(Failure::io(format!("find {}", path.display())))?;
    let help = || Some("give it another name".to_owned());
    let refused =
        || Failure::usage(format!("a sweep holds no path that is not UTF-8: {}", path.display()), help());
    whole.to_str().map(str::to_owned).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use clap::Parser;

    use super::*;

    #[test]
    fn points_are_those_of_linspace() {
        // These are the values of numpy's linspace(0.0, 6.0, 16) and linspace(0.1, 3.7, 11).
        let rates = evenly(0.0, 6.0, 16).unwrap();
        assert_eq!((rates[1], rates[3], rates[15], rates.len()), (0.4, 1.200_000_000_000_000_2, 6.0, 16));
        let rates = evenly(0.1, 3.7, 11).unwrap();
        assert_eq!(rates[..4], [0.1, 0.459_999_999_999_999_96, 0.82, 1.180_000_000_000_000_2]);
        assert_eq!((rates[6], rates[10]), (2.260_000_000_000_000_2, 3.7));
        assert_eq!(evenly(2.0, 3.0, 1).unwrap(), [2.0]);
        assert!(
            evenly(1.0, 0.5, 3).is_err() && evenly(0.0, 1.0, 0).is_err() && evenly(f64::NAN, 1.0, 2).is_err()
        );
    }

    #[test]
    fn the_published_command_line_is_a_sweep() {
        let typed = "-s 4000 -e 5000 -l d -j 6 -p max_min_fairness max_min_fairness_perf --seeds 0 1 2 -c 36:36:36 -a 0.0 -b 1.0 \
                     -n 5 --generate-multi-gpu-jobs --solver ECOS -t 60";
        let meaning = Continuous::try_parse_from(typed.split_whitespace()).unwrap().meaning().unwrap();
        assert_eq!((meaning.processes, meaning.timeout), (NonZeroUsize::new(6), Some(60)));
        assert_eq!((meaning.log_dir.as_deref(), meaning.notes.len()), (Some(Path::new("d")), 1));
        let text = "format: apportion/sweep-v1\nname: run_sweep_continuous\nrun:\n  semantics: gavel\n  throughputs: \"osdi20\"\n  \
                    round_length: 360s\n  generator: gavel\n  cluster: {\"v100\":36,\"p100\":36,\"k80\":36}\n  \
                    multi_worker: true\n  measure: [4000,5000]\naxes:\n  policy: \
                    [\"max_min_fairness\",\"max_min_fairness_perf\"]\n  rate: [0.25,0.5,0.75,1.0]\n  seed: [0,1,2]\n\
                    stop: {saturated: false, wall: 60s, rounds: 10000, doublings: 4}\n";
        assert_eq!(meaning.document(), text);
    }

    #[test]
    fn what_the_published_scripts_leave_out_is_left_out_with_a_word() {
        let generated = |typed: &str| Generated::try_parse_from(typed.split_whitespace()).unwrap();
        let few = generated("-l 900 -e 10 --num_reference_models 16").meaning().unwrap();
        assert!(
            few.notes[0].contains("--num_reference_models")
                && few.run.iter().all(|(name, _)| *name != "fraction")
        );
        // Without a price file each price is 1; with another policy there is none.
        let priced =
            generated("-l 900 -e 10 -p max_sum_throughput_normalized_by_cost_perf").meaning().unwrap();
        let prices = ("prices", r#"{"v100":1,"p100":1,"k80":1}"#.to_owned());
        assert!(priced.run.contains(&prices), "{priced:?}");
        assert!(few.run.iter().all(|(name, _)| *name != "prices"));
        let traced =
            |typed: &str| Traced::try_parse_from(typed.split_whitespace()).unwrap().meaning().unwrap();
        let open = traced("-t x.trace -s 2");
        assert!(
            open.notes[0].contains("one end only") && open.run.iter().all(|(name, _)| *name != "measure")
        );
        assert!(Generated::try_parse_from("-l 900 -e 10 --solver BOGUS".split_whitespace()).is_err());
    }

    #[test]
    fn of_a_flag_that_is_given_twice_the_last_counts() {
        let of = |typed: &str| {
            Continuous::try_parse_from(typed.split_whitespace()).unwrap().meaning().unwrap().document()
        };
        let last = "-a 0 -b 1 -n 3 -c 4:4:4 -p isolated --seeds 3 4 -v";
        assert_eq!(of(&format!("-n 2 -c 2:2:2 1:1:1 -p fifo gandiva --seeds 0 1 2 -v {last}")), of(last));
        assert!(of(last).contains("policy: [\"isolated\"]"), "{}", of(last));
        let default = of("-a 0 -b 1 -n 3");
        assert!(default.contains("seed: [0,1,2,3,4]") && default.contains("\"allox\",\"fifo\""), "{default}");
    }

    #[test]
    fn what_would_change_results_is_refused() {
        let parse = |typed: &str| Generated::try_parse_from(typed.split_whitespace()).unwrap().meaning();
        assert!(parse("-l 900 -e 10").is_ok());
        for typed in [
            "-l 900 --enable_global_queue",
            "-l 900 --per_instance_type_prices_dir x",
            "-l -1",
            "-l 9 -s 5 -e 5",
        ] {
            let typed = typed.replace("-l -1", "-l=-1");
            assert!(parse(&typed).is_err(), "{typed}");
        }
        assert!(parse("-l 900 -e 10 -c 1:1").is_err());
        let all = parse("-l 0 -s 2 -e 10").unwrap();
        assert!(all.run.contains(&("static", "8".to_owned())), "{all:?}");
    }
}
