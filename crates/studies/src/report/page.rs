//! A page: one HTML document that needs nothing else, and the files that go with it.
//!
//! Text from results is escaped wherever it goes: as HTML in the document, and in the data for the page's script,
//! where nothing can end the element that holds it. A content security policy keeps the page from asking for
//! anything over a network.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use super::chart::{Chart, Figure, HEADS, Look, PALETTE, POINTS, POINTS_SHOWN_MAX};
use super::gantt::Gantt;
use super::plain::plain;
use super::svg;
use super::table::{Cell, Table};

const VEGA: &str = include_str!("vendor/vega.min.js");
const VEGA_LITE: &str = include_str!("vendor/vega-lite.min.js");
const VEGA_EMBED: &str = include_str!("vendor/vega-embed.min.js");
const SCRIPT: &str = include_str!("page.js");
const GANTT_SCRIPT: &str = include_str!("gantt.js");
const STYLE: &str = include_str!("page.css");

/// A table with what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTable {
    /// The stem of its file's name, unique in its page.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The table.
    pub table: Table,
    /// Shown only when asked for.
    pub folded: bool,
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A chart.
    Figure(Figure),
    /// Who had which workers when; at most one in a page.
    Gantt(Gantt),
    /// A table.
    Table(NamedTable),
    /// Words.
    Note(String),
}

/// Things under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Paragraphs under it.
    pub text: Vec<String>,
    /// What it holds.
    pub items: Vec<Item>,
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// In a line or two.
    pub subtitle: String,
    /// Where its numbers come from.
    pub facts: Vec<(String, String)>,
    /// Its content.
    pub sections: Vec<Section>,
}

/// A file that goes with a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Page {
    /// The document. The same page gives the same bytes.
    pub fn html(&self) -> String {
        let mut html = String::with_capacity(1 << 20);
        let title = escaped(&self.title);
        let _ = write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' \
             'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
             <meta name=\"generator\" content=\"apportion {}\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n<header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n</header>\n\
             <p id=\"problem\" hidden></p>\n\
             <noscript><p class=\"note\">The charts need JavaScript; the tables do not.</p></noscript>\n<main>\n",
            env!("CARGO_PKG_VERSION"),
            escaped(&self.subtitle),
        );
        let mut n_figures = 0;
        for section in &self.sections {
            let _ = writeln!(html, "<section>\n<h2>{}</h2>", escaped(&section.title));
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
                    Item::Note(text) => {
                        let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(text));
                    }
                }
            }
            html.push_str("</section>\n");
        }
        self.write_facts(&mut html);
        html.push_str("</main>\n");
        let _ = write!(
            html,
            "<script type=\"application/json\" id=\"data\">{}</script>\n\
             <script>{VEGA}</script>\n<script>{VEGA_LITE}</script>\n<script>{VEGA_EMBED}</script>\n\
             <script>\n{GANTT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            self.data()
        );
        html
    }

    fn write_facts(&self, html: &mut String) {
        html.push_str("<section>\n<h2>Where this comes from</h2>\n<table class=\"facts\">\n");
        for (name, value) in &self.facts {
            let _ = writeln!(html, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
        }
        html.push_str(
            "</table>\n<p class=\"note\">Charts are drawn by Vega, Vega-Lite and vega-embed (University of Washington \
             Interactive Data Lab, BSD-3-Clause), which are part of this page.</p>\n</section>\n",
        );
    }

    /// What the script draws, as JSON that no HTML parser can mistake for an end of its element.
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

    fn tables(&self) -> impl Iterator<Item = &NamedTable> {
        self.items().filter_map(|item| if let Item::Table(table) = item { Some(table) } else { None })
    }

    /// The chart that the page begins with, as an SVG document; none if it has no chart.
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

    /// Every chart as SVG and CSV, every table as CSV.
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

fn write_figure(html: &mut String, figure: &Figure, position: usize) {
    let _ = write!(html, "<figure id=\"figure-{position}\">\n<div class=\"tools\">");
    if figure.variants.len() > 1 {
        let _ = write!(html, "<label>{} <select>", escaped(&figure.choice));
        for (at, (label, _)) in figure.variants.iter().enumerate() {
            let selected = if at == figure.first { " selected" } else { "" };
            let _ = write!(html, "<option value=\"{at}\"{selected}>{}</option>", escaped(label));
        }
        html.push_str("</select></label>");
    }
    html.push_str(
        "<span class=\"buttons\"><button type=\"button\" data-as=\"svg\">SVG</button> \
         <button type=\"button\" data-as=\"csv\">CSV</button></span></div>\n<div class=\"chart\"></div>\n",
    );
    if !figure.note.is_empty() {
        let _ = writeln!(html, "<figcaption>{}</figcaption>", escaped(&figure.note));
    }
    html.push_str("</figure>\n");
}

fn write_gantt(html: &mut String, gantt: &Gantt) {
    let _ = write!(
        html,
        "<figure id=\"gantt\">\n<div class=\"tools\"><b>{}</b><span class=\"buttons\">\
         <button type=\"button\" data-zoom=\"+\" title=\"zoom in\">+</button> \
         <button type=\"button\" data-zoom=\"-\" title=\"zoom out\">−</button> \
         <button type=\"button\" data-zoom=\"0\">all</button> \
         <button type=\"button\" data-as=\"svg\">SVG</button> <button type=\"button\" data-as=\"csv\">CSV</button>\
         </span></div>\n<div class=\"canvas\"><canvas tabindex=\"0\" role=\"img\" aria-label=\"{}\"></canvas></div>\n\
         <figcaption>{}</figcaption>\n</figure>\n",
        escaped(gantt.title()),
        escaped(gantt.title()),
        escaped(&gantt.note())
    );
}

fn write_table(html: &mut String, NamedTable { name, title, table, folded }: &NamedTable) {
    let open = if *folded { "" } else { " open" };
    let _ = write!(
        html,
        "<details{open}>\n<summary>{}</summary>\n<div class=\"tools\"><span class=\"buttons\"><button type=\"button\" \
         data-as=\"csv\" data-table=\"{}\">CSV</button></span></div>\n<div class=\"wide\"><table>\n<thead><tr>",
        escaped(title),
        escaped(name)
    );
    let is_number = |column: usize| {
        let mut cells = table.rows().iter().map(|row| &row[column]);
        cells.any(|cell| matches!(cell, Cell::Number(..) | Cell::Scientific(_) | Cell::Count(_)))
    };
    let numbers: Vec<bool> = (0..table.columns().len()).map(is_number).collect();
    let class = |column: usize| if numbers[column] { "number" } else { "" };
    for (column, name) in table.columns().iter().enumerate() {
        let _ = write!(html, "<th class=\"{}\">{}</th>", class(column), escaped(name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let none = if *cell == Cell::Empty { " none" } else { "" };
            let text = escaped(&cell.for_people());
            let _ = write!(html, "<td class=\"{}{none}\">{text}</td>", class(column));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n</details>\n");
}

/// Text as HTML takes it, in an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in plain(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// JSON inside a script element: `<` and the line separators that old parsers take for line ends are spelt out.
fn in_script(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_vendored_scripts_ends_their_element() {
        for script in [VEGA, VEGA_LITE, VEGA_EMBED, GANTT_SCRIPT, SCRIPT] {
            assert!(!script.to_lowercase().contains("</script") && !script.contains("<!--"));
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
