//! Files that are not of the requested form, cut off, or of a form that cannot be trusted.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;

use apportion_logs::read::read_log_from;
use apportion_logs::{Doubt, Form, ReadOptions, read_log};

use super::fixtures::fixture;

/// Message and help of the refusal.
fn said(file: &str, form: Form) -> String {
    let path = fixture(file).display().to_string();
    let error = read_log(&path, &ReadOptions::new(form)).expect_err(file);
    let only = &error.diagnostics[0];
    assert_eq!(only.source, path);
    format!("{}:{}: {}; {}", only.line, only.column, only.message, only.help.clone().unwrap_or_default())
}

#[test]
fn what_is_no_log_is_refused_with_its_place_and_what_is_expected() {
    for (file, form, expected) in [
        ("helios/no_gpu_num.csv", Form::Helios, "1:1: no column `gpu_num`"),
        ("helios/twice.csv", Form::Helios, "1:1: two columns `gpu_num`"),
        ("philly/truncated.json", Form::Philly, "the document ends inside its list: it is cut off"),
        ("sacct/no_header.txt", Form::Sacct, "sacct-command` prints the call"),
        ("sacct/fixed_width.txt", Form::Sacct, "sacct-command` prints the call"),
        ("kueue/single.json", Form::Kueue, "no JSON list of entries"),
        ("helios/cluster_log.csv", Form::Philly, "1:1: no JSON list of entries"),
        ("helios/cluster_log.csv", Form::Openb, "its columns are those of the form `helios`"),
        ("acme/trace_seren.csv", Form::SpotGpu, "its columns are those of the form `acme`"),
        (
            "acme/trace_seren.csv",
            Form::Helios,
            "1:1: a log of the form `acme`, expected one of the form `helios`; its columns are those of the form `acme`; name the form",
        ),
        ("refused/supercloud-slurm-log.csv", Form::Sacct, "of the form `supercloud`, which is not read"),
        ("refused/asi_opensource_pod_hourly.csv", Form::Openb, "of the form `gpu-2026`, which is not read"),
        ("refused/disaggregated_DLRM_trace.csv", Form::Dlrm, "`--force` reads it all the same"),
        ("refused/supercloud-slurm-log.csv", Form::SuperCloud, "no reader that could be trusted"),
    ] {
        let said = said(file, form);
        assert!(said.contains(expected), "{file} as {form:?}: {said}\nlacks {expected}");
    }
}

#[test]
fn a_table_of_pai_in_place_of_another_is_refused_by_its_name() {
    let read = |log: &str, table: &str| {
        let job_table = Some(fixture(table).display().to_string());
        read_log(
            &fixture(log).display().to_string(),
            &ReadOptions { job_table, ..ReadOptions::new(Form::Pai) },
        )
        .map_err(|error| format!("{error:?}"))
    };
    let (tasks, jobs) = ("pai/pai_task_table.csv", "pai/pai_job_table.csv");
    assert!(read(tasks, jobs).is_ok());
    let said = read(tasks, "pai/task_with_header_on_top.csv").unwrap_err();
    assert!(said.contains("pai/task_with_header_on_top.csv"), "{said}");
    assert!(
        said.contains("those of PAI's `pai_task_table.csv`, expected those of `pai_job_table.csv`"),
        "{said}"
    );
    let said = read(tasks, tasks).unwrap_err();
    assert!(said.contains("10 columns, expected 6 as in job_name, inst_id"), "{said}");
    assert!(said.contains("and `pai_task_table.csv` 10"), "{said}");
    for (header, expected) in [
        ("job_name,inst_id,user,status,start_time,end_time", "those of PAI's `pai_job_table.csv`"),
        ("job_name,task_name,inst_name,start_time", "those of PAI's `pai_instance_table.csv`"),
        ("inst_id,user,gpu_type_spec,group,workload,mine", "those of PAI's `pai_group_tag_table.csv`"),
        (
            "job_id,user,node_num,gpu_num,type,state,submit_time,start_time,end_time",
            "those of the form `acme`",
        ),
    ] {
        let said = said_of(Cursor::new(format!("{header}\n")), Form::Pai);
        assert!(said.contains(expected), "{header}: {said}");
    }
}

