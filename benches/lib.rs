//! Benchmarks by criterion: `cargo bench -p apportion-benches`. A package of its own, so that tests compile no criterion.
