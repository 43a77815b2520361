#![expect(clippy::float_cmp, reason = "these numbers are exact by construction")]

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::units::Seconds;
use crate::workload::{Arrivals, Native, WorkloadOptions};

const NATIVE: &str = "\
id,job_type,scale_factor,total_steps,arrival,weight,slo,entity
a,A3C,1,1000.5,0,1,,
b,ResNet-50 (batch size 64),2,20000,60.25,5,7200,team-a
\"c, d\",CycleGAN,1,3,60.25,1,,\"the \"\"x\"\" team\"
";

const TEN: &str = "\
A3C\tpython3 main.py\trl\t--max-steps\t1\t1000\t1\t1\t-1.000000\t0\r
LM (batch size 5)\tpython main.py\tlm\t--steps\t0\t2000\t2\t5\t1.200000\t12.5\r
";

const SEVEN: &str = "\
A3C\tcd rl && python3 main.py\t--max-steps\t1\t1000\t0.000000\t1
LM (batch size 5)\tpython main.py\t--steps\t1\t2000\t12.500000\t4
";

fn throughputs() -> std::sync::Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn read(text: &str) -> Result<Trace, SpecError> {
    read_trace(&Source::new("t", text), Some(&throughputs()), TraceOrder::Refuse)
}

fn assert_complaint(text: &str, expected: &str) {
    let error = read(text).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error}\nlacks: {expected}");
}

#[test]
fn our_csv_is_read_in_full() {
    let trace = read(NATIVE).unwrap();
    assert_eq!(trace.form, TraceForm::Native);
    let ids: Vec<&str> = trace.jobs.iter().map(|traced| traced.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c, d"]);
    let jobs = trace.into_jobs();
    assert_eq!(jobs[0].total_steps.get(), 1000.5);
    let expected = Job::new("ResNet-50 (batch size 64)").scale_factor(2).steps(20_000).weight(5.0);
    let expected = expected.arrival(Seconds::new(60.25)).slo(Seconds::new(7200.0)).entity("team-a").name("b");
    assert_eq!(jobs[1], expected);
    assert_eq!(jobs[2].entity.as_deref(), Some("the \"x\" team"));
}

#[test]
fn sizes_are_read_and_written_where_there_are_some() {
    let text = "id,job_type,scale_factor,total_steps,arrival,weight,slo,entity,sizes\n\
                0,LM (batch size 5),2,100,0,1,,,1 2 4\n1,A3C,1,100,0,1,,,\n";
    let trace = read(text).unwrap();
    assert_eq!((&*trace.jobs[0].job.sizes, &*trace.jobs[1].job.sizes), (&[1, 2, 4][..], &[][..]));
    assert_eq!(write_trace(&trace, TraceForm::Native, None).unwrap().text, text);
    let error = write_trace(&trace, TraceForm::Gavel, None).unwrap_err().to_string();
    assert!(error.starts_with("job `0` has sizes, and Gavel's forms have none"), "{error}");
    let mut trace = trace;
    let other = Throughputs::embedded("osdi20").unwrap();
    trace.jobs[0].job.sizes.push(16);
    assert_eq!((trace.retain_known(&other), trace.jobs.len()), (1, 1));
}

#[test]
fn sizes_that_are_none_are_refused_at_their_place() {
    for (sizes, expected) in [
        ("1;2", "t:2:7: sizes `1;2`, expected numbers of workers separated by spaces, such as `1 2 4`"),
        ("2 1", "t:2:7: size 1 comes after 2"),
        ("2 4", "t:2:7: the scale factor 1 is not among the sizes"),
        ("1 2", "t:2:7: `A3C` has no throughputs at scale factor 2, expected one of 1"),
    ] {
        assert_complaint(&format!("job_type,total_steps,sizes\nA3C,9,{sizes}\n"), expected);
    }
}

#[test]
fn columns_of_our_csv_may_be_left_out_and_moved() {
    let trace = read("total_steps,job_type\n\n10,A3C\n20,CycleGAN\n").unwrap();
    assert_eq!(trace.jobs[1].id, "1");
    assert_eq!(trace.into_jobs(), [Job::new("A3C").steps(10), Job::new("CycleGAN").steps(20)]);
}

#[test]
fn gavels_ten_columns_are_read_in_full() {
    let trace = read(TEN).unwrap();
    assert_eq!(trace.form, TraceForm::Gavel);
    let command = trace.jobs[1].command.clone().unwrap();
    assert_eq!((command.working_directory.as_deref(), command.needs_data), (Some("lm"), false));
    let job = trace.into_jobs().remove(1);
    assert_eq!((job.scale_factor, job.weight, job.arrival.get()), (2, 5.0, 12.5));
    let throughputs = throughputs();
    let row = throughputs.find("LM (batch size 5)", 2).unwrap();
    let duration = 2000.0 / throughputs.alone(row, WorkerTypeId::from_index(0));
    assert_eq!(job.slo.unwrap().get(), 1.2 * duration);
}

#[test]
fn gavels_seven_columns_are_read_in_full() {
    let jobs = read(SEVEN).map(Trace::into_jobs).unwrap();
    let second = Job::new("LM (batch size 5)").scale_factor(4).steps(2000).arrival(Seconds::new(12.5));
    assert_eq!(jobs, [Job::new("A3C").steps(1000), second]);
}

#[test]
fn published_traces_are_read_and_survive_both_forms() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/gavel/traces"));
    if !folder.is_dir() {
        eprintln!("skipped: no {}", folder.display());
        return;
    }
    let files = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = files(folder.clone()).chain(files(folder.join("msr-seed0")));
    let traces = traces.filter(|path| path.extension().is_some_and(|extension| extension == "trace"));
    let (mut n_files, mut n_jobs) = (0, 0);
    for path in traces {
        // Some jobs of the Philly traces have more workers than were measured, so types are not checked.
        let unchecked =
            |source: &Source| read_trace(source, None, TraceOrder::Refuse).expect("a published trace");
        let trace = unchecked(&Source::load(&path).unwrap());
        n_files += 1;
        n_jobs += trace.jobs.len();
        for form in [TraceForm::Native, TraceForm::Gavel] {
            let written = write_trace(&trace, form, None).unwrap();
            assert_eq!((written.n_cut_steps, written.n_without_entity), (0, 0));
            let again = unchecked(&Source::new("t", written.text));
            assert_eq!(again.into_jobs(), trace.clone().into_jobs(), "{}", path.display());
        }
    }
    assert_eq!((n_files, n_jobs), (23, 15_551));
}