#[test]
fn a_first_line_that_could_be_of_either_form_is_of_the_one_that_is_named() {
    let both =
        "job_id,vc,type,gpu_num,submit_time,start_time,end_time\n1,a,b,1,1700000000,1700000010,1700000070\n";
    for form in [Form::Helios, Form::Acme] {
        let log = read_log_from("log", both.as_bytes(), &ReadOptions::new(form)).unwrap();
        assert_eq!(log.rows.len(), 1, "{form:?}");
    }
    // The columns that identify Acme, and those that Helios needs.
    let acme = both.replace(",vc", "").replace(",a,", ",");
    assert!(said_of(Cursor::new(acme), Form::Helios).contains("expected one of the form `helios`"));
}

#[test]
fn entries_of_another_kind_are_no_workloads() {
    let path = fixture("kueue/pods.json").display().to_string();
    let log = read_log(&path, &ReadOptions::new(Form::Kueue)).unwrap();
    assert!(log.rows.is_empty() && log.n_not_understood() > 0);
    assert!(log.complaints[0].message.contains("expected a Workload"), "{:?}", log.complaints);
}

#[test]
fn services_are_read_where_they_are_asked_for() {
    let path = fixture("refused/disaggregated_DLRM_trace.csv").display().to_string();
    let log = read_log(&path, &ReadOptions { force: true, ..ReadOptions::new(Form::Dlrm) }).unwrap();
    assert_eq!(log.n_not_understood(), 0, "{:?}", log.complaints);
}

/// Message and help of the refusal of a text.
fn said_of(text: impl Read + 'static, form: Form) -> String {
    let error = read_log_from("log", text, &ReadOptions::new(form)).expect_err("refused");
    format!("{error}; {}", error.diagnostics[0].help.clone().unwrap_or_default())
}

#[test]
fn documents_that_go_on_after_their_list_or_have_two_are_refused() {
    let pod = r#"{"kind":"Pod"}"#;
    for (text, expected) in [
        (format!("{{\"items\":[{pod}]}}\n\n  more"), "log:3:3: trailing characters"),
        (format!("{{\"items\":[{pod},\n{pod}],\"items\":[{pod}]}}"), "log:2:23: duplicate field `items`"),
        (format!("{{\"items\":[{pod}]"), "EOF while parsing"),
        (format!("{{\"items\":[{pod},]}}"), "log:1:26: a comma that no entry stands after"),
        (format!("{{\"items\":[,{pod}]}}"), "log:1:11: a comma that no entry stands before"),
        (format!("{{\"items\":[{pod}}}]}}"), "log:1:25: a brace that closes a list"),
        (format!("no {{\"items\":[{pod}]}}"), "log:1:2: expected ident"),
    ] {
        let said = said_of(Cursor::new(text.clone()), Form::Kueue);
        assert!(said.contains(expected), "{text}: {said}\nlacks {expected}");
    }
    assert!(said_of("[] []".as_bytes(), Form::Philly).contains("log:1:4: trailing characters"));
}

#[test]
fn a_list_that_is_a_part_of_a_longer_one_is_doubtful() {
    for (rest, is_part) in [("", false), ("abc", true)] {
        let text = format!(r#"{{"items":[], "metadata": {{"continue": "{rest}"}}}}"#);
        let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Kueue)).unwrap();
        assert_eq!(log.doubts.contains_key(&Doubt::PartOfList), is_part, "{rest}");
    }
}

#[test]
fn a_document_without_an_end_is_refused_with_the_limit() {
    for (byte, form, expected) in [
        (0, Form::Kueue, "more than 1 MiB before a list of entries"),
        (b' ', Form::Philly, "more than 1 MiB before a list of entries"),
    ] {
        let said = said_of(io::repeat(byte), form);
        assert!(said.contains(expected), "{said}");
    }
    let said = said_of("[".as_bytes().chain(io::repeat(b'\n')), Form::Philly);
    assert!(said.contains("more than 1 MiB without an entry"), "{said}");
    let said = said_of("[[] ".as_bytes().chain(io::repeat(b'1')), Form::Philly);
    assert!(said.contains("an entry that is longer than 64 MiB"), "{said}");
}

