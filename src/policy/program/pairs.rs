//! The pairs of members that may share workers, and their throughputs.
//!
//! Jobs are grouped twice: identical jobs are a member (the classes of the reduced problem), members with the same
//! throughputs alone, scale factor and row of the matrix (or throughputs in the pairs given one by one) are a *kind*.
//! What two jobs get beside each other depends on their kinds alone, of which there are few however many members there
//! are, so it is looked up once per two kinds.

use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::view::ThroughputView;
use crate::problem::{Colocation, Problem, colocated_as_given};
use crate::program::{Classes, InstancePair, Part, Unlike};
use crate::workload::Combination;

/// The pairs of a problem's members.
#[derive(Clone, Debug)]
pub(super) struct Pairing {
    /// Members by kind.
    pub(super) kinds: Classes,
    /// Jobs of each member: [members].
    n_jobs: Vec<usize>,
    scale_factors: Vec<f64>,
    /// The kinds that each kind may run beside: [kinds].
    beside: Vec<Beside>,
}

/// The kinds that members of a kind may run beside.
#[derive(Clone, Debug, Default)]
struct Beside {
    /// Kinds that this one may run beside, ascending.
    others: Vec<usize>,
    /// The position of this kind in the `others` of each: [others].
    places: Vec<u32>,
    /// Steps/s of this kind beside each of the others, as the view has it: 0 where the two do not share a worker type.
    /// [others × K]
    speeds: Vec<f64>,
}

/// A kind that another kind may run beside, or a member that another member may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partner<'a> {
    /// The number of the kind, or of the member.
    pub(super) other: usize,
    /// Steps/s of the first one beside the other: `[K]`.
    pub(super) speeds: &'a [f64],
    /// Steps/s of the other one beside the first: `[K]`.
    pub(super) other_speeds: &'a [f64],
}

impl Beside {
    fn push(&mut self, (other, place): (usize, usize), speeds: &[f64]) {
        self.others.push(other);
        self.places.push(u32::try_from(place).unwrap_or(u32::MAX));
        self.speeds.extend_from_slice(speeds);
    }
}

impl Pairing {
    /// Looks up the throughputs of every two kinds. With `prune`, pairs that time slicing serves as well are left out.
    pub(super) fn of(problem: &Problem, view: &ThroughputView, classes: &Classes, prune: bool) -> Self {
        let (kinds, _) =
            Classes::group(classes.len(), problem.n_types() + 2, Unlike::ByKey, |member, key| {
                write_kind(problem, classes, member, key);
            });
        let firsts = (0..kinds.len()).filter_map(|kind| jobs_of(classes, &kinds, kind).next());
        let mut lookup = Lookup::of(problem, view, prune, firsts);
        let mut beside = vec![Beside::default(); kinds.len()];
        for two in may_share(problem, classes, &kinds) {
            let [g, h] = two.kinds;
            if lookup.throughputs(&two) {
                let [of_g, of_h] = [g, h].map(|kind| beside[kind].others.len());
                beside[g].push((h, of_h), &lookup.found[0]);
                if g != h {
                    beside[h].push((g, of_g), &lookup.found[1]);
                }
            }
        }
        let first = |member: usize| JobIndex::from_index(first_of(classes, member));
        let scale_factors = (0..classes.len()).map(|m| f64::from(problem.jobs()[first(m)].scale_factor));
        let n_jobs = (0..classes.len()).map(|member| classes.members(member).len()).collect();
        Self { scale_factors: scale_factors.collect(), kinds, n_jobs, beside }
    }

    /// Steps/s of a job of one kind beside one of another, `[K]`; none if they may not share workers.
    fn beside(&self, kind: usize, other: usize) -> Option<&[f64]> {
        let Beside { others, speeds, .. } = &self.beside[kind];
        let place = others.binary_search(&other).ok()?;
        speeds.chunks_exact(speeds.len() / others.len()).nth(place)
    }

    /// The kinds that a kind may run beside, each with the steps/s of the given kind beside it, `[K]`.
    pub(super) fn others(&self, kind: usize) -> impl Iterator<Item = (usize, &[f64])> {
        let Beside { others, speeds, .. } = &self.beside[kind];
        let k = speeds.len() / others.len().max(1);
        others.iter().copied().zip(speeds.chunks_exact(k.max(1)))
    }