#[test]
fn generated_jobs_survive_our_csv_and_say_what_gavels_form_cuts() {
    let options =
        WorkloadOptions::continuous(Seconds::new(100.0)).jobs(300).multi_worker(true).multi_priority(true);
    let mut source = Native::try_new(options.slos(true), &throughputs(), 4).unwrap();
    let jobs = std::iter::from_fn(|| source.next_job()).enumerate();
    let jobs = jobs.map(|(id, job)| TracedJob { job, id: id.to_string(), command: None }).collect();
    let mut trace = Trace { form: TraceForm::Native, jobs };
    let again = read(&write_trace(&trace, TraceForm::Native, None).unwrap().text).unwrap();
    let written = write_trace(&trace, TraceForm::Gavel, None).unwrap();
    assert_eq!(written.n_cut_steps, 300);
    assert_eq!(read(&written.text).unwrap().jobs.len(), 300);
    for traced in &mut trace.jobs {
        // Our CSV has no column for the duration: it follows from steps and throughput.
        traced.job.duration = None;
    }
    assert_eq!(again, trace);
}

#[test]
fn what_a_form_cannot_hold_is_refused() {
    let trace = |job: Job| Trace {
        form: TraceForm::Native,
        jobs: vec![TracedJob { job, id: "x".to_owned(), command: None }],
    };
    let write = |job, form| write_trace(&trace(job), form, None).unwrap_err();
    let job = Job::new("A3C").steps(5);
    let slo = job.clone().slo(Seconds::new(9.0));
    assert!(matches!(write(slo.clone(), TraceForm::Gavel), WriteTraceError::NoDuration { .. }));
    assert!(write_trace(&trace(slo), TraceForm::Gavel, Some(&throughputs())).is_ok());
    assert!(matches!(write(Job::new("a\tb").steps(5), TraceForm::Gavel), WriteTraceError::Separator { .. }));
    assert!(matches!(
        write(job.clone().entity("a\nb"), TraceForm::Native),
        WriteTraceError::Separator { .. }
    ));
    let short = job.clone().total_steps(crate::units::Steps::new(0.5));
    assert!(matches!(write(short, TraceForm::Gavel), WriteTraceError::NoWholeStep { .. }));
    assert!(matches!(write(job, TraceForm::GavelSeven), WriteTraceError::Seven));
}

