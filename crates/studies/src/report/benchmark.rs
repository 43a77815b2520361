//! Page about a benchmark: the cost of decisions, by policy and family of instances, size and solver. A solver is a backend,
//! or a policy's own way to decide, which may be without a program and in several parts.

use apportion::metrics::statistics::Repeated;
use apportion_logs::tally::counted;

use super::chart::{Absent, Axis, Chart, Figure, Kind, Mark, Scale, Series};
use super::number::six_digits;
use super::page::{Item, NamedTable, Page, Section};
use super::study::file_name;
use super::table::Table;

/// A measured case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the policy.
    pub policy: String,
    /// Name of the family of instances.
    pub instance: String,
    /// Number of jobs.
    pub n_jobs: usize,
    /// Backend that solved it, or `default` for the policy's own choice, with programs or without.
    pub backend: String,
    /// Number of parts into which it was split; 1 is the whole.
    pub n_parts: usize,
    /// Median cost of its repeats, s, if it was done.
    pub seconds: Option<f64>,
    /// Least and greatest cost of its repeats, s, where there were several.
    pub range: Option<(f64, f64)>,
    /// Whether costs are by the clock, because the system tells no processor time.
    pub by_clock: bool,
    /// Whether the answer is a certified optimum.
    pub certified: bool,
    /// Status: `done`, or why not.
    pub status: String,
}

impl Case {
    /// Name of the problem without its size.
    fn problem(&self) -> String {
        format!("{}, {}", self.policy, self.instance)
    }

    /// Name of the solver, with the number of parts if there were several.
    fn solver(&self) -> String {
        match self.n_parts {
            1 => self.backend.clone(),
            n_parts => format!("{}, {n_parts} parts", self.backend),
        }
    }
}

/// Cases of a benchmark, with its rows and facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// Cases in order.
    pub cases: Vec<Case>,
    /// Table of all rows with all columns.
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
    let programs = unique(Case::problem);
    let chart = |program: &String| {
        let of_program = |case: &&Case| case.problem() == *program;
        let cases: Vec<&Case> = benchmark.cases.iter().filter(of_program).collect();
        let chart = if sizes(&cases).len() == 1 {
            by_solver(program, &cases, &solvers)
        } else {
            costs(program, &cases, (&solvers, Case::solver))
        };
        (program.clone(), chart)
    };
    let mut variants: Vec<(String, Chart)> = programs.iter().map(chart).collect();
    if variants.len() > 1 && variants.iter().all(|(_, chart)| chart.kind == Kind::Bars) {
        variants.insert(0, ("all".to_owned(), by_problem(&benchmark.cases, &programs, &solvers)));
    } else if let ([solver], true) = (&solvers[..], variants.len() > 1) {
        let cases: Vec<&Case> = benchmark.cases.iter().collect();
        variants.insert(0, ("all".to_owned(), costs(solver, &cases, (&programs, Case::problem))));
    }
    let any = |is: fn(&Chart) -> bool| variants.iter().any(|(_, chart)| is(chart));
    let mut notes = Vec::new();
    if any(|chart| chart.x.scale == Scale::Log || chart.y.scale == Scale::Log) {
        notes.push("An axis over more than a factor of ten or so runs by factors.");
    }
    if any(|chart| {
        chart.series.iter().any(|series| series.marks.iter().flatten().any(|mark| mark.high.is_some()))
    }) {
        notes.push("Of one case, the median of its repeats is shown, and a line or band from the least to the most of them.");
    }
    if any(|chart| !chart.absent.is_empty()) {
        notes.push("A cross above the plot marks cases without a time: hover over it for why.");
    }
    if any(Chart::has_hollow) {
        notes.push("A hollow mark shows the mean of those that have one, which is not the mean of all.");
    }
    let against_jobs = variants.is_empty() || any(|chart| chart.kind == Kind::Lines);
    let heading = if against_jobs { "Time against jobs" } else { "Time of a decision" };
    let figure = Figure { choice: "problem".to_owned(), variants, first: 0, note: notes.join(" ") };
    let figures = if figure.variants.is_empty() { Vec::new() } else { vec![Item::Figure(figure)] };
    let (name, title) = ("cases".to_owned(), "Every case".to_owned());
    let table = Item::Table(NamedTable { name, title, table: benchmark.rows.clone(), folded: false });
    let n_done = benchmark.cases.iter().filter(|case| case.seconds.is_some()).count();
    let n_certified = benchmark.cases.iter().filter(|case| case.seconds.is_some() && case.certified).count();
    Page {
        title: format!(
            "What decisions cost: {}, {} to decide",
            counted(programs.len() as u64, "problem"),
            counted(solvers.len() as u64, "way")
        ),
        subtitle: format!(
            "{}, {n_done} done, {n_certified} of them certified optimal",
            counted(benchmark.cases.len() as u64, "case")
        ),
        about: benchmark.facts.clone(),
        facts: Vec::new(),
        sections: vec![
            Section { title: heading.to_owned(), text: Vec::new(), items: figures },
            Section { title: "Cases".to_owned(), text: Vec::new(), items: vec![table] },
        ],
    }
}