    /// The kinds that a kind may run beside.
    pub(super) fn partners(&self, kind: usize) -> impl Iterator<Item = Partner<'_>> {
        let places = &self.beside[kind].places;
        self.others(kind).zip(places).map(|((other, speeds), place)| {
            let (at, k) = (*place as usize, speeds.len());
            Partner { other, speeds, other_speeds: &self.beside[other].speeds[at * k..(at + 1) * k] }
        })
    }

    /// The number of jobs of a member.
    pub(super) fn n_jobs(&self, member: usize) -> usize {
        self.n_jobs[member]
    }

    /// Workers that a job of a member needs.
    pub(super) fn scale_factor(&self, member: usize) -> f64 {
        self.scale_factors[member]
    }

    /// Every pair of members, (smaller, larger) in order, also of a member of two jobs or more with itself.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.n_jobs.len()).flat_map(move |a| {
            let mut later = Vec::new();
            self.later_partners(a, &mut later);
            later.into_iter().map(move |partner| (a, partner.other))
        })
    }

    /// Fills a list with the members that a member may run beside, itself and later ones only, in order.
    pub(super) fn later_partners<'a>(&'a self, a: usize, list: &mut Vec<Partner<'a>>) {
        for partner in self.partners(self.kinds.class_of(a)) {
            let others = self.kinds.members(partner.other).iter().map(|b| *b as usize);
            let exists = |b: &usize| *b > a || *b == a && self.n_jobs[a] > 1;
            list.extend(others.filter(exists).map(|other| Partner { other, ..partner }));
        }
        list.sort_unstable_by_key(|partner| partner.other);
    }

    /// The pair of two members; none if they may not share workers.
    pub(super) fn pair(&self, a: usize, b: usize) -> Option<InstancePair> {
        self.pair_of((a, self.kinds.class_of(a)), (b, self.kinds.class_of(b)))
    }

    /// The pair of two members, each given with its kind. Members may have the numbers of any instance; kinds have those of
    /// this pairing.
    pub(super) fn pair_of(&self, (a, g): (usize, usize), (b, h): (usize, usize)) -> Option<InstancePair> {
        let part = |member, kind, other, uses| {
            Some(Part { member, uses, throughput: self.beside(kind, other)?.to_vec() })
        };
        let parts =
            if a == b { vec![part(a, g, h, 2.0)?] } else { vec![part(a, g, h, 1.0)?, part(b, h, g, 1.0)?] };
        let scale_factor = self.scale_factors[self.kinds.members(g)[0] as usize];
        Some(InstancePair { parts, scale_factor })
    }
}

/// Two kinds that may share workers, the smaller first, with a job of each.
struct KindPair<'a> {
    kinds: [usize; 2],
    jobs: [JobIndex; 2],
    /// Steps/s of the smaller and the larger of the two jobs, where the problem gives them by pair: `[K]`.
    given: Option<&'a [[f64; 2]]>,
}

/// Every two kinds that the problem gives throughputs of, in order.
fn may_share<'a>(problem: &'a Problem, classes: &Classes, kinds: &Classes) -> Vec<KindPair<'a>> {
    match problem.colocation() {
        Colocation::None => Vec::new(),
        Colocation::Rows { .. } => {
            let jobs = |kind: usize| jobs_of(classes, kinds, kind);
            let with_row =
                |kind: &usize| jobs(*kind).next().is_some_and(|job| problem.jobs()[job].row.is_some());
            let known: Vec<usize> = (0..kinds.len()).filter(with_row).collect();
            let two = |g: usize, h: usize| {
                let second = if g == h { jobs(g).nth(1) } else { jobs(h).next() };
                Some(KindPair { kinds: [g, h], jobs: [jobs(g).next()?, second?], given: None })
            };
            let from = |(place, g): (usize, usize)| known[place..].iter().filter_map(move |h| two(g, *h));
            known.iter().copied().enumerate().flat_map(from).collect()
        }
        Colocation::Pairs(given) => {
            let kind = |job: JobIndex| kinds.class_of(classes.class_of(job.index()));
            let two = |(pair, speeds): (&Combination<JobIndex>, &'a Vec<[f64; 2]>)| {
                let (first, second) = (pair.first(), pair.second()?);
                let [mut g, mut h] = [first, second].map(|job| (kind(job), job));
                if g.0 > h.0 {
                    (g, h) = (h, g);
                }
                Some(KindPair { kinds: [g.0, h.0], jobs: [g.1, h.1], given: Some(speeds) })
            };
            let mut two: Vec<_> = given.iter().filter_map(two).collect();
            two.sort_by_key(|two| two.kinds);
            two.dedup_by_key(|two| two.kinds);
            two
        }
    }
}

