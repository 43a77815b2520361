//! A sweep from flags in place of a file.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::paths::name_or_path;
use apportion::spec::Source;
use apportion::spec::run::{WorkerCounts, sha256};
use apportion_studies::sweep::spec::SweepSpec;

/// The name in error messages of the document that is made of flags.
const NAME: &str = "<command line>";
/// The most values of a range of seeds.
const SEEDS_MAX: u64 = 100_000;

/// The axes, and the fields of every run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "A sweep without a file")]
pub(super) struct Flags {
    /// Policies to compare: names or policy files
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<String>,
    /// Workers of each type, such as v100=36,p100=36,k80=36; several times to compare clusters
    #[arg(long, value_name = "TYPE=N,…")]
    cluster: Vec<WorkerCounts>,
    /// A trace of jobs in place of arrivals at random, by rate: a file; several times to compare traces
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    trace: Vec<String>,
    /// Arrival rates in jobs/h: FROM:TO:POINTS, a list, or `auto`
    #[arg(long, value_name = "RATES")]
    rate: Option<String>,
    /// Seeds: FROM:END, the end excluded, or a list
    #[arg(long, value_name = "SEEDS")]
    seed: Option<String>,
    /// A field of every run, as a sweep has it under `run`: jobs=500, measure=[4000,5000], semantics=gavel
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// One more field to vary: preemption_cost=0,30s,60s
    #[arg(long, value_name = "FIELD=V,V,…")]
    vary: Vec<String>,
    /// When a run is cut short, as a sweep file has it under `stop`: saturated=true, wall=30min, rounds=1000
    #[arg(long, value_name = "KEY=VALUE")]
    stop: Vec<String>,
    /// What the sweep is called, and its folder of results [default: after what it says]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Flags {
    /// Whether one of them is given.
    pub(super) const fn are_given(&self) -> bool {
        !self.policy.is_empty()
            || !self.cluster.is_empty()
            || !self.trace.is_empty()
            || self.rate.is_some()
            || self.seed.is_some()
            || !self.set.is_empty()
            || !self.vary.is_empty()
            || !self.stop.is_empty()
            || self.name.is_some()
    }

    /// The sweep as a document.
    ///
    /// # Errors
    /// If a flag has a wrong form.
    pub(super) fn document(&self) -> Result<Source, Failure> {
        let mut run = Vec::new();
        let mut axes = Vec::new();
        let mut push = |name: &str, values: Vec<Value>| match values.as_slice() {
            [] => {}
            [one] if name != "policy" => run.push((name.to_owned(), one.to_string())),
            several => axes.push((name.to_owned(), Value::from(several).to_string())),
        };
        push("policy", self.policy.iter().map(|name| json!(name)).collect());
        push("cluster", self.cluster.iter().map(|cluster| json!(cluster)).collect());
        push("trace", self.trace.iter().map(|trace| json!(trace)).collect());
        if let Some(rate) = &self.rate {
            axes.push(("rate".to_owned(), rates(rate)?));
        }
        if let Some(seed) = &self.seed {
            axes.push(("seed".to_owned(), seeds(seed)?));
        }
        for (flag, given, into) in [("--set", &self.set, &mut run), ("--vary", &self.vary, &mut axes)] {
            for text in given {
                let (field, value) = field(flag, text)?;
                into.push((
                    field.to_owned(),
                    if flag == "--vary" { format!("[{value}]") } else { value.to_owned() },
                ));
            }
        }
        let stop: Vec<(String, String)> = self
            .stop
            .iter()
            .map(|text| field("--stop", text).map(|(key, value)| (key.to_owned(), value.to_owned())))
            .collect::<Result<_, _>>()?;
        let mut body = String::new();
        let sections = [("run", &run), ("axes", &axes), ("stop", &stop)];
        for (section, fields) in
            sections.into_iter().filter(|(name, keys)| *name != "stop" || !keys.is_empty())
        {
            let _ = writeln!(body, "{section}:{}", if fields.is_empty() { " {}" } else { "" });
            for (name, value) in fields {
                let _ = writeln!(body, "  {name}: {value}");
            }
        }
        let default = || format!("sweep-{}", &sha256(body.as_bytes())[..8]);
        let name = json!(self.name.clone().unwrap_or_else(default));
        let source = Source::new(NAME, format!("format: apportion/sweep-v1\nname: {name}\n{body}"));
        match SweepSpec::parse(&source, false) {
            Ok(_) => Ok(source),
            Err(mut error) => {
                for diagnostic in &mut error.diagnostics {
                    let by_flag = remedy(&diagnostic.message).map(str::to_owned);
                    diagnostic.help = by_flag.or(diagnostic.help.take());
                }
                Err(error.into())
            }
        }
    }
}

