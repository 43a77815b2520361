//! The reduction of a problem to an [`Instance`] over classes: the numbers that a policy's programs see, and no others.

use crate::cluster::WorkerType;
use crate::index::{EntityId, Id, JobIndex};
use crate::policy::program::hierarchy;
use crate::policy::view::{self, Seen, ThroughputView};
use crate::problem::{ActiveJob, Colocation, Problem};
use crate::program::expression::owner_of;
use crate::program::{Classes, Instance, Unlike};
use crate::spec::Fidelity;
use crate::units::{DollarsPerWorkerHour, Seconds};

/// From this many jobs on, if hardly two are alike and none share workers, members keep the order of the jobs. Below,
/// they are sorted by key, so that every k-th is a representative sample and jobs of a kind are side by side; above,
/// that order costs more in cache misses than it saves.
const IN_TURN_MIN: usize = 1 << 16;

/// The part of a problem that a policy sees.
#[derive(Clone, Debug)]
pub(super) struct Selection<'a> {
    /// The view that the policy has of throughputs.
    pub(super) view: &'a ThroughputView,
    /// Whether pairs count. Then jobs that may share workers with others are different.
    pub(super) pairs: bool,
    /// Whether interchangeable jobs are grouped. Not where a named backend is to end inside the program over jobs,
    /// and where some jobs of a class lose their constraint.
    pub(super) classes: bool,
    /// Whether owners matter. Then jobs of different owners are different, and so are jobs whose order decides.
    pub(super) hierarchical: bool,
    /// Jobs with dropped droppable constraints: [n], or empty if none are dropped.
    pub(super) dropped: &'a [bool],
    /// Whether the published system's oddities are kept: as `published`, jobs may have time on types with too few
    /// workers for them.
    pub(super) fidelity: Fidelity,
    /// Names of the per-job data to carry.
    pub(super) data: &'a [String],
    /// Isolated time by the policy's own accounts, in place of the problem's: [n], or empty.
    pub(super) isolated_elapsed: &'a [f64],
}

/// An instance and how its members map to jobs.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    pub(super) instance: Instance,
    pub(super) classes: Classes,
    /// Pairs of members among the combinations, behind the singles: (member, member), equal for the pair of a class
    /// with itself. None at first: they are added as they become columns.
    pub(super) pairs: Vec<(usize, usize)>,
    /// `thr_eq` of one job of each member, as the view has it: [members].
    pub(super) equal_share: Vec<f64>,
}

/// Groups the problem's jobs and gathers the instance, without pairs.
pub(super) fn reduce(problem: &Problem, selection: &Selection<'_>) -> Reduced {
    let n = problem.n_jobs();
    let mut keys = Keys::of(problem, selection);
    let width = keys.width();
    if selection.classes {
        let unlike = if keys.paired || n < IN_TURN_MIN { Unlike::ByKey } else { Unlike::InTurn };
        let (classes, known) = Classes::group(n, width, unlike, |position, key| keys.write(position, key));
        return keys.gather(classes, |class| known.of_class(class));
    }
    let mut words = vec![0; n * width];
    for (position, key) in words.chunks_exact_mut(width).enumerate() {
        keys.write(position, key);
    }
    keys.gather(Classes::singletons(n), |class| &words[class * width..(class + 1) * width])
}

/// Data of a class from which derived data follow.
#[derive(Debug)]
struct ClassData<'a> {
    problem: &'a Problem,
    scale_factor: u32,
    /// Throughputs of a job alone, as the policy's view has them: `[K]`.
    throughput: &'a [f64],
    equal_share: f64,
}

