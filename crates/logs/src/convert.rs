//! Conversion of rows of a normalized log to jobs of a throughput matrix, by rules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apportion::index::{Id, RowId, WorkerTypeId};
use apportion::spec::snapshot::NUMBER_MAX;
use apportion::spec::{Source, SpecError, TracedJob};
use apportion::throughput::Throughputs;
use apportion::units::{Seconds, Steps};
use apportion::workload::Job;
use apportion::workload::random::SeedStreams;

use crate::clock::Zone;
use crate::pattern::{self, FirstMatch};
use crate::reading::Reading;
use crate::row::{Seen, State};
use crate::rules::{Arrival, DrawBy, EntityOf, Fate, Fractions, JobTypes, Rules, TooLarge, texts};
use crate::tally::{Doubt, Reason, Tally};
use crate::window::Window;

/// The fewest steps of a job in a trace.
const STEPS_MIN: f64 = 1e-9;
/// The most entries of one list of the rules that a row may have to be compared with.
const COMPARED_MAX: usize = 1_000;

/// Converter of rows to jobs, by rules and a throughput matrix.
#[derive(Debug)]
pub struct Converter<'a> {
    throughputs: &'a Throughputs,
    rules: &'a Rules,
    streams: SeedStreams,
    /// Rows of the matrix by scale factor, for each entry of `job_types` and each worker type: only those that run there.
    kinds: Vec<Vec<Kinds>>,
    /// Worker type of each entry of `durations`.
    references: Vec<WorkerTypeId>,
    /// Entries of `durations`, then of `job_types`, by their patterns.
    durations: FirstMatch<1>,
    entries: FirstMatch<5>,
    /// Rows of the matrix by job type.
    by_name: BTreeMap<&'a str, Vec<RowId>>,
    /// A flag: once it is raised, no more rows are converted.
    stop: Option<Arc<AtomicBool>>,
}

/// Rows of the matrix, by scale factor.
type Kinds = BTreeMap<u32, Vec<RowId>>;

/// Random bits by the scale factor, user and name that rows share.
type Draws<'r> = BTreeMap<(u32, &'r str, &'r str), u64>;

/// Jobs that a log becomes, with counts of the rows that become none.
#[derive(Debug, Default)]
pub struct Converted {
    /// Jobs in order of arrival.
    pub chosen: Vec<Chosen>,
    /// Rows that become no job, by reason.
    pub left_out: BTreeMap<Reason, Tally>,
    /// Rows of `left_out` that would arrive in the window, by reason; without a window, all whose arrival is known.
    pub left_out_inside: BTreeMap<Reason, Tally>,
    /// Rows of `left_out` whose arrival is not known, by reason: they are in no window.
    pub left_out_undated: BTreeMap<Reason, Tally>,
    /// Doubts about the jobs, with how many each is about.
    pub doubts: BTreeMap<Doubt, Tally>,
    /// Jobs that needed more workers than the largest scale factor, which they were given.
    pub cut: Tally,
    /// Jobs that were given more workers than they had in the log, as no row of the matrix has their scale factor.
    pub rounded_up: Tally,
    /// Number of jobs whose running times were measured on each worker type of the matrix: `[n worker types]`.
    pub ran_on: Vec<u64>,
    /// Arrival of the first job, s on the log's clock.
    pub first_s: f64,
}

/// A job that a row of the log becomes by the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// Position of its row among the rows of the log.
    pub row: usize,
    /// Row of the matrix with its throughputs.
    pub kind: RowId,
    /// Arrival, s after the first job's.
    pub arrival_s: f64,
    /// Number of steps.
    pub total_steps: f64,
    /// Weight of the job.
    pub weight: f64,
}

impl Chosen {
    /// Whether it has more workers than its row held, as the matrix has no such scale factor.
    pub(crate) fn is_rounded_up(&self, log: &Reading, throughputs: &Throughputs) -> bool {
        let scale_factor = f64::from(throughputs.rows()[self.kind].scale_factor);
        scale_factor > log.rows.at(self.row).held().unwrap_or(0.0)
    }
}

