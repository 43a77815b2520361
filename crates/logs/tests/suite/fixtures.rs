//! Each invented log, row by row.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use apportion_logs::normalized::write_rows;
use apportion_logs::tally::Tally;
use apportion_logs::{Form, ReadOptions, Reading, read_log};

pub(super) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A log: its form, its file, the name of its expectation, and the options for reading it.
struct Case {
    form: Form,
    file: &'static str,
    expected: &'static str,
    zone: Option<&'static str>,
    job_table: Option<&'static str>,
}

const fn case(form: Form, file: &'static str, expected: &'static str) -> Case {
    Case { form, file, expected, zone: None, job_table: None }
}

const CASES: [Case; 17] = [
    case(Form::Philly, "philly/cluster_job_log.json", "philly/expected.txt"),
    Case {
        zone: Some("America/Los_Angeles"),
        ..case(Form::Philly, "philly/cluster_job_log.json", "philly/expected_with_zone.txt")
    },
    case(Form::Helios, "helios/cluster_log.csv", "helios/expected.txt"),
    Case {
        zone: Some("Asia/Shanghai"),
        ..case(Form::Helios, "helios/cluster_log.csv", "helios/expected_with_zone.txt")
    },
    case(Form::Helios, "helios/no_vc.csv", "helios/expected_no_vc.txt"),
    Case {
        job_table: Some("pai/pai_job_table.csv"),
        ..case(Form::Pai, "pai/pai_task_table.csv", "pai/expected.txt")
    },
    case(Form::Pai, "pai/pai_task_table.csv", "pai/expected_tasks_alone.txt"),
    case(Form::Pai, "pai/task_with_header_on_top.csv", "pai/expected_with_header.txt"),
    case(Form::Sacct, "sacct/sacct.txt", "sacct/expected.txt"),
    Case {
        zone: Some("Europe/Berlin"),
        ..case(Form::Sacct, "sacct/sacct.txt", "sacct/expected_with_zone.txt")
    },
    case(Form::Sacct, "sacct/documented_call.txt", "sacct/expected_documented_call.txt"),
    case(Form::Sacct, "sacct/parsable_p_with_zone.txt", "sacct/expected_parsable_p_with_zone.txt"),
    case(Form::Acme, "acme/trace_seren.csv", "acme/expected_seren.txt"),
    case(Form::Acme, "acme/trace_kalos.csv", "acme/expected_kalos.txt"),
    case(Form::SpotGpu, "spot-gpu/job_info_df.csv", "spot-gpu/expected.txt"),
    case(Form::Openb, "openb/openb_pod_list_default.csv", "openb/expected.txt"),
    case(Form::Kueue, "kueue/workloads.json", "kueue/expected.txt"),
];

/// The rows of a log with their lines, counts and complaints, as text.
fn told(log: &Reading) -> String {
    let mut rows = Vec::new();
    write_rows(&mut rows, log.rows.iter()).unwrap();
    let rows = String::from_utf8(rows).unwrap();
    let mut text = String::new();
    for (at, line) in rows.lines().enumerate() {
        let number = if at == 0 { "line".to_owned() } else { log.rows.at(at - 1).line.to_string() };
        writeln!(text, "{number},{line}").unwrap();
    }
    writeln!(text, "\nread: {}, parts of other rows: {}", log.n_read, log.n_merged).unwrap();
    let place = |tally: &Tally| {
        let of = if tally.file.is_some() { " of the table of jobs" } else { "" };
        format!("line {}{of}", tally.line)
    };
    for (reason, tally) in &log.left_out {
        writeln!(text, "left out: {reason:?} {} from {} {:?}", tally.n, place(tally), tally.id).unwrap();
    }
    for (doubt, tally) in &log.doubts {
        writeln!(text, "doubtful: {doubt:?} {} from {} {:?}", tally.n, place(tally), tally.id).unwrap();
    }
    writeln!(text, "unused columns: {:?}", log.unused_columns).unwrap();
    for complaint in &log.complaints {
        writeln!(text, "{}:{}: {}", complaint.line, complaint.column, complaint.message).unwrap();
    }
    text
}

#[test]
fn each_log_comes_to_what_is_expected() {
    let mut differing = String::new();
    for Case { form, file, expected, zone, job_table } in &CASES {
        let mut options = ReadOptions::new(*form);
        options.zone = zone.map(|zone| zone.parse().unwrap());
        options.job_table = job_table.map(|table| fixture(table).display().to_string());
        let log = read_log(&fixture(file).display().to_string(), &options)
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
        let n_rows = log.rows.len() as u64;
        assert_eq!(log.n_read, n_rows + log.n_merged + n_left_out, "{file}: every row is accounted for");
        let text = told(&log);
        let path = fixture(expected);
        if std::env::var_os("APPORTION_WRITE_EXPECTED").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        for (number, pair) in text.lines().zip(wanted.lines()).enumerate() {
            if pair.0 != pair.1 {
                writeln!(
                    differing,
                    "{expected}:{}:\n  is       {}\n  expected {}",
                    number + 1,
                    pair.0,
                    pair.1
                )
                .unwrap();
            }
        }
        if text.lines().count() != wanted.lines().count() {
            writeln!(differing, "{expected}: {} lines", text.lines().count()).unwrap();
        }
    }
    assert!(differing.is_empty(), "{differing}");
}
