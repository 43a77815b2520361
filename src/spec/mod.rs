//! The only reader of input files: documents with places, so that every error has file, line and column.

pub mod complaint;
pub mod contention_table;
pub mod document;
pub mod elastic_throughputs;
pub mod encoding;
pub mod entities;
pub mod entries;
pub mod fidelity;
mod json_events;
pub mod label;
pub mod lookup;
pub mod name;
pub mod nearest;
pub mod path_text;
mod places;
pub mod policy;
pub mod price_series;
pub mod run;
pub mod snapshot;
pub mod spread_throughputs;
mod structure;
pub mod throughputs;
pub mod trace;

pub use document::{Diagnostic, Source, SpecError};
pub use entries::Entries;
pub use fidelity::Fidelity;
pub use nearest::did_you_mean;
pub use places::Place;
pub use policy::{PolicyDocument, PolicyKind, load_policy};
pub use price_series::{PriceChange, PriceSeries, read_prices};
pub use snapshot::Snapshot;
pub use throughputs::{
    Finding, FindingKind, Header, Origin, ThroughputsFile, load_throughputs, measured_of, read_throughputs,
    write_throughputs,
};
pub use trace::{
    Trace, TraceForm, TraceOrder, TracedJob, WriteTraceError, WrittenTrace, read_trace, write_trace,
};