/// Source of the value of a datum of jobs.
#[derive(Clone, Copy, Debug)]
enum Datum<'a> {
    /// A number that the job itself states.
    Stated(fn(&ActiveJob) -> f64),
    /// The isolated time in the account that the policy keeps, or that the job itself states.
    IsolatedElapsed,
    /// A number that follows from throughputs and scale factor. Jobs that agree in both agree in the datum, so keys
    /// do not hold it.
    Derived(fn(&ClassData<'_>) -> f64),
    /// 1 for jobs of this owner and of those below it, else 0; none if the problem has no such owner, and so no such job.
    OwnedBy(Option<EntityId>),
    /// A column of the problem's own, by job: none if the problem lacks it.
    Column(Option<&'a [f64]>),
}

impl<'a> Datum<'a> {
    fn of(name: &str, problem: &'a Problem) -> Self {
        match name {
            "weight" => Self::Stated(|job| job.weight),
            "steps_remaining" => Self::Stated(|job| job.steps_remaining.get()),
            "elapsed" => Self::Stated(|job| job.elapsed.get()),
            // A deadline that has passed asks for what no throughput gives: it counts as none.
            "slo_remaining" => Self::Stated(|job| {
                job.slo_remaining.map(Seconds::get).filter(|left| *left > 0.0).unwrap_or(f64::INFINITY)
            }),
            "isolated_elapsed" => Self::IsolatedElapsed,
            "scale_factor" => Self::Derived(|of| f64::from(of.scale_factor)),
            "equal_share_throughput" => Self::Derived(|of| of.equal_share),
            "isolated_throughput" => {
                Self::Derived(|of| view::isolated(of.problem, of.scale_factor, of.throughput))
            }
            "fitting_isolated_throughput" => {
                Self::Derived(|of| view::fitting_isolated(of.problem, of.scale_factor, of.throughput))
            }
            "fastest_throughput" => {
                Self::Derived(|of| view::fastest(of.problem, of.scale_factor, of.throughput))
            }
            other if let Some(owner) = owner_of(other) => {
                let entities = problem.entities();
                Self::OwnedBy(entities.ids().find(|id| entities[*id].name == owner))
            }
            other => Self::Column(problem.extra().get(other).map(Vec::as_slice)),
        }
    }

    /// A job's value, unless it is derived.
    fn value(self, problem: &Problem, selection: &Selection<'_>, index: JobIndex) -> f64 {
        let job = &problem.jobs()[index];
        match self {
            Self::Stated(value) => value(job),
            Self::IsolatedElapsed => {
                let kept = selection.isolated_elapsed.get(index.index()).copied();
                kept.unwrap_or(job.isolated_elapsed.get())
            }
            Self::Derived(_) => f64::NAN,
            Self::OwnedBy(owner) => {
                let entities = problem.entities();
                let above = std::iter::successors(job.entity, |id| entities[*id].parent);
                f64::from(u8::from(owner.is_some() && above.take(entities.len()).any(|id| Some(id) == owner)))
            }
            Self::Column(column) => column.map_or(f64::NAN, |column| column[index.index()]),
        }
    }
}

/// The keys of jobs: jobs with equal keys are of one class. A key holds no word that follows from others or is the same for
/// all jobs, so that a million jobs are grouped at the speed at which they are read.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    problem: &'a Problem,
    selection: &'a Selection<'a>,
    seen: Seen<'a>,
    columns: Vec<Datum<'a>>,
    dropped: Option<&'a [bool]>,
    interchangeable: Vec<bool>,
    paired: bool,
    /// The kind of each job, [n], where the throughputs of pairs count and are given pair by pair.
    kinds: Option<&'a [u32]>,
    row: Vec<f64>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(problem: &'a Problem, selection: &'a Selection<'a>) -> Self {
        let columns = selection.data.iter().map(|name| Datum::of(name, problem));
        let paired = selection.pairs && !matches!(problem.colocation(), Colocation::None);
        Self {
            problem,
            selection,
            seen: selection.view.seen(problem),
            columns: columns.filter(|datum| !matches!(datum, Datum::Derived(_))).collect(),
            dropped: (!selection.dropped.is_empty()).then_some(selection.dropped),
            interchangeable: hierarchy::interchangeable(problem),
            paired,
            kinds: if paired { problem.kinds_by_pair() } else { None },
            row: vec![0.0; problem.n_types()],
        }
    }

    /// Gathers the instance of classes, of which the keys are known, without pairs.
    pub(super) fn gather<'k>(&self, classes: Classes, key: impl Fn(usize) -> &'k [u64]) -> Reduced {
        let (problem, selection) = (self.problem, self.selection);
        let (n, k) = (classes.len(), problem.n_types());
        let mut data: Vec<(Datum<'_>, Vec<f64>)> =
            selection.data.iter().map(|name| (Datum::of(name, problem), Vec::with_capacity(n))).collect();
        let mut scale_factor = Vec::with_capacity(n);
        let mut throughput = Vec::with_capacity(n * k);
        let mut equal_share = Vec::with_capacity(n);
        for class in 0..n {
            // In the order of `write`.
            let (size, words) = key(class).split_first().unwrap_or((&0, &[]));
            let (row, columns) = words.split_at(k);
            throughput.extend(row.iter().map(|word| f64::from_bits(*word)));
            let row = &throughput[class * k..];
            let mut columns = columns.iter().map(|word| f64::from_bits(*word));
            let size = u32::try_from(*size).unwrap_or(u32::MAX);
            let equal = view::equal_share(problem, row);
            scale_factor.push(f64::from(size));
            equal_share.push(equal);
            let of = ClassData { problem, scale_factor: size, throughput: row, equal_share: equal };
            for (datum, values) in &mut data {
                values.push(match datum {
                    Datum::Derived(value) => value(&of),
                    _ => columns.next().unwrap_or(f64::NAN),
                });
            }
        }
        let types = problem.cluster().types();
        // Where only some types have a price, the others' is no number, which is refused if it is read.
        let priced = types.iter().any(|kind| kind.price.is_some());
        let price = |kind: &WorkerType| kind.price.map_or(f64::NAN, DollarsPerWorkerHour::get);
        let prices: Option<Vec<f64>> = priced.then(|| types.iter().map(price).collect());
        let dropped = |class: usize| selection.dropped[classes.members(class)[0] as usize];
        let dropped = if selection.dropped.is_empty() { Vec::new() } else { (0..n).map(dropped).collect() };
        let instance = Instance {
            dropped,
            eased: 0.0,
            oversized: selection.fidelity == Fidelity::Published,
            capacity: types.iter().map(|kind| f64::from(kind.n_workers)).collect(),
            multiplicity: classes.multiplicity(),
            data: selection.data.iter().cloned().zip(data.into_iter().map(|(_, values)| values)).collect(),
            type_data: prices.map(|prices| ("price".to_owned(), prices)).into_iter().collect(),
            worker_types: types.iter().map(|kind| kind.name.clone()).collect(),
            scale_factor,
            throughput,
            pairs: Vec::new(),
        };
        Reduced { instance, classes, pairs: Vec::new(), equal_share }
    }

    /// The number of words in a key.
    pub(super) fn width(&self) -> usize {
        let others = [self.dropped.is_some(), self.selection.hierarchical, self.paired];
        1 + self.row.len() + self.columns.len() + others.map(usize::from).iter().sum::<usize>()
    }

    /// Writes the key of the job at a position into `key`, [width].
    pub(super) fn write(&mut self, position: usize, key: &mut [u64]) {
        let index = JobIndex::from_index(position);
        let job = &self.problem.jobs()[index];
        self.seen.row(index, &mut self.row);
        let mut words = key.iter_mut();
        let mut push = |word: u64| {
            if let Some(place) = words.next() {
                *place = word;
            }
        };
        push(u64::from(job.scale_factor));
        for value in &self.row {
            push(value.to_bits());
        }
        for column in &self.columns {
            push(column.value(self.problem, self.selection, index).to_bits());
        }
        if let Some(dropped) = self.dropped {
            push(u64::from(dropped[position]));
        }
        if self.selection.hierarchical {
            push(match job.entity {
                Some(entity) if !self.interchangeable[entity.index()] => (1 << 32) + position as u64,
                entity => entity.map_or(0, |entity| 1 + entity.index() as u64),
            });
        }
        if self.paired {
            push(match self.kinds {
                Some(kinds) => u64::from(kinds[position]),
                None => job.row.map_or(0, |row| 1 + row.index() as u64),
            });
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "defaults are copied, not computed")]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::JobId;
    use crate::problem::ProblemBuilder;
    use crate::program::expression::{Absent, Source, Subject, Vocabulary};

    /// A job that states nothing but its throughputs.
    fn problem() -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("fast=2,slow=6".parse().unwrap()));
        builder.job(ActiveJob::new(JobId::from_index(0)), &[4.0, 1.0]);
        builder.build().unwrap()
    }

    #[test]
    fn every_atom_of_jobs_has_a_value_here_from_where_its_entry_says() {
        let problem = problem();
        let vocabulary = Vocabulary::default();
        let of_jobs = vocabulary.atoms().filter(|atom| atom.subject == Subject::Job);
        for atom in of_jobs.filter(|atom| atom.source != Source::Allocation) {
            let data = [atom.name.to_string()];
            let view = ThroughputView::Measured;
            let selection = Selection {
                view: &view,
                pairs: false,
                classes: true,
                hierarchical: false,
                dropped: &[],
                fidelity: Fidelity::Corrected,
                data: &data,
                isolated_elapsed: &[],
            };
            let found = reduce(&problem, &selection).instance.data[&data[0]][0];
            let expected = match (atom.source, Datum::of(&atom.name, &problem)) {
                (_, Datum::Column(_)) => panic!("`{}` has no arm in `Datum::of`", atom.name),
                (Source::Stated(Absent::Is(value)), _) => value,
                (Source::Accumulated, Datum::IsolatedElapsed) | (Source::Stated(Absent::Refused), _) => 0.0,
                (Source::Derived { .. }, Datum::Derived(_)) if found > 0.0 => found,
                (source, _) => panic!("`{}` is not {source:?}", atom.name),
            };
            assert_eq!(found, expected, "{}", atom.name);
        }
    }
}