/// The flag that adds what a sweep's document lacks, as a remedy.
fn remedy(complaint: &str) -> Option<&'static str> {
    match complaint {
        "no cluster is given" => Some("`--cluster v100=36,p100=36,k80=36`"),
        "arrivals would never stop" => {
            Some("`--set jobs=200`: so many jobs arrive; or `--set measure=[100,300]`: these are measured")
        }
        "no policy is named" => {
            Some("`--policy fifo,max_min_fairness_perf`; `apportion policies list` names them")
        }
        _ if complaint.starts_with("no jobs: ") => {
            Some("`--rate 0.2:1.0:5 --set jobs=200`, or `--trace jobs.csv`")
        }
        _ => None,
    }
}

/// A field and its value, from `FIELD=VALUE` in one line.
fn field<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.".contains(letter))
    };
    let first = text.split(['=', '.']).next().unwrap_or_default().trim();
    if ["stop", "keep_jobs", "keep_allocations", "skip", "axes", "name"].contains(&first) {
        let message = format!("{flag}: `{first}` is no field of a run");
        let by_flag = if first == "stop" { "`--stop wall=30min`; " } else { "" };
        let help = format!(
            "{by_flag}it stands in a sweep file beside `run:`, as `{first}:`; `--show` prints the file that flags amount to"
        );
        return Err(Failure::usage(message, Some(help)));
    }
    match text.split_once('=') {
        Some((name, value)) if is_name(name.trim()) && !value.contains(['\n', '\r']) => {
            Ok((name.trim(), value))
        }
        _ => {
            let example = match flag {
                "--set" => "jobs=500",
                "--stop" => "saturated=true",
                _ => "preemption_cost=0,30s",
            };
            let help = format!("such as {flag} {example}");
            Err(Failure::usage(format!("{flag}: `{text}` is no field with its value"), Some(help)))
        }
    }
}

/// The rates in the form of an axis.
fn rates(text: &str) -> Result<String, Failure> {
    if text == "auto" {
        return Ok("{auto: {}}".to_owned());
    }
    let wrong = || {
        let help = "0.2:1.0:5 for five rates from 0.2 to 1.0, 0.5,1,2 for three, or auto".to_owned();
        Failure::usage(format!("--rate: `{text}` are no rates"), Some(help))
    };
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|rate| rate.is_finite());
    match parts.as_slice() {
        [list] => {
            let rates: Option<Vec<f64>> = list.split(',').map(number).collect();
            Ok(Value::from(rates.ok_or_else(wrong)?).to_string())
        }
        [from, to, points] => {
            let (from, to) = (number(from).ok_or_else(wrong)?, number(to).ok_or_else(wrong)?);
            let points: u64 = points.trim().parse().map_err(|_| wrong())?;
            Ok(json!({"from": from, "to": to, "points": points}).to_string())
        }
        _ => Err(wrong()),
    }
}

