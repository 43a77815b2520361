//! Tokens, certificates, and reports that are refused.

use std::path::Path;
use std::time::Duration;

use apportion_live::core::State;
use apportion_live::front::{Options, Role, Tls, TlsError, Tokens};
use apportion_live::network::{Access, News};
use tempfile::TempDir;

use crate::nodes::{Head, Node, REPORT, report, tls_file};
use crate::support::wait_for;

#[test]
fn each_token_has_its_role() {
    let folder = TempDir::new().unwrap();
    let options = || Options {
        tokens: Some(Tokens::of("people's").and("agents'", Role::Agent).and_of("two's", &["two"])),
        tls: None,
        ..Options::default()
    };
    let head = Head::start_at(folder.path(), 2.0, ("127.0.0.1:0".parse().unwrap(), options()));
    let body = report("one", "v100", 2);
    let ask = |start: &str, token: &str, body: &str| {
        head.raw(&format!("{start} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n"), body.as_bytes())
    };
    for (start, token, status, says) in [
        ("POST /v1/agents/report", "people's", 403, "`sha256:DIGEST agent`"),
        ("GET /v1/agents/one/orders", "people's", 403, "this token is for people"),
        ("POST /v1/agents/report", "wrong", 401, "not one of the scheduler's"),
        ("GET /v1/jobs", "agents'", 403, "this token is for agents"),
        ("POST /v1/jobs", "agents'", 403, "this token is for agents"),
        ("GET /metrics", "agents'", 403, "this token is for agents"),
        ("GET /v1/agents/one/orders", "agents'", 404, "its agent reports first"),
        ("GET /v1/jobs", "people's", 200, ""),
        ("POST /v1/agents/report", "agents'", 200, ""),
        // It reports of the server `one`.
        ("POST /v1/agents/report", "two's", 403, "this token is not for the server `one`"),
        ("GET /v1/agents/one/orders", "two's", 403, "the scheduler's token file has it for two"),
        ("GET /v1/agents/%6Fne/orders", "two's", 403, "this token is not for the server `one`"),
        ("GET /v1/agents/two/orders", "two's", 404, "its agent reports first"),
        ("GET /v1/jobs", "two's", 403, "this token is for agents"),
    ] {
        let (found, said) = ask(start, token, &body);
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{start} with {token}: {found} {said}");
    }
    // An agent ends at once if its token is refused at its start,
    for token in ["wrong", "people's"] {
        let access = Access::new(&head.url(), Some(token), None).unwrap();
        let denied = Node::start(&folder.path().join("denied"), access, "two", "k80").ended();
        assert!(denied.unwrap().contains("token"));
    }
    // and goes on if it was heeded before.
    let good = Access::new(&head.url(), Some("agents'"), None).unwrap();
    let node = Node::start(&folder.path().join("two"), good, "two", "k80");
    node.until("an agent that is heeded", |news| *news == News::Heeded);
    let address = head.address;
    drop(head);
    let others = Options { tokens: Some(Tokens::of("another")), tls: None, ..Options::default() };
    let head = Head::start_at(folder.path(), 2.0, (address, others));
    assert!(node.until_refused().contains("not one of the scheduler's"));
    drop(head);
    let _head = Head::start_at(folder.path(), 2.0, (address, options()));
    let n_heeded = || node.news.lock().unwrap().iter().filter(|news| **news == News::Heeded).count();
    wait_for("the token that is good again", || (n_heeded() == 2).then_some(()));
}