impl<'a> Converter<'a> {
    /// A converter; `source` is the document of the rules, for error messages.
    ///
    /// # Errors
    /// If a worker type is unknown, a pattern of job types matches none of the matrix, or rows would have to be compared with
    /// too many entries.
    pub fn new(
        throughputs: &'a Throughputs,
        (rules, source): (&'a Rules, &Source),
        seed: u64,
    ) -> Result<Self, SpecError> {
        let durations = FirstMatch::new(rules.durations.iter().map(|entry| [Some(entry.gpu_type.as_str())]));
        let entries = FirstMatch::new(rules.job_types.iter().map(|entry| entry.when.patterns()));
        for (beyond, list) in
            [(durations.beyond(COMPARED_MAX), "durations"), (entries.beyond(COMPARED_MAX), "job_types")]
        {
            if let Some(at) = beyond {
                let message = format!(
                    "entry {} of `{list}` that only comparing tells from others, expected at most {COMPARED_MAX}",
                    COMPARED_MAX + 1
                );
                let help = "entries that name different texts without `*` are looked up, and may be as many as you like";
                return Err(source.error_at(&format!("{list}[{at}]"), message, Some(help.to_owned())));
            }
        }
        let mut references = Vec::new();
        for (at, entry) in rules.durations.iter().enumerate() {
            let names = throughputs.worker_types().iter().map(String::as_str);
            let found = names.clone().position(|name| name == entry.worker_type);
            let path = format!("durations[{at}].worker_type");
            let found =
                found.ok_or_else(|| source.unknown_name(&path, "worker type", &entry.worker_type, names))?;
            references.push(WorkerTypeId::from_index(found));
        }
        let mut kinds = Vec::new();
        for (at, entry) in rules.job_types.iter().enumerate() {
            for (position, pattern) in entry.draw.iter().enumerate() {
                let mut names = throughputs.rows().iter().map(|row| row.job_type.as_str());
                if !names.any(|name| pattern::matches(pattern, name)) {
                    let path = format!("job_types[{at}].draw[{position}]");
                    let message =
                        format!("no job type of throughputs `{}` matches `{pattern}`", throughputs.name());
                    let help = "`apportion throughputs show` lists its job types".to_owned();
                    return Err(source.error_at(&path, message, Some(help)));
                }
            }
            kinds.push(kinds_of(throughputs, entry));
        }
        let mut by_name: BTreeMap<&str, Vec<RowId>> = BTreeMap::new();
        for (at, row) in throughputs.rows().iter().enumerate() {
            by_name.entry(&row.job_type).or_default().push(RowId::from_index(at));
        }
        let streams = SeedStreams::new(seed);
        Ok(Self { throughputs, rules, streams, kinds, references, durations, entries, by_name, stop: None })
    }

    /// The converter with a flag that ends conversion once it is raised; the result then covers a part of the log.
    #[must_use]
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Converts the rows of a log; `zone` is that of the window's dates.
    pub fn convert(&self, log: &Reading, window: Option<&Window>, zone: Option<&Zone>) -> Converted {
        let mut converted =
            Converted { ran_on: vec![0; self.throughputs.worker_types().len()], ..Converted::default() };
        let (mut draws, mut no_jobs) = (Draws::new(), Vec::new());
        for (position, row) in log.rows.iter().enumerate() {
            if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                break;
            }
            match self.choose(&row, &mut draws) {
                Ok(chosen) => converted.chosen.push(Chosen { row: position, ..chosen }),
                Err(reason) => {
                    converted.left_out.entry(reason).or_default().count_row(&row);
                    no_jobs.push((position, reason));
                }
            }
        }
        converted.chosen.sort_by(|one, other| one.arrival_s.total_cmp(&other.arrival_s));
        let mut bounds = (f64::NEG_INFINITY, f64::INFINITY);
        if let (Some(window), Some(first)) = (window, converted.chosen.first()) {
            bounds = window.bounds(first.arrival_s, zone);
            let (from, to) = bounds;
            let left_out = converted.left_out.entry(Reason::OutsideWindow).or_default();
            converted.chosen.retain(|chosen| {
                let is_inside = (from..to).contains(&chosen.arrival_s);
                if !is_inside {
                    let row = &log.rows.at(chosen.row);
                    left_out.count_row(row);
                }
                is_inside
            });
            converted.left_out.retain(|_, tally| tally.n > 0);
        }
        self.count_inside(log, &no_jobs, bounds, &mut converted);
        converted.first_s = converted.chosen.first().map_or(0.0, |chosen| chosen.arrival_s);
        let first_s = converted.first_s;
        let Converted { chosen, left_out, left_out_inside, .. } = &mut converted;
        chosen.retain_mut(|chosen| {
            chosen.arrival_s -= first_s;
            let is_held = chosen.arrival_s <= NUMBER_MAX;
            if !is_held {
                let row = &log.rows.at(chosen.row);
                for rows in [&mut *left_out, &mut *left_out_inside] {
                    rows.entry(Reason::OutOfRange).or_default().count_row(row);
                }
            }
            is_held
        });
        self.count_kept(log, &mut converted);
        converted
    }

    /// Counts rows that become no job by their arrival: inside bounds, s on the log's clock, or not known.
    fn count_inside(
        &self,
        log: &Reading,
        no_jobs: &[(usize, Reason)],
        (from, to): (f64, f64),
        converted: &mut Converted,
    ) {
        for (position, reason) in no_jobs {
            let row = &log.rows.at(*position);
            let rows = match self.arrival(row) {
                None => &mut converted.left_out_undated,
                Some((arrival_s, _)) if (from..to).contains(&arrival_s) => &mut converted.left_out_inside,
                Some(_) => continue,
            };
            rows.entry(*reason).or_default().count_row(row);
        }
    }

