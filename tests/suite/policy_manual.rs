//! Every block of `docs/policies.md`: read, checked and decided on its snapshot, with what the text says of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::catalog::Catalog;
use apportion::index::{Id, JobIndex};
use apportion::policy::Decision;
use apportion::problem::Problem;
use apportion::spec::{Snapshot, Source};
use apportion::throughput::Throughputs;

const PAGE: &str = include_str!("../../docs/policies.md");

/// Rounding.
const SLACK: f64 = 1e-6;

/// A decision on the page's snapshot, with everything that is known of it.
struct Decided {
    problem: Problem,
    decision: Decision,
    labels: Vec<String>,
}

impl Decided {
    fn jobs(&self) -> impl Iterator<Item = JobIndex> + '_ {
        self.problem.jobs().ids()
    }

    fn share(&self, job: JobIndex, kind: usize) -> f64 {
        let place = self.decision.allocation.combinations().enumerate();
        let mut place = place.filter(|(_, combination)| !combination.is_pair() && combination.first() == job);
        place.next().map_or(0.0, |(place, _)| self.decision.allocation.shares().row(place)[kind])
    }

    fn workers(&self, job: JobIndex) -> f64 {
        f64::from(self.problem.jobs()[job].scale_factor)
    }

    /// Σ over jobs and types of a weight times the workers in use.
    fn used(&self, weight: impl Fn(JobIndex, usize) -> f64) -> f64 {
        let of = |job: JobIndex| {
            (0..2).map(move |kind| (kind, self.share(job, kind) * self.workers(job))).collect::<Vec<_>>()
        };
        self.jobs()
            .flat_map(|job| of(job).into_iter().map(move |(kind, used)| (job, kind, used)))
            .map(|(job, kind, used)| weight(job, kind) * used)
            .sum()
    }

    fn dollars(&self) -> f64 {
        self.used(|_, kind| [2.5, 1.5][kind])
    }

    fn throughput(&self, job: JobIndex) -> f64 {
        (0..2).map(|kind| self.share(job, kind) * self.problem.throughput().row(job)[kind]).sum()
    }

    /// Throughput over that with a sixth of the cluster: 4/6 of a worker of each type, gangs of two half as long, both types
    /// cut to all of the time where they make more.
    fn level(&self, job: JobIndex) -> f64 {
        let time = 4.0 / 6.0 / self.workers(job);
        let speeds = self.problem.throughput().row(job);
        let isolated = speeds.iter().sum::<f64>() * time / (2.0 * time).max(1.0);
        self.throughput(job) / isolated
    }

    fn levels(&self) -> Vec<f64> {
        self.jobs().map(|job| self.level(job)).collect()
    }

    fn is(&self, job: JobIndex, labels: &[&str]) -> f64 {
        f64::from(u8::from(labels.contains(&self.labels[job.index()].as_str())))
    }

    fn value(&self) -> f64 {
        let report = self.decision.objective.as_ref().expect("an objective");
        assert!(report.optimal, "{report:?}");
        report.value
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[track_caller]
fn at_most(small: f64, large: f64) {
    assert!(small <= large + SLACK * large.abs(), "{small} is more than {large}");
}

#[track_caller]
fn near(one: f64, other: f64) {
    at_most(one, other);
    at_most(other, one);
}

type Claim = fn(&Decided);

/// The page's claims about each policy.
fn claims() -> BTreeMap<&'static str, Claim> {
    let mut claims: BTreeMap<&'static str, Claim> = BTreeMap::new();
    claims.insert("fair", |of| near(least(&of.levels()), of.value()));
    claims.insert("shorter_first", |of| {
        at_most(0.25, least(&of.levels()));
        at_most(of.dollars(), 16.0);
    });
    claims.insert("floors", |of| {
        at_most(0.5, least(&of.levels()));
        near(of.levels().iter().sum(), of.value());
    });
    claims.insert("caps", |of| {
        of.jobs().for_each(|job| at_most(of.share(job, 0), 0.5));
        (0..2).for_each(|kind| at_most(of.used(|_, other| f64::from(u8::from(other == kind))), 3.0));
        near(least(&of.levels()), of.value());
    });
    claims.insert("quota", |of| {
        let research = of.used(|job, _| of.is(job, &["detect", "segment", "translate"]));
        near(research, 0.3 * 8.0);
        near(least(&of.levels()), of.value());
    });
    claims.insert("sure", |of| {
        let product = of.used(|job, kind| of.is(job, &["ads", "search"]) * [1.0, 0.0][kind]);
        near(product, 3.0);
    });
    claims.insert("budget", |of| {
        near(of.dollars(), 10.0);
        assert!(of.used(|_, _| 1.0) < 7.0, "workers idle");
    });
    claims.insert("soft_budget", |of| {
        assert!(of.dollars() > 10.5, "more than ten dollars: {}", of.dollars());
        near(of.levels().iter().sum::<f64>() - 0.2 * (of.dollars() - 10.0), of.value());
    });
    claims.insert("power", |of| near(of.used(|_, kind| [0.3, 0.25][kind]), 1.5));
    claims.insert("priorities", |of| {
        let weighted = |job: JobIndex| of.level(job) / of.problem.jobs()[job].weight;
        near(least(&of.jobs().map(weighted).collect::<Vec<_>>()), of.value());
        let search = of.jobs().find(|job| of.is(*job, &["search"]) > 0.0).expect("the job is there");
        near(of.share(search, 0), 1.0);
    });
    claims.insert("cost_against_speed", |of| {
        near(of.levels().iter().sum::<f64>() - 0.3 * of.dollars(), of.value());
        for job in of.jobs() {
            for kind in (0..2).filter(|kind| of.share(job, *kind) > SLACK) {
                let made = of.level(job) / of.throughput(job) * of.problem.throughput().row(job)[kind];
                at_most(0.3 * of.workers(job) * [2.5, 1.5][kind], made);
            }
        }
    });
    claims.insert("deadlines", |of| {
        let dropped: Vec<&str> =
            of.decision.dropped.iter().map(|job| of.labels[job.index()].as_str()).collect();
        assert_eq!(dropped, ["feed"]);
        for (job, needed) in of.jobs().zip([0.0, 0.0, 0.0, 40000.0 / 9000.0, 50000.0 / 30000.0]) {
            at_most(needed, of.throughput(job));
        }
    });
    claims.insert("class_floor", |of| {
        let interactive = of.jobs().map(|job| of.is(job, &["translate", "search"]) * of.level(job));
        near(interactive.sum(), 2.2);
    });
    claims
}

