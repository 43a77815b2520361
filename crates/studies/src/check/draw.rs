//! Random instances with numbers spread over a given number of decades.

use apportion::spec::Entries;
use apportion::spec::snapshot::{
    FORMAT, InnerRuleName, Label, SnapshotDocument, SnapshotEntity, SnapshotJob, SnapshotPair,
};
use apportion::workload::random::{SeedStreams, Stream};

/// The most jobs of an instance.
const JOBS_MAX: usize = 12;
/// The most worker types of an instance.
const TYPES_MAX: usize = 4;

/// Properties that all jobs of an instance share.
#[expect(clippy::struct_excessive_bools, reason = "each is drawn on its own")]
struct Habits {
    decades: f64,
    /// Number of workers by type: `[K]`.
    workers: Vec<u64>,
    names: Vec<String>,
    n_entities: usize,
    weighted: bool,
    deadlines: bool,
    steps: bool,
    alike: bool,
}

/// The instance with a number, drawn from a seed: at most twelve jobs on at most four worker types. `names`: names of worker
/// types.
pub fn draw(seed: u64, number: u64, decades: f64, names: &[String]) -> SnapshotDocument {
    let mut stream = SeedStreams::new(seed).stream(format!("check {number}"));
    let stream = &mut stream;
    let n_types = 1 + stream.below(TYPES_MAX);
    let mut names: Vec<String> =
        names.iter().cloned().chain((0..n_types).map(|n| format!("type{n}"))).collect();
    if chance(stream, 0.5) {
        stream.shuffle(&mut names);
    }
    names.truncate(n_types);
    let mut workers: Vec<u64> = (0..n_types).map(|_| *stream.choice(&[0, 1, 1, 2, 3, 4, 5, 8, 16])).collect();
    if workers.iter().all(|n| *n == 0) {
        workers[0] = 1;
    }
    let habits = Habits {
        decades,
        workers,
        names,
        n_entities: if chance(stream, 0.5) { 1 + stream.below(4) } else { 0 },
        weighted: chance(stream, 0.5),
        deadlines: chance(stream, 0.5),
        steps: chance(stream, 0.95),
        alike: chance(stream, 0.3),
    };
    let n_jobs = 1 + stream.below(JOBS_MAX);
    let mut jobs: Vec<SnapshotJob> = Vec::with_capacity(n_jobs);
    for position in 0..n_jobs {
        let alike = habits.alike && position > 0 && chance(stream, 0.6);
        let of = if alike { jobs[stream.below(position)].clone() } else { habits.job(stream) };
        let number = i64::try_from(position).unwrap_or(i64::MAX);
        let id = if chance(stream, 0.1) { Label::Text(format!("j{number}")) } else { Label::Number(number) };
        jobs.push(SnapshotJob { id, ..of });
    }
    let priced = chance(stream, 0.85);
    let prices = priced.then(|| habits.by_type(|_| spread(stream, decades / 2.0)));
    let pairs = if chance(stream, 0.5) { habits.pairs(stream, &jobs) } else { Vec::new() };
    SnapshotDocument {
        format: FORMAT.to_owned(),
        cluster: habits.by_type(|kind| habits.workers[kind]),
        prices,
        pairs,
        entities: habits.entities(stream),
        jobs,
    }
}

fn chance(stream: &mut Stream, part: f64) -> bool {
    stream.uniform() < part
}

/// A number whose logarithm is uniform over `decades` decades around 1, to three digits.
fn spread(stream: &mut Stream, decades: f64) -> f64 {
    short(10.0_f64.powf(stream.uniform_in(-0.5 * decades, 0.5 * decades)))
}

