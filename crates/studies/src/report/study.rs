//! Page about a study: many runs of several policies, summarized over seeds.

use std::collections::BTreeMap;

use apportion::metrics::cdf::Cdf;
use apportion::metrics::statistics::{Paired, Repeated};

use super::baseline;
use super::chart::{Chart, Figure, Kind, Series};
use super::label;
use super::page::{Item, NamedTable, Page, Section};
use super::pairs::{self, Pairs};
use super::table::Table;

mod distributions;
mod missing;
mod overview;
mod published;
mod values;

use distributions::{distribution, utilization};
pub use missing::GivenUp;
pub(super) use missing::why_absent;
pub use published::{Published, PublishedPoint};
use values::{makespans, metrics};

/// Numbers of a study that its page shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Name of the study.
    pub name: String,
    /// Name of what is compared: `policy`.
    pub series_axis: String,
    /// Compared values; their positions give their colours.
    pub series: Vec<String>,
    /// Position of the value that the others are compared with.
    pub baseline: usize,
    /// Name of the drawn axis, if there is one: `rate`.
    pub x_axis: Option<String>,
    /// Values of the axis over which runs are repeated.
    pub seeds: Vec<String>,
    /// Panels, one for each combination of the other axes' values.
    pub panels: Vec<Panel>,
    /// Published points.
    pub published: Vec<Published>,
    /// Setting that all runs share, for the page's head: cluster, workload.
    pub setting: String,
    /// Facts that come first: description, command, version, date.
    pub about: Vec<(String, String)>,
    /// Facts about the origin of the results: versions, digests, counts.
    pub facts: Vec<(String, String)>,
    /// Number of runs by status.
    pub counts: Vec<(String, usize)>,
    /// Table of every run.
    pub runs: Table,
}

impl Study {
    /// Whether all jobs are there at the start, so that the end of the last one matters.
    pub(super) fn is_static(&self) -> bool {
        self.x_axis.as_deref().is_some_and(|axis| axis.rsplit('.').next() == Some("static"))
    }
}

/// Points that agree in all axes but the compared, the drawn and the repeated one.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Label: `cluster: a=1,b=2`; empty if there is one panel.
    pub label: String,
    /// Points in the order of the grid.
    pub points: Vec<Point>,
}

/// Runs that differ only in their seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Position in [`Study::series`].
    pub series: usize,
    /// Place on the drawn axis.
    pub x: Option<f64>,
    /// Number of runs there should be: one per seed.
    pub n_of: usize,
    /// Number of runs that are not done, by status, or `not there`.
    pub unfinished: Vec<(String, usize)>,
    /// Proven capacity, jobs/h, where it was computed: no policy of the kind sustains more.
    pub capacity: Option<f64>,
    /// Metrics of the runs that are done, by column.
    pub metrics: BTreeMap<&'static str, Repeated>,
    /// Metrics run by run, by column, in the order of [`Study::seeds`]; none where a run has no such number.
    pub by_seed: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// Utilization by worker type.
    pub utilization: Vec<(String, Repeated)>,
    /// Measured jobs of finished runs that were given up.
    pub given_up: GivenUp,
    /// Job completion times, s, over all seeds, where all runs are done and their jobs were kept.
    pub jct: Option<Cdf>,
    /// Finish-time fairness of the jobs over all seeds, where all runs are done and their jobs were kept.
    pub rho: Option<Cdf>,
    /// Comparison of this point (first) with the baseline (second) over all seeds, by metric; none unless both have all.
    pub against_baseline: BTreeMap<&'static str, Paired>,
}

/// The page about a study.
pub fn page(study: &Study) -> Page {
    let counts: Vec<String> = study.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let is_empty = study.panels.iter().all(|panel| panel.points.is_empty());
    let seeds = match study.seeds.len() {
        _ if is_empty => String::new(),
        0 | 1 => "one seed; ".to_owned(),
        n_seeds => format!("{n_seeds} seeds; "),
    };
    let mut sections = Vec::new();
    if is_empty {
        let text = vec!["There are no runs in these results yet.".to_owned()];
        sections.push(Section { title: "Results".to_owned(), text, items: Vec::new() });
    }
    for (position, panel) in study.panels.iter().enumerate() {
        sections.extend(panel_sections(study, panel, &stem(study, position)));
    }
    let runs = NamedTable {
        name: "runs".into(),
        title: "Every run".into(),
        table: study.runs.clone(),
        folded: true,
    };
    sections.push(Section { title: "Runs".into(), text: Vec::new(), items: vec![Item::Table(runs)] });
    Page {
        title: heading(study),
        subtitle: format!("{}; {seeds}runs: {}", study.setting, counts.join(", ")),
        about: study.about.clone(),
        facts: study.facts.clone(),
        sections,
    }
}

