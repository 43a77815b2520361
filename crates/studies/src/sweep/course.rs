//! Runs that a sweep still has to make, given the outcomes that are kept.
//!
//! A fixed point is run once. A *ladder*, of a sweep that finds its arrival rates itself, is climbed rung by rung: the next
//! rate follows from the outcomes below it alone, kept or new, so a resumed ladder continues where it was.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use apportion::catalog::Catalog;
use serde_json::Value;

use crate::sweep::grid::{self, Point, Selection, Shard};
use crate::sweep::inputs::{Inputs, Run};
use crate::sweep::outcome::{Outcome, Status};
use crate::sweep::run_error::RunError;
use crate::sweep::spec::{Knee, Rung, RungEnding, Step, SweepSpec};

/// A run to be made.
#[derive(Debug, Clone)]
pub struct Task {
    /// The run's point in the sweep.
    pub point: Point,
    /// The run at the point.
    pub run: Run,
}

impl Borrow<Point> for Task {
    fn borrow(&self) -> &Point {
        &self.point
    }
}

/// A sweep with its inputs read, and its points; each ladder is represented by its first rung.
#[derive(Debug)]
pub struct Plan {
    /// Requested sweep.
    pub sweep: SweepSpec,
    /// Selected values.
    pub selection: Selection,
    /// Selected points, in the order of the grid.
    pub tasks: Vec<Task>,
    inputs: Inputs,
}

impl Plan {
    /// A plan with the inputs of the runs of the selected points; policies are those of the catalog.
    ///
    /// # Errors
    /// If a point is not a valid run: the first such point, and why.
    pub fn new(
        catalog: Catalog,
        sweep: &SweepSpec,
        selection: &Selection,
        shard: Shard,
    ) -> Result<Self, Box<(Point, RunError)>> {
        Self::of(Inputs::new(catalog).of_document_in(&sweep.folder), sweep, selection, shard)
    }

    /// A plan that reads the inputs of the runs of the selected points into existing inputs.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn of(
        inputs: Inputs,
        sweep: &SweepSpec,
        selection: &Selection,
        shard: Shard,
    ) -> Result<Self, Box<(Point, RunError)>> {
        let mut tasks = Vec::new();
        let selected = grid::points(sweep).into_iter().filter(|point| selection.contains(point)).collect();
        for point in shard.of(selected) {
            match inputs.load(&point.spec) {
                Ok(run) => tasks.push(Task { point, run }),
                Err(error) => return Err(Box::new((point, error))),
            }
        }
        Ok(Self { sweep: sweep.clone(), selection: selection.clone(), tasks, inputs })
    }

    /// The task at another rate of the same ladder, or the reason why there is none.
    fn at_rate(&self, foot: &Point, rate: f64) -> Result<Task, RunError> {
        let point = foot.at_rate(&self.sweep, rate);
        let run = self.inputs.load(&point.spec)?;
        Ok(Task { point, run })
    }
}

/// Progress of a sweep.
#[derive(Debug)]
pub struct Course<'p> {
    plan: &'p Plan,
    /// Outcomes of the runs that were kept before, by digest.
    kept: BTreeMap<String, Outcome>,
    /// Digests of the runs that belong to the selected points, made or not.
    wanted: BTreeSet<String>,
    /// Runs of each ladder so far, by the index of its point.
    rungs: BTreeMap<usize, Vec<Rung>>,
    /// Number of runs found among the kept ones.
    n_kept: usize,
}

/// Result of a ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct Climbed {
    /// Values on all axes; the rate is that of the first rung.
    pub values: Vec<Value>,
    /// Knee of the curve, if there is one below the largest rate.
    pub knee: Option<Knee>,
    /// Whether all runs of the ladder are made.
    pub is_done: bool,
}

impl<'p> Course<'p> {
    /// The progress of a plan with kept outcomes, by digest.
    pub fn new(plan: &'p Plan, kept: BTreeMap<String, Outcome>) -> Self {
        Self { plan, kept, wanted: BTreeSet::new(), rungs: BTreeMap::new(), n_kept: 0 }
    }