/// Numbers of jobs of some cases, ascending.
fn sizes(cases: &[&Case]) -> Vec<usize> {
    let mut sizes: Vec<usize> = cases.iter().map(|case| case.n_jobs).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Description of how the times were measured.
fn measure(cases: &[&Case]) -> String {
    let done = || cases.iter().filter(|case| case.seconds.is_some());
    let clocked = done().filter(|case| case.by_clock).count();
    let kind = match clocked {
        0 => "processor time",
        n if n == done().count() => "clock time",
        _ => "processor time, or the clock's where there is no other",
    };
    format!("{kind} (s)")
}

/// Value of cases that differ only in their seeds, and the reason why it is not that of all, if it is not.
fn mark(here: &[&Case], x: f64) -> (Option<Mark>, Option<String>) {
    let seconds: Vec<f64> = here.iter().filter_map(|case| case.seconds).collect();
    let mark = Repeated::of(&seconds, here.len()).map(|repeated| {
        let mark = Mark::of_repeated(&repeated, x, 1.0);
        let range = here.first().and_then(|case| case.range).filter(|_| here.len() == 1);
        match range {
            Some((low, high)) => {
                Mark { n: 0, low: Some(six_digits(low)), high: Some(six_digits(high)), ..mark }
            }
            None if here.len() > 1 => mark,
            None => Mark { n: 0, ..mark },
        }
    });
    let lacking: Vec<&&Case> = here.iter().filter(|case| case.seconds.is_none()).collect();
    let why = lacking.first().map(|case| match here.len() {
        1 => case.status.clone(),
        n => format!("{} of {n}: {}", lacking.len(), case.status),
    });
    (mark, why)
}

/// Meaning of the ranges of a chart, in words.
fn ranges(is_over_seeds: bool, marks: &[&Series]) -> &'static str {
    let any = marks.iter().any(|series| series.marks.iter().flatten().any(|mark| mark.high.is_some()));
    match (any, is_over_seeds) {
        (true, true) => "; mean ± standard deviation over seeds",
        (true, false) => "; median, from the least to the most of its repeats",
        (false, _) => "",
    }
}

/// Chart with a bar for each solver of a problem of one size; a solver's name says why it has none, or no whole one.
fn by_solver(program: &str, cases: &[&Case], solvers: &[String]) -> Chart {
    let (mut rows, mut marks) = (Vec::new(), Vec::new());
    for (style, solver) in solvers.iter().enumerate() {
        let here: Vec<&Case> = cases.iter().copied().filter(|case| case.solver() == *solver).collect();
        if here.is_empty() {
            continue;
        }
        let (mark, why) = mark(&here, 0.0);
        let status = here.iter().find(|case| case.seconds.is_none()).map(|case| case.status.as_str());
        let brief = status.and_then(|status| status.split(':').next());
        rows.push((
            brief.filter(|_| why.is_some()).map_or(solver.clone(), |why| format!("{solver} ({why})")),
            style,
        ));
        marks.push(mark);
    }
    let series = Series { name: "one decision".to_owned(), style: 0, marks };
    let n_jobs = sizes(cases).first().copied().unwrap_or_default();
    let is_over_seeds = is_over_seeds(cases);
    Chart {
        subtitle: format!(
            "{program}, {}{}",
            counted(n_jobs as u64, "job"),
            ranges(is_over_seeds, &[&series])
        ),
        rows,
        ..bars(&format!("cost-{}", file_name(program)), cases, vec![series])
    }
}

