//! Allocation and what was received → who runs on which workers this round; pure.
