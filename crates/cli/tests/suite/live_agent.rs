//! `apportion agent` on the command line: its refusals, and its ends.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

use crate::live::{Served, command, said_with_2};

const AGENT: [&str; 6] = ["agent", "--worker-type", "v100", "--workers", "2", "--name=node-1"];

/// The scheduler's file of tokens, with digests.
const TOKENS: &str = "\
sha256:PEOPLE
sha256:AGENTS agent
sha256:NODE agent node-1
";

/// A scheduler with tokens: of people, of all agents, and of the server `node-1`.
fn served(folder: &Path) -> Served {
    let digest = |token: &str| {
        fs::write(folder.join(format!("{token}.token")), token).unwrap();
        let script = format!("printf %s {token} | sha256sum | cut -d' ' -f1");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let text = TOKENS.replace("PEOPLE", &digest("people"));
    let text = text.replace("AGENTS", &digest("agents")).replace("NODE", &digest("node"));
    fs::write(folder.join("tokens"), text).unwrap();
    fs::write(folder.join("wrong.token"), "wrong").unwrap();
    let serve = "serve --cluster v100=4 --servers v100=2 --policy max_min_fairness_perf --state state --token-file tokens";
    Served::start(folder, &serve.split(' ').collect::<Vec<_>>())
}

/// An agent that runs; ended when dropped.
struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(folder, arguments).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Reads on until a line contains these words. Returns the line.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended without `{words}`: {all}");
            if line.contains(words) {
                return line;
            }
            all += &line;
        }
    }

    /// Asks it to end, as a service manager does, and answers its exit code and its last output.
    fn end(mut self) -> (Option<i32>, String) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let mut last = String::new();
        self.said.read_to_string(&mut last).unwrap();
        (self.child.wait().unwrap().code(), last)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_agent_with_flags_at_fault_is_refused() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("empty"), "").unwrap();
    fs::write(at.join("digest"), "sha256:00\n").unwrap();
    for (arguments, says) in [
        ("agent --workers 2", "--worker-type <TYPE>"),
        ("agent --worker-type v100", "--workers <N>"),
        ("agent --worker-type v100 --workers many", "invalid value 'many' for '--workers <N>'"),
        (
            "agent --worker-type v100 --workers 0 --name n",
            "--workers: a server has 1 to 1024 workers, this one 0",
        ),
        ("agent --worker-type v100 --workers 1 --name a/b", "--name: `a/b` is no name of a server"),
        ("agent --worker-type v100 --workers 2 --name n --beat 1e9", "expected from 0.01 s to 600 s"),
        ("agent --worker-type v100 --workers 2 --name n --beat 0", "--beat"),
        (
            "agent --worker-type v100 --workers 2 --name n --scheduler head:7070",
            "is no address of a scheduler",
        ),
        ("agent --worker-type v100 --workers 2 --name n --token-file none", "cannot read none"),
        ("agent --worker-type v100 --workers 2 --name n --token-file empty", "empty holds no token"),
        ("agent --worker-type v100 --workers 2 --name n --token-file digest", "holds the digest of a token"),
        ("agent --worker-type v100 --workers 2 --name n --ca empty", "holds no certificate"),
    ] {
        let said = said_with_2(command(at, &arguments.split(' ').collect::<Vec<_>>()).output().unwrap());
        assert!(said.contains(says), "{arguments}: {said}");
    }
    let mut few = command(at, &AGENT);
    let said = said_with_2(few.env("CUDA_VISIBLE_DEVICES", "3").output().unwrap());
    assert!(said.contains("CUDA_VISIBLE_DEVICES is 3: that is 1 of the 2 workers"), "{said}");
}

#[test]
fn an_agent_whose_token_is_refused_at_its_start_ends() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = served(at);
    let with = |more: &[&str]| {
        let usual = ["agent", "--worker-type=v100", "--workers=2", "--scheduler", served.url()];
        said_with_2(command(at, &[&usual, more].concat()).output().unwrap())
    };
    for (more, says) in [
        (&["--name=node-1", "--token-file=wrong.token"][..], "this token is not one of the scheduler's"),
        (&["--name=node-1", "--token-file=people.token"], "this token is for people"),
        (&["--name=node-1"], "a token is needed"),
        (&["--name=node-2", "--token-file=node.token"], "this token is not for the server `node-2`"),
    ] {
        let said = with(more);
        assert!(said.contains(says) && said.contains("`--token-file FILE` names"), "{more:?}: {said}");
    }
}

#[test]
fn an_agent_that_is_let_in_ends_when_it_is_asked_to() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = served(at);
    for token in ["agents", "node"] {
        let token = format!("--token-file={token}.token");
        let arguments = [&AGENT[..], &["--scheduler", served.url(), &token]].concat();
        let mut agent = Running::start(at, &arguments);
        agent.says("takes the reports of node-1 with 2 workers of v100");
        let said = said_with_2(command(at, &arguments).output().unwrap());
        assert!(said.contains("is the folder of an agent that is running"), "{said}");
        let (code, last) = agent.end();
        assert_eq!(code, Some(0), "{last}");
        assert!(last.contains("ended; jobs go on until their leases end"), "{last}");
    }
}

#[test]
fn an_agent_without_a_scheduler_says_so_and_tries_again() {
    let folder = TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let mut agent = Running::start(folder.path(), &[&AGENT[..], &["--scheduler", &url]].concat());
    let line = agent.says("it is tried again");
    assert!(line.starts_with("warning: ") && line.contains(&url), "{line}");
    assert_eq!(agent.end().0, Some(0));
}