#[test]
fn what_is_wrong_with_a_report_is_said() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let long = "a".repeat(101);
    for (body, status, says) in [
        (report("one", "tpu", 2), 409, "workers of type tpu, which the cluster does not"),
        (report("one", "v100", 3), 409, "the cluster has no server of that type and size"),
        (report("../one", "v100", 2), 400, "`../one` is no name of a server"),
        (report("a\u{1b}[31m", "v100", 2), 400, "is no name of a server"),
        (report("", "v100", 2), 400, "is no name of a server"),
        (report(&long, "v100", 2), 400, "1 to 100 letters"),
        (report("one", "v\n100", 2), 400, "without control characters"),
        (report("one", "v100", 0), 400, "1 to 1024 workers"),
        (report("one", "v100", u32::MAX), 400, "1 to 1024 workers"),
        ("{}".to_owned(), 400, "the body is not as expected"),
        (" ".repeat(100 << 20), 413, "more than"),
    ] {
        let (found, said) = head.raw(REPORT, body.as_bytes());
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{status} {says}: {found} {said}");
    }
    for (query, says) in
        [("after=1", "EPOCH.NUMBER"), ("wait=-1", "`wait` is `-1`"), ("x=1", "unknown parameter")]
    {
        let (found, said) = head.raw(&format!("GET /v1/agents/one/orders?{query} HTTP/1.1\r\n"), b"");
        assert!(found == 400 && said["error"].as_str().unwrap().contains(says), "{query}: {found} {said}");
    }
    assert_eq!(head.raw(REPORT, report("one", "v100", 2).as_bytes()).0, 200);
    assert!(head.is_up("one"));
}

#[test]
fn https_is_spoken_where_the_certificate_is_trusted() {
    let folder = TempDir::new().unwrap();
    let tls = Tls::read(&tls_file("head.pem"), &tls_file("head.key")).unwrap();
    let options = Options {
        tokens: Some(Tokens::of("people's").and("agents'", Role::Agent)),
        tls: Some(tls),
        ..Options::default()
    };
    let head = Head::start_at(folder.path(), 30.0, ("127.0.0.1:0".parse().unwrap(), options));
    let (url, port) = (format!("https://{}", head.address), head.address.port());
    let ca = tls_file("ca.pem");
    let trusting = Access::new(&url, Some("agents'"), Some(&ca)).unwrap();
    let node = Node::start(&folder.path().join("one"), trusting, "one", "v100");
    let job = head.submit(50);
    head.until(job, "its end", |job| job.state == State::Completed);
    assert_eq!(*node.news.lock().unwrap(), [News::Heeded]);

    let limit = Duration::from_secs(10);
    let ask = |url: &str, ca: Option<&Path>| {
        let access = Access::new(url, Some("people's"), ca).unwrap();
        access.ask(ureq::http::Method::GET, "/v1/health", limit)
    };
    assert_eq!(ask(&format!("https://localhost:{port}"), Some(&ca)).unwrap().status, 200);
    let lost = ask(&url, None).unwrap_err();
    assert!(lost.is_unheard && lost.to_string().contains("`--ca FILE`"), "{lost}");
    let lost = ask(&format!("https://127.0.0.2:{port}"), Some(&ca));
    assert!(lost.is_err(), "the certificate has another name");
    let reply = ask(&head.url(), None).unwrap();
    assert!(reply.status == 400 && reply.text.contains("write https:// in place of http://"), "{reply:?}");

    let plain = Head::start(&folder.path().join("one"), 30.0);
    let lost = ask(&format!("https://{}", plain.address), Some(&ca)).unwrap_err();
    assert!(lost.to_string().contains("speaks no https"), "{lost}");
}

#[test]
fn what_is_no_certificate_or_key_is_named() {
    let read = |certificate: &str, key: &str| Tls::read(&tls_file(certificate), &tls_file(key)).unwrap_err();
    assert!(matches!(read("head.pem", "other.key"), TlsError::Mismatch { .. }));
    for (certificate, key, says) in [
        ("head.pem", "other.key", "does not belong to the first certificate in"),
        ("other.key", "head.key", "other.key has no certificate in PEM"),
        ("head.pem", "ca.pem", "ca.pem has no private key in PEM"),
        ("none.pem", "head.key", "none.pem: No such file"),
        ("head.pem", "none.key", "none.key: No such file"),
    ] {
        let said = read(certificate, key).to_string();
        assert!(said.contains(says), "{said}");
    }
}
