//! The cost of jobs: at prices that change, over starts of the scheduler, and at the prices of a later start.

use apportion::Seconds;
use apportion::simulator::PriceChange;
use apportion::units::DollarsPerWorkerHour;
use apportion_live::core::Request;

use super::log;
use super::node::{Ends, Manners};
use super::small::{GOOD, ROUND, Small, job};

/// A program that reports nothing, and ends by itself.
const SILENT: Manners = Manners { speaks: false, ..GOOD };

/// A change of the price of a worker type, at an instant in s, to a price in $/s.
fn change(at: f64, worker_type: &str, dollars: f64) -> PriceChange {
    let price = DollarsPerWorkerHour::new(dollars * 3600.0);
    PriceChange { at: Seconds::new(at), worker_type: worker_type.to_owned(), price }
}

/// The cost of slices in the event log.
fn logged(small: &Small) -> f64 {
    log::slices(&small.events).map(log::cost_of).sum()
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

    // Another start has other prices, and earlier costs stay as they were.
    small.core = None;
    small.prices = vec![change(0.0, "v100", 0.5)];
    small.start("v100=2");
    small.until(245.0);
    let last = small.why(number).job;
    let (more, paid) =
        (last.received_s["v100"] - after.received_s["v100"], last.cost.unwrap() - after.cost.unwrap());
    assert!(more > 30.0 && (paid - more * 0.5 * 2.0).abs() < 5.0, "{paid} for {more} s");
    small.ask(Request::Cancel(number)).unwrap();
    small.until(300.0);
    let (said, logged) = (small.jobs[&number].cost.unwrap().get(), logged(&small));
    assert!((said - logged).abs() < 1e-6, "the log says {logged}, the job {said}");
    log::check(&small.events, &[2.0], "small");
}

#[test]
fn what_was_had_before_a_start_costs_what_it_did_then_however_the_scheduler_ended() {
    for (is_clean, ends) in
        [(true, Ends::WithTime), (true, Ends::Bare), (false, Ends::WithTime), (false, Ends::Bare)]
    {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.prices = vec![change(0.0, "v100", 1.0)];
        small.nodes[0].ends = ends;
        small.start("v100=1");
        small.until(5.0);
        let number = small.submit(job(100_000));
        small.until(17.0);
        let before = small.why(number).job;
        if is_clean {
            small.close();
        } else {
            small.core = None;
        }
        small.prices = vec![change(0.0, "v100", 10.0)];
        small.start("v100=1");
        small.until(19.0);
        small.ask(Request::Cancel(number)).unwrap();
        small.until(25.0);
        let record = &small.jobs[&number];
        let (received, cost) = (record.received["v100"].get(), record.cost.unwrap().get());
        assert!((12.0..16.0).contains(&received), "{before:?}, {record:?}");
        let more = received - before.received_s["v100"];
        // Time that is found at the end, before the first report, is at the price of the order.
        let expected = before.cost.unwrap() + 10.0 * more;
        assert!((cost - expected).abs() < 10.0, "{is_clean} {ends:?}: {cost} for {expected}: {record:?}");
        assert!((logged(&small) - cost).abs() < 1e-6, "the log says {}, the job {cost}", logged(&small));
        assert!(
            (log::slices(&small.events).map(|slice| slice["time"].as_f64().unwrap()).sum::<f64>() - received)
                .abs()
                < 1e-6
        );
    }
}

#[test]
fn an_end_that_is_heard_of_late_sets_the_cost_right() {
    // Before it is closed as lost, and after; at one price, and at several.
    for (back, changes) in [(40.0, 0.0), (130.0, 0.0), (40.0, 9.0), (130.0, 9.0)] {
        let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
        small.nodes[0].ends = Ends::WithTime;
        small.prices =
            vec![change(0.0, "v100", 1.0), change(20.0, "v100", 1.0 + changes), change(70.0, "v100", 1.0)];
        small.start("v100=1");
        small.until(5.0);
        let number = small.try_submit(job(30), SILENT).unwrap();
        small.until(10.0);
        small.nodes[0].agent = None;
        small.until(back);
        small.nodes[0].start_agent(small.now);
        small.until(back + 3.0 * ROUND);
        let record = &small.jobs[&number];
        assert!(record.outcome.is_some(), "{record:?}");
        let (received, cost) = (record.received["v100"].get(), record.cost.unwrap().get());
        assert!((received - 30.0).abs() < 1.0, "{received}");
        // From 20 s on the price is higher, until 35 s.
        let expected = received + changes * 15.0;
        assert!((cost - expected).abs() < 2.0 + changes, "{back} {changes}: it cost {cost}, not {expected}");
        assert!((logged(&small) - cost).abs() < 1e-6, "the log says {}, the job {cost}", logged(&small));
    }
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
    // With them, a job that has had no worker cost nothing.
    let mut small = Small::new("isolated", &[("v100", 1)]);
    small.prices = vec![change(0.0, "v100", 2.0)];
    small.start("v100=1");
    let number = small.submit(job(10));
    assert_eq!(small.why(number).job.cost, Some(0.0));
}
