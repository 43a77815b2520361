//! The page about a benchmark: what decisions cost, by policy and family of instances, size and solver. A solver is a
//! backend, or a policy's own way to decide, which may be without a program and in several parts.

use apportion::metrics::statistics::Repeated;

use super::chart::{Absent, Axis, Chart, Figure, Kind, Mark, Scale, Series};
use super::page::{Item, NamedTable, Page, Section};
use super::study::file_name;
use super::table::Table;

/// One measured case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The policy.
    pub policy: String,
    /// The family of instances.
    pub instance: String,
    /// Jobs.
    pub n_jobs: usize,
    /// The backend that solved it, or `default`: whichever way the policy takes by itself, programs or not.
    pub backend: String,
    /// Into how many parts it was split; 1 is the whole.
    pub n_parts: usize,
    /// What it cost in s, if it was done.
    pub seconds: Option<f64>,
    /// Is the answer a certified optimum?
    pub certified: bool,
    /// `done`, or why not.
    pub status: String,
}

impl Case {
    /// What decided it, and the number of parts if there were several.
    fn solver(&self) -> String {
        match self.n_parts {
            1 => self.backend.clone(),
            n_parts => format!("{}, {n_parts} parts", self.backend),
        }
    }
}

/// A benchmark in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// The cases, in order.
    pub cases: Vec<Case>,
    /// Every row, in full.
    pub rows: Table,
    /// Version and system.
    pub facts: Vec<(String, String)>,
}

