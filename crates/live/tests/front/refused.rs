//! Requests that are refused: malformed, too large, from strangers, without a token.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use apportion_live::front::{self, FrontError, Options, Tokens};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Served, driver, form};

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let good = form("a", 5);
    let with = |path: &[&str], value: Value| {
        let mut form = good.clone();
        let mut place = &mut form;
        for name in path {
            place = &mut place[*name];
        }
        *place = value;
        form.to_string()
    };
    let bodies = [
        (String::new(), "the body is not as expected"),
        ("{".to_owned(), "line 1 column 1"),
        ("[1]".to_owned(), "the body is not as expected"),
        ("[]".to_owned(), "expected an object, in braces"),
        (
            with(&["program", "directory"], json!("tmp")),
            "the program's folder is `tmp`, expected a path from the root",
        ),
        (with(&["nmae"], json!("x")), "unknown field `nmae`, expected one of"),
        (with(&["job", "steps"], json!(1)), "unknown field `steps`"),
        (with(&["program", "shell"], json!(true)), "unknown field `shell`"),
        (with(&["job", "job_type"], json!("no such type")), "no throughputs for `no such type`"),
        (with(&["job", "scale_factor"], json!(-1)), "-1"),
        (with(&["job", "total_steps"], json!(0)), "the job has no steps"),
        (with(&["job", "weight"], json!(0)), "weight"),
        (with(&["program", "command"], json!([])), "no command"),
    ];
    for (body, says) in bodies {
        let (status, said) = served.ask("POST", "/v1/jobs", &[], &body);
        let text = said["error"].as_str().unwrap_or_default();
        assert!(status == 400 && text.contains(says), "{body}: {status} {said}, expected {says}");
    }
    let places = [
        ("GET", "/v1/jobs/x", 400, "`x` is no job's number"),
        ("GET", "/v1/jobs/7", 404, "there is no job 7"),
        ("DELETE", "/v1/jobs/7", 404, "there is no job 7"),
        ("GET", "/v1/nothing", 404, "/v1/nothing"),
        ("PUT", "/v1/jobs", 405, "PUT"),
        ("GET", "/v1/events?after=x", 400, "`after` is `x`"),
        ("GET", "/v1/events?before=3", 400, "unknown parameter `before`"),
    ];
    for (method, path, status, says) in places {
        let (found, said) = served.ask(method, path, &[], "");
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{method} {path}: {found} {said}");
    }
    assert_eq!(served.get("/v1/jobs"), json!([]), "nothing of it was taken in");
}

#[test]
fn a_vast_body_is_refused_and_a_slow_one_harms_nobody() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let mut slow = TcpStream::connect(served.address).unwrap();
    let head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    slow.write_all(head.as_bytes()).unwrap();
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let (status, _) = served.ask("POST", "/v1/jobs", &[], &" ".repeat((1 << 20) + 1));
    assert_eq!(status, 413);
    served.submit(&form("a", 5));
    drop((slow, silent));
}

#[test]
fn strangers_are_not_let_in() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    for host in ["Host: evil.example", "Host: evil.example:7070", "Host: 127.0.0.1.evil.example"] {
        let (status, said) = served.ask("GET", "/v1/jobs", &[host], "");
        assert!(status == 403 && said["error"].as_str().unwrap().contains("name of this machine"), "{said}");
        assert_eq!(served.ask("GET", "/", &[host], "").0, 403);
    }
    for host in ["Host: localhost", "Host: [::1]:7070", "Host: 127.0.0.1"] {
        assert_eq!(served.ask("GET", "/v1/jobs", &[host], "").0, 200);
    }
    // Types of body that a form of another site can send.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let (status, said) =
            served.ask("POST", "/v1/jobs", &[&format!("Content-Type: {kind}")], &form("a", 5).to_string());
        assert!(status == 415 && said["error"].as_str().unwrap().contains("application/json"), "{said}");
    }
    let (_, head, _) = served.raw(
        b"OPTIONS /v1/jobs HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n",
    );
    assert!(!head.contains("access-control"), "{head}");
    assert_eq!(served.get("/v1/jobs"), json!([]));
}

#[test]
fn with_a_token_only_those_who_know_it_are_let_in() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), Some(Tokens::of("open sesame")));
    for headers in [
        &[][..],
        &["Authorization: Bearer open"],
        &["Authorization: Basic open sesame"],
        &["Authorization: Bearer "],
    ] {
        for path in ["/v1/jobs", "/v1/health", "/v1/notes", "/v1/events", "/metrics"] {
            let (status, said) = served.ask("GET", path, headers, "");
            assert!(status == 401 && said["error"].as_str().unwrap().contains("token"), "{path}: {said}");
        }
    }
    let known = "Authorization: Bearer open sesame";
    // A client that has the token may call the scheduler by any name.
    assert_eq!(served.ask("GET", "/v1/jobs", &[known, "Host: head.example:7070"], "").0, 200);
    let (status, page) = served.ask("GET", "/", &[], "");
    assert!(
        status == 200 && page.as_str().unwrap().starts_with("<!doctype html>"),
        "the page has nothing to tell"
    );
}

#[test]
fn nothing_is_served_beyond_this_machine_without_a_token() {
    let folder = TempDir::new().unwrap();
    let driver = driver(&folder.path().join("scheduler.sqlite")).unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let stop = Arc::new(AtomicBool::new(true));
    let refused = front::serve(driver.client(), listener, Options::default(), &stop);
    assert!(matches!(refused, Err(FrontError::NeedsToken { .. })), "{refused:?}");
}
