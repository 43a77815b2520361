//! `apportion report`: a page with charts about results.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::Session;
use crate::cli::exit::Failure;
use crate::cli::results;
use crate::report::page::Page;
use crate::report::study;
use crate::spec::nearest::{name_list, suggestion};
use crate::sweep::{Store, findings};

/// Write a page with charts about results: one HTML file that needs no network
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  apportion report results/quick
  apportion report results/quick --baseline fifo --out quick.html --assets figures")]
pub struct ReportArguments {
    /// A sweep's folder, or the results.sqlite in it
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// The policy that the others are held against [default: the sweep's first]
    #[arg(long, value_name = "POLICY")]
    baseline: Option<String>,
    /// Also write every chart as SVG and CSV, and every table as CSV, into this folder
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
}

pub(super) fn run(arguments: &ReportArguments, session: &Session) -> Result<(), Failure> {
    let page = study_page(&arguments.results, arguments.baseline.as_deref())?;
    write(&arguments.out, &page.html())?;
    let mut written = vec![arguments.out.display().to_string()];
    if let Some(folder) = &arguments.assets {
        fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let assets =
            page.assets().map_err(|message| Failure::Bug { message: format!("cannot draw {message}") })?;
        for asset in &assets {
            write(&folder.join(&asset.name), &asset.text)?;
        }
        session.note(format!("{} files in {}", assets.len(), folder.display()));
        written.push(folder.display().to_string());
    }
    session.output.text(&written.join("\n"))
}

fn study_page(path: &Path, baseline: Option<&str>) -> Result<Page, Failure> {
    let store = Store::open_to_read(path).map_err(results::failure)?;
    match findings::of(&store, baseline).map_err(results::failure)? {
        Ok(found) => Ok(study::page(&found)),
        Err(names) => {
            let (wanted, known) = (baseline.unwrap_or_default(), names.iter().map(String::as_str));
            let message = format!("--baseline: no runs of `{wanted}`, expected one of {}", name_list(known));
            Err(Failure::usage(message, suggestion(wanted, names.iter().map(String::as_str))))
        }
    }
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let failed = || Failure::io(format!("write {}", path.display()));
    fs::write(&fresh, text).map_err(failed())?;
    fs::rename(&fresh, path).map_err(failed())
}
