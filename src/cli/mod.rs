//! Arguments, one file per subcommand, progress, diagnostics, exit codes.