/// Chart with a group of bars for each problem, one bar per solver.
fn by_problem(cases: &[Case], programs: &[String], solvers: &[String]) -> Chart {
    let one = |program: &String, solver: &String| {
        let is_here = |case: &&Case| case.problem() == *program && case.solver() == *solver;
        mark(&cases.iter().filter(is_here).collect::<Vec<_>>(), 0.0).0
    };
    let series = |(style, solver): (usize, &String)| Series {
        name: solver.clone(),
        style,
        marks: programs.iter().map(|program| one(program, solver)).collect(),
    };
    let series: Vec<Series> = solvers.iter().enumerate().map(series).collect();
    let cases: Vec<&Case> = cases.iter().collect();
    let over_seeds = is_over_seeds(&cases);
    let chart = bars("cost-all", &cases, series);
    let subtitle = format!("all problems{}", ranges(over_seeds, &chart.series.iter().collect::<Vec<_>>()));
    let rows = programs.iter().map(|program| (program.clone(), 0)).collect();
    Chart { subtitle, rows, y: Axis::new("problem"), ..chart }
}

/// Whether there are cases that differ only in their seeds.
fn is_over_seeds(cases: &[&Case]) -> bool {
    let key = |case: &Case| (case.problem(), case.solver(), case.n_jobs);
    cases.iter().enumerate().any(|(at, case)| cases[..at].iter().any(|other| key(other) == key(case)))
}

/// A chart of bars, whose rows are still to be filled in.
fn bars(name: &str, cases: &[&Case], series: Vec<Series>) -> Chart {
    Chart {
        name: name.to_owned(),
        title: "Time of one decision".to_owned(),
        subtitle: String::new(),
        kind: Kind::Bars,
        x: Axis::new(measure(cases)).from_zero(),
        y: Axis::new("solver"),
        rows: Vec::new(),
        series,
        absent: Vec::new(),
        published: Vec::new(),
    }
}

