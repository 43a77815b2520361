//! A page: one HTML document that needs nothing else, and the files that go with it.
//!
//! Text from results is escaped wherever it goes: as HTML in the document, and in the data for the page's script,
//! where nothing can end the element that holds it. A content security policy keeps the page from asking for
//! anything over a network.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use super::chart::{BANDS_MAX, Chart, Figure, HEADS, Look, PALETTE, POINTS, POINTS_SHOWN_MAX};
use super::gantt::Gantt;
use super::html::{escaped, write_figure, write_gantt, write_table, write_tables};
use super::pairs::Pairs;
use super::svg;
use super::table::Table;

const VEGA: &str = include_str!("vendor/vega.min.js");
const VEGA_LITE: &str = include_str!("vendor/vega-lite.min.js");
const VEGA_EMBED: &str = include_str!("vendor/vega-embed.min.js");
/// Scripts of ours, in order.
const SCRIPTS: [&str; 5] = [
    include_str!("charts.js"),
    include_str!("key.js"),
    include_str!("tables.js"),
    include_str!("gantt.js"),
    include_str!("page.js"),
];
const STYLE: &str = include_str!("page.css");

/// The title of the last section.
const FACTS: &str = "Where this comes from";

/// A table with its name and title.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTable {
    /// The stem of its file's name, unique in its page.
    pub name: String,
    /// The title of the table.
    pub title: String,
    /// The table.
    pub table: Table,
    /// Whether it is shown only on request.
    pub folded: bool,
}

/// Tables from which the reader chooses one.
#[derive(Clone, Debug, PartialEq)]
pub struct TableChoice {
    /// Name of the choice: `metric`.
    pub choice: String,
    /// Tables, the first of which is shown first.
    pub tables: Vec<NamedTable>,
}

/// An element of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A chart.
    Figure(Figure),
    /// Chart of every lease on every worker; at most one in a page.
    Gantt(Gantt),
    /// A table.
    Table(NamedTable),
    /// A choice among several tables.
    Tables(TableChoice),
    /// Comparison of any two of several compared values.
    Pairs(Pairs),
    /// A paragraph of text.
    Note(String),
}

/// Elements under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Paragraphs under it.
    pub text: Vec<String>,
    /// Elements of the section.
    pub items: Vec<Item>,
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The title of the page.
    pub title: String,
    /// Summary in a line or two.
    pub subtitle: String,
    /// Facts that come first: description, command, version, date.
    pub about: Vec<(String, String)>,
    /// Facts about the origin of the numbers.
    pub facts: Vec<(String, String)>,
    /// Its content.
    pub sections: Vec<Section>,
}

/// A file that goes with a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Name without a folder.
    pub name: String,
    /// Content.
    pub text: String,
}