/// The value rounded to three digits, so that instances are short to read.
fn short(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

impl Habits {
    fn by_type<T>(&self, mut of: impl FnMut(usize) -> T) -> Entries<T> {
        self.names.iter().enumerate().map(|(kind, name)| (name.clone(), of(kind))).collect()
    }

    /// A job that runs somewhere.
    fn job(&self, stream: &mut Stream) -> SnapshotJob {
        let largest = self.workers.iter().copied().max().unwrap_or(1).min(8);
        let drawn = if chance(stream, 0.5) { 1 } else { *stream.choice(&[2, 2, 3, 4, 5, 6, 7, 8]) };
        let scale_factor = drawn.min(largest);
        let mut speeds: Vec<f64> = self.workers.iter().map(|_| spread(stream, self.decades)).collect();
        for speed in &mut speeds {
            if chance(stream, 0.15) {
                *speed = 0.0;
            }
        }
        let fits: Vec<usize> =
            (0..self.workers.len()).filter(|kind| self.workers[*kind] >= scale_factor).collect();
        if fits.iter().all(|kind| speeds[*kind] == 0.0) {
            speeds[*stream.choice(&fits)] = spread(stream, self.decades);
        }
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let steps = short(1e4 * spread(stream, self.decades));
        let slo = match stream.below(6) {
            0 => -short(spread(stream, self.decades)),
            1 => spread(stream, self.decades),
            _ => short(steps / fastest * 10.0_f64.powf(stream.uniform_in(-0.5, 1.5))),
        };
        let deadline = self.deadlines && chance(stream, 0.6) && slo.abs() <= 1e15 && slo != 0.0;
        let entity = stream.below(self.n_entities + 1);
        SnapshotJob {
            id: Label::Number(0),
            job_type: None,
            scale_factor: u32::try_from(scale_factor).unwrap_or(1),
            weight: if self.weighted { spread(stream, self.decades.min(12.0) / 2.0) } else { 1.0 },
            steps_remaining: self.steps.then_some(steps),
            elapsed: if chance(stream, 0.5) { 0.0 } else { short(60.0 * spread(stream, self.decades)) },
            isolated_elapsed: if chance(stream, 0.5) {
                0.0
            } else {
                short(60.0 * spread(stream, self.decades))
            },
            slo_remaining: deadline.then_some(slo),
            entity: (entity < self.n_entities).then(|| format!("e{entity}").into()),
            throughput: Some(self.by_type(|kind| Some(speeds[kind]))),
            extra: Entries::default(),
        }
    }

    fn pairs(&self, stream: &mut Stream, jobs: &[SnapshotJob]) -> Vec<SnapshotPair> {
        let mut pairs = Vec::new();
        let of_any_size = chance(stream, 0.3);
        for (position, one) in jobs.iter().enumerate() {
            for other in &jobs[position + 1..] {
                let fits = of_any_size || one.scale_factor == other.scale_factor;
                if !fits || chance(stream, 0.5) {
                    continue;
                }
                let mut of = |job: &SnapshotJob, kind: usize| {
                    let own =
                        job.throughput.as_ref().and_then(|own| own.get(&self.names[kind]).copied().flatten());
                    let part = if chance(stream, 0.15) { 0.0 } else { stream.uniform_in(0.1, 1.0) };
                    short(own.unwrap_or(0.0) * part)
                };
                let throughput = self.by_type(|kind| [of(one, kind), of(other, kind)]);
                pairs.push(SnapshotPair { jobs: [one.id.clone(), other.id.clone()], throughput });
            }
        }
        pairs
    }

    fn entities(&self, stream: &mut Stream) -> Vec<SnapshotEntity> {
        let mut entity = |number: usize| {
            let weight = if self.weighted { spread(stream, self.decades.min(12.0) / 2.0) } else { 1.0 };
            let inner = if chance(stream, 0.3) { InnerRuleName::Fifo } else { InnerRuleName::Fairness };
            let parent = (number > 0 && chance(stream, 0.4)).then(|| format!("e{}", stream.below(number)));
            SnapshotEntity { id: format!("e{number}"), weight, inner, parent }
        };
        (0..self.n_entities).map(&mut entity).collect()
    }
}
