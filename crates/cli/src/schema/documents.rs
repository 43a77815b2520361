//! All documents, each with its schema and an example.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Value, json};

use crate::policies;
use apportion::cluster::PRICES;
use apportion::metrics::job_columns;
use apportion::metrics::log::Header;
use apportion::metrics::table::dictionary;
use apportion::simulator::Event;
use apportion::spec::snapshot::{SnapshotDocument, SnapshotEntity};
use apportion::spec::{Entries, elastic_throughputs, spread_throughputs, throughputs, trace};
use apportion_logs::{ImportReport, Rules};
use apportion_studies::benchmark::Results;
use apportion_studies::benchmark::programs::Programs;
use apportion_studies::sweep::Status;
use apportion_studies::sweep::spec::SweepDocument;

/// A kind of document.
pub(super) struct Document {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// Its description, in a line.
    pub(super) summary: &'static str,
    /// Further notes, which its schema does not contain.
    pub(super) notes: &'static str,
    /// Its schema; none if this build does not know the document.
    pub(super) schema: fn() -> Option<Value>,
    /// An example, and the language that it is written in; none for documents that the program only writes.
    pub(super) example: Option<(&'static str, &'static str)>,
}

/// All documents.
pub(super) const DOCUMENTS: [Document; 18] = [
    Document {
        name: "snapshot",
        summary: "One decision's input: a cluster and its active jobs",
        notes: "",
        schema: || Some(schema_for!(SnapshotDocument).to_value()),
        example: Some(("yaml", include_str!("../../../../examples/snapshot.yaml"))),
    },
    Document {
        name: "policy",
        summary: "A policy: an optimization program, a built-in rule, or a learned one",
        notes: "The language of expressions is in [policies.md](policies.md).",
        schema: || Some(policies::schema()),
        example: Some(("yaml", include_str!("../../../../policies/max_min_fairness_perf.yaml"))),
    },
    Document {
        name: "throughputs",
        summary: "A throughput matrix: how fast job types run on worker types, alone and together",
        notes: "Gavel's JSON form is read, too; `apportion throughputs import` makes this one of it.",
        schema: || Some(throughputs::schema().to_value()),
        example: Some(("yaml", include_str!("../../../../examples/throughputs.yaml"))),
    },
    Document {
        name: "trace",
        summary: "A trace of jobs, as comma-separated text",
        notes: "Two forms of Gavel's are read and one is written, without a header and separated by tabs. Of ten columns: job \
                type, command, working directory, steps argument, whether it needs data (1 or 0), total steps, scale factor, \
                weight, SLO, arrival. Of seven, which are only read: job type, command, steps argument, whether it needs \
                data, total steps, arrival, scale factor. Times are seconds; Gavel's SLO is a multiple of the time that the \
                job takes alone on the reference worker type, and −1 for none. `apportion trace convert` goes between the \
                forms.",
        schema: || Some(trace::schema().to_value()),
        example: Some(("csv", include_str!("../../../../examples/trace.csv"))),
    },
    Document {
        name: "log",
        summary: "A normalized log, as comma-separated text: what a cluster's log says of its jobs, in one form for all",
        notes: "`apportion trace convert LOG --from FORM --to log` writes it, and `--from log` reads it, with columns in any order: \
                `id`, `ran_s` and `gpus` are needed, others may be left out, and a state that is not there is `unknown`. A cell is \
                empty where the log does not say, which is never 0.",
        schema: || Some(apportion_logs::normalized::schema().to_value()),
        example: Some(("csv", include_str!("../../../../examples/log.csv"))),
    },
    Document {
        name: "log-rules",
        summary: "The rules by which rows of a log become jobs, of `trace convert --rules`",
        notes: "",
        schema: || Some(schema_for!(Rules).to_value()),
        example: Some(("yaml", include_str!("../../../../examples/log-rules.yaml"))),
    },
    Document {
        name: "import-report",
        summary: "The rows of a cluster's log, counted by what they became: `trace show LOG --from FORM --format json`, `trace convert --report FILE`",
        notes: "",
        schema: || Some(written::<ImportReport>()),
        example: None,
    },
    Document {
        name: "entities",
        summary: "The owners of a trace's jobs, of `--entities`",
        notes: "",
        schema: || {
            let schema = schema_for!(Vec<SnapshotEntity>);
            Some(described(schema, "A list of the owners that jobs name, for hierarchical policies."))
        },
        example: Some(("yaml", include_str!("../../../../examples/entities.yaml"))),
    },
    Document {
        name: "prices",
        summary: "Prices of workers, of `--prices` and of a sweep's `prices`",
        notes: "Prices that change over time are comma-separated text, under the header `time,worker_type,price`, or `time` and \
                a column for each worker type. Times ascend from 0, in seconds or with a unit: `90s`, `30min`, `2h`, `3d`. A \
                price holds until the next one of its worker type.",
        schema: || {
            let mut schema = schema_for!(Entries<f64>);
            schema.insert("x-unit".to_owned(), "$/h".into());
            let (least, most) = (PRICES.start(), PRICES.end());
            let description = format!(
                "The price of a worker, by worker type: a number from {least:e} to {most:e}, so not 0."
            );
            Some(described(schema, &description))
        },
        example: Some(("yaml", "v100: 2.48\np100: 1.46\nk80: 0.45\n")),
    },
    Document {
        name: "sweep",
        summary: "A study: a grid of simulations",
        notes: "",
        schema: || Some(schema_for!(SweepDocument).to_value()),
        example: Some(("yaml", include_str!("../../../../sweeps/quick.yaml"))),
    },
    Document {
        name: "training",
        summary: "A training of a learned scheduler",
        notes: "",
        schema: || Some(apportion_published::training::spec::schema().to_value()),
        example: Some(("yaml", include_str!("../../../../examples/training.yaml"))),
    },
    Document {
        name: "spread-throughputs",
        summary: "Throughputs by workers and servers, as DeepShare was measured with",
        notes: "",
        schema: || Some(spread_throughputs::schema().to_value()),
        example: Some(("yaml", include_str!("../../../../examples/spread-throughputs.yaml"))),
    },
    Document {
        name: "elastic-throughputs",
        summary: "Throughputs by workers and parameter servers, as DL2 was measured with",
        notes: "",
        schema: || Some(elastic_throughputs::schema().to_value()),
        example: Some(("yaml", include_str!("../../../../examples/elastic-throughputs.yaml"))),
    },
    Document {
        name: "events",
        summary: "The events of a simulation, a JSON object a line: `simulate --events FILE`",
        notes: "",
        schema: || {
            let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
            let lines = [generator.subschema_for::<Header>(), generator.subschema_for::<Event<'_, &str>>()];
            let description = "A log of a simulation: a header, then a line for each event. `apportion report` shows it. \
                Jobs are called by their position in order of arrival, worker types by their names, and workers by their \
                position among all workers in the order of the header's cluster; both count from 0. In logs of older programs \
                `worker_type` is a position in the header's cluster; they are read, too.";
            Some(json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Line of a log",
                "description": description, "anyOf": lines, "$defs": generator.take_definitions(true),
            }))
        },
        example: None,
    },
    Document {
        name: "bench",
        summary: "The result of `apportion bench --format json`",
        notes: "CSV has the columns of a row, `seconds.build` as `seconds_build`, and empty cells for null.",
        schema: || Some(written::<Results>()),
        example: None,
    },
    Document {
        name: "programs",
        summary: "The purpose of each program that `apportion bench --export DIR` writes: `programs.json`",
        notes: "Programs are scaled, some raise the inverse of what a policy lowers, and many jobs are one class: the optimum of a \
                file is hardly ever the policy's objective, and `value` says how that follows from it.",
        schema: || Some(written::<Programs>()),
        example: None,
    },
    Document {
        name: "results",
        summary: "A row of a sweep's results",
        notes: "A folder of results has `results.sqlite`, with a row of the table `runs` for each run, and `results.csv`, \
                without `spec`, `data`, `seconds`, `jobs_checksum` and `allocations_checksum`. Beside these columns there is one for each axis, called as the study \
                calls it. The table `utilization` has the utilization of each worker type; where the study says `keep_jobs`, the tables `jobs` \
                and `services` have each measured job, as under [job-columns](#job-columns), and the table `worker_hours` the `hours` of \
                each `worker_type`. Where it says `keep_allocations`, the table `allocations` has a row for each share of each decision: \
                `share` of the time of `job`, together with `partner` unless that is null, on workers of `worker_type`, `from_s` the \
                instant of the decision `until_s` that of the next one or the end of the run. Jobs are called by their positions in order \
                of arrival, measured or not. Policies that decide inside rounds give no shares. In results of older programs times are called without their unit, such as `jct`; they are read, too.",
        schema: || Some(results()),
        example: None,
    },
    Document {
        name: "job-columns",
        summary: "Measured jobs as columns: `simulate --format csv`, the tables `jobs` and `services` of a sweep's results",
        notes: "In CSV there is a column `worker_hours_TYPE` for each worker type, too: the busy time of the job's workers of that type. In \
                results there is the `digest` of the run, and the columns from `wait_s` on are those of the table `services`.",
        schema: || Some(job_table()),
        example: None,
    },
];