    /// Counts doubts, cut and rounded-up jobs among those that are kept.
    fn count_kept(&self, log: &Reading, converted: &mut Converted) {
        for at in 0..converted.chosen.len() {
            let chosen = converted.chosen[at];
            let row = &log.rows.at(chosen.row);
            let whole = f64::from(row.n_workers.unwrap_or(0));
            converted.ran_on[self.reference(row).index()] += 1;
            if let Some((_, Some(doubt))) = self.arrival(row) {
                converted.doubts.entry(doubt).or_default().count_row(row);
            }
            if chosen.is_rounded_up(log, self.throughputs) {
                converted.rounded_up.count_row(row);
            }
            if f64::from(self.throughputs.rows()[chosen.kind].scale_factor)
                < self.n_workers(row, whole).unwrap_or(0.0)
            {
                converted.cut.count_row(row);
            }
        }
    }

    /// The job of a row, with its arrival on the log's clock; else the reason why it becomes none.
    fn choose<'r>(&self, row: &Seen<'r>, draws: &mut Draws<'r>) -> Result<Chosen, Reason> {
        if row.n_workers == Some(0) {
            return Err(Reason::NoWorkers);
        }
        if row.contradicts_itself() {
            return Err(Reason::Contradictory);
        }
        if self.rules.states.get(&row.state) == Some(&Fate::LeaveOut) {
            return Err(Reason::State);
        }
        let ran_s = running_time(row)?;
        let (arrival_s, _) = self.arrival(row).ok_or(Reason::NoArrival)?;
        let whole = f64::from(row.n_workers.ok_or(Reason::WorkersUnknown)?);
        let n_workers = self.n_workers(row, whole).ok_or(Reason::Fraction)?;
        let holds = |at: usize| self.rules.job_types[at].when.holds(row);
        let entry = self.entries.find(texts(row), holds).ok_or(Reason::NoRule)?;
        if self.rules.job_types[entry].leave_out {
            return Err(Reason::LeftOutByRule);
        }
        let reference = self.reference(row);
        let named;
        let mut kinds = &self.kinds[entry][reference.index()];
        if self.rules.job_types[entry].named_by_class {
            if row.class.is_none_or(|class| !self.by_name.contains_key(class)) {
                return Err(Reason::ClassUnknown);
            }
            named = self.named(row, reference);
            kinds = &named;
        }
        let fitting = kinds.iter().find(|(scale_factor, _)| f64::from(**scale_factor) >= n_workers);
        let (scale_factor, kinds) = match (fitting, kinds.last_key_value()) {
            (Some(fitting), _) => fitting,
            (None, None) => return Err(Reason::NoJobType),
            (None, Some(_)) if self.rules.too_large == TooLarge::LeaveOut => return Err(Reason::TooLarge),
            (None, Some(largest)) => largest,
        };
        let drawn = self.draw(row, *scale_factor, draws);
        let kind = kinds[below(drawn, kinds.len())];
        let total_steps = ran_s * self.throughputs.alone(kind, reference);
        if !(STEPS_MIN..=NUMBER_MAX).contains(&total_steps) {
            return Err(Reason::OutOfRange);
        }
        let weight = self.rules.job_types[entry].weight.unwrap_or(1.0);
        Ok(Chosen { row: 0, kind, arrival_s, total_steps, weight })
    }

    /// Rows of the matrix by scale factor that have the job type named by a log row's class and run on a worker type.
    fn named(&self, row: &Seen<'_>, on: WorkerTypeId) -> Kinds {
        let named = row.class.and_then(|class| self.by_name.get(class));
        let runs = |kind: &&RowId| self.throughputs.alone(**kind, on) > 0.0;
        let kinds = named.into_iter().flatten().filter(runs);
        kinds.map(|kind| (self.throughputs.rows()[*kind].scale_factor, vec![*kind])).collect()
    }

    /// 64 random bits for a row: equal for all rows that share a draw, whatever else is in the log.
    fn draw<'r>(&self, row: &Seen<'r>, scale_factor: u32, draws: &mut Draws<'r>) -> u64 {
        let (user, name) = (row.user, row.name);
        let stream = |key: String| self.streams.stream(key).next_u64();
        let key = match (self.rules.draw_by, user, name) {
            (DrawBy::User, Some(user), _) => (scale_factor, user, ""),
            (DrawBy::Name, user, Some(name)) => (scale_factor, user.unwrap_or_default(), name),
            _ => return stream(format!("imported_job_type of job\0{}", row.id)),
        };
        *draws
            .entry(key)
            .or_insert_with(|| stream(format!("imported_job_type of {}\0{}\0{}", key.0, key.1, key.2)))
    }

    /// Arrival of a row, s on the log's clock, with the doubt about it where a later time stands for the one that the rules
    /// name.
    fn arrival(&self, row: &Seen<'_>) -> Option<(f64, Option<Doubt>)> {
        let (submitted, eligible, started) = (row.submitted_s, row.eligible_s, row.started_s);
        let times: &[_] = match self.rules.arrival {
            Arrival::Submitted => &[
                (submitted, None),
                (eligible, Some(Doubt::NoSubmissionButEligible)),
                (started, Some(Doubt::NoSubmission)),
            ],
            Arrival::Eligible => &[(eligible, None), (started, Some(Doubt::NoEligible))],
            Arrival::Started => &[(started, None)],
        };
        times.iter().find_map(|(time, doubt)| Some(((*time)?, *doubt)))
    }

    /// Workers that a row needs; none if the rules leave it out because it asks for parts of workers.
    fn n_workers(&self, row: &Seen<'_>, whole: f64) -> Option<f64> {
        match (row.fraction, self.rules.fractions) {
            (None, _) | (Some(_), Fractions::EachWhole) => Some(whole),
            // A sum of parts that is whole but for rounding is whole.
            (Some(part), Fractions::RoundUp) => Some((whole * part - 1e-9).ceil().max(1.0)),
            (Some(_), Fractions::LeaveOut) => None,
        }
    }

    /// Worker type on which a row's running time was measured.
    fn reference(&self, row: &Seen<'_>) -> WorkerTypeId {
        let found = self.durations.find([row.worker_type], |_| true);
        found.map_or(WorkerTypeId::from_index(0), |at| self.references[at])
    }

    /// The job in the form that a trace holds.
    pub fn job(&self, log: &Reading, chosen: &Chosen) -> TracedJob {
        let row = &log.rows.at(chosen.row);
        let kind = &self.throughputs.rows()[chosen.kind];
        let mut job = Job::new(&kind.job_type)
            .scale_factor(kind.scale_factor)
            .total_steps(Steps::new(chosen.total_steps))
            .arrival(Seconds::new(chosen.arrival_s));
        job.weight = chosen.weight;
        let first = self.throughputs.alone(chosen.kind, WorkerTypeId::from_index(0));
        job.duration = (first > 0.0).then(|| Seconds::new(chosen.total_steps / first));
        let entity = match self.rules.entity {
            EntityOf::Group => row.group,
            EntityOf::User => row.user,
            EntityOf::None => None,
        };
        job.entity = entity.map(str::to_owned);
        TracedJob { job, id: row.id.to_string(), command: None }
    }
}

