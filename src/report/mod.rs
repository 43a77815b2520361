//! Formats for numbers: table, JSON, CSV. Computes nothing.