#[test]
fn bad_csv_is_refused_with_its_place() {
    let broken = |from: &str, to: &str| NATIVE.replacen(from, to, 1);
    assert_complaint("", "t:1:1: the trace is empty");
    assert_complaint(" \n\n", "the trace is empty");
    assert_complaint(
        "id;job_type;total_steps\n1;A3C;5\n",
        "t:1:1: columns are separated by `;`, expected `,`",
    );
    assert_complaint("sep=,\nid,job_type\n", "t:1:1: a line that tells Excel the separator");
    assert_complaint(&broken("weight", "wait"), "t:1:46: unknown column `wait`");
    assert_complaint(&broken("slo", "weight"), "t:1:53: column `weight` is there twice");
    assert_complaint("id,job_type\n1,A3C\n", "t:1:1: no column `total_steps`");
    assert_complaint(&broken("a,A3C", "b,A3C"), "t:3:1: job `b` is on line 2 already");
    assert_complaint(&broken(",0,1,,", ",90,1,,"), "t:3:37: arrival 60.25 comes after 90");
    assert_complaint(
        &broken("1000.5", "NaN"),
        "t:2:9: total_steps `NaN`, expected a number from 1e-100 to 1e15",
    );
    assert_complaint(&broken("1000.5", "1e300"), "t:2:9: total_steps `1e300`");
    assert_complaint(&broken("1000.5", "0"), "t:2:9: total_steps `0`");
    assert_complaint(&broken("1000.5", ""), "t:2:1: no total_steps");
    assert_complaint(&broken(",60.25,5,7200", ",-1,5,7200"), "arrival `-1`, expected a number from 0");
    assert_complaint(&broken("60.25,5", "60.25,0"), "weight `0`");
    assert_complaint(&broken(",2,20000", ",2.5,20000"), "scale factor `2.5`, expected a whole number");
    assert_complaint(
        &broken(",2,20000", ",3,20000"),
        "no throughputs at scale factor 3, expected one of 1, 2, 4, 8",
    );
    assert_complaint(&broken("team-a", "team-a,oops"), "9 columns, expected 8");
    assert_complaint(&broken(" team\"\n", " team\n"), "a quote that is not closed");
    assert_complaint(&broken("d\",", "d\"e,"), "t:4:7: text after a closing quote");
    assert_complaint(&broken("A3C", "A\u{1}C"), "control characters");
    let error = read(&broken("A3C", "A3D")).unwrap_err();
    assert_eq!(error.diagnostics[0].message, "unknown job type `A3D`, expected one of throughputs `osdi20`");
    assert_eq!(error.diagnostics[0].help.as_deref(), Some("did you mean `A3C`?"));
    assert_eq!(
        (error.diagnostics[0].line, error.diagnostics[0].column, error.diagnostics[0].width),
        (2, 3, 3)
    );
}

#[test]
fn bad_tab_separated_traces_are_refused_with_their_place() {
    let broken = |from: &str, to: &str| TEN.replacen(from, to, 1);
    assert_complaint(&broken("\t1000\t", "\t"), "9 tab-separated columns, expected 10, or 7");
    assert_complaint(&broken("1000", "many"), "t:1:38: total steps `many`");
    assert_complaint(&broken("\t12.5", "\tnan"), "arrival `nan`");
    assert_complaint(&broken("1.200000", "soon"), "SLO `soon`");
    assert_complaint(&broken("1.200000", "0"), "t:2:56: an SLO of 0 s");
    assert_complaint(&broken("1.200000", "1e15"), "t:2:56: an SLO of");
    assert_complaint(&SEVEN[..SEVEN.len() - 12], "t:2:");
    let alone = read_trace(&Source::new("t", TEN), None, TraceOrder::Refuse).unwrap_err();
    assert!(alone.to_string().contains("t:2:"), "{alone}");
    assert!(read_trace(&Source::new("t", SEVEN), None, TraceOrder::Refuse).is_ok());
}

