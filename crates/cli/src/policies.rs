//! `apportion policies`: the shipped policies, their files, and checks of policy files.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, named, no_standard_output, write_bytes};
use crate::output::{Answer, Cell, OutputFormat, Table};
use crate::paths::name_or_path;
use apportion::catalog::{CatalogError, PolicyOptions};
use apportion::policy::heuristic::{
    AlloXParameters, FifoPackedParameters, GandivaParameters, LasParameters, ShortestParameters,
    ThemisParameters,
};
use apportion::spec::SpecError;
use apportion::spec::lookup::read_bytes;
use apportion::spec::policy::{Document, ParameterDocument, PolicyReference};
use apportion_learn::checkpoint::{Checkpoint, CheckpointError};
use apportion_learn::stable_baselines;
use apportion_learn::tensors::Tensors;
use apportion_published::document::{Learned, LearnedFields};
use apportion_published::export::to_onnx;
use apportion_published::plugin;
use apportion_published::weights::{load_weights, ships};

/// Arguments of `policies`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion policies list
  apportion policies show max_min_fairness_perf > mine.yaml
  apportion policies check mine.yaml
  apportion policies import-sb3 ppo.zip --out mine.safetensors
  apportion policies export-onnx learned_pairs --out pairs.onnx")]
pub struct PoliciesArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// The policies that ship with the program
    List,
    /// The text of a policy file
    Show {
        /// A name, or the path of a policy file
        #[arg(value_name = "NAME|FILE", value_parser = name_or_path())]
        policy: String,
    },
    /// Read policy files and say what is wrong with them
    Check {
        /// Names, or paths of policy files
        #[arg(value_name = "NAME|FILE", required = true, value_parser = name_or_path())]
        policies: Vec<String>,
    },
    /// The JSON Schema of policy files, for editors; the same as `apportion schema policy`
    Schema,
    /// Make the weights of a policy trained by stable-baselines3 (PPO, MlpPolicy, tanh) this program's
    ImportSb3 {
        /// The zip file that it saved
        file: PathBuf,
        /// Where to write: weights with a header, as safetensors; `-` is standard output, in place of the table of tensors
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Make the network of a learned policy an ONNX file, for other tools
    ExportOnnx {
        /// A learned policy's name or file, or weights: a name that ships with the program, or a file that ends in
        /// `.safetensors`
        #[arg(value_name = "NAME|FILE", value_parser = name_or_path())]
        policy: String,
        /// Where to write; `-` is standard output, in place of the table of tensors
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, or a policy file is at fault.
pub(super) fn run(arguments: &PoliciesArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => session.output.wide_table(&list()?, 1),
        Action::Show { policy } => show(policy, session),
        Action::Check { policies } => check(policies, session),
        Action::Schema => session.output.json(&schema()),
        Action::ImportSb3 { file, out } => import_sb3(file, out, session),
        Action::ExportOnnx { policy, out } => export_onnx(policy, out, session),
    }
}

/// The schema of policy files: a program or a heuristic, or a learned policy, with the fields that all have and its own.
pub(super) fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let rules = [
        ("allox", generator.subschema_for::<AlloXParameters>()),
        ("fifo_packed", generator.subschema_for::<FifoPackedParameters>()),
        ("gandiva", generator.subschema_for::<GandivaParameters>()),
        ("las", generator.subschema_for::<LasParameters>()),
        ("sjf", generator.subschema_for::<ShortestParameters>()),
        ("srtf", generator.subschema_for::<ShortestParameters>()),
        ("themis", generator.subschema_for::<ThemisParameters>()),
    ];
    let mut own = generator.root_schema_for::<Document>().to_value();
    let parameters = rules.map(|(rule, parameters)| {
        json!({
            "if": {"properties": {"rule": {"const": rule}}, "required": ["rule"]},
            "then": {"properties": {"parameters": parameters}},
        })
    });
    let none = json!({
        "if": {"properties": {"rule": {"enum": ["isolated", "proportional", "fifo", "fifo_perf"]}}, "required": ["rule"]},
        "then": {"properties": {"parameters": {"maxProperties": 0}}},
    });
    let declared = json!({
        "if": {"properties": {"kind": {"const": "program"}}},
        "then": {"properties": {"parameters": {"additionalProperties": generator.subschema_for::<ParameterDocument>()}}},
    });
    own["allOf"] = parameters.into_iter().chain([none, declared]).collect();
    own["title"] = "Program or heuristic".into();
    let mut learned = generator.into_root_schema_for::<LearnedFields>().to_value();
    learned["title"] = "Learned policy".into();
    let common = ["format", "name", "summary", "source", "notes", "differs_from_gavel"];
    let shared = common.into_iter().map(|field| (field.to_owned(), own["properties"][field].clone()));
    let kind = json!({"const": "learned", "description": "A learned policy."});
    let mut fields: serde_json::Map<String, Value> = shared.chain([("kind".to_owned(), kind)]).collect();
    if let Value::Object(others) = learned["properties"].take() {
        fields.extend(others);
    }
    learned["properties"] = fields.into();
    learned["required"] = json!(["format", "name", "summary", "kind", "actor"]);
    // References are resolved from the root.
    let mut definitions = serde_json::Map::new();
    for alternative in [&mut own, &mut learned] {
        let Some(fields) = alternative.as_object_mut() else { continue };
        fields.remove("$schema");
        if let Some(Value::Object(more)) = fields.remove("$defs") {
            definitions.extend(more);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policy",
        "anyOf": [own, learned],
        "$defs": definitions,
    })
}