impl Page {
    /// The page as an HTML document. The same page gives the same bytes.
    pub fn html(&self) -> String {
        let mut html = String::with_capacity(1 << 20);
        self.write_head(&mut html);
        let mut n_figures = 0;
        for (position, section) in self.sections.iter().enumerate() {
            let _ = writeln!(
                html,
                "<section aria-labelledby=\"section-{position}\">\n<h2 id=\"section-{position}\">{}</h2>",
                escaped(&section.title)
            );
            for paragraph in &section.text {
                let _ = writeln!(html, "<p>{}</p>", escaped(paragraph));
            }
            for item in &section.items {
                match item {
                    Item::Figure(figure) => {
                        write_figure(&mut html, figure, n_figures);
                        n_figures += 1;
                    }
                    Item::Gantt(gantt) => write_gantt(&mut html, gantt),
                    Item::Table(table) => write_table(&mut html, table),
                    Item::Tables(tables) => write_tables(&mut html, tables),
                    Item::Pairs(_) => html.push_str("<div class=\"pairs\"></div>\n"),
                    Item::Note(text) => {
                        let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(text));
                    }
                }
            }
            html.push_str("</section>\n");
        }
        self.write_facts(&mut html);
        html.push_str(
            "</main>\n<footer class=\"note\">Charts are drawn by Vega, Vega-Lite and vega-embed (University of Washington \
             Interactive Data Lab, BSD-3-Clause), which are part of this page.</footer>\n",
        );
        let _ = writeln!(html, "<script type=\"application/json\" id=\"data\">{}</script>", self.data());
        for script in [VEGA, VEGA_LITE, VEGA_EMBED].into_iter().chain(SCRIPTS) {
            let _ = writeln!(html, "<script>\n{script}</script>");
        }
        html.push_str("</body>\n</html>\n");
        html
    }

    /// Writes everything before the first section: title, first facts, contents.
    fn write_head(&self, html: &mut String) {
        let title = escaped(&self.title);
        let _ = write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' \
             'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
             <meta name=\"generator\" content=\"apportion {}\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n<header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n",
            env!("CARGO_PKG_VERSION"),
            escaped(&self.subtitle),
        );
        if !self.about.is_empty() {
            html.push_str("<dl class=\"about\">\n");
            for (name, value) in &self.about {
                let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
            }
            html.push_str("</dl>\n");
        }
        html.push_str("<nav class=\"contents\" aria-label=\"Contents\"><ul>\n");
        let titles = self.sections.iter().map(|section| section.title.as_str());
        let titles = titles.chain((!self.facts.is_empty()).then_some(FACTS));
        for (position, title) in titles.enumerate() {
            let _ = writeln!(html, "<li><a href=\"#section-{position}\">{}</a></li>", escaped(title));
        }
        html.push_str(
            "</ul></nav>\n</header>\n<p id=\"problem\" role=\"alert\" hidden></p>\n\
             <noscript><p class=\"note\">The charts need JavaScript; the tables do not.</p></noscript>\n<main>\n",
        );
    }

    fn write_facts(&self, html: &mut String) {
        if self.facts.is_empty() {
            return;
        }
        let position = self.sections.len();
        let _ = writeln!(
            html,
            "<section aria-labelledby=\"section-{position}\">\n<h2 id=\"section-{position}\">{FACTS}</h2>\n<table class=\"facts\">"
        );
        for (name, value) in &self.facts {
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                escaped(name),
                escaped(value)
            );
        }
        html.push_str("</table>\n</section>\n");
    }

    /// Data that the script draws, as JSON that no HTML parser can mistake for an end of its element.
    fn data(&self) -> String {
        let tables: serde_json::Map<String, serde_json::Value> =
            self.tables().map(|table| (table.name.clone(), table.table.csv().into())).collect();
        let figures: Vec<&Figure> = self.figures().collect();
        let charts = || figures.iter().flat_map(|figure| &figure.variants).map(|(_, chart)| chart);
        let styles = charts().flat_map(|chart| {
            chart.series.iter().map(|series| series.style).chain(chart.rows.iter().map(|(_, style)| *style))
        });
        let looks: Vec<Look> = (0..=styles.max().unwrap_or(0)).map(Look::of).collect();
        in_script(&json!({
            "looks": looks, "n_colours": PALETTE.len(), "n_points": POINTS, "points_shown_max": POINTS_SHOWN_MAX, "heads": HEADS,
            "bands_max": BANDS_MAX, "light": light().collect::<BTreeMap<_, _>>(), "pairs": self.pairs().collect::<Vec<_>>(),
            "figures": figures, "tables": tables,
            "gantt": self.gantt().map(Gantt::data),
        }))
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.sections.iter().flat_map(|section| &section.items)
    }

    fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.items().filter_map(|item| if let Item::Figure(figure) = item { Some(figure) } else { None })
    }

    fn gantt(&self) -> Option<&Gantt> {
        self.items().find_map(|item| if let Item::Gantt(gantt) = item { Some(gantt) } else { None })
    }

    fn pairs(&self) -> impl Iterator<Item = &Pairs> {
        self.items().filter_map(|item| if let Item::Pairs(pairs) = item { Some(pairs) } else { None })
    }

    fn tables(&self) -> impl Iterator<Item = &NamedTable> {
        self.items().flat_map(|item| match item {
            Item::Table(table) => std::slice::from_ref(table),
            Item::Tables(TableChoice { tables, .. }) => tables,
            _ => &[],
        })
    }

    /// First chart of the page as an SVG document; none if it has no chart.
    ///
    /// # Errors
    /// If it cannot be drawn: its name, and why.
    pub fn picture(&self) -> Result<Option<String>, String> {
        let shown = self.figures().next().and_then(|figure| figure.variants.get(figure.first));
        let draw = |(_, chart): &(String, Chart)| {
            svg::render(chart).map_err(|error| format!("{}: {error}", chart.name))
        };
        shown.map(draw).transpose()
    }

    /// Files of the page: every chart as SVG and CSV, every table as CSV.
    ///
    /// # Errors
    /// If a chart cannot be drawn: its name, and why.
    pub fn assets(&self) -> Result<Vec<Asset>, String> {
        let mut assets = Vec::new();
        let charts = self.figures().flat_map(|figure| &figure.variants).map(|(_, chart)| chart);
        for chart in charts {
            let Chart { name, .. } = chart;
            let text = svg::render(chart).map_err(|error| format!("{name}: {error}"))?;
            assets.push(Asset { name: format!("{name}.svg"), text });
            assets.push(Asset { name: format!("{name}.csv"), text: chart.table().csv() });
        }
        if let Some(gantt) = self.gantt() {
            assets.push(Asset { name: "gantt.svg".to_owned(), text: gantt.svg() });
            assets.push(Asset { name: "gantt.csv".to_owned(), text: gantt.table().csv() });
        }
        for NamedTable { name, table, .. } in self.tables() {
            assets.push(Asset { name: format!("{name}.csv"), text: table.csv() });
        }
        Ok(assets)
    }
}

