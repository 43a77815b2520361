//! Gantt chart of jobs on workers over time: a bar for each stay, a row for each worker.

use serde::Serialize;
use serde_json::{Value, json};

use apportion::cluster::Cluster;
use apportion::index::{Id, JobId, WorkerId};
use apportion::metrics::timeline::{Stay, Timeline};

use super::html::escaped;
use super::number::brief;
use super::table::{Cell, Table};

/// The most bars in a page: the longest stays.
pub const BARS_MAX: usize = 150_000;
/// The narrowest bar in an SVG file, as a fraction of the whole time; narrower ones of a row are drawn as one.
const NARROWEST: f64 = 1.0 / 1_600.0;
const HOUR_S: f64 = 3600.0;
// The SVG file, in pixels.
const WIDTH: f64 = 1100.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 60.0;
const PLOT: f64 = WIDTH - LEFT - 20.0;

/// A Gantt chart of one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Gantt {
    /// Worker types with their numbers of workers, in the order of the rows.
    types: Vec<(String, u32)>,
    /// The title.
    title: String,
    /// The stays shown, in the order in which they began.
    stays: Vec<Stay>,
    /// Type, scale factor, arrival, end and name of each job of the stays shown.
    jobs: Vec<(JobId, JobLine)>,
    /// Number of all stays, shown or not.
    n_stays: usize,
    until_s: f64,
}

/// Type, scale factor, arrival, h, end, h, and name where that is not its number, of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct JobLine(
    String,
    u32,
    f64,
    Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")] Option<String>,
);

impl Gantt {
    /// The chart of a simulation; none without leases.
    pub fn of(cluster: &Cluster, timeline: &Timeline) -> Option<Self> {
        let all = timeline.stays();
        if all.is_empty() {
            return None;
        }
        let mut shown: Vec<usize> = (0..all.len()).collect();
        let length = |at: usize| all[at].end.get() - all[at].start.get();
        shown.sort_by(|one, other| length(*other).total_cmp(&length(*one)).then(one.cmp(other)));
        shown.truncate(BARS_MAX);
        shown.sort_unstable();
        let job = |(id, job): (&JobId, &apportion::metrics::timeline::Course)| {
            let (arrival, end) = (hours(job.arrival.get()), job.end.map(|end| hours(end.get())));
            (*id, JobLine(job.job_type.clone(), job.scale_factor, arrival, end, job.name.clone()))
        };
        Some(Self {
            types: cluster.types().iter().map(|kind| (kind.name.clone(), kind.n_workers)).collect(),
            title: "Leases of workers over time".to_owned(),
            stays: shown.into_iter().map(|at| all[at].clone()).collect(),
            jobs: timeline.jobs().iter().map(job).collect(),
            n_stays: all.len(),
            until_s: timeline.until().get(),
        })
    }

    /// The title of the chart.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Counts in words: `120 stays of 40 jobs on 6 workers in 38 h`.
    pub fn counts(&self) -> String {
        let n_workers: u32 = self.types.iter().map(|(_, n)| n).sum();
        format!(
            "{} stays of {} jobs on {n_workers} workers in {} h",
            self.n_stays,
            self.jobs.len(),
            brief(self.until_s / HOUR_S)
        )
    }

    /// Explanation of the chart, with the number of stays that are left out.
    pub fn note(&self) -> String {
        let n_left_out = self.n_stays - self.stays.len();
        let shortest = self.stays.iter().map(|stay| stay.end.get() - stay.start.get()).min_by(f64::total_cmp);
        let left_out = match shortest {
            Some(shortest) if n_left_out > 0 => {
                let longest = brief(shortest / HOUR_S);
                format!(
                    " {n_left_out} of {} stays are left out here, none longer than {longest} h.",
                    self.n_stays
                )
            }
            _ => String::new(),
        };
        format!(
            "A row is a worker, a bar a job’s stay on it: a lease and its extensions, coloured by job; two jobs that \
             share workers share the bar. Hover to read a bar and light up its job. Drag to move, Shift and the wheel or + and − to zoom; the charts below \
             follow.{left_out}"
        )
    }

    /// Data for the page's script. Times are in hours; a bar is `[start, end, worker type, jobs, workers as (first, how
    /// many), first round, rounds, servers, failed slices]`.
    pub(super) fn data(&self) -> Value {
        let bar = |stay: &Stay| {
            let jobs: Vec<usize> = stay.jobs.members().map(Id::index).collect();
            json!([
                hours(stay.start.get()),
                hours(stay.end.get()),
                stay.worker_type.index(),
                jobs,
                runs(&stay.workers),
                stay.first_round,
                stay.n_rounds,
                stay.n_servers,
                stay.n_failed,
            ])
        };
        let jobs: serde_json::Map<String, Value> =
            self.jobs.iter().map(|(id, line)| (id.index().to_string(), json!(line))).collect();
        json!({
            "name": "gantt",
            "title": self.title,
            "types": self.types,
            "until": hours(self.until_s),
            "jobs": jobs,
            "bars": self.stays.iter().map(bar).collect::<Vec<_>>(),
        })
    }