#[test]
fn a_header_with_an_open_quote_is_refused_with_its_place() {
    let said = said_of("job_id,\"gpu_num,submit_time\n1,1,1\n".as_bytes(), Form::Helios);
    assert_eq!(said, "log:1:8: a quote that is not closed; the first line names the columns");
}

#[test]
fn a_first_line_of_another_separator_or_case_is_told_so() {
    for (text, form, expected) in [
        ("job_id;gpu_num;submit_time\n", Form::Helios, "columns are separated by `;`, expected `,`"),
        ("job_id\tgpu_num\tsubmit_time\n", Form::Helios, "columns are separated by tabs, expected `,`"),
        ("job_id,GPU_num,submit_time\n", Form::Helios, "no column `gpu_num`; there is `GPU_num`"),
    ] {
        let said = said_of(text.as_bytes(), form);
        assert!(said.contains(expected), "{said}");
    }
    let folder = env!("CARGO_MANIFEST_DIR");
    let said = read_log(folder, &ReadOptions::new(Form::Helios)).expect_err("refused").to_string();
    assert!(said.contains("it is a folder, no log"), "{said}");
}

#[test]
fn a_name_that_is_a_number_is_told_to_be_no_text() {
    let text = r#"[{"jobid": 17, "attempts": []}]"#;
    let log = read_log_from("log", text.as_bytes(), &ReadOptions::new(Form::Philly)).unwrap();
    let expected = "jobid is `17`, expected a name without control characters, as text in quotes";
    assert_eq!(log.complaints[0].message, expected);
}

#[test]
fn long_texts_of_a_log_are_cut_where_they_are_shown() {
    let long = "x".repeat(1_000_000);
    let sacct = "JobID|Submit|Start|End|State|AllocTRES";
    for (text, form) in [
        (format!("{sacct}\n1|||||{long}\n"), Form::Sacct),
        (format!("{sacct}\n1||||{long}|\n"), Form::Sacct),
        (format!("{sacct}\n{long}+a|||||\n"), Form::Sacct),
        (format!("{sacct}|{long}|{long}\n"), Form::Sacct),
        (format!("job_id,gpu_num,submit_time,state\n1,1,2020-01-01 00:00,{long}\n"), Form::Helios),
        (format!("id,ran_s,gpus,state\n1,1,1,{long}\n"), Form::Log),
        (format!("id,ran_s,gpus,{long}\n{long},1,1,1\n{long},1,1,1\n"), Form::Log),
        (format!("{{\"items\":[{{\"kind\":\"{long}\"}}]}}"), Form::Kueue),
    ] {
        let told = match read_log_from("log", Cursor::new(text), &ReadOptions::new(form)) {
            Ok(log) => format!("{:?} {:?} {:?}", log.complaints, log.left_out, log.unused_columns),
            Err(error) => error.to_string(),
        };
        assert!(told.contains('…') && told.len() < 2_000, "{form:?}: {}", &told[..told.len().min(3_000)]);
    }
}

