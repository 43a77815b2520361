use super::logs::PAI_COLUMNS;
use super::*;
use crate::spec::trace::{TraceOrder, read_trace, write_trace};

/// Philly: one job of two attempts on 8 and then 3 accelerators, one still running, one never started.
const PHILLY: &str = r#"[
  {"status": "Pass", "vc": "ee9e8c", "jobid": "a", "user": "u", "submitted_time": "2017-10-07 01:11:39", "attempts": [
    {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:09",
     "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
    {"start_time": "2017-10-07 23:59:00", "end_time": "2017-10-08 00:59:00",
     "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2"]}]}]},
  {"status": "Pass", "vc": "b", "jobid": "b", "user": "u", "submitted_time": "2017-10-07 00:11:39", "attempts": [
    {"start_time": "2017-10-07 00:12:00", "end_time": "2017-10-07 00:13:00",
     "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"status": "Killed", "vc": "b", "jobid": "c", "user": "u", "submitted_time": "2017-10-07 00:11:39", "attempts": [
    {"start_time": "2017-10-07 00:12:00", "end_time": null, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"status": "Failed", "vc": "b", "jobid": "d", "user": "u", "submitted_time": "2017-10-07 00:11:39", "attempts": []}
]"#;

/// PAI's tasks: two of one job, half an accelerator each; 40 accelerators; and a job without any.
const PAI: &str = "\
j1,worker,2.0,Terminated,1000.0,1900.0,400.0,10.0,50.0,MISC
j1,ps,1.0,Terminated,900.0,1800.0,600.0,10.0,,
j1,evaluator,1.0,Terminated,1000.0,1600.0,400.0,10.0,50.0,MISC
j2,worker,5.0,Failed,500.0,600.0,400.0,10.0,800.0,V100
j3,ps,1.0,Terminated,900.0,1800.0,600.0,10.0,,
";

const HELIOS: &str = "\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1425513,uVMrF,vchbv,0,16,1,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
";

fn import(text: &str, origin: LogOrigin, seed: u64) -> Result<Imported, SpecError> {
    import_or(NotUnderstood::Refuse, text, origin, seed)
}

fn import_or(policy: NotUnderstood, text: &str, origin: LogOrigin, seed: u64) -> Result<Imported, SpecError> {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    import_log(&Source::new("log", text), origin, &throughputs, (seed, policy))
}

/// Name, arrival, duration, scale factor and owner.
fn brief(imported: &Imported) -> Vec<(&str, f64, f64, u32, Option<&str>)> {
    let brief = |traced: &'_ TracedJob| (traced.job.arrival.get(), traced.job.duration.unwrap().get());
    let jobs = imported.trace.jobs.iter();
    jobs.map(|traced| {
        let (arrival, duration) = brief(traced);
        (traced.id.as_str(), arrival, duration, traced.job.scale_factor, traced.job.entity.as_deref())
    })
    .collect()
}

#[test]
fn a_philly_log_is_read() {
    let imported = import(PHILLY, LogOrigin::Philly, 0).unwrap();
    let expected = [("b", 0.0, 60.0, 1, Some("b")), ("a", 3600.0, 3660.0, 4, Some("ee9e8c"))];
    assert_eq!(brief(&imported), expected);
    assert_eq!((imported.n_left_out, imported.n_cut), (2, 0));
}

#[test]
fn a_pai_log_is_read_with_and_without_its_header() {
    let imported = import(PAI, LogOrigin::Pai, 0).unwrap();
    // 2 × 50 % + 1 × 50 % is 1.5, so 2; from the first start of a task with accelerators to the last end.
    assert_eq!(brief(&imported), [("j2", 0.0, 100.0, 8, None), ("j1", 500.0, 900.0, 2, None)]);
    assert_eq!((imported.n_left_out, imported.n_cut), (1, 1));
    let headed = format!("{}\n{PAI}", PAI_COLUMNS.join(","));
    assert_eq!(import(&headed, LogOrigin::Pai, 0).unwrap(), imported);
}

#[test]
fn a_helios_log_is_read() {
    let imported = import(HELIOS, LogOrigin::Helios, 0).unwrap();
    let expected = [("1425511", 0.0, 36848.0, 1, Some("vcJkd")), ("1425512", 26.0, 249.0, 4, Some("vchbv"))];
    assert_eq!(brief(&imported), expected);
    assert_eq!(imported.n_left_out, 1);
}

#[test]
fn job_types_are_drawn_by_seed_and_steps_follow_from_durations() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let mut text = HELIOS.lines().next().unwrap().to_owned();
    for n in 0..200 {
        let n_workers = (1 + n % 8).to_string();
        text += &["\n", &n.to_string(), ",u,v,", &n_workers, ",1,1,X,2020-06-09 18:41:01,,,100,0"].concat();
    }
    let imported = import(&text, LogOrigin::Helios, 0).unwrap();
    assert_eq!(imported, import(&text, LogOrigin::Helios, 0).unwrap());
    assert_ne!(imported, import(&text, LogOrigin::Helios, 1).unwrap());
    let mut types: Vec<&str> = Vec::new();
    for TracedJob { job, .. } in &imported.trace.jobs {
        let row = throughputs.find(&job.job_type, job.scale_factor).unwrap();
        let speed = throughputs.alone(row, crate::index::WorkerTypeId::from_index(0));
        assert!((job.total_steps.get() - 100.0 * speed).abs() < 1e-9 * job.total_steps.get());
        types.push(&job.job_type);
    }
    types.sort_unstable();
    types.dedup();
    assert!(types.len() > 10, "{types:?}");
}

#[test]
fn what_is_no_log_is_refused_with_its_place() {
    let said = |text: &str, origin| {
        let error = import(text, origin, 0).unwrap_err();
        let only = &error.diagnostics[0];
        format!("{}:{}: {}", only.line, only.column, only.message)
    };
    assert!(said("[{\"jobid\": 3}]", LogOrigin::Philly).starts_with("1:12: invalid type"));
    assert_eq!(said("a,b\n1,2\n", LogOrigin::Helios), "1:1: no column `job_id`");
    assert_eq!(said("j1,worker,2.0\n", LogOrigin::Pai), "1:1: 3 columns, expected at least 9");
}

#[test]
fn dates_are_understood_in_common_forms_and_a_time_of_0_is_one() {
    let slashes = HELIOS
        .replace("2020-06-09 18:41:01", "2020/6/9 18:41")
        .replace("2020-06-09 18:41:27", "2020/6/9 18:42");
    let imported = import(&slashes, LogOrigin::Helios, 0).unwrap();
    assert_eq!(brief(&imported)[1], ("1425512", 60.0, 249.0, 4, Some("vchbv")));
    let iso = PHILLY.replace("2017-10-07 ", "2017-10-07T").replace("2017-10-08 ", "2017-10-08T");
    assert_eq!(
        brief(&import(&iso, LogOrigin::Philly, 0).unwrap()),
        brief(&import(PHILLY, LogOrigin::Philly, 0).unwrap())
    );
    let from_0 = "j1,worker,1.0,Terminated,0.0,100.0,400.0,10.0,100.0,V100\n";
    assert_eq!(brief(&import(from_0, LogOrigin::Pai, 0).unwrap()), [("j1", 0.0, 100.0, 1, None)]);
}

#[test]
fn what_is_there_and_not_understood_is_refused_or_left_out_and_counted() {
    let philly = |from: &str, to: &str| PHILLY.replace(from, to);
    let pai = |from: &str, to: &str| PAI.replace(from, to);
    let helios = |from: &str, to: &str| HELIOS.replace(from, to);
    let cases = [
        (
            LogOrigin::Philly,
            philly("\"2017-10-07 01:11:39", "\"yesterday"),
            "2:83: submitted_time is `yesterday`, expected a date",
        ),
        (
            LogOrigin::Philly,
            philly("2017-10-08 00:59", "2017-10-32 00:59"),
            "5:55: end_time is `2017-10-32 00:59:00`",
        ),
        (
            LogOrigin::Philly,
            philly("\"jobid\": \"b\"", "\"jobid\": \"a\""),
            "7:42: job `a` is that of entry 1 already",
        ),
        (LogOrigin::Philly, philly("\"jobid\": \"b\"", "\"jobid\": \" \""), "7:42: a job without a name"),
        (
            LogOrigin::Pai,
            pai("900.0,1800.0,600.0,10.0,,", "x,1800.0,600.0,10.0,,"),
            "2:22: start_time is `x`, expected a number",
        ),
        (LogOrigin::Pai, pai("10.0,800.0", "10.0,-800.0"), "4:45: plan_gpu is `-800.0`"),
        (
            LogOrigin::Helios,
            helios("vchbv,4,", "vchbv,4.5,"),
            "3:21: gpu_num is `4.5`, expected a whole number",
        ),
        (LogOrigin::Helios, helios(",249,0\n1425513", ",4 min,0\n1425513"), "3:95: duration is `4 min`"),
        (LogOrigin::Helios, helios("1425512", "1425511"), "3:1: job `1425511` is that of line 2 already"),
    ];
    for (origin, text, expected) in cases {
        let error = import(&text, origin, 0).expect_err(expected).to_string();
        assert!(error.contains(" jobs of the log are not understood"), "{error}");
        assert!(error.contains(&format!("log:{expected}")), "{error}\nlacks {expected}");
        let left = import_or(NotUnderstood::LeaveOut, &text, origin, 0).unwrap();
        assert!(left.n_not_understood >= 1, "{expected}");
        assert!(left.complaints[0].to_string().contains(expected), "{:?}", left.complaints);
    }
}

#[test]
fn an_imported_trace_is_read_back() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let quoted = HELIOS.replace("1425511,uXBbc,vcJkd", "\"a, \"\"b\"\"\",uXBbc,\"v,c\"");
    for (origin, text) in [
        (LogOrigin::Philly, PHILLY),
        (LogOrigin::Pai, PAI),
        (LogOrigin::Helios, HELIOS),
        (LogOrigin::Helios, &quoted),
    ] {
        let imported = import(text, origin, 0).unwrap();
        let written = write_trace(&imported.trace, TraceForm::Native, None).unwrap().text;
        let read = read_trace(&Source::new("t", written), Some(&throughputs), TraceOrder::Refuse).unwrap();
        let ids = |trace: &Trace| trace.jobs.iter().map(|traced| traced.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&read), ids(&imported.trace));
    }
    let endless = HELIOS.replace(",249,", ",1e15,");
    assert!(import(&endless, LogOrigin::Helios, 0).unwrap_err().to_string().contains("which no trace holds"));
}