/// Light colours by name, from the first rule of the page's style.
fn light() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rule = STYLE.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(rule, _)| rule);
    let pairs = rule.split(';').filter_map(|line| line.trim().strip_prefix("--")?.split_once(": "));
    pairs.map(|(name, value)| (name, value.trim()))
}

/// JSON inside a script element, with `<` and the line separators that old parsers take for line ends escaped.
fn in_script(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_vendored_scripts_ends_their_element() {
        for script in [VEGA, VEGA_LITE, VEGA_EMBED].into_iter().chain(SCRIPTS) {
            assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn the_light_colours_of_series_are_those_of_charts() {
        let light: BTreeMap<_, _> = light().collect();
        for (position, colour) in PALETTE.iter().enumerate() {
            assert_eq!(light.get(&*format!("c{position}")), Some(colour));
        }
        for script in SCRIPTS {
            for name in script.split("var(--").skip(1).filter_map(|rest| rest.split_once(')')) {
                assert!(name.0.starts_with("c$") || light.contains_key(name.0), "{}", name.0);
            }
        }
    }

    #[test]
    fn text_from_results_stays_text() {
        let nasty = "</script><img src=x onerror=alert(1)>\"'&\u{2028}";
        let mut table = Table::new([nasty]);
        table.push(vec![nasty.into()]);
        let named = NamedTable { name: "t".into(), title: nasty.into(), table, folded: false };
        let page = Page {
            title: nasty.into(),
            subtitle: nasty.into(),
            about: vec![(nasty.into(), nasty.into())],
            facts: vec![(nasty.into(), nasty.into())],
            sections: vec![Section {
                title: nasty.into(),
                text: vec![nasty.into()],
                items: vec![Item::Table(named), Item::Note(nasty.into())],
            }],
        };
        let html = page.html();
        assert!(!html.contains("<img src=x"), "an element was injected");
        assert!(
            html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\\u{2028}"),
            "and is shown"
        );
        let ends = html.matches("</script").count();
        assert_eq!(ends, html.matches("<script").count(), "every script ends once");
        let data = html.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script").next()).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert!(
            data["tables"]["t"].as_str().unwrap().contains("onerror=alert(1)"),
            "and reads back as it was"
        );
    }
}
