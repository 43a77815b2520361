//! Arguments that are paths, or names of documents that ship with the program.

use clap::builder::{OsStringValueParser, TypedValueParser};

use apportion::spec::path_text;

/// Reads such an argument as text, from which the engine makes the path again where it is not UTF-8.
pub(super) fn name_or_path() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(path_text::of)
}