    /// The requested sweep.
    pub fn sweep(&self) -> &'p SweepSpec {
        &self.plan.sweep
    }

    /// Runs that can be made now: fixed points, and the next rung of each ladder.
    ///
    /// # Errors
    /// If a rung is not a valid run.
    pub fn pending(&mut self) -> Result<Vec<Task>, RunError> {
        let plan = self.plan;
        let mut pending = Vec::new();
        for task in &plan.tasks {
            if plan.sweep.auto_axis().is_some() {
                pending.extend(self.next_rung(&task.point)?);
                continue;
            }
            self.wanted.insert(task.run.digest.clone());
            if self.kept.contains_key(&task.run.digest) {
                self.n_kept += 1;
            } else {
                pending.push(task.clone());
            }
        }
        Ok(pending)
    }

    /// Records a run's outcome. Returns the run that follows from it, if there is one.
    ///
    /// # Errors
    /// If the next run is not valid.
    pub fn after(&mut self, task: &Task, outcome: &Outcome) -> Result<Option<Task>, RunError> {
        if self.plan.sweep.auto_axis().is_none() {
            return Ok(None);
        }
        self.push(&task.point, outcome);
        self.next_rung(&task.point)
    }

    /// The first rung of a ladder that is not kept.
    fn next_rung(&mut self, point: &Point) -> Result<Option<Task>, RunError> {
        while let Step::Run(rate) = self.step(point.index) {
            let task = self.plan.at_rate(point, rate)?;
            self.wanted.insert(task.run.digest.clone());
            match self.kept.get(&task.run.digest).cloned() {
                None => return Ok(Some(task)),
                Some(outcome) => {
                    self.n_kept += 1;
                    self.push(&task.point, &outcome);
                }
            }
        }
        Ok(None)
    }

    fn step(&self, index: usize) -> Step {
        let rungs = self.rungs.get(&index).map_or(&[][..], Vec::as_slice);
        self.plan.sweep.auto_axis().map_or(Step::Done(None), |(_, auto)| auto.next(rungs))
    }

    fn push(&mut self, point: &Point, outcome: &Outcome) {
        let rung = Rung {
            rate: point.spec.workload.rate.map_or(0.0, apportion::units::JobsPerHour::get),
            ending: match outcome.status {
                Status::Done => RungEnding::Done,
                Status::Saturated | Status::Timeout | Status::Growing | Status::Starved => {
                    RungEnding::Overloaded
                }
                Status::Failed | Status::Livelock => RungEnding::Failed,
            },
            utilization: outcome.metric("utilization"),
            average_jct: outcome.metric("average_jct_s"),
        };
        self.rungs.entry(point.index).or_default().push(rung);
    }

    /// Number of runs of the selected points that were kept before.
    pub fn n_kept(&self) -> usize {
        self.n_kept
    }

    /// Whether a run of the selected points has this digest.
    pub fn is_wanted(&self, digest: &str) -> bool {
        self.wanted.contains(digest)
    }

    /// Results of the ladders, in the order of the grid; empty for a sweep without ladders.
    pub fn climbed(&self) -> Vec<Climbed> {
        if self.plan.sweep.auto_axis().is_none() {
            return Vec::new();
        }
        let climbed = |task: &Task| {
            let (knee, is_done) = match self.step(task.point.index) {
                Step::Run(_) => (None, false),
                Step::Done(knee) => (knee, true),
            };
            Climbed { values: task.point.values.clone(), knee, is_done }
        };
        self.plan.tasks.iter().map(climbed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::metrics::Metric;
    use apportion::spec::Source;

    const LADDER: &str = "\
format: apportion/sweep-v1
name: ladder
run: {cluster: {v100: 2}, jobs: 5}
axes:
  policy: [fifo, isolated]
  rate: {auto: {from: 0.25, factor: 2, precision: 0.2, utilization: 0.9}}
";

    fn plan(shard: &str) -> Plan {
        let sweep = SweepSpec::parse(&Source::new("t.yaml", LADDER), false).unwrap();
        Plan::new(Catalog::embedded(), &sweep, &Selection::default(), shard.parse().unwrap()).unwrap()
    }

    /// Outcome of a run at its rate, with a utilization of a tenth of the rate.
    fn outcome(task: &Task) -> Outcome {
        let mut outcome = Outcome::without_metrics(Status::Done, "");
        let rate = task.run.spec.workload.rate.unwrap().get();
        outcome.metrics[Metric::position("utilization").unwrap()] = Some(rate / 10.0);
        outcome
    }

    /// Climbs to the end, with at most `n_max` new runs. Returns the rates of the new runs, and the results of the ladders.
    fn climb(plan: &Plan, kept: &mut BTreeMap<String, Outcome>, n_max: usize) -> (Vec<f64>, Vec<Climbed>) {
        let mut course = Course::new(plan, kept.clone());
        let mut queue: std::collections::VecDeque<Task> = course.pending().unwrap().into();
        let mut made = Vec::new();
        while let Some(task) = queue.pop_front().filter(|_| made.len() < n_max) {
            let outcome = outcome(&task);
            kept.insert(task.run.digest.clone(), outcome.clone());
            made.push(task.run.spec.workload.rate.unwrap().get());
            queue.extend(course.after(&task, &outcome).unwrap());
        }
        (made, course.climbed())
    }

    #[test]
    fn a_resumed_ladder_goes_on_where_it_was() {
        let plan = plan("1/1");
        let mut whole = BTreeMap::new();
        let (made, climbed) = climb(&plan, &mut whole, usize::MAX);
        assert_eq!(made.len(), 2 * 10, "{made:?}");
        assert!(climbed.iter().all(|ladder| ladder.is_done));
        let knee = climbed[0].knee.unwrap();
        assert!(knee.within.unwrap() < 9.0 && knee.past >= 9.0 && knee.past < 11.0, "{knee:?}");
        for n_at_once in 1..5 {
            let mut kept = BTreeMap::new();
            let mut n_made = 0;
            loop {
                let (made, parts) = climb(&plan, &mut kept, n_at_once);
                n_made += made.len();
                if made.is_empty() {
                    assert_eq!(parts, climbed);
                    break;
                }
            }
            assert_eq!((n_made, &kept), (20, &whole), "no run is made twice");
        }
    }

    #[test]
    fn a_ladder_is_climbed_in_one_shard() {
        let (mut first, mut second, mut whole) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        climb(&plan("1/2"), &mut first, usize::MAX);
        climb(&plan("2/2"), &mut second, usize::MAX);
        climb(&plan("1/1"), &mut whole, usize::MAX);
        assert!(first.keys().all(|digest| !second.contains_key(digest)));
        first.extend(second);
        assert_eq!(first, whole);
    }
}
