//! Jobs that run, servers that are drained, events and metrics.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pretended::Pretended;
use crate::served::{Served, form};

#[test]
fn a_job_is_submitted_runs_and_is_done() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    assert_eq!(served.get("/v1/jobs"), json!([]));
    assert_eq!(served.get("/v1/servers"), json!([]));
    assert!(served.get("/v1/next")["ends_in_s"].is_null());
    let _agents =
        [Pretended::join(served.client(), "one", "v100"), Pretended::join(served.client(), "two", "k80")];
    served.until("/v1/servers", |servers| servers.as_array().unwrap().len() == 2);
    let short = served.submit(&form("short", 5));
    let long = served.submit(&form("long", 1_000_000));
    assert_eq!(served.submit(&form("long", 1_000_000)), long, "sent again with its key it is the same job");
    served.until(&format!("/v1/jobs/{short}"), |job| job["state"] == "completed");
    let running = served.until(&format!("/v1/jobs/{long}"), |job| job["state"] == "running");
    assert_eq!((running["name"].as_str(), running["user"].as_str()), (Some("long"), Some("ann")));
    assert!(running["because"].as_array().unwrap().iter().any(|why| why == "It runs."), "{running}");
    served.until("/v1/next", |next| next["places"][0]["job"] == long && next["ends_in_s"].is_number());

    let (status, said) = served.ask("DELETE", &format!("/v1/jobs/{long}"), &[], "");
    assert_eq!(status, 200, "{said}");
    assert!(said["text"].as_str().unwrap().contains("will not be started again"), "{said}");
    served.until(&format!("/v1/jobs/{long}"), |job| job["state"] == "cancelled");
    let (status, said) = served.ask("DELETE", &format!("/v1/jobs/{long}"), &[], "");
    assert_eq!((status, said["error"].as_str().unwrap().contains("is over already")), (400, true), "{said}");
}

#[test]
fn a_server_is_drained_and_resumed() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let _agent = Pretended::join(served.client(), "node 1/a", "v100");
    served.until("/v1/servers", |servers| servers[0]["server"] == "node 1/a");
    let (status, said) = served.ask("POST", "/v1/servers/node%201%2Fa/drain", &[], r#"{"reason": "a fan"}"#);
    assert_eq!(status, 200, "{said}");
    assert_eq!(served.get("/v1/servers")[0]["drained"], "a fan");
    let notes = served.get("/v1/notes");
    let note = notes.as_array().unwrap().iter().find(|note| note["text"] == "node 1/a is drained: a fan");
    assert_eq!(note.unwrap()["server"], "node 1/a");
    for body in ["", "{}"] {
        let (status, said) = served.ask("POST", "/v1/servers/node%201%2Fa/resume", &[], body);
        assert_eq!(status, 200, "{said}");
    }
    assert!(served.get("/v1/servers")[0]["drained"].is_null());
    for body in ["", r#"{"is_off": true}"#] {
        let (status, said) = served.ask("POST", "/v1/servers/node%201%2Fa/remove", &[], body);
        let text = said["error"].as_str().unwrap_or_default();
        assert!(status == 400 && text.contains("node 1/a may be there"), "{said}");
    }
    let (status, _) = served.ask("POST", "/v1/servers/nobody/remove", &[], "");
    assert_eq!(status, 404);
    let (status, said) = served.ask("POST", "/v1/servers/nobody/drain", &[], "");
    assert_eq!(status, 404);
    assert!(said["error"].as_str().unwrap().contains("expected one of node 1/a"), "{said}");
}

#[test]
fn events_come_in_parts_and_metrics_add_up() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let _agent = Pretended::join(served.client(), "one", "v100");
    let job = served.submit(&form("short", 3));
    served.until(&format!("/v1/jobs/{job}"), |job| job["state"] == "completed");
    let mut after = 0;
    let mut lines = Vec::new();
    loop {
        let request = format!(
            "GET /v1/events?after={after}&most=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let (status, head, body) = served.raw(request.as_bytes());
        assert!(status == 200 && head.contains("application/x-ndjson"), "{head}");
        let last = head.lines().find_map(|line| line.strip_prefix("x-apportion-last: ")).unwrap();
        // The header comes before the first line.
        assert!(body.lines().count() <= 2 + usize::from(after == 0), "{body}");
        assert_eq!(body.starts_with("{\"format\":\"apportion/events-v1\""), after == 0, "{body}");
        lines.extend(body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()));
        if lines.iter().any(|event| event == "completion") {
            break;
        }
        assert!(!body.is_empty(), "{lines:?}");
        after = last.parse().unwrap();
    }
    assert!(
        lines.iter().any(|event| event == "arrival") && lines.iter().any(|event| event == "lease"),
        "{lines:?}"
    );

    let (status, text) = served.ask("GET", "/metrics", &[], "");
    let text = text.as_str().unwrap().to_owned();
    assert_eq!(status, 200);
    for line in [
        "apportion_completed_jobs_total 1",
        "apportion_jobs{state=\"completed\"} 1",
        "apportion_workers_joined{worker_type=\"v100\"} 2",
        "apportion_workers_up{worker_type=\"v100\"} 2",
        "apportion_disk_refuses 0",
        "apportion_epoch 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
    // A decision that is made ahead of its round counts as 0 s old.
    served.submit(&form("long", 3000));
    served.until("/v1/next", |next| next["is_decided"] == true);
    let (_, text) = served.ask("GET", "/metrics", &[], "");
    let text = text.as_str().unwrap().to_owned();
    let age = text.lines().find_map(|line| line.strip_prefix("apportion_decision_age_seconds "));
    assert!(age.unwrap().parse::<f64>().unwrap() >= 0.0, "{text}");
}

#[test]
fn the_newest_lines_of_the_log_can_be_asked_for_and_name_workers_as_servers_do() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let _agent = Pretended::join(served.client(), "one", "v100");
    let job = served.submit(&form("short", 3));
    served.until(&format!("/v1/jobs/{job}"), |job| job["state"] == "completed");
    let ask = |query: &str| {
        let request =
            format!("GET /v1/events?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        served.raw(request.as_bytes()).2
    };
    let all = ask("after=0");
    let lines: Vec<&str> = all.lines().collect();
    let newest: Vec<String> = ask("last=2").lines().map(str::to_owned).collect();
    assert_eq!(newest, lines[lines.len() - 2..]);
    // The header is left out, however many lines there are.
    assert_eq!(ask("last=5000").lines().collect::<Vec<_>>(), lines[1..]);
    let lease = lines.iter().find(|line| line.contains("\"lease\"")).unwrap();
    let lease: Value = serde_json::from_str(lease).unwrap();
    let servers = served.get("/v1/servers");
    let numbers = servers[0]["workers"].as_array().unwrap();
    assert!(numbers.len() == 2 && numbers.contains(&lease["workers"][0]), "{servers} and {lease}");
}
