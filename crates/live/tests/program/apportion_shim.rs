//! The program that the tests start: the shim, the pretend trainer, and an agent whose link is a folder.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use apportion_live::agent::{self, Home, Link, LinkError, Server};
use apportion_live::protocol::{Orders, Report};
use apportion_live::{shim, trainer};

/// A folder as a link: a scheduler reads `report.json` in it, and writes `orders.json`.
struct Mailbox {
    folder: PathBuf,
    taken: Option<(u64, u64)>,
}

impl Link for Mailbox {
    fn send(&mut self, report: &Report) -> Result<(), LinkError> {
        let failed = |error: &dyn Error| LinkError(error.to_string());
        let new = self.folder.join("report.new");
        let text = serde_json::to_vec(report).map_err(|error| failed(&error))?;
        fs::write(&new, text).map_err(|error| failed(&error))?;
        fs::rename(&new, self.folder.join("report.json")).map_err(|error| failed(&error))
    }

    fn receive(&mut self, wait: Duration) -> Option<Orders> {
        let text = fs::read(self.folder.join("orders.json"));
        let orders: Option<Orders> = text.ok().and_then(|text| serde_json::from_slice(&text).ok());
        let number = orders.as_ref().map(|orders| (orders.epoch, orders.number));
        if number == self.taken {
            thread::sleep(wait);
            return None;
        }
        self.taken = number;
        orders
    }
}

fn run_agent(state: &str, mailbox: &str) -> Result<(), Box<dyn Error>> {
    let state = Path::new(state);
    let server = Server { name: "test".to_owned(), worker_type: "fast".to_owned(), n_workers: 4 };
    let home = Home::new(state, &state.join("checkpoints"));
    let mut link = Mailbox { folder: mailbox.into(), taken: None };
    Ok(agent::run(server, home, &mut link, Duration::from_millis(100), &AtomicBool::new(false))?)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["shim", folder] => shim::run(Path::new(folder))?,
        ["shim", shim::EACH, folders @ ..] => {
            shim::run_all(&folders.iter().map(PathBuf::from).collect::<Vec<_>>())?;
        }
        ["agent", state, mailbox] => run_agent(state, mailbox)?,
        ["trainer", ..] => return Ok(ExitCode::from(trainer::run(&arguments[1..])?)),
        _ => return Err("shim FOLDER | agent STATE MAILBOX | trainer …".into()),
    }
    Ok(ExitCode::SUCCESS)
}
