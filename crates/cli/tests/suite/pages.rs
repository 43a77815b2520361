//! Pages as a browser shows them: every kind at three widths, light and dark; and a reader's actions in a page of many policies.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser::Browser;

const MANY: &str = "\
format: apportion/sweep-v1
name: many
description: Twenty-one policies below and above what a small cluster can serve
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [10, 24]
axes:
  policy: [allox, fifo, fifo_perf, fifo_packed, finish_time_fairness, finish_time_fairness_perf, gandiva, isolated, las,
           low_average_jct, max_min_fairness, max_min_fairness_packed, max_min_fairness_perf, max_sum_throughput_perf,
           min_total_duration, min_total_duration_perf, proportional, proportional_fairness, sjf, srtf, themis]
  rate: [0.5, 1.0, 9.0]
  seed: [0, 1]
stop: {saturated: true}
";

#[track_caller]
fn succeed(folder: &Path, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(line.split_whitespace()).args(["--progress", "never"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with the page of a study of many policies.
fn study() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("many.yaml"), MANY).unwrap();
    succeed(folder.path(), "sweep many.yaml --out results --keep-jobs");
    succeed(folder.path(), "report results --out study.html");
    folder
}

/// A folder with that page, and with pages of the other kinds.
fn every_kind() -> (TempDir, [&'static str; 6]) {
    let folder = study();
    let at = folder.path();
    succeed(
        at,
        "simulate --policy las --cluster v100=4,k80=4 --rate 3 --jobs 20 --seed 1 --events run.jsonl",
    );
    succeed(at, "report run.jsonl --out run.html");
    let bench = "bench --policy max_min_fairness_perf --instance random --sizes 8,16 --backend default,clarabel --seeds 2 \
                 --format json";
    fs::write(at.join("bench.json"), succeed(at, bench)).unwrap();
    succeed(at, "report bench.json --out bench.html");
    succeed(at, "trace generate --rate 1 --jobs 60 --seed 1 --out jobs.csv");
    succeed(at, "trace show jobs.csv --throughputs osdi20 --cluster v100=12 --page trace.html");
    let forecast = "forecast --policy fifo --cluster v100=12,k80=12 --trace jobs.csv";
    succeed(at, &format!("{forecast} --at 40h --job 38 --forks 20 --limit 5d --page forecast.html"));
    let calibrate = "--calibrate --forks 10 --jobs-per-point 2 --limit 5d --from 30h --to 40h --every 5h";
    succeed(at, &format!("{forecast} {calibrate} --page calibration.html"));
    let pages = ["study.html", "run.html", "bench.html", "trace.html", "forecast.html", "calibration.html"];
    (folder, pages)
}

/// A script for every visible text with less contrast than 4.5 to its background, with the contrast.
const FAINT: &str = "
    const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = (channel) => channel / 255 <= 0.03928 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4;
    const bright = ([red, green, blue]) => 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = channels(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const isSeen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    return [...document.querySelectorAll('body *:not(script):not(style):not(option)')].filter((e) => hasText(e) && isSeen(e))
        .map((element) => {
            const style = getComputedStyle(element);
            const [one, other] = [bright(channels(element.namespaceURI.includes('svg') ? style.fill : style.color)), bright(behind(element))];
            const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
            return [element.tagName, element.textContent.trim().slice(0, 30), contrast];
        }).filter(([, , contrast]) => !(contrast >= 4.5));";

/// A script for all elements without a name for a screen reader.
const NAMELESS: &str = "
    const named = (element) => (element.getAttribute('aria-label') || element.textContent || element.placeholder || '').trim()
        || [...(element.labels || [])].some((label) => label.textContent.trim());
    const controls = [...document.querySelectorAll('button, select, input, a, summary')].filter((element) => !named(element));
    const charts = [...document.querySelectorAll('.chart')].filter((element) => !(element.getAttribute('aria-label') || '').trim());
    const marks = [...document.querySelectorAll('.chart path[role=\"graphics-symbol\"]')].filter((mark) =>
        !(mark.getAttribute('aria-label') || '').trim() || mark.getAttribute('aria-label').includes('[object'));
    const heads = [...document.querySelectorAll('th')].filter((head) => !head.scope);
    const figures = [...document.querySelectorAll('figure[aria-labelledby]')]
        .filter((figure) => !document.getElementById(figure.getAttribute('aria-labelledby')).textContent.trim());
    const links = [...document.querySelectorAll('.contents a')].filter((link) => !document.querySelector(link.getAttribute('href')));
    return [...controls, ...charts, ...marks, ...heads, ...figures, ...links].map((element) => element.outerHTML.slice(0, 160));";

/// A script for all elements that are wider than the window and do not scroll inside themselves.
const WIDE: &str = "
    const scrolls = (element) => element.closest('.wide, .chart, #gantt .canvas, script, style');
    return document.documentElement.scrollWidth > window.innerWidth
        ? [...document.querySelectorAll('body *')].filter((e) => !scrolls(e) && e.getBoundingClientRect().right > window.innerWidth)
            .map((e) => e.outerHTML.slice(0, 120)).concat('the page') : [];";

/// A script for titles that do not fit, and texts of charts that are cut off.
const CUT: &str = "
    const titles = [...document.querySelectorAll('h1, h2, h3')].filter((title) => title.scrollWidth > title.clientWidth + 1);
    const texts = [...document.querySelectorAll('.chart svg text')].filter((text) => {
        const [box, chart] = [text.getBoundingClientRect(), text.closest('.chart').getBoundingClientRect()];
        return box.width && (box.right > chart.right + 2 || box.left < chart.left - 2);
    });
    return [...titles, ...texts].map((element) => element.textContent);";

#[test]
fn every_kind_of_page_is_legible_at_three_widths_in_light_and_dark() {
    let Some(browser) = Browser::start() else { return };
    let (folder, pages) = every_kind();
    for page in pages {
        for width in [390, 820, 1280] {
            browser.show_as("light", width);
            browser.open(&folder.path().join(page));
            for scheme in ["light", "dark"] {
                browser.show_as(scheme, width);
                let case = format!("{page}, {scheme}, {width} px");
                assert_eq!(browser.complaints(), Vec::<String>::new(), "{case}");
                assert_eq!(
                    browser.run("return document.getElementById('problem').textContent"),
                    "",
                    "{case}"
                );
                for (what, script) in
                    [("too wide", WIDE), ("cut off", CUT), ("too faint", FAINT), ("without a name", NAMELESS)]
                {
                    assert_eq!(browser.run(script), json!([]), "{what}: {case}");
                }
                let background = "return getComputedStyle(document.body).backgroundColor";
                let is_light = browser.run(background) == "rgb(255, 255, 255)";
                assert_eq!(is_light, scheme == "light", "{case}");
            }
        }
    }
}

/// The page of a study of many policies, opened.
fn opened() -> Option<(Browser, TempDir)> {
    let browser = Browser::start()?;
    let folder = study();
    browser.show_as("light", 1280);
    browser.open(&folder.path().join("study.html"));
    Some((browser, folder))
}

/// Waits until an expression in the page is true.
#[track_caller]
fn until(browser: &Browser, expression: &str) {
    let script = format!(
        "const done = arguments[0]; let left = 300; const look = () => ({expression}) ? done(true) : (left -= 1) ? \
         requestAnimationFrame(look) : done(false); look();"
    );
    assert_eq!(browser.run_async(&script), true, "{expression}");
}

/// A script for lines of the first chart by their opacity, and its bands.
const LINES: &str = "(least) => [...document.querySelectorAll('#figure-0 .mark-line path')]
    .filter((path) => Number(path.getAttribute('opacity') ?? 1) >= least).length";
const BANDS: &str = "() => [...document.querySelectorAll('#figure-0 .mark-area path')]
    .filter((path) => Number(path.getAttribute('opacity') ?? 1) > 0).length";

#[test]
fn selected_policies_stand_out_of_twenty_and_have_bands() {
    let Some((browser, _folder)) = opened() else { return };
    assert_eq!(
        browser.run(&format!("return [({LINES})(0.9), ({BANDS})()]")),
        json!([21, 0]),
        "none is selected"
    );
    let looks = browser.run(
        "return new Set([...document.querySelectorAll('#figure-0 .key li svg')].map((look) => look.innerHTML)).size",
    );
    assert_eq!(looks, 21, "each has a look of its own");
    let pick = |name: &str| {
        let script = format!(
            "[...document.querySelectorAll('#figure-0 .key li')].find((line) => \
             line.querySelector('span').firstChild.textContent === '{name}').querySelector('input').click()"
        );
        browser.run(&script);
    };
    pick("fifo");
    pick("las");
    until(&browser, &format!("({LINES})(0.9) === 2 && ({BANDS})() === 2"));
    let others =
        "return [...document.querySelectorAll('.key')].map((key) => key.querySelectorAll(':checked').length)";
    let others = browser.run(others);
    assert!(others.as_array().unwrap().iter().all(|n| *n == 2), "the same in every chart: {others}");

    // The other lines are hidden, and shown again.
    browser.run("document.querySelector('#figure-0 .key [name=only]').click()");
    until(&browser, "document.querySelectorAll('#figure-0 .mark-line path').length === 2");
    browser.run("document.querySelector('#figure-0 .key [name=only]').click()");
    until(&browser, "document.querySelectorAll('#figure-0 .mark-line path').length === 21");

    // Typing finds names in the list; `all` selects what it found, `none` nothing.
    let typed =
        "const seek = document.querySelector('#figure-0 .key input[type=search]'); seek.value = 'MAX_MIN';
                 seek.dispatchEvent(new Event('input'));";
    browser.run(typed);
    let listed =
        "return [...document.querySelectorAll('#figure-0 .key li')].filter((line) => !line.hidden).length";
    assert_eq!(browser.run(listed), 3);
    let press = |n: usize| {
        browser.run(&format!("document.querySelectorAll('#figure-0 .key .tools button')[{n}].click()"));
    };
    press(0);
    until(&browser, &format!("({LINES})(0.9) === 5"));
    press(1);
    until(&browser, &format!("({LINES})(0.9) === 21 && ({BANDS})() === 0"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn saturated_points_say_the_proven_capacity_by_policy() {
    let Some((browser, _folder)) = opened() else { return };
    let key = browser.run("return document.querySelector('#figure-0 .key li').textContent.trim()");
    let key = key.as_str().unwrap();
    assert!(
        key.starts_with("allox × 9 no number at 9: saturated above ") && key.ends_with(" jobs/h"),
        "{key}"
    );
    let crosses = "[...document.querySelectorAll('#figure-0 .mark-symbol path')].map((path) => \
                   path.getAttribute('aria-label') || '').filter((label) => label.includes('no number'))";
    let together = browser.run(&format!("return {crosses}"));
    assert_eq!(together.as_array().unwrap().len(), 1, "{together}");
    assert!(together[0].as_str().unwrap().contains("no number: 21 of 21"), "{together}");
    browser.run("document.querySelectorAll('#figure-0 .key li input')[1].click()");
    until(&browser, &format!("{crosses}.length === 1 && {crosses}[0].startsWith('series: fifo;')"));
    let cell = browser.run("return document.querySelector('.tables tbody tr').cells[3].textContent");
    assert!(cell.as_str().unwrap().starts_with("saturated above "), "{cell}");
}

#[test]
fn axes_run_by_factors_and_charts_zoom() {
    let Some((browser, _folder)) = opened() else { return };
    let ticks = "[...document.querySelectorAll('#figure-0 .role-axis-label text')].map((text) => text.textContent).sort().join()";
    let before = browser.run(&format!("return {ticks}"));
    let before = before.as_str().unwrap();
    let zoom = |which: &str| {
        browser.run(&format!("document.querySelector('#figure-0 [data-zoom=\"{which}\"]').click()"));
    };
    zoom("+");
    until(&browser, &format!("{ticks} !== {}", json!(before)));
    zoom("all");
    until(&browser, &format!("{ticks} === {}", json!(before)));
    for axis in ["x", "y"] {
        browser.run(&format!("document.querySelector('#figure-0 [data-log={axis}]').click()"));
        until(&browser, &format!("{ticks} !== {}", json!(before)));
        browser.run(&format!("document.querySelector('#figure-0 [data-log={axis}]').click()"));
        until(&browser, &format!("{ticks} === {}", json!(before)));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn rows_are_policies_that_sort_and_filter() {
    let Some((browser, _folder)) = opened() else { return };
    let column = |at: usize| -> Vec<String> {
        let script = format!(
            "return [...document.querySelector('.tables table').tBodies[0].rows].filter((row) => !row.hidden) \
             .map((row) => row.cells[{at}].textContent)"
        );
        browser
            .run(&script)
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!((column(0).len(), column(0)[0].as_str()), (21, "allox"));
    let number = |text: &String| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    for is_down in [false, true] {
        browser.run("document.querySelectorAll('.tables table thead button')[1].click()");
        let mut numbers: Vec<f64> = column(1).iter().map(number).collect();
        let shown = numbers.clone();
        numbers.sort_unstable_by(f64::total_cmp);
        if is_down {
            numbers.reverse();
        }
        assert_eq!(shown, numbers);
    }
    // Numbers that are no mean of all runs are last, whichever way the numbers go.
    browser.run(
        "const [, first, second] = document.querySelector('.tables table').tBodies[0].rows;
         first.cells[1].textContent = '2 of 3 timeout'; second.cells[1].textContent = '(0.001 over 1 of 3) 2 of 3 growing'",
    );
    for _ in 0..2 {
        browser.run("document.querySelectorAll('.tables table thead button')[1].click()");
        assert!(column(1)[19..].iter().all(|text| text.contains(" of 3")), "{:?}", column(1));
    }
    let typed =
        "const seek = document.querySelector('.tables .table input[type=search]'); seek.value = 'min_total';
                 seek.dispatchEvent(new Event('input'));";
    browser.run(typed);
    let mut found = column(0);
    found.sort_unstable();
    assert_eq!(found, ["min_total_duration", "min_total_duration_perf"]);
    let other = "const select = document.querySelector('.tables select'); select.value = '1';
                 select.dispatchEvent(new Event('change'));
                 return [...document.querySelectorAll('.tables .table')].map((table) => table.checkVisibility()).slice(0, 3)";
    assert_eq!(browser.run(other), json!([false, true, false]));
}

#[test]
fn any_two_are_compared_as_the_table_against_the_baseline_has_it() {
    let Some((browser, folder)) = opened() else { return };
    succeed(folder.path(), "report results --assets files --baseline allox");
    let csv = fs::read_to_string(folder.path().join("files/against-baseline-average-jct.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let choose = "const [, one, other] = document.querySelectorAll('.pairs select');
                  const pick = (select, name) => { select.value = [...select.options].find((o) => o.textContent === name).value; };
                  pick(one, 'allox'); pick(other, 'fifo'); other.dispatchEvent(new Event('change'));
                  return [...document.querySelectorAll('.pairs tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))";
    let shown: Value = browser.run(choose);
    let close = |shown: &Value, expected: &str| {
        let (shown, expected): (f64, f64) =
            (shown.as_str().unwrap().replace('−', "-").parse().unwrap(), expected.parse().unwrap());
        assert!((shown - expected).abs() <= 2e-3 * expected.abs().max(0.01), "{shown} {expected}");
    };
    for (at, place) in ["0.5", "1"].into_iter().enumerate() {
        let row = rows.iter().find(|row| &row[0] == "fifo" && &row[1] == place).unwrap();
        assert_eq!(shown[at][0], place);
        close(&shown[at][2], &row[2]);
        close(&shown[at][5], &row[3]);
        let (from, to) = shown[at][6].as_str().unwrap().split_once(" to ").unwrap();
        close(&json!(from), &row[4]);
        close(&json!(to), &row[5]);
        // This page's difference is A − B, the table's is the row's less the baseline's.
        let difference: f64 = row[6].parse().unwrap();
        close(&shown[at][3], &(-difference).to_string());
        assert_eq!(shown[at][7], "2");
    }
    let why = shown[2][8].as_str().unwrap();
    assert!(why.starts_with("allox: saturated above ") && why.contains("; fifo: saturated above "), "{why}");
}

#[test]
fn the_head_says_what_made_the_results_and_files_are_light() {
    let Some((browser, folder)) = opened() else { return };
    let page = fs::read_to_string(folder.path().join("study.html")).unwrap();
    let head = page.split("</header>").next().unwrap();
    for words in [
        "<dt>about</dt><dd>Twenty-one policies below and above",
        "<dt>command</dt><dd>apportion sweep many.yaml --out results --keep-jobs --progress never</dd>",
        "<dt>made on</dt><dd>20",
        "<dt>cores</dt>",
        "<dt>semantics</dt><dd>corrected</dd>",
        "<dt>jobs from</dt><dd>generator gavel</dd>",
        concat!("<dt>version</dt><dd>apportion ", env!("CARGO_PKG_VERSION"), "</dd>"),
    ] {
        assert!(head.contains(words), "{words} is not in {head}");
    }
    browser.show_as("dark", 820);
    let save = "const done = arguments[0];
                URL.createObjectURL = (blob) => { blob.text().then((text) => done(text)); return '#'; };
                document.querySelector('#figure-0 [data-as=svg]').click();";
    let svg = browser.run_async(save);
    let svg = svg.as_str().unwrap();
    assert!(svg.contains("#0072b2") && !svg.contains("var(--"), "{}", &svg[..400]);
    for words in ["Average job completion time against arrival rate", "proportional_fairness"] {
        assert!(svg.contains(words), "the title, and a legend: {words}");
    }
}