/// Running time of a row, s, above 0; else the reason why there is none.
fn running_time(row: &Seen<'_>) -> Result<f64, Reason> {
    // A log without a number of starts of a job does not say that there were none.
    let never_started = row.started_s.is_none() && row.n_attempts == Some(0) && !row.state.is_only_of_runs();
    let has_ended = row.ended_s.is_some() && row.state != State::Pending;
    match row.ran_s {
        None if never_started => Err(Reason::NotStarted),
        _ if matches!(row.state, State::Running | State::Pending) && !has_ended => {
            let has_run = row.ran_s.is_some_and(|ran| ran > 0.0);
            Err(if never_started && !has_run { Reason::NotStarted } else { Reason::NotEnded })
        }
        Some(ran) if ran > 0.0 => Ok(ran),
        Some(_) => Err(Reason::RanForNothing),
        None if row.state == State::Unknown && row.started_s.is_some() && row.ended_s.is_none() => {
            Err(Reason::NotEnded)
        }
        None => Err(Reason::RunningTimeUnknown),
    }
}

/// A number below `n` from 64 random bits.
fn below(bits: u64, n: usize) -> usize {
    usize::try_from((u128::from(bits) * n as u128) >> 64).unwrap_or(0)
}

/// Rows of the matrix that an entry of the rules may draw, by worker type and scale factor.
fn kinds_of(throughputs: &Throughputs, entry: &JobTypes) -> Vec<Kinds> {
    let mut of_types = vec![Kinds::new(); throughputs.worker_types().len()];
    for (at, row) in throughputs.rows().iter().enumerate() {
        if !entry.draw.iter().any(|pattern| pattern::matches(pattern, &row.job_type)) {
            continue;
        }
        let kind = RowId::from_index(at);
        for (position, kinds) in of_types.iter_mut().enumerate() {
            if throughputs.alone(kind, WorkerTypeId::from_index(position)) > 0.0 {
                kinds.entry(row.scale_factor).or_default().push(kind);
            }
        }
    }
    of_types
}
