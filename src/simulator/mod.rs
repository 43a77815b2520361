//! Rounds over simulated time: clock, events, progress, faults, checkpoints.
