//! The command line of a simulation from its specification.

use clap::{Args, Command, FromArgMatches as _};
use serde_json::Value;

use super::{SimulateArguments, spec};
use crate::command_line::quoted;
use apportion::spec::run::RunSpec;

/// Fields of a specification, as JSON pointers, with their flags.
const FLAGS: [(&str, &str); 41] = [
    ("/policy", "--policy"),
    ("/cluster", "--cluster"),
    ("/servers", "--servers"),
    ("/prices", "--prices"),
    ("/throughputs", "--throughputs"),
    ("/workload/trace", "--trace"),
    ("/workload/rate", "--rate"),
    ("/workload/static", "--static"),
    ("/workload/jobs", "--jobs"),
    ("/measure", "--measure"),
    ("/workload/steady_state", "--steady-state"),
    ("/workload/generator", "--generator"),
    ("/workload/multi_worker", "--multi-worker"),
    ("/workload/multi_priority", "--multi-priority"),
    ("/workload/slos", "--slos"),
    ("/workload/duration", "--duration"),
    ("/seed", "--seed"),
    ("/semantics", "--semantics"),
    ("/correct", "--correct"),
    ("/mechanism/round_length", "--round"),
    ("/mechanism/reset_interval", "--reset-interval"),
    ("/mechanism/ideal", "--ideal"),
    ("/mechanism/preemption_cost", "--preemption-cost"),
    ("/solver/refine", "--refine"),
    ("/solver/backend", "--backend"),
    ("/faults/worker_mtbf", "--worker-mtbf"),
    ("/faults/worker_mttr", "--worker-mttr"),
    ("/faults/job_failure", "--job-failure"),
    ("/faults/job_attempts", "--job-attempts"),
    ("/faults/straggling", "--straggling"),
    ("/faults/straggling_rounds", "--straggling-rounds"),
    ("/faults/noise", "--noise"),
    ("/faults/contention", "--contention"),
    ("/profiling/fraction", "--profiling-fraction"),
    ("/profiling/reference_models", "--reference-models"),
    ("/profiling/smoothing", "--profiling-smoothing"),
    ("/live/look_ahead", "--look-ahead"),
    ("/live/start_up", "--start-up"),
    ("/live/stop", "--stop"),
    ("/live/refill", "--refill"),
    ("/live/measured", "--measured"),
];

/// The command that runs a specification as it is; none if flags cannot say all of it, as with owners and prices that came from a file.
pub(crate) fn again(spec_of_run: &Value) -> Option<String> {
    let wanted: RunSpec = serde_json::from_value(spec_of_run.clone()).ok()?;
    let (given, usual) =
        (serde_json::to_value(&wanted).ok()?, serde_json::to_value(RunSpec::default()).ok()?);
    let mut words = vec!["simulate".to_owned()];
    for (field, flag) in FLAGS {
        let value = given.pointer(field).filter(|value| usual.pointer(field) != Some(value));
        words.extend(value.map(|value| flag_of(flag, value)).into_iter().flatten());
    }
    let command = SimulateArguments::augment_args(Command::new("simulate"));
    let matches = command.try_get_matches_from(&words).ok()?;
    let read = SimulateArguments::from_arg_matches(&matches).ok()?;
    let words = words.iter().map(|word| quoted(word));
    (spec(&read) == wanted).then(|| format!("apportion {}", words.collect::<Vec<_>>().join(" ")))
}

/// A flag with its value, as words of a command line; none for a flag that is off.
fn flag_of(flag: &str, value: &Value) -> Vec<String> {
    let text = match value {
        Value::Null | Value::Bool(false) => return Vec::new(),
        Value::Bool(true) => return vec![flag.to_owned()],
        Value::String(text) if flag == "--refill" => text.replace('_', "-"),
        Value::String(text) => text.clone(),
        Value::Number(number) => plain(number),
        Value::Array(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(":"),
        Value::Object(counts) => {
            counts.iter().map(|(name, n)| format!("{name}={n}")).collect::<Vec<_>>().join(",")
        }
    };
    vec![flag.to_owned(), text]
}

/// A number without a part behind the point that is 0.
fn plain(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec_of(line: &str) -> RunSpec {
        let command = SimulateArguments::augment_args(Command::new("simulate"));
        let matches = command.try_get_matches_from(line.split_whitespace().skip(1)).unwrap();
        spec(&SimulateArguments::from_arg_matches(&matches).unwrap())
    }

    #[test]
    fn every_flag_of_a_specification_is_said_again() {
        for line in [
            "apportion simulate --policy fifo --cluster v100=8 --static 20",
            "apportion simulate --policy allox --cluster z9=3,a1=2 --trace jobs.csv --seed 18446744073709551615",
            "apportion simulate --policy completion_rate:exponent=0.75 --cluster v100=8,k80=4 --servers v100=4 --prices p.csv \
             --throughputs mine.yaml --rate 0.25 --jobs 100 --measure 10:90 --steady-state --generator gavel_osdi20 \
             --multi-worker --multi-priority --slos --duration 5400 --seed 7 --semantics gavel --correct gangs,ties \
             --round 60 --reset-interval 600 --ideal --preemption-cost 12.5 --refine water_filling --backend clarabel",
            "apportion simulate --policy fifo --cluster v100=8 --rate 1 --jobs 9 --worker-mtbf 86400 --worker-mttr 3600 \
             --job-failure 0.1 --job-attempts 3 --straggling 0.2 --straggling-rounds 10 --noise 0.05 --contention 0.3 \
             --profiling-fraction 0.5 --reference-models 20 --profiling-smoothing 0.7 --look-ahead 30 --start-up 5 --stop 4 \
             --refill at-once --measured",
        ] {
            let wanted = spec_of(line);
            let said = again(&serde_json::to_value(&wanted).unwrap()).unwrap();
            assert_eq!(spec_of(&said), wanted, "{said}");
            assert_eq!(said.split_whitespace().count(), line.split_whitespace().count(), "{said}");
        }
    }

    #[test]
    fn what_flags_cannot_say_has_no_command() {
        let mut wanted = spec_of("apportion simulate --policy fifo --cluster v100=8 --trace jobs.csv");
        assert!(again(&serde_json::to_value(&wanted).unwrap()).is_some());
        wanted.workload.entities = serde_json::from_str("[{\"id\": \"a\"}]").unwrap();
        assert_eq!(again(&serde_json::to_value(&wanted).unwrap()), None);
        assert_eq!(again(&Value::Null), None);
    }
}