/// Heading: `quick: 6 policies against arrival rate`.
fn heading(study: &Study) -> String {
    let n = study.series.len();
    let what = match (study.series_axis.as_str(), n) {
        (_, 0) => return study.name.clone(),
        (axis, 1) => format!("{axis} {}", study.series[0]),
        ("policy", n) => format!("{n} policies"),
        (axis, n) => format!("{n} values of {axis}"),
    };
    let axis = study.x_axis.as_deref().map(label::axis);
    let against = axis.and_then(|axis| Some(format!(" against {}", axis.split(" (").next()?)));
    format!("{}: {what}{}", study.name, against.unwrap_or_default())
}

/// Stem of the names of a panel's files.
fn stem(study: &Study, panel: usize) -> String {
    if study.panels.len() == 1 { String::new() } else { format!("panel-{}-", panel + 1) }
}

fn panel_sections(study: &Study, panel: &Panel, stem: &str) -> Vec<Section> {
    let of_panel = |title: &str| match panel.label.as_str() {
        "" => title.to_owned(),
        label => format!("{title}: {label}"),
    };
    let against: Vec<Item> = baseline::tables(study, panel, stem).into_iter().map(Item::Table).collect();
    let charts = [metrics(study, panel, stem), makespans(study, panel, stem)];
    let distributions = [
        distribution(study, panel, (stem, "jct"), |point| point.jct.as_ref()),
        distribution(study, panel, (stem, "rho"), |point| point.rho.as_ref()),
        utilization(study, panel, stem),
    ];
    let figures = |figures: Vec<Option<Figure>>| figures.into_iter().flatten().map(Item::Figure).collect();
    let mut items: Vec<Item> = figures(charts.into());
    let pairs = Pairs::of(study, panel);
    if !against.is_empty() {
        items.push(Item::Note(baseline::method(study)));
    }
    items.extend(against);
    let mut more: Vec<Item> = figures(distributions.into());
    if panel.points.iter().all(|point| point.jct.is_none()) && !panel.points.is_empty() {
        more.push(Item::Note(
            "Distributions over jobs are not shown: nowhere is every seed done with its jobs in these results. \
             `apportion sweep … --keep-jobs` keeps them."
                .to_owned(),
        ));
    }
    let section = |title: &str, text: Vec<String>, items| Section { title: of_panel(title), text, items };
    let mut sections = Vec::new();
    if let Some(overview) = overview::overview(study, panel, stem) {
        sections.push(section("Overview", overview::text(study, panel), vec![overview]));
    }
    sections.push(section("Metrics of whole runs", Vec::new(), items));
    if let Some(pairs) = pairs {
        sections.push(section("Any two compared", vec![pairs::text(study)], vec![Item::Pairs(pairs)]));
    }
    sections.push(section("How jobs and workers fare", Vec::new(), more));
    sections
}