/// Chart of costs against the number of jobs, with a line for each of `names`: the solvers of one problem, or the problems
/// of one solver.
fn costs(title: &str, cases: &[&Case], (names, name_of): (&[String], fn(&Case) -> String)) -> Chart {
    let sizes = sizes(cases);
    let of = |name: &str, n_jobs: usize| -> Vec<&Case> {
        cases.iter().copied().filter(|case| name_of(case) == name && case.n_jobs == n_jobs).collect()
    };
    let mut absent = Vec::new();
    let mut series = Vec::new();
    for (style, name) in names.iter().enumerate() {
        let mut marks = Vec::new();
        for n_jobs in &sizes {
            let here = of(name, *n_jobs);
            if here.is_empty() {
                continue;
            }
            let x = *n_jobs as f64;
            let (mark, why) = mark(&here, x);
            marks.push(mark);
            absent.extend(why.map(|why| Absent { series: style, x, why }));
        }
        series.push(Series { name: name.clone(), style, marks });
    }
    let marks = || series.iter().flat_map(|series: &Series| series.marks.iter().flatten());
    let values = marks().flat_map(|mark| [Some(mark.y), mark.low, mark.high]).flatten();
    let y = Axis::new(measure(cases)).fitted(values);
    let ranges = ranges(is_over_seeds(cases), &series.iter().collect::<Vec<_>>());
    let xs: Vec<f64> = sizes.iter().map(|n_jobs| *n_jobs as f64).collect();
    Chart {
        name: format!("cost-{}", file_name(title)),
        title: "Time of one decision against jobs".to_owned(),
        subtitle: format!("{title}{ranges}"),
        kind: Kind::Lines,
        x: Axis::new("jobs").fitted_to_places(&xs),
        y,
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
            range: None,
            by_clock: false,
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
    fn problems_that_are_decided_in_one_way_are_lines_of_one_chart() {
        let case = |(policy, n_jobs): (&str, usize)| Case {
            policy: policy.to_owned(),
            instance: "i".to_owned(),
            n_jobs,
            backend: "default".to_owned(),
            n_parts: 1,
            seconds: Some(n_jobs as f64),
            range: None,
            by_clock: false,
            certified: true,
            status: "done".to_owned(),
        };
        let cases = [("p", 32), ("p", 64), ("q", 32), ("q", 64)].map(case).into();
        let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
        let Item::Figure(figure) = &page.sections[0].items[0] else { unreachable!("a figure comes first") };
        let names: Vec<&str> = figure.variants.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["all", "p, i", "q, i"]);
        let series: Vec<&str> =
            figure.variants[0].1.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(series, ["p, i", "q, i"]);
        assert!(figure.variants[0].1.subtitle.starts_with("default"), "it says what decided");
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
            range: None,
            by_clock: false,
            certified: true,
            status: if seconds.is_some() { "done" } else { "timeout" }.to_owned(),
        };
        let larger = Case { n_jobs: 64, ..case(Some(9.0)) };
        let cases = vec![case(Some(1.0)), case(Some(3.0)), case(None), larger];
        let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
        assert_eq!(page.title, "What decisions cost: 1 problem, 1 way to decide", "`default` is no backend");
        let Item::Figure(figure) = &page.sections[0].items[0] else { unreachable!("a figure comes first") };
        let chart = &figure.variants[0].1;
        let mark = chart.series[0].marks[0].unwrap();
        assert_eq!((mark.y, mark.n, mark.n_of, mark.high), (2.0, 2, Some(3), None));
        assert_eq!(chart.absent[0].why, "1 of 3: timeout");
        assert!(figure.note.contains("hollow"), "{}", figure.note);
    }

    #[test]
    fn one_size_has_bars_by_solver_and_problem() {
        let case = |policy: &str, backend: &str, seconds: Option<f64>| Case {
            policy: policy.to_owned(),
            instance: "i".to_owned(),
            n_jobs: 32,
            backend: backend.to_owned(),
            n_parts: 1,
            seconds,
            range: seconds.map(|seconds| (seconds / 2.0, seconds * 2.0)),
            by_clock: false,
            certified: true,
            status: if seconds.is_some() { "done" } else { "failed: no bound" }.to_owned(),
        };
        let cases = vec![
            case("p", "one", Some(1.0)),
            case("p", "other", None),
            case("q", "one", Some(4.0)),
            case("q", "other", Some(3.0)),
        ];
        let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
        assert_eq!(page.sections[0].title, "Time of a decision");
        let Item::Figure(figure) = &page.sections[0].items[0] else { unreachable!("a figure comes first") };
        assert!(figure.note.contains("median"), "{}", figure.note);
        let labels: Vec<&str> = figure.variants.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["all", "p, i", "q, i"]);
        let (all, of_p) = (&figure.variants[0].1, &figure.variants[1].1);
        assert_eq!((all.kind, all.series.len(), all.rows.len()), (Kind::Bars, 2, 2));
        assert_eq!((all.series[1].marks[0], all.series[1].marks[1].unwrap().y), (None, 3.0));
        let rows: Vec<&str> = of_p.rows.iter().map(|(row, _)| row.as_str()).collect();
        assert_eq!(rows, ["one", "other (failed)"]);
        let mark = of_p.series[0].marks[0].unwrap();
        assert_eq!((mark.y, mark.low, mark.high), (1.0, Some(0.5), Some(2.0)));
        assert_eq!(of_p.subtitle, "p, i, 32 jobs; median, from the least to the most of its repeats");
        assert_eq!(of_p.x.title, "processor time (s)");
    }

    #[test]
    fn times_by_the_clock_are_called_so() {
        let case = |n_jobs, by_clock| Case {
            policy: "p".to_owned(),
            instance: "i".to_owned(),
            n_jobs,
            backend: "b".to_owned(),
            n_parts: 1,
            seconds: Some(1.0),
            range: None,
            by_clock,
            certified: true,
            status: "done".to_owned(),
        };
        let titled = |cases: Vec<Case>| {
            let page = page(&Benchmark { cases, rows: Table::new(["case"]), facts: Vec::new() });
            match &page.sections[0].items[0] {
                Item::Figure(figure) => figure.variants[0].1.y.title.clone(),
                _ => unreachable!("a figure comes first"),
            }
        };
        assert_eq!(titled(vec![case(1, true), case(2, true)]), "clock time (s)");
        assert!(titled(vec![case(1, true), case(2, false)]).contains("or the clock's"));
    }
}