#[test]
fn a_trace_out_of_order_can_be_sorted() {
    let text = "job_type,total_steps,arrival\nA3C,1,9\nA3C,2,3\nA3C,3,9\n";
    let trace = read_trace(&Source::new("t", text), None, TraceOrder::Sort).unwrap();
    let order: Vec<&str> = trace.jobs.iter().map(|traced| traced.id.as_str()).collect();
    assert_eq!(order, ["1", "0", "2"]);
}

#[test]
fn a_file_of_another_kind_has_few_complaints() {
    let text = "x\t".repeat(8) + "\n";
    let error = read(&text.repeat(10_000)).unwrap_err();
    assert_eq!(error.diagnostics.len(), 1);
    assert!(error.to_string().contains("(9999 more like it, the last on line 10000)"), "{error}");
    let lines = (0..100).map(|at| format!("A3C,x{at},0\n")).collect::<Vec<_>>().concat();
    let error = read(&format!("job_type,total_steps,arrival\n{lines}")).unwrap_err();
    assert_eq!((error.diagnostics.len(), error.n_more), (LISTED_MAX, 100 - LISTED_MAX));
    assert!(error.to_string().ends_with("\nand 80 more"), "{error}");
}

#[test]
fn what_is_wrong_alike_is_said_once() {
    let unknown = (0..30).map(|at| format!("A3D,1,{at}\n")).collect::<Vec<_>>().concat();
    let error = read(&format!("job_type,total_steps,arrival\n{unknown}")).unwrap_err();
    assert_eq!((error.diagnostics.len(), error.diagnostics[0].line), (1, 2));
    assert!(error.to_string().contains("(29 more like it, the last on line 31)"), "{error}");
    let falling = (0..30).map(|at| format!("A3C,1,{}\n", 90 - at)).collect::<Vec<_>>().concat();
    let error = read(&format!("job_type,total_steps,arrival\n{falling}")).unwrap_err();
    assert!(error.diagnostics.len() == 1 && error.to_string().contains("28 more like it"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn no_fields_make_the_reader_panic(fields in prop::collection::vec("[0-9eE+.,\"-]{0,6}|A3C|nan|inf", 30)) {
        let _ = read(&fields.chunks(10).map(|line| line.join("\t")).collect::<Vec<_>>().join("\n"));
        let lines = fields.chunks(8).map(|line| line.join(","));
        let _ = read(&std::iter::once(native::COLUMNS.join(",")).chain(lines).collect::<Vec<_>>().join("\n"));
    }

    /// Some bytes of good traces are replaced, dropped or doubled.
    #[test]
    fn no_damage_makes_the_reader_panic(
        which in 0..3_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..8),
    ) {
        let mut bytes = [NATIVE, TEN, SEVEN][which].as_bytes().to_vec();
        for (place, byte, kind) in edits {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        if let Ok(trace) = read(&String::from_utf8_lossy(&bytes)) {
            for form in [TraceForm::Native, TraceForm::Gavel] {
                if let Ok(written) = write_trace(&trace, form, Some(&throughputs())) {
                    prop_assert!(read(&written.text).is_ok(), "{}", written.text);
                }
            }
        }
    }

    #[test]
    fn quoting_survives_any_name(name in "[a-z,\" ]{1,12}[a-z]") {
        let job = Job::new(name.trim()).steps(3);
        let jobs = vec![TracedJob { job, id: "x".to_owned(), command: None }];
        let written = write_trace(&Trace { form: TraceForm::Native, jobs }, TraceForm::Native, None).unwrap();
        let again = read_trace(&Source::new("t", written.text), None, TraceOrder::Refuse).unwrap();
        prop_assert_eq!(&again.jobs[0].job.job_type, name.trim());
    }
}

#[test]
fn numbers_too_small_to_be_honoured_are_refused() {
    for tiny in ["1e-300", "1e-400", "5e-324"] {
        let error = read(&format!("job_type,total_steps,arrival\nA3C,1,{tiny}\n")).unwrap_err();
        let said = format!("t:2:7: arrival `{tiny}` is too small, expected a number from 0 to 1e15; write 0");
        assert!(error.to_string().starts_with(&said), "{error}");
    }
    assert!(read("job_type,total_steps,arrival\nA3C,1,0e-400\n").is_ok());
}