/// Meaning of values and ranges, in words.
fn spread_text(study: &Study, panel: &Panel, series: &[Series]) -> String {
    let label = if panel.label.is_empty() { String::new() } else { format!("{}; ", panel.label) };
    let marks = || series.iter().flat_map(|series| series.marks.iter().flatten());
    let hollow = marks().any(|mark| mark.n_of.is_some());
    let filled = marks().any(|mark| mark.n_of.is_none());
    match study.seeds.len() {
        0 | 1 => format!("{label}one seed, so no spread"),
        n => {
            let whole = format!("mean ± standard deviation over {n} seeds");
            let part = format!("hollow: mean over fewer than {n} seeds, the others have no number");
            let texts = [Some(whole).filter(|_| filled || !hollow), Some(part).filter(|_| hollow)];
            format!("{label}{}", texts.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
    }
}

/// Values on the drawn axis, ascending.
fn xs(panel: &Panel) -> Vec<f64> {
    let mut xs: Vec<f64> = panel.points.iter().filter_map(|point| point.x).collect();
    xs.sort_unstable_by(f64::total_cmp);
    xs.dedup();
    xs
}

pub(super) fn same(x: Option<f64>, other: Option<f64>) -> bool {
    match (x, other) {
        (Some(x), Some(other)) => x.total_cmp(&other).is_eq(),
        (None, None) => true,
        _ => false,
    }
}

fn at(panel: &Panel, series: usize, x: Option<f64>) -> Option<&Point> {
    panel.points.iter().find(|point| point.series == series && same(point.x, x))
}

/// Places on the drawn axis; one without a value if there is no drawn axis.
pub(super) fn places(panel: &Panel) -> Vec<Option<f64>> {
    let xs = xs(panel);
    if xs.is_empty() { vec![None] } else { xs.into_iter().map(Some).collect() }
}

/// Rows of bars, one for each compared value; a name includes the statuses of unfinished runs.
fn rows(study: &Study, panel: &Panel, x: Option<f64>) -> Vec<(String, usize)> {
    let row = |(style, name): (usize, &String)| match at(panel, style, x).and_then(why_absent) {
        Some(why) => (format!("{name} ({why})"), style),
        None => (name.clone(), style),
    };
    study.series.iter().enumerate().map(row).collect()
}

/// Name of a place: `arrival rate 0.4 jobs/h`.
fn place_text(study: &Study, x: Option<f64>) -> Option<String> {
    let axis = label::axis(study.x_axis.as_deref()?);
    let (name, unit) = axis.split_once(" (").unwrap_or((&axis, ""));
    Some(format!("{name} {} {}", x?, unit.trim_end_matches(')')).trim_end().to_owned())
}

/// Charts at each place of the drawn axis; the first shown is the last place at which most series have a value.
fn by_place(
    study: &Study,
    panel: &Panel,
    name: &str,
    chart: impl Fn(Option<f64>) -> Chart,
) -> Option<Figure> {
    let places = places(panel);
    let label = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
    let with_name = |x: Option<f64>| {
        let name =
            if places.len() > 1 { format!("{name}-at-{}", file_name(&label(x))) } else { name.to_owned() };
        (label(x), Chart { name, ..chart(x) })
    };
    let mut variants: Vec<(String, Chart)> = places.iter().map(|x| with_name(*x)).collect();
    variants.retain(|(_, chart)| !chart.is_empty());
    let n_shown = |chart: &Chart| -> usize {
        let shown = |series: &Series| series.marks.iter().flatten().count();
        let is_bars = chart.kind == Kind::Bars;
        chart.series.iter().map(shown).map(|n| if is_bars { n } else { n.min(1) }).sum()
    };
    let first = (0..variants.len()).max_by_key(|at| n_shown(&variants[*at].1)).unwrap_or(0);
    let choice = study.x_axis.as_deref().map(label::axis).unwrap_or_default();
    (!variants.is_empty()).then(|| Figure { choice, variants, first, note: String::new() })
}

/// Text with all characters but letters, digits and dots replaced by dashes.
pub(super) fn file_name(text: &str) -> String {
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    text.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(series: usize, x: f64, jct_s: Option<f64>, unfinished: &[(&str, usize)]) -> Point {
        let n_of = if unfinished.is_empty() { 2 } else { 3 };
        let spread = jct_s.and_then(|jct| Repeated::of(&[jct, 3.0 * jct], n_of));
        Point {
            series,
            x: Some(x),
            n_of,
            capacity: Some(1.5),
            by_seed: BTreeMap::new(),
            unfinished: unfinished.iter().map(|(status, n)| ((*status).to_owned(), *n)).collect(),
            metrics: spread.into_iter().flat_map(|s| [("average_jct_s", s), ("makespan_s", s)]).collect(),
            utilization: spread.map(|spread| ("a".to_owned(), spread)).into_iter().collect(),
            jct: jct_s.and_then(|jct| Cdf::of(vec![jct])),
            rho: None,
            given_up: GivenUp::default(),
            against_baseline: BTreeMap::new(),
        }
    }

    fn study(names: [&str; 2], points: Vec<Point>) -> Study {
        Study {
            name: "s".to_owned(),
            series_axis: "policy".to_owned(),
            series: names.map(str::to_owned).to_vec(),
            baseline: 0,
            x_axis: Some("rate".to_owned()),
            seeds: vec!["0".to_owned(), "1".to_owned()],
            panels: vec![Panel { label: String::new(), points }],
            published: Vec::new(),
            setting: "a cluster".to_owned(),
            about: Vec::new(),
            facts: Vec::new(),
            counts: Vec::new(),
            runs: Table::new(["run"]),
        }
    }

    #[test]
    fn published_points_are_beside_ours() {
        let points = vec![point(0, 1.0, Some(3600.0), &[]), point(1, 2.0, Some(7200.0), &[])];
        let mut study = study(["p", "q"], points);
        let points = [(0, 1.0, 2.5), (1, 2.0, 300.0), (1, 1.0, 4.0)];
        let points = points.map(|(series, x, value)| PublishedPoint { series, x, value }).into();
        study.published =
            vec![Published { metric: "average_jct_s".to_owned(), source: "a notebook".to_owned(), points }];
        let page = page(&study);
        let charts = charts(&page);
        let jct = charts.iter().find(|chart| chart.name == "average-jct").unwrap();
        let places = |series: &Series| series.marks.iter().flatten().map(|m| (m.x, m.y)).collect::<Vec<_>>();
        assert_eq!(places(&jct.published[0]), [(1.0, 2.5)]);
        assert_eq!(places(&jct.published[1]), [(2.0, 300.0), (1.0, 4.0)]);
        assert_eq!(jct.y.scale, crate::report::chart::Scale::Log, "it has room for them, too");
        assert!(jct.subtitle.ends_with("; rings: published, a notebook"), "{}", jct.subtitle);
        let csv = jct.table().csv();
        assert!(csv.contains("\nq (published),2,300,,,,,,\n"), "{csv}");
        let svg = super::super::svg::render(jct).unwrap();
        assert_eq!(svg.matches("r=\"6\"").count(), 4, "three rings and one in the legend");
        assert!(charts.iter().all(|chart| chart.name == "average-jct" || chart.published.is_empty()));
    }

    fn charts(page: &Page) -> Vec<&Chart> {
        let items = page.sections.iter().flat_map(|section| &section.items);
        let figures =
            items.filter_map(|item| if let Item::Figure(figure) = item { Some(figure) } else { None });
        figures.flat_map(|figure| &figure.variants).map(|(_, chart)| chart).collect()
    }

    #[test]
    fn runs_without_a_number_are_shown_as_such() {
        let points = vec![
            point(0, 1.0, Some(3600.0), &[]),
            point(0, 2.0, Some(7200.0), &[("failed", 1)]),
            point(1, 1.0, Some(3600.0), &[]),
            point(1, 2.0, None, &[("saturated", 3)]),
        ];
        let page = page(&study(["p", "q"], points));
        let charts = charts(&page);
        let chart = |name: &str| charts.iter().find(|chart| chart.name == name).copied().unwrap();
        let jct = chart("average-jct");
        let absent: Vec<_> = jct.absent.iter().map(|a| (a.series, a.x, a.why.as_str())).collect();
        assert_eq!(absent, [(0, 2.0, "1 of 3 failed"), (1, 2.0, "saturated above 1.5 jobs/h")]);
        assert!(jct.subtitle.ends_with("; ×: failed, saturated"), "{}", jct.subtitle);
        assert_eq!(jct.series[1].marks.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
        let mark = jct.series[0].marks[1].unwrap();
        assert_eq!((mark.y, mark.low, mark.high, mark.n, mark.n_of), (4.0, None, None, 2, Some(3)));
        assert!(jct.subtitle.contains("hollow: mean over fewer than 2 seeds"), "{}", jct.subtitle);
        let whole = jct.series[0].marks[0].unwrap();
        assert_eq!((whole.y, whole.low, whole.high), (2.0, Some(0.585_786), Some(3.414_21)));
        let pieces: Vec<usize> = jct.series[0].pieces().iter().map(Vec::len).collect();
        assert_eq!(pieces, [1], "no line leads to the hollow point");
        let bars: Vec<_> = chart("makespan-bars-at-2").rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(bars, ["p (1 of 3 failed)", "q (saturated above 1.5 jobs/h)"]);
        assert!(chart("jct-cdf-at-2").subtitle.ends_with("; not shown: q (saturated above 1.5 jobs/h)"));
        assert!(page.assets().unwrap().iter().any(|asset| asset.name == "average-jct.svg"));
    }

    #[test]
    fn jobs_that_are_all_there_are_about_the_makespan() {
        let points = || {
            let mut points = vec![point(0, 100.0, Some(7200.0), &[]), point(1, 100.0, Some(3600.0), &[])];
            let paired = Paired::of(&[(7200.0, 3600.0)]).unwrap();
            points[1].against_baseline = [("average_jct_s", paired), ("makespan_s", paired)].into();
            points
        };
        let mut of_static = study(["p", "q"], points());
        of_static.x_axis = Some("workload.static".to_owned());
        for (study, first) in [(study(["p", "q"], points()), "average-jct"), (of_static, "makespan")] {
            let page = page(&study);
            let items = page.sections.iter().flat_map(|section| &section.items);
            let tables: Vec<&NamedTable> = items
                .filter_map(|item| if let Item::Table(table) = item { Some(table) } else { None })
                .collect();
            assert_eq!(tables[0].name, format!("against-baseline-{first}"));
            let open: Vec<bool> = tables.iter().map(|table| !table.folded).collect();
            assert_eq!(open, [true, false, false], "the first alone is open");
        }
    }

    #[test]
    fn tables_against_the_baseline_name_jobs_given_up() {
        let mut points = vec![point(0, 1.0, Some(7200.0), &[]), point(1, 1.0, Some(3600.0), &[])];
        let paired = Paired::of(&[(7200.0, 3600.0)]).unwrap();
        points[1].against_baseline = [("average_jct_s", paired), ("cost", paired)].into();
        points[0].given_up = GivenUp { n: 2, n_of: 60 };
        let study = study(["p", "q"], points);
        let tables = baseline::tables(&study, &study.panels[0], "");
        let last = |table: &NamedTable| format!("{:?}", table.table.rows()[0].last().unwrap());
        let [jct, cost] = &tables[..] else { panic!("{tables:?}") };
        assert!(last(jct).contains("p: 2 of 60 jobs given up"), "{jct:?}");
        assert!(!last(cost).contains("given up"), "the cost is of all jobs: {cost:?}");
    }

    #[test]
    fn a_study_without_runs_says_so() {
        let mut empty = study(["p", "q"], Vec::new());
        assert!(page(&empty).html().contains("There are no runs in these results yet."));
        empty.panels.clear();
        empty.series.clear();
        assert!(page(&empty).html().contains("There are no runs in these results yet."));
        assert!(page(&empty).assets().unwrap().iter().all(|asset| asset.name == "runs.csv"));
    }

    #[test]
    fn each_of_many_series_has_a_look_of_its_own_in_the_page() {
        let mut many = study(["p", "q"], (0..30).map(|at| point(at, 1.0, Some(3600.0), &[])).collect());
        many.series = (0..30).map(|at| format!("policy-{at}")).collect();
        let html = page(&many).html();
        let data = html.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script").next()).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let looks: std::collections::BTreeSet<String> =
            data["looks"].as_array().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(looks.len(), 30);
        let pairs: std::collections::BTreeSet<String> = data["looks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|look| format!("{} {}", look["colour"], look["dash"]))
            .collect();
        assert_eq!(pairs.len(), 30, "distributions, which have no points, too");
    }

    #[test]
    fn names_stay_text_in_files_too() {
        let nasty = "</script><b>&\"";
        let page = page(&study([nasty, "q"], vec![point(0, 1.0, Some(3600.0), &[])]));
        for asset in page.assets().unwrap().iter().filter(|asset| asset.text.starts_with("<svg")) {
            assert!(!asset.text.contains("<b>") && !asset.text.contains("</script"), "{}", asset.name);
        }
        let html = page.html();
        assert_eq!(html.matches("</script").count(), html.matches("<script").count());
    }
}
