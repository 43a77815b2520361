//! What jobs cost: at prices that change, over starts of the scheduler, and at those of a later start.

use apportion::Seconds;
use apportion::simulator::PriceChange;
use apportion::units::DollarsPerWorkerHour;
use apportion_live::core::Request;

use super::small::{Small, job};

/// A change of the price of a worker type, at an instant in s, to a price in $/s.
fn change(at: f64, worker_type: &str, dollars: f64) -> PriceChange {
    let price = DollarsPerWorkerHour::new(dollars * 3600.0);
    PriceChange { at: Seconds::new(at), worker_type: worker_type.to_owned(), price }
}

/// What the event log says that slices cost.
fn logged(small: &Small) -> f64 {
    let slices = small.events.iter().filter(|event| event["event"] == "slice");
    let cost = |slice: &serde_json::Value| {
        let number = |field: &str| slice[field].as_f64().unwrap_or_else(|| panic!("{field}: {slice}"));
        number("price") / 3600.0 * number("time") * number("n_workers")
    };
    slices.map(cost).sum()
}

#[test]
fn time_costs_what_workers_cost_when_it_was_had() {
    let mut small = Small::new("isolated", &[("v100", 2)]);
    small.prices = vec![change(0.0, "v100", 2.0), change(100.0, "v100", 5.0), change(200.0, "k80", 9.0)];
    small.start("v100=2");
    small.until(5.0);
    let number = small.submit(job(100_000).scale_factor(2));
    small.until(100.0);
    let before = small.why(number).job;
    let ran = before.received_s["v100"];
    assert!(ran > 60.0 && (before.cost.unwrap() - ran * 2.0 * 2.0).abs() < 1e-6, "{before:?}");

    small.until(150.0);
    small.core = None;
    small.start("v100=2");
    small.until(185.0);
    let after = small.why(number).job;
    let (more, paid) = (after.received_s["v100"] - ran, after.cost.unwrap() - before.cost.unwrap());
    assert!(more > 60.0, "it ran on while the scheduler was away: {after:?}");
    assert!((paid - more * 5.0 * 2.0).abs() < 5.0 * 2.0, "{paid} for {more} s: {after:?}");
    let changes = small.events.iter().filter(|event| event["event"] == "price_change");
    assert!(changes.count() >= 2);

    // Another start has other prices, and what was had stays as it was.
    small.core = None;
    small.prices = vec![change(0.0, "v100", 0.5)];
    // What it had since it was last written down counts from the start on.
    let kept = &small.jobs[&number];
    let (ran, paid) = (kept.received["v100"].get(), kept.cost.unwrap().get());
    small.start("v100=2");
    small.until(245.0);
    let last = small.why(number).job;
    let (more, paid) = (last.received_s["v100"] - ran, last.cost.unwrap() - paid);
    assert!(more > 30.0 && (paid - more * 0.5 * 2.0).abs() < 1.0, "{paid} for {more} s");
    small.ask(Request::Cancel(number)).unwrap();
    small.until(300.0);
    // The log has what was not in it yet at the last start at the prices of that.
    let unwritten = 60.0 * (5.0 - 0.5) * 2.0;
    let (said, logged) = (small.jobs[&number].cost.unwrap().get(), logged(&small));
    assert!((0.0..unwritten).contains(&(said - logged)), "the log says {logged}, the job {said}");
}

#[test]
fn without_prices_nothing_has_a_cost() {
    let mut small = Small::new("isolated", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(10));
    assert_eq!(small.why(number).job.cost, None);
    small.until(100.0);
    assert!(small.jobs[&number].outcome.is_some());
    assert_eq!((small.jobs[&number].cost, small.views()[0].cost), (None, None));
    // With them, one that has had no worker cost nothing.
    let mut small = Small::new("isolated", &[("v100", 1)]);
    small.prices = vec![change(0.0, "v100", 2.0)];
    small.start("v100=1");
    let number = small.submit(job(10));
    assert_eq!(small.why(number).job.cost, Some(0.0));
}
