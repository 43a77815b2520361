//! Many runs: grid, runner, store.
