//! Throughput matrices in files: our YAML and Gavel's JSON are read alike, and our YAML is written.
//!
//! In: a [`Source`]. Out: a [`ThroughputsFile`], checked values with their header and findings on dropped parts. Shipped matrices
//! are read the same way, once per process, by [`Throughputs::embedded`].

mod document;
mod gavel_json;
mod write;
mod write_contention;

#[cfg(feature = "schema")]
pub use document::schema;
pub use document::{FORMAT, Header, Origin};
pub use write::{measured_of, write_throughputs};
pub use write_contention::{write_contention, write_modelled};

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::spec::lookup::Embedded;
use crate::spec::{Source, SpecError, path_text};
use crate::throughput::{ContentionModel, Measured, Throughputs, ThroughputsError};

/// The matrices in the binary: name and text.
pub const EMBEDDED: [Embedded; 2] = [
    ("osdi20", include_str!("../../throughputs/osdi20.yaml")),
    ("osdi20-physical", include_str!("../../throughputs/osdi20-physical.yaml")),
];

/// A throughput file that has been read.
#[derive(Clone, Debug)]
pub struct ThroughputsFile {
    /// Its statements about itself.
    pub header: Header,
    /// Its measurements; co-located ones are the model's.
    pub measured: Measured,
    /// The model of co-located throughputs.
    pub model: ContentionModel,
    /// Findings on parts that were not kept, or kept though they looked odd.
    pub findings: Vec<Finding>,
}

/// A finding of the reader, with its number and the first examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// The number of places.
    pub count: usize,
    /// At most three places.
    pub examples: Vec<String>,
}

/// The kinds of findings in a throughput file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// A row that one worker type lacks: taken as unable to run there.
    MissingRow,
    /// A throughput of 0 alone: cannot run.
    CannotRun,
    /// No unconsolidated throughput of a row.
    MissingUnconsolidated,
    /// Unconsolidated throughputs of a worker type that is not itself there: dropped.
    OrphanUnconsolidated,
    /// A pair with a row that is not there: dropped.
    UnknownOther,
    /// A pair of two scale factors: dropped.
    MixedScaleFactors,
    /// A pair stated by one of its members only: taken for both.
    OneSidedPair,
    /// A pair whose two statements disagree: each member's own was kept.
    AsymmetricPair,
    /// A pair in which only one member advances: cannot share workers.
    HalfPair,
    /// Co-located throughput of a row that cannot run alone: dropped.
    ColocatedOnly,
    /// Faster beside another job than alone: kept as it is.
    FasterTogether,
    /// Unconsolidated co-located throughputs: not kept, the retained fraction of the consolidated pair serves.
    UnconsolidatedPair,
    /// Among those, the ones that differ from the consolidated pair's.
    UnconsolidatedPairDiffers,
}

impl FindingKind {
    /// The finding and its consequence, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::MissingRow => "rows that a worker type lacks, taken as unable to run there",
            Self::CannotRun => "isolated throughputs of 0 or null, taken as unable to run there",
            Self::MissingUnconsolidated => "rows without an unconsolidated throughput, left unmeasured",
            Self::OrphanUnconsolidated => "unconsolidated worker types without a consolidated one, dropped",
            Self::UnknownOther => "pairs with a row that is not there, dropped",
            Self::MixedScaleFactors => "pairs of two scale factors, dropped",
            Self::OneSidedPair => "pairs stated by one member only, taken for both",
            Self::AsymmetricPair => "pairs whose two statements disagree, each member's own kept",
            Self::HalfPair => "pairs in which one member stands still, unable to share workers",
            Self::ColocatedOnly => "co-located throughputs of rows that cannot run alone, dropped",
            Self::FasterTogether => "co-located throughputs above the isolated one, kept",
            Self::UnconsolidatedPair => {
                "unconsolidated co-located throughputs, not kept: the consolidated pair's fraction serves"
            }
            Self::UnconsolidatedPairDiffers => "of those, ones that differ from the consolidated pair's",
        }
    }
}

