//! Elements of a page as HTML: figures, tables and choices.

use std::fmt::Write as _;

use super::chart::{Figure, Kind};
use super::gantt::Gantt;
use super::page::{NamedTable, TableChoice};
use super::plain::plain;
use super::table::{Cell, Table};

/// Writes a figure, whose chart and key the page's script draws.
pub(super) fn write_figure(html: &mut String, figure: &Figure, position: usize) {
    let _ = write!(
        html,
        "<figure id=\"figure-{position}\" aria-labelledby=\"name-{position}\">\n<div class=\"tools\">"
    );
    if figure.variants.len() > 1 {
        write_choice(
            html,
            &figure.choice,
            figure.variants.iter().map(|(label, _)| label.as_str()),
            figure.first,
        );
    }
    let shown = figure.variants.get(figure.first).map(|(_, chart)| chart);
    let (title, subtitle) = shown.map_or(("", ""), |chart| (&*chart.title, &*chart.subtitle));
    let key =
        if shown.is_some_and(|chart| chart.kind != Kind::Bars) { "<div class=\"key\"></div>\n" } else { "" };
    let _ = write!(
        html,
        "<span class=\"switches tools\"></span><span class=\"buttons\"><button type=\"button\" data-as=\"svg\">SVG</button> \
         <button type=\"button\" data-as=\"csv\">CSV</button></span></div>\n<h3 id=\"name-{position}\">{}</h3>\n\
         <p class=\"of\">{}</p>\n<div class=\"chart\"></div>\n{key}",
        escaped(title),
        escaped(subtitle)
    );
    if !figure.note.is_empty() {
        let _ = writeln!(html, "<figcaption>{}</figcaption>", escaped(&figure.note));
    }
    html.push_str("</figure>\n");
}

/// Writes a choice: `metric [Average job completion time ▾]`.
fn write_choice<'t>(html: &mut String, label: &str, options: impl Iterator<Item = &'t str>, first: usize) {
    let _ = write!(html, "<label>{} <select>", escaped(label));
    for (at, option) in options.enumerate() {
        let selected = if at == first { " selected" } else { "" };
        let _ = write!(html, "<option value=\"{at}\"{selected}>{}</option>", escaped(option));
    }
    html.push_str("</select></label>");
}

/// Writes the chart of every lease on every worker.
pub(super) fn write_gantt(html: &mut String, gantt: &Gantt) {
    let _ = write!(
        html,
        "<figure id=\"gantt\">\n<div class=\"tools\"><h3>{}</h3><span class=\"buttons\">\
         <button type=\"button\" data-zoom=\"+\" title=\"Zoom in\" aria-label=\"Zoom in\">+</button> \
         <button type=\"button\" data-zoom=\"-\" title=\"Zoom out\" aria-label=\"Zoom out\">−</button> \
         <button type=\"button\" data-zoom=\"0\">all</button> \
         <button type=\"button\" data-as=\"svg\">SVG</button> <button type=\"button\" data-as=\"csv\">CSV</button>\
         </span></div>\n<div class=\"canvas\"><canvas tabindex=\"0\" role=\"img\" aria-label=\"{}. {}\"></canvas></div>\n\
         <figcaption>{}</figcaption>\n</figure>\n",
        escaped(gantt.title()),
        escaped(gantt.title()),
        escaped(&gantt.counts()),
        escaped(&gantt.note())
    );
}

/// Writes a table under its title, by which it can be folded.
pub(super) fn write_table(html: &mut String, named: &NamedTable) {
    let open = if named.folded { "" } else { " open" };
    let _ = writeln!(html, "<details class=\"table\"{open}>\n<summary>{}</summary>", escaped(&named.title));
    write_tools(html, &named.name);
    write_cells(html, named);
    html.push_str("</details>\n");
}

/// Writes tables from which the reader chooses; without scripts all of them are shown, one after the other.
pub(super) fn write_tables(html: &mut String, TableChoice { choice, tables }: &TableChoice) {
    html.push_str("<div class=\"tables\">\n<div class=\"tools\" hidden>");
    write_choice(html, choice, tables.iter().map(|named| named.title.as_str()), 0);
    html.push_str("</div>\n");
    for named in tables {
        let _ = writeln!(html, "<div class=\"table\">\n<h3>{}</h3>", escaped(&named.title));
        write_tools(html, &named.name);
        write_cells(html, named);
        html.push_str("</div>\n");
    }
    html.push_str("</div>\n");
}

fn write_tools(html: &mut String, name: &str) {
    let _ = writeln!(
        html,
        "<div class=\"tools\"><span class=\"buttons\"><button type=\"button\" data-as=\"csv\" data-table=\"{}\">CSV</button>\
         </span></div>",
        escaped(name)
    );
}

fn write_cells(html: &mut String, NamedTable { title, table, .. }: &NamedTable) {
    let _ = write!(
        html,
        "<div class=\"wide\"><table class=\"sorts\" aria-label=\"{}\">\n<thead><tr>",
        escaped(title)
    );
    let numbers = numbers(table);
    let class = |column: usize| if numbers[column] { "number" } else { "" };
    for (column, name) in table.columns().iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\" class=\"{}\">{}</th>", class(column), escaped(name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let text = escaped(&cell.for_people());
            let none = if *cell == Cell::Empty { " none" } else { "" };
            let _ = match column {
                // The first cell names the row.
                0 => write!(html, "<th scope=\"row\" class=\"{}{none}\">{text}</th>", class(column)),
                _ => write!(html, "<td class=\"{}{none}\">{text}</td>", class(column)),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// Whether each column has numbers.
fn numbers(table: &Table) -> Vec<bool> {
    let is_number = |column: usize| {
        let mut cells = table.rows().iter().map(|row| &row[column]);
        cells.any(|cell| matches!(cell, Cell::Number(..) | Cell::Scientific(_) | Cell::Count(_)))
    };
    (0..table.columns().len()).map(is_number).collect()
}

/// Text escaped for HTML, in an element or a quoted attribute.
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
