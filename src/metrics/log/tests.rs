use super::*;
use crate::simulator::Event;
use crate::simulator::Unobserved;
use crate::workload::Job;

#[test]
fn what_is_no_log_is_refused() {
    assert_eq!(header("{\"event\":\"idle\"}"), Err(LogError::Headless));
    assert_eq!(header("nothing"), Err(LogError::Headless));
    let found = "apportion/events-v9".to_owned();
    assert_eq!(header("{\"format\":\"apportion/events-v9\"}"), Err(LogError::Format { found }));
    let cluster: Cluster = "a=2".parse().unwrap();
    let header = Header::new("", &cluster, &RunSpec::default(), &BTreeMap::new());
    let start = || Replay { line: 6, ..Replay::new(&header) };
    let tell = |line: &str| start().tell(line, &mut Unobserved).map_err(|error| error.to_string());
    assert_eq!(tell("{\"event\":\"worker_down\",\"at\":1.0,\"worker\":1}"), Ok(()));
    let beyond = tell("{\"event\":\"worker_down\",\"at\":1.0,\"worker\":2}").unwrap_err();
    assert_eq!(beyond, "line 7 is not an event: the cluster has no worker number 2");
    assert!(tell("{\"event\":\"idle\",\"from\":1.0").unwrap_err().starts_with("line 7 is not an event: EOF"));
    let round = "{\"event\":\"round_started\",\"now\":0.0,\"round\":3,\"n_active\":1,\"n_leases\":1}";
    let gap = "line 7 is of round 3, expected round 0: events are missing before it";
    assert_eq!(tell(round).unwrap_err(), gap);
    assert!(tell("{\"event\":\"rest\"}").unwrap_err().contains("unknown variant `rest`"));
    let price = |kind: &str| {
        tell(&format!("{{\"event\":\"price_change\",\"at\":1.0,\"worker_type\":{kind},\"price\":2.0}}"))
    };
    assert_eq!((price("0"), price("\"a\"")), (Ok(()), Ok(())));
    assert!(price("1").unwrap_err().ends_with("the cluster has no worker type number 1"));
    assert!(price("\"b\"").unwrap_err().ends_with("the cluster has no worker type `b`"));
}

/// The events that are told, in words.
#[derive(Debug, Default)]
struct Whole(Vec<String>);

impl Observer for Whole {
    fn observe(&mut self, event: &Event<'_>) {
        self.0.push(format!("{event:?}"));
    }
}

#[test]
fn worker_types_are_written_by_name_and_read_by_number_too() {
    let cluster: Cluster = "a=2,b=1".parse().unwrap();
    let header = Header::new("", &cluster, &RunSpec::default(), &BTreeMap::new());
    let slice = "\"incarnations\":[1,null],\"worker_type\":1,\"n_workers\":1,\"start\":0.0,\"end\":5.0,\"time\":5.0,\
                 \"overhead\":0.0,\"price\":null,\"steps\":[1.0,0.0],\"throughput\":[1.0,0.0],\"succeeded\":true}";
    let jobs = "\"jobs\":{\"first\":0,\"second\":null}";
    // As a program wrote them that knew worker types by number alone.
    let old = [
        format!("{{\"event\":\"slice\",{jobs},{slice}"),
        format!(
            "{{\"event\":\"lease\",\"now\":0.0,{jobs},\"worker_type\":1,\"workers\":[2],\"n_servers\":1,\"extended\":false}}"
        ),
        format!("{{\"event\":\"preempted\",\"now\":9.0,{jobs},\"worker_type\":0}}"),
        "{\"event\":\"price_change\",\"at\":9.0,\"worker_type\":1,\"price\":2.0}".to_owned(),
    ];
    let named: Vec<String> = old
        .iter()
        .map(|line| line.replace("type\":0", "type\":\"a\"").replace("type\":1", "type\":\"b\""))
        .collect();
    assert!(named.iter().zip(&old).all(|(named, old)| named != old));
    let told = |lines: &[String]| {
        let (mut replay, mut told) = (Replay::new(&header), Whole::default());
        for line in lines {
            replay.tell(line, &mut told).unwrap();
        }
        told.0
    };
    assert_eq!(told(&named), told(&old));
    for (line, name) in old.iter().zip(&named) {
        let record: Record = serde_json::from_str(line).unwrap();
        let event = record.event(&cluster).unwrap();
        assert_eq!(serde_json::to_string(&event.named(&cluster)).unwrap(), *name);
    }
}

/// The names of the events that are told, with the jobs of arrivals.
#[derive(Debug, Default)]
struct Told(Vec<String>);

impl Observer for Told {
    fn observe(&mut self, event: &Event<'_>) {
        let event = serde_json::to_value(event).unwrap();
        let name = event["event"].as_str().unwrap();
        self.0.push(format!("{name} {}", event["id"].as_u64().map_or(String::new(), |id| id.to_string())));
    }
}

#[test]
fn a_damaged_log_is_told_without_the_jobs_that_did_not_arrive_in_it() {
    let cluster: Cluster = "a=2".parse().unwrap();
    let header = Header::new("", &cluster, &RunSpec::default(), &BTreeMap::new());
    let mut replay = Replay::new(&header).passing_over();
    let job = serde_json::to_value(Job::new("A")).unwrap();
    let arrival = |id: u64| {
        serde_json::json!({"event": "arrival", "now": 0.0, "id": id, "measured": true, "job": job})
            .to_string()
    };
    let end = |id: u64| {
        serde_json::json!({"event": "completion", "at": 9.0, "id": id, "measured": true, "job": job, "isolated": 0.0})
            .to_string()
    };
    let round = "{\"event\":\"round_started\",\"now\":0.0,\"round\":3,\"n_active\":1,\"n_leases\":1}";
    let slice = |first: u64, second: Option<u64>| {
        serde_json::json!({
            "event": "slice", "jobs": {"first": first, "second": second}, "incarnations": [1, null], "worker_type": 0,
            "n_workers": 1, "start": 0.0, "end": 5.0, "time": 5.0, "overhead": 0.0, "price": null, "steps": [1.0, 0.0],
            "throughput": [1.0, 0.0], "succeeded": true,
        })
        .to_string()
    };
    let mut told = Told::default();
    let lines = [
        arrival(0),
        "not a line".to_owned(),
        round.to_owned(),
        arrival(2),
        slice(1, None),
        end(1),
        end(2),
        end(4),
        arrival(4),
    ];
    for line in lines {
        replay.tell(&line, &mut told).unwrap();
    }
    assert_eq!(told.0, ["arrival 0", "round_started ", "arrival 2", "slice ", "completion 2"]);
    let missing = replay.into_missing();
    assert_eq!(missing.jobs, BTreeSet::from([1, 3, 4].map(JobId::from_index)));
    let lines: Vec<usize> = missing.unread.iter().map(|(line, _)| *line).collect();
    assert_eq!((missing.n_rounds, missing.n_unread, lines), (3, 2, vec![3, 10]));
}