/// The seeds in the form of an axis.
fn seeds(text: &str) -> Result<String, Failure> {
    let refused = |why: &str| {
        let help = "0:3 for 0, 1 and 2, or 0,7,42".to_owned();
        Failure::usage(format!("--seed: `{text}` {why}"), Some(help))
    };
    let whole =
        |part: &str| part.trim().parse::<u64>().map_err(|_| refused("are no seeds, which are whole numbers"));
    let seeds: Vec<u64> = match text.split_once(':') {
        None => text.split(',').map(whole).collect::<Result<_, _>>()?,
        Some((from, end)) => {
            let (from, end) = (whole(from)?, whole(end)?);
            if from >= end {
                return Err(refused(
                    "has no seed: the second number, which is not among them, is to be larger",
                ));
            }
            if end - from > SEEDS_MAX {
                return Err(refused(&format!("are {} seeds, expected at most {SEEDS_MAX}", end - from)));
            }
            (from..end).collect()
        }
    };
    Ok(Value::from(seeds).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_a_document() {
        let flags = Flags {
            policy: vec!["fifo".to_owned(), "isolated".to_owned()],
            cluster: vec!["v100=2,k80=1".parse().unwrap()],
            trace: Vec::new(),
            rate: Some("0.2:1.0:5".to_owned()),
            seed: Some("0:3".to_owned()),
            set: vec!["jobs=500".to_owned(), "measure=[10, 20]".to_owned()],
            vary: vec!["preemption_cost=0,30s".to_owned()],
            stop: vec!["saturated=true".to_owned(), "rounds=500".to_owned()],
            name: Some("mine".to_owned()),
        };
        let text = "format: apportion/sweep-v1\nname: \"mine\"\nrun:\n  cluster: {\"v100\":2,\"k80\":1}\n  jobs: 500\n  \
                    measure: [10, 20]\naxes:\n  policy: [\"fifo\",\"isolated\"]\n  rate: {\"from\":0.2,\"to\":1.0,\"points\":5}\n  \
                    seed: [0,1,2]\n  preemption_cost: [0,30s]\nstop:\n  saturated: true\n  rounds: 500\n";
        assert_eq!(&*flags.document().unwrap().text, text);
        let endless = Flags { stop: Vec::new(), ..flags.clone() }.document().unwrap();
        assert!(!endless.text.contains("stop"), "{}", endless.text);
        for stop in ["saturated", "round=500", "rounds=0", "wall=-1"] {
            let refused = Flags { stop: vec![stop.to_owned()], ..flags.clone() };
            assert!(refused.document().is_err(), "{stop}");
        }
        let unnamed = Flags { name: None, ..flags };
        let name = |flags: &Flags| flags.document().unwrap().text.lines().nth(1).unwrap().to_owned();
        assert_eq!(name(&unnamed), name(&unnamed));
        assert_ne!(name(&unnamed), name(&Flags { seed: Some("0:4".to_owned()), ..unnamed.clone() }));
    }

    #[test]
    fn a_trace_is_a_field_of_every_run_and_several_are_an_axis() {
        let text = |traces: &[&str]| {
            let flags = Flags {
                policy: vec!["fifo".to_owned()],
                cluster: vec!["v100=2".parse().unwrap()],
                trace: traces.iter().map(|trace| (*trace).to_owned()).collect(),
                ..Flags::default()
            };
            flags.document().unwrap().text.to_string()
        };
        let one = text(&["a.csv"]);
        assert!(
            one.contains("run:\n  cluster: {\"v100\":2}\n  trace: \"a.csv\"\naxes:\n  policy: [\"fifo\"]\n"),
            "{one}"
        );
        let two = text(&["a.csv", "b.csv"]);
        assert!(two.contains("axes:\n  policy: [\"fifo\"]\n  trace: [\"a.csv\",\"b.csv\"]\n"), "{two}");
    }

    #[test]
    fn what_is_not_of_its_form_is_refused() {
        for rate in ["", "a", "1:2", "1:2:x", "1:2:3:4", "nan", "1,,2"] {
            assert!(rates(rate).is_err(), "{rate}");
        }
        for seed in ["", "3:3", "-1", "0:x", "1.5", "0:1000000000"] {
            assert!(seeds(seed).is_err(), "{seed}");
        }
        let said = |text: &str| seeds(text).unwrap_err().to_string();
        assert!(
            said("0:100001").contains("are 100001 seeds, expected at most 100000"),
            "{}",
            said("0:100001")
        );
        assert!(said("3:3").contains("has no seed"), "{}", said("3:3"));
        for set in ["jobs", "=5", "a b=5", "jobs=5\nname: x", "stop.wall=20s", "stop={}"] {
            assert!(field("--set", set).is_err(), "{set}");
        }
    }
}