#[test]
fn packed_and_strange_texts_are_refused_with_what_unpacks_them() {
    for (bytes, expected) in [
        (&b"BZh91AY&SY\x9a"[..], "it is compressed by bzip2: `bunzip2 -k FILE` unpacks it"),
        (b"\xfd7zXZ\0\0\x04", "it is compressed by xz: `unxz -k FILE` unpacks it"),
        (b"\x28\xb5\x2f\xfd\x04", "it is compressed by zstd: `unzstd FILE` unpacks it"),
        (b"PK\x03\x04\x14", "it is a zip archive: `unzip FILE` unpacks it"),
        (b"\xff\xfei\0d\0", "`iconv -f UTF-16 -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"\xff\xfe\0\0i\0\0\0", "`iconv -f UTF-32 -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"\0\0\xfe\xff\0\0\0i", "`iconv -f UTF-32 -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"i\0d\0,\0g\0", "`iconv -f UTF-16LE -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"\0i\0d\0,\0g", "`iconv -f UTF-16BE -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"id,name,ran_s,gpus\na,M\xfcller,1,1\n", "`iconv -f WINDOWS-1252 -t UTF-8 OLD >NEW` makes UTF-8"),
        (b"id;name;ran_s;gpus\na;x;1;1\n", "columns are separated by `;`, expected `,`; save the table with"),
        (b"sep=;\nid;name;ran_s;gpus\n", "`sep=` is a line for Excel: leave it out"),
    ] {
        for form in [Form::Log, Form::Philly] {
            let is_csv = bytes.starts_with(b"id") || bytes.starts_with(b"sep");
            if is_csv && form == Form::Philly {
                continue;
            }
            let error =
                read_log_from("log", Cursor::new(bytes.to_vec()), &ReadOptions::new(form)).unwrap_err();
            let only = &error.diagnostics[0];
            let said = format!("{}; {}", only.message, only.help.clone().unwrap_or_default());
            assert!(said.contains(expected), "{said}");
        }
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_no_text_is_named_with_what_makes_text_of_it() {
    let tar = [&b"cluster_log.csv"[..], &[0; 242], b"ustar\0", &[0; 200]].concat();
    let spreadsheet = [&b"PK\x03\x04"[..], &[0; 26], b"[Content_Types].xml"].concat();
    let text = b"id,ran_s,gpus\na,60,1\n";
    for (bytes, expected) in [
        (packed(&packed(text)), "gzip within gzip; it is packed twice"),
        (packed(&tar), "`tar -xf FILE`"),
        (tar, "`tar -xf FILE`"),
        (b"PAR1\x15\x04".to_vec(), "it is Parquet"),
        (spreadsheet, "a spreadsheet, as .xlsx: save it as CSV"),
        (b"PK\x03\x04".to_vec(), "`unzip FILE`"),
        (b"id,ran_s,gpus\ra,60,1\rb,60,1\r".to_vec(), "carriage returns alone; `tr '\\r' '\\n'"),
        ([packed(text), b"more".to_vec()].concat(), "`gzip -dc FILE >NEW` unpacks what is before them"),
    ] {
        let said = said_of(Cursor::new(bytes), Form::Log);
        assert!(said.contains(expected), "{said}\nlacks {expected}");
    }
    let said = said_of(Cursor::new("{\"jobs\": [\n  {\"job_id\": 7}\n]}\n"), Form::Sacct);
    assert!(said.contains("`sacct --json`") && said.contains("sacct-command"), "{said}");
    let padded = [packed(text), vec![0; 9000]].concat();
    let log = read_log_from("log", Cursor::new(padded), &ReadOptions::new(Form::Log)).unwrap();
    assert_eq!(log.rows.len(), 1, "zeros behind gzip are no part of it");
}

/// Endless rows that raise a flag after a while.
struct Raising {
    flag: Arc<AtomicBool>,
    n_read: usize,
}

impl Read for Raising {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.n_read += 1;
        if self.n_read == 1 {
            return (&b"id,ran_s,gpus\n"[..]).read(into);
        }
        self.flag.store(self.n_read > 3, Ordering::SeqCst);
        assert!(self.n_read < 10, "it reads on");
        // Blank lines fill the bytes from which the kind of log is recognized.
        format!("{},60,1{}", self.n_read, "\n".repeat(600)).as_bytes().read(into)
    }
}

#[test]
fn reading_ends_between_two_rows_once_it_is_to() {
    let flag = Arc::new(AtomicBool::new(false));
    let options = ReadOptions { stop: Some(Arc::clone(&flag)), ..ReadOptions::new(Form::Log) };
    let error = read_log_from("log", Raising { flag, n_read: 0 }, &options).unwrap_err();
    assert_eq!(error.to_string(), "log: reading was stopped");
}
