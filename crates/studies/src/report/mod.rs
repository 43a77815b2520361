//! Formats for numbers: tables, JSON, CSV, pages with charts. Computes nothing, and reads and writes no file.

pub mod baseline;
pub mod benchmark;
pub mod chart;
pub mod forecast;
pub mod gantt;
mod html;
pub mod label;
pub mod number;
mod owners;
pub mod pairs;
pub mod page;
pub mod plain;
pub mod run;
pub mod study;
pub mod svg;
pub mod table;
pub mod workload;

pub use page::Page;
pub use table::{Cell, Table};
