//! The page of a live scheduler, in a browser.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::browser::Browser;
use crate::live::{LOOKS, Served, USUAL};

/// A name that would do harm if it were taken for more than text.
const NASTY: &str = "</script><script>window.broken = 1</script><img src=x onerror=broken=1>";

/// Opens the scheduler's page, and waits until it has been drawn.
fn open(browser: &Browser, url: &str) {
    browser.open_url(url);
    browser.run_async(
        "const done = arguments[0]; const look = () => document.body.dataset.drawn ? done(true) : requestAnimationFrame(look); look();",
    );
}

/// Looks at the page until a function's body returns true.
#[track_caller]
fn until(browser: &Browser, says: &str) {
    let script = format!(
        "const done = arguments[0]; let left = 1500; const is = () => {{ {says} }}; \
         const look = () => is() ? done(true) : left-- > 0 ? setTimeout(look, 20) : done(document.body.innerText); look();"
    );
    let found = browser.run_async(&script);
    assert_eq!(found, true, "{says}: {found}");
}

/// The least contrast of shown text with its background, and the text.
const CONTRAST: &str = "
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = element => { for (; element; element = element.parentElement) {
    const c = numbers(getComputedStyle(element).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let least = [99, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE'].includes(element.tagName) || !element.checkVisibility()) continue;
    const [one, two] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
    if (contrast < least[0]) least = [contrast, walker.currentNode.textContent];
  }
  return least;";

#[test]
fn the_page_shows_names_as_text_and_says_when_nothing_answers() {
    let Some(browser) = Browser::start() else { return };
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &USUAL);
    let kind = "ResNet-50 (batch size 64)";
    served.ask(at, &["submit", "--name", NASTY, "--job-type", kind, "--steps", "9", "--", "true"]);
    open(&browser, served.url());
    assert_eq!(
        browser.run("return document.querySelector('#jobs .name').textContent"),
        format!("job 0 · {NASTY}")
    );
    assert_eq!(browser.run("return window.broken ?? null"), Value::Null);
    assert_eq!(browser.run("return document.getElementById('problem').hidden"), true);
    // It works by the keyboard alone.
    browser.run("document.querySelector('#jobs .job').focus(); document.activeElement.click();");
    until(
        &browser,
        "return document.querySelector('#jobs .why').innerText.includes('No server that may be given jobs is here')",
    );
    assert_eq!(
        browser.run("return document.querySelector('#jobs .job').getAttribute('aria-expanded')"),
        "true"
    );
    assert_eq!(browser.run("return document.activeElement.className"), "job", "the focus stays");
    for scheme in ["light", "dark"] {
        browser.show_as(scheme, 390);
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= 390, "{wide} px wide on a telephone");
        let least = browser.run(CONTRAST);
        assert!(least[0].as_f64().unwrap() >= 4.5, "{scheme}: {least}");
    }
    drop(served);
    until(&browser, "return document.getElementById('problem').innerText.includes('Nothing answers here')");
    assert_eq!(
        browser.run("return document.querySelectorAll('#jobs .job').length"),
        1,
        "what was shown stays"
    );
}

#[cfg(unix)]
#[test]
fn the_demo_shows_jobs_that_run() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &["serve", "--demo"]);
    let runs = (0..LOOKS).any(|_| {
        thread::park_timeout(Duration::from_millis(50));
        let jobs = served.json(at, &["jobs"]);
        jobs.as_array()
            .unwrap()
            .iter()
            .any(|job| job["state"] == "running" && job["steps"].as_f64() > Some(0.0))
    });
    assert!(runs, "{}", served.ask(at, &["jobs"]));
    let servers = served.json(at, &["servers"]);
    assert_eq!(servers.as_array().unwrap().len(), 3);
    if let Some(browser) = Browser::start() {
        open(&browser, served.url());
        until(&browser, "return document.querySelectorAll('#servers .stay').length > 0");
        until(
            &browser,
            "return [...document.querySelectorAll('#jobs .state')].some(state => state.textContent === 'running')",
        );
        assert!(
            browser
                .run("return document.getElementById('round').innerText")
                .as_str()
                .unwrap()
                .contains("ends in")
        );
        let complaints = browser.complaints();
        assert!(complaints.is_empty(), "{complaints:?}");
        for scheme in ["light", "dark"] {
            browser.show_as(scheme, 390);
            let least = browser.run(CONTRAST);
            assert!(least[0].as_f64().unwrap() >= 4.5, "{scheme}: {least}");
        }
    }
    assert_eq!(served.end(), Some(0));
}

#[cfg(unix)]
#[test]
fn the_page_shows_what_ran_before_it_was_opened() {
    let Some(browser) = Browser::start() else { return };
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served =
        Served::start(at, &["serve", "--local", "--cluster", "v100=2", "--policy", "fifo", "--state=state"]);
    let submit = "submit --job-type x --throughput v100=1 --steps 9 -- sleep 0.5";
    for _ in 0..2 {
        served.ask(at, &submit.split(' ').collect::<Vec<_>>());
    }
    let is_over = || {
        let jobs = served.json(at, &["jobs"]);
        jobs.as_array().unwrap().iter().all(|job| job["state"] == "completed")
    };
    assert!((0..LOOKS).any(|_| {
        thread::park_timeout(Duration::from_millis(50));
        is_over()
    }));
    open(&browser, served.url());
    let stays =
        "return [...document.querySelectorAll('#servers .stay')].map(stay => stay.textContent).sort()";
    assert_eq!(browser.run(stays), serde_json::json!(["0", "1"]));
    let wide =
        browser.run("return [...document.querySelectorAll('#servers .stay')].map(stay => stay.offsetWidth)");
    assert!(wide.as_array().unwrap().iter().all(|width| width.as_u64() > Some(0)), "{wide}");
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}
