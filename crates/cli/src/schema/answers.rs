//! The answers of `--format json`, each with its schema.

use serde_json::{Map, Value, json};

use super::documents::{Document, written};
use crate::allocate::Allocated;
use crate::check::Checked;
use crate::compare::ComparisonAnswer;
use crate::explained::ExplanationAnswer;
use crate::forecast::{Calibrated, Forecasted};
#[cfg(feature = "live")]
use crate::live;
use crate::output::{Answer, Rows, Text};
use crate::policies::ShownPolicy;
use crate::report::Reported;
use crate::simulate::Simulated;
use crate::sweep::SubmittedArray;
use crate::throughputs_fit::Fitted;
use crate::trace::{NodesSummary, WorkloadSummary};

/// The document of an answer.
const fn of<T: Answer>(summary: &'static str, notes: &'static str) -> Document {
    Document { name: T::KIND, summary, notes, schema: || Some(schema::<T>()), example: None }
}

/// The document of an answer that only a build with the live scheduler has.
macro_rules! live {
    ($answer:ty, $name:literal, $summary:literal) => {
        Document {
            name: $name,
            summary: $summary,
            notes: "",
            schema: || {
                #[cfg(feature = "live")]
                let schema = Some(schema::<$answer>());
                #[cfg(not(feature = "live"))]
                let schema = None;
                schema
            },
            example: None,
        }
    };
}

/// All answers that are not files of their own.
pub(super) const ANSWERS: [Document; 24] = [
    of::<Allocated<'_>>("The decision of `allocate`", ""),
    of::<ExplanationAnswer<'_>>("The explanation of a decision: `explain`", ""),
    of::<Simulated<'_>>("The result of `simulate`", ""),
    of::<Forecasted<'_>>("The result of `forecast`", ""),
    of::<Calibrated<'_>>("The result of `forecast --calibrate`", ""),
    of::<ComparisonAnswer<'_>>("The result of `compare`", ""),
    of::<Checked<'_>>("The result of `check`", ""),
    of::<Fitted<'_>>("The result of `throughputs fit`", ""),
    of::<WorkloadSummary<'_>>("The jobs of a trace in numbers: `trace show TRACE --throughputs NAME`", ""),
    of::<NodesSummary<'_>>("The cluster of a table of nodes: `trace cluster`", ""),
    of::<ShownPolicy<'_>>("A policy: `policies show`", ""),
    of::<SubmittedArray>("The job array of `sweep --slurm`", ""),
    of::<Reported>(
        "The file of a page: `report`",
        "Nothing is printed where the page or the picture is standard output.",
    ),
    of::<Rows>(
        "A table: what lists something, such as `results show` or `policies list`",
        "The keys of a row are the heads of the columns in CSV, with their units: `average_jct_s`. Metrics are described under \
         [results](#results).",
    ),
    of::<Text<'_>>(
        "A document as it is: `sweep show`, `gavel … --show`, `throughputs show --text`, `trace show --text`, `train show`, `trace rules`",
        "",
    ),
    live!(live::Submitted<'_>, "submitted", "A job that a scheduler has taken in: `submit`"),
    live!(live::Jobs<'_>, "jobs", "The jobs of a scheduler: `jobs`"),
    live!(live::Bound<'_>, "why", "Reasons why a job of a scheduler waits or runs: `why`"),
    live!(live::When<'_>, "when", "The start and end of a job of a scheduler, forecast: `when`"),
    live!(live::Rounds<'_>, "next", "The places of jobs in a scheduler's round and in the next one: `next`"),
    live!(live::Servers<'_>, "servers", "The servers of a scheduler: `servers`"),
    live!(live::History<'_>, "history", "The jobs of a scheduler as rows of a log: `history`"),
    live!(
        live::Done<'_>,
        "done",
        "A request that a scheduler has carried out: `cancel`, `drain`, `resume`, `remove`"
    ),
    live!(
        live::Shadowed<'_>,
        "shadow-report",
        "The jobs of a policy beside another scheduler, under both: `shadow`"
    ),
];

/// The schema of an answer: its own fields, after those that every answer begins with.
fn schema<T: Answer>() -> Value {
    let mut schema = written::<T>();
    let mut properties = Map::new();
    properties.insert(
        "format".to_owned(),
        json!({"const": T::format(), "description": "The format of this document."}),
    );
    properties.insert(
        "version".to_owned(),
        json!({"type": "string", "description": "The version of the program."}),
    );
    if let Some(own) = schema["properties"].as_object() {
        properties.extend(own.clone());
    }
    let own = schema["required"].as_array().into_iter().flatten().cloned();
    let required: Vec<Value> = ["format", "version"].map(Value::from).into_iter().chain(own).collect();
    schema["properties"] = properties.into();
    schema["required"] = required.into();
    schema
}
