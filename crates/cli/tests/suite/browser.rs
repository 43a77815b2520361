//! A real browser without a window, driven over WebDriver: HTTP and JSON to chromedriver.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests, which say what they skip")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// One browser with one page, ended when dropped.
pub(crate) struct Browser {
    driver: Child,
    /// The driver's output, which is read as long as the driver may write.
    _said: BufReader<ChildStdout>,
    port: u16,
    session: String,
    profile: TempDir,
}

/// A program on the search path.
fn find(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// A driver that listens, its output from then on, and its port; none if it ended before.
#[expect(clippy::zombie_processes, reason = "a browser ends and waits for its driver where it is dropped")]
fn listening(program: &Path) -> Option<(Child, BufReader<ChildStdout>, u16)> {
    let mut driver =
        Command::new(program).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(driver.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        if said.read_line(&mut line).unwrap() == 0 {
            eprintln!("chromedriver ended before it listened: {}", driver.wait().unwrap());
            return None;
        }
        let digits = line.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap_or_default();
        if line.contains("on port")
            && let Ok(port) = digits.parse::<u16>()
            && port > 0
        {
            return Some((driver, said, port));
        }
        eprint!("{line}");
    }
}

impl Browser {
    /// A browser; none (and a note about it) if chromium or its driver are not installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = find("chromedriver") else {
            eprintln!("skipped: no chromedriver on this machine (Debian: chromium-driver)");
            return None;
        };
        // The driver takes a free port of IPv4 and ends if the same port of IPv6 is taken, as it may be beside other tests.
        let (driver, said, port) = (0..5)
            .find_map(|_| listening(&program))
            .expect("chromedriver ended five times before it listened");
        let profile = TempDir::new().unwrap();
        let mut browser = Self { driver, _said: said, port, session: String::new(), profile };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1200,900",
        ];
        let mut arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", browser.profile.path().display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = browser.ask("POST", "/session", Some(&wanted));
        browser.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Sends one request, and returns the value of its answer.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).unwrap();
        let answer: Value = serde_json::from_slice(&text).unwrap();
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path}: {}", value["message"]);
        value
    }

    /// Opens a page of this machine and waits until it reports that it is drawn.
    #[track_caller]
    pub(crate) fn open(&self, page: &Path) {
        self.open_url(&format!("file://{}", page.canonicalize().unwrap().display()));
        let drawn = "const done = arguments[0]; const look = () => document.body.dataset.drawn \
                     || !document.getElementById('problem').hidden ? done(true) : requestAnimationFrame(look); look();";
        self.run_async(drawn);
    }

    /// Opens the document at an address, and waits until it has been read.
    #[track_caller]
    pub(crate) fn open_url(&self, url: &str) {
        self.ask("POST", &format!("{}/url", self.session), Some(&json!({"url": url})));
    }

    /// Shows the page in light or dark, on a screen of this width.
    #[track_caller]
    pub(crate) fn show_as(&self, scheme: &str, width: u32) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        for (command, with) in [
            ("Emulation.setEmulatedMedia", json!({"features": features})),
            ("Emulation.setDeviceMetricsOverride", screen),
        ] {
            let place = format!("{}/goog/cdp/execute", self.session);
            self.ask("POST", &place, Some(&json!({"cmd": command, "params": with})));
        }
    }

    /// The value that a function's body passes, now or later, to its only argument.
    #[track_caller]
    pub(crate) fn run_async(&self, script: &str) -> Value {
        self.ask(
            "POST",
            &format!("{}/execute/async", self.session),
            Some(&json!({"script": script, "args": []})),
        )
    }

    /// The value that a function's body returns in the page.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask(
            "POST",
            &format!("{}/execute/sync", self.session),
            Some(&json!({"script": script, "args": []})),
        )
    }

    /// The console's messages that are warnings or worse.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", &format!("{}/se/log", self.session), Some(&json!({"type": "browser"})));
        let entries = log.as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| format!("{} {}", entry["level"], entry["message"])).collect()
    }

    /// Moves the mouse to the point of a function's body: `[x, y]` in the window.
    #[track_caller]
    pub(crate) fn hover(&self, script_for_point: &str) {
        let at = self.run(script_for_point);
        let (x, y) = (at[0].as_f64().unwrap().round(), at[1].as_f64().unwrap().round());
        let step = |x: f64, y: f64| json!({"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"});
        let actions = json!({"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": [step(x - 3.0, y - 3.0), step(x, y)]}]});
        self.ask("POST", &format!("{}/actions", self.session), Some(&actions));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &self.session, None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
