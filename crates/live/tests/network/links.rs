//! Servers that join, agents and schedulers that come back, and links that are cut.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use apportion_live::clock;
use apportion_live::core::State;
use apportion_live::front::Options;
use apportion_live::network::News;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::nodes::{ENDLESS, Head, Node, Proxy, REPORT, access, programs, report};
use crate::support::{lives, wait_for};

#[test]
fn servers_join_and_their_jobs_are_done() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let nodes = [("one", "v100"), ("two", "k80")]
        .map(|(name, kind)| Node::start(&folder.path().join(name), access(&head.url()), name, kind));
    for (node, name) in nodes.iter().zip(["one", "two"]) {
        node.until("an agent that is heeded", |news| *news == News::Heeded);
        assert!(head.is_up(name));
    }
    let jobs: Vec<_> = (0..4).map(|_| head.submit(50)).collect();
    for job in jobs {
        let job = head.until(job, "its end", |job| job.state == State::Completed);
        assert_eq!((job.steps, job.checkpointed), (50.0, 50.0));
    }
    assert!(nodes.iter().all(|node| *node.news.lock().unwrap() == [News::Heeded]));
}

#[test]
fn orders_do_not_wait_for_a_report() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1000.0);
    let (home, hour) = (folder.path().join("one"), Duration::from_hours(1));
    let _node = Node::start_with_beat(&home, access(&head.url()), ("one", "v100"), Some(hour));
    wait_for("the server", || head.is_up("one").then_some(()));
    let job = head.submit(ENDLESS);
    wait_for("its program", || (!programs(&home, job).is_empty()).then_some(()));
    head.cancel(job);
    wait_for("the program's end", || programs(&home, job).is_empty().then_some(()));
}

/// A scheduler, the server `one`, and an endless job that runs there.
fn with_a_job(folder: &Path) -> (Head, Node, u64) {
    let head = Head::start(folder, 1.0);
    let node = Node::start(&folder.join("one"), access(&head.url()), "one", "v100");
    let job = head.submit(ENDLESS);
    head.until_running(job);
    (head, node, job)
}

#[test]
fn a_scheduler_that_comes_back_adopts_what_runs() {
    let folder = TempDir::new().unwrap();
    let (head, node, job) = with_a_job(folder.path());
    let home = folder.path().join("one");
    let pids = programs(&home, job);
    let address = head.address;
    drop(head);
    let head = Head::start_at(folder.path(), 1.0, (address, Options::default()));
    let steps = head.until_running(job).steps;
    let view = head.until(job, "more steps", |job| job.steps > steps + 200.0);
    assert_eq!((view.starts, programs(&home, job)), (1, pids));
    head.cancel(job);
    drop(node);
}

#[test]
fn an_agent_that_comes_back_adopts_what_runs() {
    let folder = TempDir::new().unwrap();
    let (head, node, job) = with_a_job(folder.path());
    let home = folder.path().join("one");
    let pids = programs(&home, job);
    drop(node);
    let _node = Node::start(&home, access(&head.url()), "one", "v100");
    let steps = head.job(job).steps;
    let view = head.until(job, "more steps", |job| job.steps > steps + 200.0);
    assert_eq!((view.starts, programs(&home, job)), (1, pids));
    head.cancel(job);
}

#[test]
fn a_name_has_one_agent_and_the_other_is_told() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let homes = ["first", "second"].map(|name| folder.path().join(name));
    let first = Node::start(&homes[0], access(&head.url()), "same", "v100");
    let job = head.submit(ENDLESS);
    let before = head.until_running(job).steps;
    let second = Node::start(&homes[1], access(&head.url()), "same", "v100");
    let why = second.until_refused();
    assert!(why.contains("the name is another agent's") && why.contains("a name of its own"), "{why}");
    head.until(job, "more steps", |job| job.steps > before + 100.0);
    assert!(programs(&homes[1], job).is_empty());
    assert!(!first.news.lock().unwrap().iter().any(|news| matches!(news, News::Refused(_))));
    // Once the first has been silent, the second is the server's agent. Its job starts there when the lease is over.
    drop(first);
    second.until("an agent that is heeded", |news| *news == News::Heeded);
    wait_for("the job's start with the second", || {
        let (one, other) = (programs(&homes[0], job), programs(&homes[1], job));
        assert!(one.is_empty() || other.is_empty(), "two incarnations at once");
        (!other.is_empty()).then_some(())
    });
    let first = Node::start(&homes[0], access(&head.url()), "same", "v100");
    first.until_refused();
    head.cancel(job);
}