    /// Table of the stays shown, for programs.
    pub fn table(&self) -> Table {
        let heads = [
            "jobs",
            "job_type",
            "worker_type",
            "workers",
            "servers",
            "start_s",
            "end_s",
            "first_round",
            "rounds",
            "extended",
            "failed_slices",
        ];
        let mut table = Table::new(heads);
        for stay in &self.stays {
            let texts = |text: &dyn Fn(JobId) -> String| -> Cell {
                stay.jobs.members().map(text).collect::<Vec<_>>().join("+").into()
            };
            let line = |id: JobId| {
                let found = self.jobs.binary_search_by_key(&id, |(id, _)| *id);
                found.ok().map(|at| &self.jobs[at].1)
            };
            let kind = |id: JobId| line(id).map_or_else(String::new, |line| line.0.clone());
            let name = |id: JobId| {
                line(id).and_then(|line| line.4.clone()).unwrap_or_else(|| id.index().to_string())
            };
            let workers: Vec<String> = stay.workers.iter().map(|worker| worker.index().to_string()).collect();
            table.push(vec![
                texts(&name),
                texts(&kind),
                self.types
                    .get(stay.worker_type.index())
                    .map_or(Cell::Empty, |(name, _)| name.as_str().into()),
                workers.join(" ").into(),
                Cell::Count(u64::from(stay.n_servers)),
                Cell::Number(stay.start.get(), 3),
                Cell::Number(stay.end.get(), 3),
                Cell::Count(stay.first_round),
                Cell::Count(stay.n_rounds),
                Cell::Count(stay.n_rounds.saturating_sub(1)),
                Cell::Count(stay.n_failed),
            ]);
        }
        table
    }

    /// SVG document of the whole time.
    pub fn svg(&self) -> String {
        let n_rows: u32 = self.types.iter().map(|(_, n)| n).sum();
        let row = (720.0 / f64::from(n_rows.max(1))).clamp(0.5, 14.0);
        let height = TOP + row * f64::from(n_rows) + 50.0;
        let mut shapes = vec![
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.1}\" \
                 font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{}\">",
                escaped(&self.title)
            ),
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>".to_owned(),
            format!("<text x=\"14\" y=\"28\" font-size=\"17\">{}</text>", escaped(&self.title)),
            "<text x=\"14\" y=\"48\" fill=\"#5a5a5a\">a row is a worker; coloured by job</text>".to_owned(),
        ];
        let mut first = 0;
        for (name, n) in &self.types {
            let (y, tall) = (TOP + row * f64::from(first), row * f64::from(*n));
            let (x, middle, name) = (LEFT - 8.0, y + tall / 2.0 + 4.0, escaped(name));
            shapes.push(format!("<text x=\"{x}\" y=\"{middle:.1}\" text-anchor=\"end\">{name}</text>"));
            shapes.push(format!(
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{PLOT}\" height=\"{tall:.1}\" fill=\"#f4f5f6\" \
                 stroke=\"#c8ccd1\"/>"
            ));
            first += n;
        }
        self.push_bars(&mut shapes, row, first as usize);
        for tick in 0..=5 {
            let share = f64::from(tick) / 5.0;
            let (x, y, text) = (LEFT + PLOT * share, height - 32.0, brief(self.until_s / HOUR_S * share));
            shapes.push(format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#5a5a5a\">{text}</text>"
            ));
        }
        let (x, y) = (LEFT + PLOT / 2.0, height - 12.0);
        shapes.push(format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">time (h)</text>"));
        shapes.push("</svg>\n".to_owned());
        shapes.join("\n")
    }

    fn push_bars(&self, shapes: &mut Vec<String>, row: f64, n_rows: usize) {
        let until = self.until_s.max(f64::MIN_POSITIVE);
        let mut drawn_to = vec![-1.0; n_rows];
        for stay in &self.stays {
            let (from, to) = (stay.start.get() / until, stay.end.get() / until);
            for [worker, n] in runs(&stay.workers) {
                let rows = drawn_to.get_mut(worker..worker + n).unwrap_or_default();
                if rows.iter().all(|drawn| to - drawn < NARROWEST) {
                    continue;
                }
                rows.fill(to);
                let members: Vec<JobId> = stay.jobs.members().collect();
                let tall = row * n as f64 / members.len() as f64;
                for (position, id) in members.iter().enumerate() {
                    let (x, y) = (LEFT + PLOT * from, TOP + row * worker as f64 + tall * position as f64);
                    let (wide, colour) = (PLOT * (to - from).max(NARROWEST), colour(*id));
                    shapes.push(format!(
                        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{wide:.2}\" height=\"{tall:.2}\" fill=\"{colour}\"/>"
                    ));
                }
            }
        }
    }
}

/// A colour of its own for each job, neighbours far apart: hues at the golden angle. The page's script uses the same.
fn colour(id: JobId) -> String {
    let hue = (id.index() as f64 * 137.508) % 360.0;
    let light = 52 + 9 * (id.index() % 3);
    format!("hsl({hue:.0},58%,{light}%)")
}

fn hours(seconds: f64) -> f64 {
    // The value is rounded to a few hundredths of a second.
    (seconds / HOUR_S * 1e5).round() / 1e5
}

/// Runs of successive workers as (first, how many).
fn runs(workers: &[WorkerId]) -> Vec<[usize; 2]> {
    let mut sorted: Vec<usize> = workers.iter().map(|worker| worker.index()).collect();
    sorted.sort_unstable();
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for worker in sorted {
        match runs.last_mut() {
            Some([first, n]) if *first + *n == worker => *n += 1,
            _ => runs.push([worker, 1]),
        }
    }
    runs
}
