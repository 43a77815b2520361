//! Records of tables separated by commas: a quoted text may hold the ends of lines.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::tally::Doubt;
use apportion_logs::{Form, ReadOptions, Reading};

fn read(text: &str) -> Reading {
    let log = read_log_from("log.csv", Cursor::new(text.to_owned()), &ReadOptions::new(Form::Log)).unwrap();
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out, "every row is accounted for");
    log
}

/// Ids of the jobs, number of rows read, and the first complaint.
fn told(text: &str) -> (Vec<String>, u64, String) {
    let log = read(text);
    let ids = log.rows.iter().map(|row| row.id.to_string()).collect();
    let said = log.complaints.first().map_or_else(String::new, |complaint| {
        let place = format!("{}:{} `{}`", complaint.line, complaint.column, complaint.excerpt);
        format!("{place} {}", complaint.message)
    });
    (ids, log.n_read, said)
}

#[test]
fn no_job_comes_from_inside_of_a_quoted_text() {
    let (ids, n_read, said) = told("id,name,ran_s,gpus\na,\"x\nb,y,10,1\nc\",5,1\nd,z,7,1\n");
    assert_eq!((ids, n_read), (vec!["d".to_owned()], 2));
    assert_eq!(said, "2:3 `a,\"x` name is `x\\nb,y,10,1\\nc`, expected a name without control characters");
}

#[test]
fn a_text_of_several_lines_in_a_column_that_is_not_used_is_no_fault() {
    // Doubled quotes, a blank line, other ends of lines, and a fault after them.
    let text = "id,note,ran_s,gpus\r\na,\"one \"\"two\"\",\r\n\r\nthree\",5,1\r\nb,\"\",6,1\r\nc,\"x\ny\",6,many\r\n";
    let (ids, n_read, said) = told(text);
    assert_eq!((ids, n_read), (vec!["a".to_owned(), "b".to_owned()], 3));
    assert_eq!(said, "7:6 `y\",6,many` gpus is `many`, expected a whole number");
}

#[test]
fn a_stray_quote_takes_no_row_but_its_own_out() {
    // The quote is closed nowhere, or by the quote of another row, which then has text after it.
    for stray in ["b,\"y,5,1", "b,\"y,5,1\nc,\"ok\",5,1"] {
        let text = format!("id,name,ran_s,gpus\na,x,5,1\n{stray}\nd,z,5,1\ne,z,5,1\n");
        let (ids, n_read, said) = told(&text);
        let others: Vec<&str> = ids.iter().map(String::as_str).filter(|id| *id != "c").collect();
        assert_eq!((others, n_read), (vec!["a", "d", "e"], text.lines().count() as u64 - 1), "{text}");
        assert_eq!(said, "3:3 `b,\"y,5,1` a quote that is not closed", "{text}");
    }
    // A quote inside a text opens nothing.
    let (ids, ..) = told("id,name,ran_s,gpus\na,5\" disk,5,1\nb,y,5,1\n");
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn rows_of_several_lines_are_doubted() {
    let log = read("id,note,ran_s,gpus\na,\"one\ntwo\",5,1\nb,x,6,1\n");
    assert_eq!(log.doubts[&Doubt::SeveralLines].n, 1);
}

fn sacct(text: &str) -> Reading {
    let options = ReadOptions { zone: Some("+00:00".parse().unwrap()), ..ReadOptions::new(Form::Sacct) };
    let log = read_log_from("sacct.txt", Cursor::new(text.to_owned()), &options).unwrap();
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out, "every row is accounted for");
    log
}

const SACCT: &str = "JobID|Submit|Start|End|State|AllocTRES|SubmitLine\n";
const RAN: &str = "2026-03-01T08:00:00|2026-03-01T08:05:00|2026-03-01T09:05:00|COMPLETED|gres/gpu=1";

#[test]
fn a_row_of_slurms_that_a_text_breaks_is_one_row() {
    let broken = format!("1|{RAN}|sbatch --wrap=echo\n  two\n\nthree\n2|{RAN}|sbatch x\n3|{RAN}|a\nb\n");
    for text in [broken.clone(), broken.replace('\n', "\r\n")] {
        let log = sacct(&format!("{SACCT}{text}"));
        let rows: Vec<(&str, u64)> = log.rows.iter().map(|row| (row.id, row.line)).collect();
        assert_eq!((log.n_read, log.doubts[&Doubt::BrokenLines].n), (3, 2));
        assert_eq!(rows, [("1", 2), ("2", 6), ("3", 7)], "{:?}", log.complaints);
    }
    let name = format!("JobID|SubmitLine|Submit|Start|End|State|AllocTRES\n1|a\nb\nc|{RAN}\n2|x|{RAN}\n");
    let log = sacct(&name);
    assert_eq!((log.n_read, log.rows.len(), log.doubts[&Doubt::BrokenLines].n), (2, 2, 1));
    assert_eq!(log.rows.at(1).line, 5);
    let log = sacct(&format!("JobID|Submit|Start|End|State|AllocTRES|JobName\n1|{RAN}|a\nb\n2|{RAN}|c\n"));
    let names: Vec<Option<&str>> = log.rows.iter().map(|row| row.name).collect();
    assert_eq!((names, log.doubts[&Doubt::BrokenLines].n), (vec![Some("a b"), Some("c")], 1));
}

#[test]
fn a_row_of_slurms_that_is_cut_off_says_what_may_be_wrong() {
    let log = sacct(&format!("{SACCT}1|2026\n2|{RAN}|x\n"));
    assert_eq!((log.n_read, log.rows.len()), (2, 1));
    let said = &log.complaints[0].message;
    assert!(
        said.starts_with("2 columns, expected 7: the line is cut off, or a text holds the end"),
        "{said}"
    );
    assert!(said.contains("ask for no `SubmitLine`; `apportion trace sacct-command`"), "{said}");
}

#[test]
fn an_array_that_waits_stands_for_several_jobs() {
    let waits = "2026-03-01T08:00:00|Unknown|Unknown|PENDING||";
    let each = ["7_[1-800%50]", "8_[3]", "9_[1,5,9...]", "10_4"].map(|id| format!("{id}|{waits}|x\n"));
    let log = sacct(&SACCT.replace('\n', &format!("|Note\n{}", each.concat())));
    assert_eq!(log.rows.len(), 4);
    let tally = &log.doubts[&Doubt::WaitingArray];
    assert_eq!((tally.n, tally.line, tally.id.as_deref()), (2, 2, Some("7_[1-800%50]")));
}