/// The jobs of the members of a kind.
fn jobs_of<'a>(
    classes: &'a Classes,
    kinds: &'a Classes,
    kind: usize,
) -> impl Iterator<Item = JobIndex> + use<'a> {
    let jobs = kinds.members(kind).iter().flat_map(|member| classes.members(*member as usize));
    jobs.map(|job| JobIndex::from_index(*job as usize))
}

/// The first job of a member.
fn first_of(classes: &Classes, member: usize) -> usize {
    classes.members(member)[0] as usize
}

/// Writes the key of a member's kind, the data on which its throughputs, alone and beside others, depend.
fn write_kind(problem: &Problem, classes: &Classes, member: usize, key: &mut [u64]) {
    let job = JobIndex::from_index(first_of(classes, member));
    let active = &problem.jobs()[job];
    let beside = match problem.kinds_by_pair() {
        Some(kinds) => u64::from(kinds[job.index()]),
        None => active.row.map_or(0, |row| 1 + row.index() as u64),
    };
    let speeds = problem.throughput().row(job).iter().map(|speed| speed.to_bits());
    for (place, word) in key.iter_mut().zip(speeds.chain([u64::from(active.scale_factor), beside])) {
        *place = word;
    }
}

/// A lookup of throughputs, for two kinds at a time.
struct Lookup<'a> {
    problem: &'a Problem,
    prune: bool,
    /// The factors by which the view scales throughputs: [kinds × K].
    factors: Vec<f64>,
    /// Steps/s of each of the last two kinds beside the other: `[K]` each.
    found: [Vec<f64>; 2],
}

impl<'a> Lookup<'a> {
    /// `firsts`: a job of each kind.
    fn of(
        problem: &'a Problem,
        view: &ThroughputView,
        prune: bool,
        firsts: impl Iterator<Item = JobIndex>,
    ) -> Self {
        let types = || (0..problem.n_types()).map(WorkerTypeId::from_index);
        let factors =
            firsts.flat_map(|job| types().map(move |kind| view.factor(problem, job, kind))).collect();
        Self { problem, prune, factors, found: [0, 1].map(|_| vec![0.0; problem.n_types()]) }
    }

    /// Finds the steps/s of each of two kinds' jobs beside the other; false if they share no worker type.
    fn throughputs(&mut self, &KindPair { kinds, jobs: [first, second], given }: &KindPair<'_>) -> bool {
        let (problem, k) = (self.problem, self.problem.n_types());
        let together = Combination::pair(first, second);
        let swapped = together.first() != first;
        let sharers = [together.first(), together.second().unwrap_or(first)].map(|job| problem.sharer(job));
        let alone = [first, second].map(|job| problem.throughput().row(job));
        self.found.iter_mut().for_each(|row| row.fill(0.0));
        let mut any = false;
        for j in 0..k {
            let worker_type = WorkerTypeId::from_index(j);
            let colocated = match given {
                Some(given) => colocated_as_given(given, sharers, worker_type),
                None => problem.colocated_as(together, sharers, worker_type),
            };
            let Some(mut both) = colocated else { continue };
            if swapped {
                both.reverse();
            }
            let alone = alone.map(|row| row[j]);
            // Time slicing the two on the same workers serves both as well and spends less time and no more
            // capacity, so such a pair can be left out of any program in which only throughputs count.
            let dominated =
                alone[0] > 0.0 && alone[1] > 0.0 && both[0] / alone[0] + both[1] / alone[1] <= 1.0;
            if self.prune && dominated {
                continue;
            }
            // The factor is 0 where a job cannot run alone: pairs only where both can.
            for ((row, both), kind) in self.found.iter_mut().zip(both).zip(kinds) {
                row[j] = both * self.factors[kind * k + j];
            }
            any |= self.found[0][j] != 0.0;
        }
        any
    }
}