/// The most entries of the co-located array [type × row × other]: 2 GiB of them.
const ENTRIES_MAX: usize = 1 << 28;

/// Why a matrix of this shape is refused; none if it is accepted.
fn too_large(n_types: usize, n_rows: usize) -> Option<String> {
    let entries = n_types.saturating_mul(n_rows).saturating_mul(n_rows);
    (entries > ENTRIES_MAX).then(|| {
        format!("{n_rows} rows on {n_types} worker types, expected at most {ENTRIES_MAX} pairs of rows on all types")
    })
}

/// Collects findings in the order of their kinds.
#[derive(Debug, Default)]
struct Findings(BTreeMap<FindingKind, Finding>);

impl Findings {
    fn note(&mut self, kind: FindingKind, place: impl FnOnce() -> String) {
        let empty = || Finding { kind, count: 0, examples: Vec::new() };
        let finding = self.0.entry(kind).or_insert_with(empty);
        finding.count += 1;
        if finding.examples.len() < 3 {
            finding.examples.push(place());
        }
    }

    fn into_list(self) -> Vec<Finding> {
        self.0.into_values().collect()
    }
}

/// Reads our YAML (or the same as JSON), or Gavel's JSON under the name `name`.
///
/// # Errors
/// With every error, each with its place.
pub fn read_throughputs(source: &Source, name: &str) -> Result<ThroughputsFile, SpecError> {
    if gavel_json::is_gavel(&source.text) { gavel_json::read(source, name) } else { document::read(source) }
}

/// The embedded matrix of this name, or the one in the file at this path.
///
/// # Errors
/// If there is neither, or the file is not a throughput matrix.
pub fn load_throughputs(name_or_path: &str) -> Result<Arc<Throughputs>, SpecError> {
    let source = Source::find("throughputs", name_or_path, &EMBEDDED)?;
    if source.name.starts_with('<')
        && let Ok(embedded) = Throughputs::embedded(name_or_path)
    {
        return Ok(embedded);
    }
    throughputs_of(&source, &file_stem(name_or_path))
}

/// The matrix of a document; for Gavel's JSON, under the name `name`.
///
/// # Errors
/// If the document is no matrix.
pub fn throughputs_of(source: &Source, name: &str) -> Result<Arc<Throughputs>, SpecError> {
    let checked = Throughputs::try_new(read_throughputs(source, name)?.measured);
    checked.map(Arc::new).map_err(|error| SpecError::about(source.name.clone(), error.to_string(), None))
}

/// The name of a matrix whose file states none.
pub fn file_stem(path: &str) -> String {
    let path = path_text::to_path(path);
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Throughputs {
    /// The matrix of this name that is part of the binary; read at its first use.
    ///
    /// # Errors
    /// If there is none of this name.
    ///
    /// # Panics
    /// If a shipped matrix is damaged, which tests rule out.
    pub fn embedded(name: &str) -> Result<Arc<Self>, ThroughputsError> {
        static READ: [OnceLock<Arc<Throughputs>>; EMBEDDED.len()] =
            [const { OnceLock::new() }; EMBEDDED.len()];
        let position = EMBEDDED.iter().position(|(other, _)| *other == name);
        let unknown = || ThroughputsError::Unknown { name: name.to_owned() };
        let position = position.ok_or_else(unknown)?;
        let read = || {
            let source = Source::embedded(name, EMBEDDED[position].1);
            let file = read_throughputs(&source, name).unwrap_or_else(|error| panic!("{error}"));
            Arc::new(Self::try_new(file.measured).unwrap_or_else(|error| panic!("{error}")))
        };
        Ok(Arc::clone(READ[position].get_or_init(read)))
    }

    /// Names of the matrices in the binary.
    pub fn embedded_names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// The text of the embedded matrix of this name.
    pub fn embedded_text(name: &str) -> Option<&'static str> {
        EMBEDDED.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
    }
}

#[cfg(test)]
mod tests;
