//! `apportion policies`: the policies there are, their files, and the checking of one's own.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::catalog::{Catalog, CatalogError};
use crate::cli::Session;
use crate::cli::exit::Failure;
use crate::cli::output::{OutputFormat, Table};
use crate::spec::policy::{self, Document, PolicyDocument, PolicyKind};
use crate::spec::{Source, SpecError};

/// Its arguments.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion policies list
  apportion policies show max_min_fairness_perf > mine.yaml
  apportion policies check mine.yaml")]
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
        #[arg(value_name = "NAME|FILE")]
        policy: String,
    },
    /// Read policy files and say what is wrong with them
    Check {
        /// Names, or paths of policy files
        #[arg(value_name = "NAME|FILE", required = true)]
        policies: Vec<String>,
    },
    /// The JSON Schema of policy files, for editors
    Schema,
}

/// Runs the command.
///
/// # Errors
/// If there is no such policy, or a policy file is at fault.
pub(super) fn run(arguments: &PoliciesArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => session.output.table(&list()?),
        Action::Show { policy } => show(policy, session),
        Action::Check { policies } => check(policies, session),
        Action::Schema => session.output.json(&schemars::schema_for!(Document)),
    }
}

fn kind(document: &PolicyDocument) -> &'static str {
    match document.kind {
        PolicyKind::Program(_) => "program",
        PolicyKind::Heuristic(_) => "heuristic",
    }
}

fn list() -> Result<Table, Failure> {
    let mut table = Table::new(["policy", "kind", "summary"]);
    for (name, text) in policy::EMBEDDED {
        let document = PolicyDocument::read(Source::embedded(name, text))?;
        table.push(vec![name.into(), kind(&document).into(), document.summary.as_str().into()]);
    }
    Ok(table)
}

fn show(name_or_path: &str, session: &Session) -> Result<(), Failure> {
    let document = policy::load_policy(name_or_path)?;
    match session.output.format() {
        OutputFormat::Json => session.output.json(&json!({
            "policy": document.name,
            "kind": kind(&document),
            "summary": document.summary,
            "source": document.origin,
            "text": &*document.source.text,
        })),
        OutputFormat::Table | OutputFormat::Csv => session.output.text(&document.source.text),
    }
}

fn check(names_or_paths: &[String], session: &Session) -> Result<(), Failure> {
    let mut table = Table::new(["policy", "file", "kind"]);
    let mut complaints = Vec::new();
    for name_or_path in names_or_paths {
        let catalog = Catalog::embedded();
        let checked = catalog
            .document(name_or_path)
            .map_err(CatalogError::from)
            .and_then(|document| catalog.policy(name_or_path).map(|_| document));
        match checked {
            Ok(document) => {
                let kind = kind(&document);
                table.push(vec![document.name.into(), document.source.name.into(), kind.into()]);
            }
            Err(CatalogError::Spec(error)) => complaints.push(error),
            Err(error) => complaints.push(SpecError::about(name_or_path, error.to_string(), None)),
        }
    }
    SpecError::join(complaints)?;
    session.output.table(&table)
}