/// The page about a benchmark.
pub fn page(benchmark: &Benchmark) -> Page {
    let unique = |of: fn(&Case) -> String| {
        let mut names: Vec<String> = Vec::new();
        for name in benchmark.cases.iter().map(of) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let solvers = unique(Case::solver);
    let programs = unique(|case| format!("{}, {}", case.policy, case.instance));
    let chart = |program: &String| {
        let of_program = |case: &&Case| format!("{}, {}", case.policy, case.instance) == *program;
        let cases: Vec<&Case> = benchmark.cases.iter().filter(of_program).collect();
        (program.clone(), costs(program, &cases, &solvers))
    };
    let variants: Vec<(String, Chart)> = programs.iter().map(chart).collect();
    let any = |is: fn(&Chart) -> bool| variants.iter().any(|(_, chart)| is(chart));
    let mut notes = Vec::new();
    if any(|chart| chart.x.scale == Scale::Log || chart.y.scale == Scale::Log) {
        notes.push("An axis over more than a factor of ten or so runs by factors.");
    }
    if any(|chart| !chart.absent.is_empty()) {
        notes.push("A cross above the plot marks cases without a time: hover over it for why.");
    }
    if any(Chart::has_hollow) {
        notes.push("A hollow mark shows the mean of those that have one, which is not the mean of all.");
    }
    let figure = Figure { choice: "problem".to_owned(), variants, first: 0, note: notes.join(" ") };
    let figures = if figure.variants.is_empty() { Vec::new() } else { vec![Item::Figure(figure)] };
    let (name, title) = ("cases".to_owned(), "Every case".to_owned());
    let table = Item::Table(NamedTable { name, title, table: benchmark.rows.clone(), folded: false });
    let n_done = benchmark.cases.iter().filter(|case| case.seconds.is_some()).count();
    let n_certified = benchmark.cases.iter().filter(|case| case.seconds.is_some() && case.certified).count();
    Page {
        title: format!(
            "What decisions cost: {}, {} to decide",
            counted(programs.len(), "problem"),
            counted(solvers.len(), "way")
        ),
        subtitle: format!(
            "{}, {n_done} done, {n_certified} of them certified optimal",
            counted(benchmark.cases.len(), "case")
        ),
        about: benchmark.facts.clone(),
        facts: Vec::new(),
        sections: vec![
            Section { title: "Time against jobs".to_owned(), text: Vec::new(), items: figures },
            Section { title: "Cases".to_owned(), text: Vec::new(), items: vec![table] },
        ],
    }
}

/// `1 program`, `2 programs`.
fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

fn costs(program: &str, cases: &[&Case], solvers: &[String]) -> Chart {
    let mut sizes: Vec<usize> = cases.iter().map(|case| case.n_jobs).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |solver: &str, n_jobs: usize| -> Vec<&Case> {
        cases.iter().copied().filter(|case| case.solver() == solver && case.n_jobs == n_jobs).collect()
    };
    let mut absent = Vec::new();
    let mut series = Vec::new();
    for (style, name) in solvers.iter().enumerate() {
        let mut marks = Vec::new();
        for n_jobs in &sizes {
            let here = of(name, *n_jobs);
            let seconds: Vec<f64> = here.iter().filter_map(|case| case.seconds).collect();
            let Some(first) = here.first() else { continue };
            let x = *n_jobs as f64;
            marks.push(Repeated::of(&seconds, here.len()).map(|repeated| {
                let mark = Mark::of_repeated(&repeated, x, 1.0);
                if here.len() > 1 { mark } else { Mark { n: 0, ..mark } }
            }));
            let lacking: Vec<&&Case> = here.iter().filter(|case| case.seconds.is_none()).collect();
            let why = match (lacking.first(), here.len()) {
                (None, _) => continue,
                (Some(_), 1) => first.status.clone(),
                (Some(case), n) => format!("{} of {n}: {}", lacking.len(), case.status),
            };
            absent.push(Absent { series: style, x, why });
        }
        series.push(Series { name: name.clone(), style, marks });
    }
    let marks = || series.iter().flat_map(|series: &Series| series.marks.iter().flatten());
    let any_repeated = marks().any(|mark| mark.high.is_some());
    let values = marks().map(|mark| mark.y);
    let xs: Vec<f64> = sizes.iter().map(|n_jobs| *n_jobs as f64).collect();
    Chart {
        name: format!("cost-{}", file_name(program)),
        title: "Time of one decision against jobs".to_owned(),
        subtitle: format!(
            "{program}{}",
            if any_repeated { "; mean ± standard deviation over seeds" } else { "" }
        ),
        kind: Kind::Lines,
        x: Axis::new("jobs").fitted_to_places(&xs),
        y: Axis::new("processor time (s)").fitted(values),
        rows: Vec::new(),
        series,
        absent,
        published: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(sizes: &[usize], status: &str) -> String {
        let case = |n_jobs: &usize| Case {
            policy: "p".to_owned(),
            instance: "i".to_owned(),
            n_jobs: *n_jobs,
            backend: "b".to_owned(),
            n_parts: 1,
            seconds: (status == "done").then_some(*n_jobs as f64 / 1e3),
            certified: true,
            status: status.to_owned(),
        };
        let cases = sizes.iter().map(case).collect();
        let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
        match &page.sections[0].items[0] {
            Item::Figure(figure) => figure.note.clone(),
            _ => unreachable!("a figure comes first"),
        }
    }

    #[test]
    fn a_note_says_what_is_shown_and_nothing_else() {
        assert_eq!(note(&[32, 64, 128], "done"), "");
        assert!(note(&[32, 64, 2048], "done").contains("by factors"));
        assert!(!note(&[32, 64, 2048], "done").contains("cross"));
        assert!(note(&[32, 64], "timeout").starts_with("A cross above the plot"));
    }

    #[test]
    fn no_time_is_averaged_over_the_cases_that_were_quick_enough() {
        let case = |seconds: Option<f64>| Case {
            policy: "p".to_owned(),
            instance: "i".to_owned(),
            n_jobs: 32,
            backend: "default".to_owned(),
            n_parts: 1,
            seconds,
            certified: true,
            status: if seconds.is_some() { "done" } else { "timeout" }.to_owned(),
        };
        let cases = vec![case(Some(1.0)), case(Some(3.0)), case(None)];
        let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
        assert_eq!(page.title, "What decisions cost: 1 problem, 1 way to decide", "`default` is no backend");
        let Item::Figure(figure) = &page.sections[0].items[0] else { unreachable!("a figure comes first") };
        let chart = &figure.variants[0].1;
        let mark = chart.series[0].marks[0].unwrap();
        assert_eq!((mark.y, mark.n, mark.n_of, mark.high), (2.0, 2, Some(3), None));
        assert_eq!(chart.absent[0].why, "1 of 3: timeout");
        assert!(figure.note.contains("hollow"), "{}", figure.note);
    }
}