fn described(mut schema: Schema, description: &str) -> Value {
    schema.insert("description".to_owned(), description.into());
    schema.to_value()
}

/// The schema of a document that this program writes. A number is in seconds if its name ends in `_s`.
pub(super) fn written<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    state_seconds(&mut schema);
    schema
}

/// Adds the unit `s` to fields that have it in their name only, as `wait_s`.
fn state_seconds(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            let fields = keywords.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
            for (_, field) in fields.filter(|(name, _)| name.ends_with("_s")) {
                if let Value::Object(field) = field {
                    field.entry("x-unit").or_insert_with(|| "s".into());
                }
            }
            keywords.values_mut().for_each(state_seconds);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(state_seconds),
        _ => {}
    }
}

/// A row of measured jobs.
fn job_table() -> Value {
    let mut columns = serde_json::Map::new();
    columns.insert(
        "id".to_owned(),
        json!({"type": ["integer", "string"], "description": "Its id in the trace; its position in order of arrival where that is no other, and in results."}),
    );
    columns.insert("job_type".to_owned(), json!({"type": "string", "description": "Its type."}));
    for column in job_columns() {
        let kind = if column.is_count() { "integer" } else { "number" };
        let (meaning, unit) = (column.meaning, column.unit.name());
        let described = json!({"type": [kind, "null"], "description": meaning, "x-unit": unit});
        columns.insert(column.name.to_owned(), described);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Row of jobs",
        "description": "A measured job.", "type": "object", "properties": columns, "required": ["id", "job_type"],
    })
}