#[test]
fn an_order_that_another_agent_may_have_carried_out_is_not_repeated() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 0.3);
    let of_home = |home: u32| {
        let mut report: Value = serde_json::from_str(&report("same", "v100", 2)).unwrap();
        report["home"] = json!(home);
        report["id"]["boot"] = json!(home);
        head.raw(REPORT, report.to_string().as_bytes())
    };
    assert_eq!(of_home(1).0, 200);
    let job = head.submit(ENDLESS);
    let before = head.until(job, "its first start", |job| job.starts == 1);
    let heard = wait_for("the second agent", || Some(of_home(2)).filter(|(status, _)| *status == 200)).1;
    assert_eq!(heard["orders"]["leases"], json!([]), "{heard}");
    assert_eq!(head.job(job).starts, before.starts);
}

#[test]
fn two_agents_on_copies_of_one_folder_do_not_take_turns() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 2.0);
    let homes = ["original", "copy"].map(|name| folder.path().join(name));
    fs::create_dir_all(&homes[1]).unwrap();
    let original = Node::start(&homes[0], access(&head.url()), "same", "v100");
    original.until("an agent that is heeded", |news| *news == News::Heeded);
    for name in ["home.json", "boot.json"] {
        fs::copy(homes[0].join(name), homes[1].join(name)).unwrap();
    }
    let copy = Node::start(&homes[1], access(&head.url()), "same", "v100");
    copy.until("an agent that is heeded", |news| *news == News::Heeded);
    let why = original.until_refused();
    assert!(why.contains("copies of one folder"), "{why}");
    assert!(!copy.news.lock().unwrap().iter().any(|news| matches!(news, News::Refused(_))));
}

#[test]
fn a_link_that_is_cut_for_longer_than_a_lease_starts_nothing_twice() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let proxy = Proxy::start(head.address);
    let homes = ["far", "near"].map(|name| folder.path().join(name));
    let far = Node::start(&homes[0], access(&format!("http://{}", proxy.address)), "far", "v100");
    let job = head.submit(ENDLESS);
    head.until_running(job);
    let _near = Node::start(&homes[1], access(&head.url()), "near", "k80");
    wait_for("the second server", || head.is_up("near").then_some(()));
    head.until(job, "the job on the first server", |job| job.servers == ["far"]);
    let (before, starts) = (programs(&homes[0], job), head.job(job).starts);
    proxy.cut();
    far.until("a scheduler that is not reached", |news| matches!(news, News::Unreached(_)));
    wait_for("the job's start elsewhere", || {
        let [far, near] = [0, 1].map(|place| programs(&homes[place], job));
        assert!(far.is_empty() || near.is_empty(), "two incarnations at once");
        (!near.is_empty()).then_some(())
    });
    assert!(
        !before.is_empty() && before.iter().all(|pid| !lives(*pid)),
        "it stopped when its lease was over"
    );
    proxy.mend();
    wait_for("the first server", || head.is_up("far").then_some(()));
    let n_heeded = || far.news.lock().unwrap().iter().filter(|news| **news == News::Heeded).count();
    wait_for("the first agent's word of it", || (n_heeded() == 2).then_some(()));
    assert!(head.job(job).starts > starts);
    head.cancel(job);
}

#[test]
fn many_wait_for_orders_at_once() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let (status, heard) = head.raw(REPORT, report("one", "v100", 2).as_bytes());
    let orders = &heard["orders"];
    assert!(status == 200 && heard["beat_s"] == 5.0 && orders["leases"] == json!([]), "{heard}");
    let (epoch, number) = (&orders["epoch"], &orders["number"]);
    let ask =
        |wait: &str| format!("GET /v1/agents/one/orders?after={epoch}.{number}&wait={wait} HTTP/1.1\r\n");
    assert_eq!(head.raw(&ask("0.05"), b"").0, 204);
    let request = format!("{}Host: localhost\r\nConnection: close\r\n\r\n", ask("30"));
    let mut waiting: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(head.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let job = head.submit(ENDLESS);
    for stream in &mut waiting {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let orders: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(orders["leases"][0]["run"]["job"], job, "{text}");
    }
    // Requests that wait do not hold up the end.
    let access = access(&head.url());
    let waits = thread::spawn(move || {
        let path = "/v1/agents/one/orders?after=9.9&wait=30";
        let first = access.ask(ureq::http::Method::GET, path, Duration::from_secs(20)).unwrap();
        let orders: Value = serde_json::from_str(&first.text).unwrap();
        let path = format!("/v1/agents/one/orders?after={}.{}&wait=30", orders["epoch"], orders["number"]);
        access.ask(ureq::http::Method::GET, &path, Duration::from_secs(20))
    });
    thread::sleep(Duration::from_millis(200));
    let since = clock::node_now();
    drop(head);
    assert!(clock::node_now() - since < Seconds::new(1.5));
    assert!(waits.join().unwrap().is_ok_and(|reply| reply.status == 503));
}
