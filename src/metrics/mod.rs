//! Numbers folded from the events of a run.
