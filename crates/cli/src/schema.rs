//! `apportion schema`: the JSON Schemas of the documents that are read and written, and the page about all of them.

mod documents;
mod answers;
mod markdown;

use clap::Args;

use crate::Session;
use crate::exit::Failure;
use crate::output::Table;
use answers::ANSWERS;
use apportion::spec::nearest::{name_list, suggestion};
use documents::{DOCUMENTS, Document};

/// Arguments of `schema`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion schema
  apportion schema snapshot > snapshot.schema.json")]
pub struct SchemaArguments {
    /// The document, by its name or by the format that it states; all are listed without it
    #[arg(value_name = "NAME", conflicts_with = "markdown")]
    document: Option<String>,
    /// Print docs/formats.md, the page about all documents
    #[arg(long)]
    markdown: bool,
}

/// Runs the command.
///
/// # Errors
/// If there is no such document, or this build does not know it.
pub(super) fn run(arguments: &SchemaArguments, session: &Session) -> Result<(), Failure> {
    let documents: Vec<Document> = DOCUMENTS.into_iter().chain(ANSWERS).collect();
    if arguments.markdown {
        return session.output.text(&markdown::page(&documents));
    }
    let Some(name) = &arguments.document else {
        let mut table = Table::new(["document", "what it is"]);
        for document in &documents {
            table.push(vec![document.name.into(), document.summary.into()]);
        }
        return session.output.table(&table);
    };
    let names = || documents.iter().map(|document| document.name);
    let known = |name: &str| documents.iter().find(|document| document.name == name);
    let Some(document) = known(name).or_else(|| known(of_format(name))) else {
        let message = format!("unknown document `{name}`, expected one of {}", name_list(names()));
        return Err(Failure::usage(message, suggestion(name, names())));
    };
    let Some(schema) = (document.schema)() else {
        let feature = if document.name == "training" { "train" } else { "live" };
        let help = format!("build it with `cargo build --release --features {feature}`");
        return Err(Failure::usage(format!("this build does not know the document `{name}`"), Some(help)));
    };
    session.output.json(&schema)
}

/// The name in a format, such as `when` in `apportion/when-v1`, as documents state it.
fn of_format(format: &str) -> &str {
    let name = format.strip_prefix("apportion/").unwrap_or(format);
    match name.rsplit_once("-v") {
        Some((name, version)) if version.parse::<u32>().is_ok() => name,
        _ => name,
    }
}
