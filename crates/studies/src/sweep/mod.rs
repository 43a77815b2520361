//! Sweeps of many runs: their points, their execution, and the store of their results.
//!
//! In: a [`SweepSpec`](crate::sweep::spec::SweepSpec). Out: a results file with one row per finished run.
//!
//! ```text
//! spec ──▶ grid ─points─▶ runner ─point─▶ (simulation) ─outcome─▶ store ─rows─▶ report
//! ```

pub mod comparison;
pub mod findings;
pub mod course;
pub mod grid;
mod checks;
pub mod inputs;
pub mod oddities;
pub mod differences;
mod options;
pub mod outcome;
mod allocations;
mod run_error;
pub mod runner;
pub mod saturation;
pub mod simulation;
pub mod spec;
pub mod log;
pub mod store;
pub mod making;
pub mod summary;

pub use course::{Climbed, Course, Plan, Task};
pub use differences::{DIFFERENCES, Difference};
pub use grid::{Point, Selection, Shard};
pub use inputs::{Inputs, Run, TRACES, priced};
pub use making::{Made, make};
pub use oddities::{Oddity, oddities};
pub use outcome::{AllocationRow, JobRow, Outcome, Status};
pub use run_error::RunError;
pub use runner::{Progress, Summary};
pub use simulation::{Bounds, Executor, Standing};
pub use store::{Absence, Row, Sitting, Store, StoreError, Study, day, today};

/// Studies that are part of the binary.
pub const EMBEDDED: [apportion::spec::lookup::Embedded; 23] = [
    ("common-ground", include_str!("../../../../sweeps/common-ground.yaml")),
    ("common-ground-shifted", include_str!("../../../../sweeps/common-ground-shifted.yaml")),
    ("helios", include_str!("../../../../sweeps/helios.yaml")),
    ("knee", include_str!("../../../../sweeps/knee.yaml")),
    ("learned-gangs", include_str!("../../../../sweeps/learned-gangs.yaml")),
    ("learned-vs-optimized", include_str!("../../../../sweeps/learned-vs-optimized.yaml")),
    ("live-options", include_str!("../../../../sweeps/live-options.yaml")),
    ("osdi20-estimation", include_str!("../../../../sweeps/osdi20-estimation.yaml")),
    ("osdi20-fifo", include_str!("../../../../sweeps/osdi20-fifo.yaml")),
    ("osdi20-fifo-multi", include_str!("../../../../sweeps/osdi20-fifo-multi.yaml")),
    ("osdi20-figure-10", include_str!("../../../../sweeps/osdi20-figure-10.yaml")),
    ("osdi20-figure-11", include_str!("../../../../sweeps/osdi20-figure-11.yaml")),
    ("osdi20-figure-13", include_str!("../../../../sweeps/osdi20-figure-13.yaml")),
    ("osdi20-figure-8", include_str!("../../../../sweeps/osdi20-figure-8.yaml")),
    ("osdi20-figure-9", include_str!("../../../../sweeps/osdi20-figure-9.yaml")),
    ("osdi20-finish-time", include_str!("../../../../sweeps/osdi20-finish-time.yaml")),
    ("osdi20-makespan", include_str!("../../../../sweeps/osdi20-makespan.yaml")),
    ("philly", include_str!("../../../../sweeps/philly.yaml")),
    ("quick", include_str!("../../../../sweeps/quick.yaml")),
    ("refinements", include_str!("../../../../sweeps/refinements.yaml")),
    ("semantics", include_str!("../../../../sweeps/semantics.yaml")),
    ("slow-fillers", include_str!("../../../../sweeps/slow-fillers.yaml")),
    ("spot-2026", include_str!("../../../../sweeps/spot-2026.yaml")),
];