/// A row of the table `runs`.
fn results() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut columns = serde_json::Map::new();
    columns.insert(
        "digest".to_owned(),
        text("The identity of the run: SHA-256 of its specification and its data, in hexadecimal."),
    );
    let endings = Status::ALL.map(Status::name);
    columns.insert(
        "status".to_owned(),
        json!({"enum": endings, "description": "The status at the end of the run. A run that is `saturated` was not made; of one that is not `done` there are no metrics."}),
    );
    let reason = "Why the run is not `done`, or what is not known of it.";
    columns.insert("reason".to_owned(), json!({"type": ["string", "null"], "description": reason}));
    let capacity = "The largest arrival rate that the cluster can sustain, where it was computed.";
    let metrics = dictionary().map(|[name, unit, _, meaning, _]| (name, unit, meaning));
    let numbers = [("capacity", "jobs/h", capacity)].into_iter().chain(metrics);
    for (name, unit, meaning) in numbers {
        let mut column = json!({"type": ["number", "null"], "description": meaning});
        if !unit.is_empty() {
            column["x-unit"] = unit.into();
        }
        columns.insert(name.to_owned(), column);
    }
    columns.insert("version".to_owned(), text("The version of the program that made the run."));
    columns.insert("spec".to_owned(), text("The whole specification of the run, as JSON."));
    columns.insert(
        "data".to_owned(),
        text("SHA-256 of the data that it read, in hexadecimal, by what it is, as JSON."),
    );
    columns.insert(
        "seconds".to_owned(),
        json!({"type": "number", "description": "Wall time of the run.", "x-unit": "s"}),
    );
    let of_row = "SHA-256 of the row, but for wall time, and of its utilizations; a row that does not match is refused. \
                  Null in rows of before there were checksums.";
    columns.insert("checksum".to_owned(), json!({"type": ["string", "null"], "description": of_row}));
    let of_jobs = "The checksum of the jobs of the run.";
    columns.insert("jobs_checksum".to_owned(), json!({"type": ["string", "null"], "description": of_jobs}));
    let of_allocations =
        "The checksum of the allocations of the run; null in rows of before they could be kept.";
    columns.insert(
        "allocations_checksum".to_owned(),
        json!({"type": ["string", "null"], "description": of_allocations}),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Row of results",
        "description": "What became of one run of a sweep.", "type": "object", "properties": columns,
        "required": ["status"],
    })
}