fn list() -> Result<Table, Failure> {
    let mut table = Table::new(["policy", "kind", "summary"]);
    let catalog = plugin::catalog();
    for name in catalog.names() {
        let document = catalog.document(name)?;
        table.push(vec![name.into(), document.kind_name().into(), document.summary.as_str().into()]);
    }
    Ok(table)
}

/// A policy, as `apportion policies show --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShownPolicy<'a> {
    /// Its name.
    policy: &'a str,
    /// `program`, `heuristic` or `learned`.
    kind: &'a str,
    /// A description of its allocation, in a line.
    summary: &'a str,
    /// Its source; null if its file states none.
    source: Option<&'a str>,
    /// Its file as it is.
    text: &'a str,
}

impl Answer for ShownPolicy<'_> {
    const KIND: &'static str = "shown-policy";
}

fn show(name_or_path: &str, session: &Session) -> Result<(), Failure> {
    let reference = PolicyReference::new(name_or_path);
    if reference.has_parameters() {
        let help = format!("leave them out: `apportion policies show {}`", reference.policy);
        return Err(Failure::usage(
            "a policy's file is shown as it is, without parameters".to_owned(),
            Some(help),
        ));
    }
    let document = plugin::catalog().document(name_or_path)?;
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&ShownPolicy {
            policy: &document.name,
            kind: document.kind_name(),
            summary: &document.summary,
            source: document.origin.as_deref(),
            text: &document.source.text,
        }),
        OutputFormat::Table | OutputFormat::Csv => session.output.text(&document.source.text),
    }
}

fn import_sb3(file: &Path, out: &Path, session: &Session) -> Result<(), Failure> {
    check_files(&[at("the file", Some(file))], &[at("--out", Some(out))])?;
    let named = || file.display().to_string();
    let bytes = read_bytes(file)?;
    let help = "expected what `PPO(\"MlpPolicy\", …).save(…)` of stable-baselines3 writes";
    let checkpoint = stable_baselines::import(&bytes)
        .map_err(|error| SpecError::about(named(), error.to_string(), Some(help.to_owned())))?;
    let bytes = checkpoint.to_bytes().map_err(|error| Failure::Bug { message: error.to_string() })?;
    put(session, out, &bytes, &checkpoint.tensors)
}

fn export_onnx(policy: &str, out: &Path, session: &Session) -> Result<(), Failure> {
    let weights = if policy.ends_with(".safetensors") || ships(policy) {
        policy.to_owned()
    } else {
        let document = plugin::catalog().document(policy)?;
        let learned = (document.kind_name() == "learned").then(|| Learned::read(&document)).transpose()?;
        let Some(Learned { weights: Some(weights), .. }) = learned else {
            let help = Some("expected a policy of `kind: learned` with `weights`".to_owned());
            return Err(SpecError::about(policy, "this policy has no network", help).into());
        };
        weights
    };
    check_files(
        &[named("the policy", Some(policy)), named("its weights", Some(&weights))],
        &[at("--out", Some(out))],
    )?;
    let bytes = load_weights(&weights)?;
    let at_fault = |error: CheckpointError| SpecError::about(&weights, error.to_string(), None);
    let checkpoint = Checkpoint::from_bytes(&bytes).map_err(at_fault)?;
    put(session, out, &to_onnx(&checkpoint).map_err(at_fault)?, &checkpoint.slim().tensors)
}

/// Writes a file that was made of tensors, and lists the tensors unless it goes to standard output.
fn put(session: &Session, out: &Path, bytes: &[u8], made_of: &Tensors) -> Result<(), Failure> {
    let Some(out) = no_standard_output(Some(out)) else { return session.output.bytes(bytes) };
    write_bytes(session, out, bytes)?;
    session.output.table(&tensors(made_of))
}

fn tensors(tensors: &Tensors) -> Table {
    let mut table = Table::new(["tensor", "shape", "numbers"]);
    for (name, shape, numbers) in tensors.iter() {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        table.push(vec![name.into(), shape.join(" × ").into(), Cell::Count(numbers.len() as u64)]);
    }
    table
}

fn check(names_or_paths: &[String], session: &Session) -> Result<(), Failure> {
    let mut table = Table::new(["policy", "file", "kind"]);
    let mut complaints = Vec::new();
    for name_or_path in names_or_paths {
        let catalog = plugin::catalog();
        let checked = catalog
            .document(name_or_path)
            .map_err(CatalogError::from)
            .and_then(|document| catalog.ready(name_or_path, &PolicyOptions::default()).map(|_| document));
        match checked {
            Ok(document) => {
                let kind = document.kind_name().to_owned();
                table.push(vec![document.name.into(), document.source.name.into(), kind.into()]);
            }
            Err(CatalogError::Spec(error)) => complaints.push(error),
            Err(error) => complaints.push(SpecError::about(name_or_path, error.to_string(), None)),
        }
    }
    SpecError::join(complaints)?;
    session.output.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_knows_the_fields_of_every_shipped_policy() {
        let schema = schema();
        let catalog = plugin::catalog();
        for name in catalog.names() {
            let document = catalog.document(name).unwrap();
            let alternative = &schema["anyOf"][usize::from(document.kind_name() == "learned")];
            let fields: Value = document.source.parse().unwrap();
            for field in fields.as_object().unwrap().keys() {
                assert!(alternative["properties"][field].is_object(), "{name}: {field}");
            }
        }
        assert!(schema["$defs"]["ActorName"].is_object() && schema["$defs"]["Rule"].is_object());
    }
}