/// The YAML blocks of the page, each with the number of lines above it.
fn blocks() -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (number, line) in PAGE.lines().enumerate() {
        match (&mut block, line) {
            (None, "```yaml") => block = Some((number + 1, String::new())),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some((_, text)), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[test]
fn every_block_of_the_manual_does_what_the_text_says() {
    let mut claims = claims();
    let blocks = blocks();
    let snapshot = blocks.iter().find(|(_, text)| text.starts_with("format: apportion/snapshot-v1"));
    let (_, snapshot) = snapshot.expect("the gallery has a snapshot");
    let snapshot =
        Snapshot::read(&Source::new("snapshot", snapshot.clone())).unwrap_or_else(|error| panic!("{error}"));
    let labels: Vec<String> = snapshot.document().jobs.iter().map(|job| job.id.to_string()).collect();
    let throughputs: Arc<Throughputs> = Throughputs::embedded("osdi20").unwrap();
    for (line, text) in blocks.iter().filter(|(_, text)| text.starts_with("format: apportion/policy-v1")) {
        let mut catalog = Catalog::embedded();
        let document = catalog.read(Source::new(format!("policies.md:{line}"), text.clone()));
        let name = document.unwrap_or_else(|error| panic!("line {line}: {error}")).name;
        let claim = claims.remove(name.as_str()).unwrap_or_else(|| panic!("nothing is known of `{name}`"));
        catalog
            .add(Source::new(format!("{name}.yaml"), text.clone()))
            .unwrap_or_else(|error| panic!("{error}"));
        let problem = Problem::from_snapshot(&snapshot, &throughputs).unwrap();
        let mut policy = catalog.policy(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let decision = policy.allocate(&problem).unwrap_or_else(|error| panic!("{name}: {error}"));
        let labels = labels.clone();
        eprintln!("{name}, line {line}");
        claim(&Decided { problem, decision, labels });
    }
    assert!(claims.is_empty(), "not on the page: {:?}", claims.keys());
    assert_eq!(blocks.len(), 14, "a block is a snapshot or a policy");
}

/// The page's claims about curvature.
#[test]
fn a_constraint_is_refused_on_the_side_where_it_is_not_convex() {
    for (comparison, accepted) in [(">=", true), ("<=", false)] {
        let text = format!(
            "format: apportion/policy-v1\nname: curved\nsummary: curved\nkind: program\n\
             maximize: sum_over_jobs(throughput)\n\
             constraints:\n  - sum_over_jobs(sqrt(throughput / isolated_throughput)) {comparison} 3\n"
        );
        let mut catalog = Catalog::embedded();
        let added =
            catalog.add(Source::new("curved.yaml", text)).map(|catalog| catalog.policy("curved").is_ok());
        assert_eq!(added.unwrap_or(false), accepted, "{comparison}");
    }
}
