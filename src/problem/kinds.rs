//! Kinds of interchangeable jobs, for problems whose pairs are given one by one.
//!
//! Listed pairs mostly come from a table by job type, which is not part of the problem. Jobs are divided by their throughputs
//! alone, then repeatedly by their throughputs beside the jobs of each part so far (colour refinement; Grohe,
//! Kersting, Mladenov and Selman, *Dimension reduction via colour refinement*, 2014), until no part is divided further.
//! A part whose jobs then do not have the same throughputs beside *every* job of another part is given up: each of its jobs is
//! a kind of its own.

use std::collections::BTreeMap;

use crate::index::{Id, JobIndex};
use crate::problem::{Colocation, Problem};
use crate::workload::random::mixed;

/// A pair of jobs and their throughputs beside each other, in steps/s.
#[derive(Clone, Copy, Debug)]
struct Edge<'a> {
    jobs: [usize; 2],
    speeds: &'a [[f64; 2]],
    /// For each of the two jobs, a hash of the throughputs of both with its own first.
    hashes: [u64; 2],
}

/// The first pair found of two kinds, whether its jobs are in descending order of kind, and the number of pairs of these kinds.
#[derive(Clone, Copy, Debug)]
struct Uniform<'a> {
    speeds: &'a [[f64; 2]],
    swapped: bool,
    n_pairs: usize,
}

impl Problem {
    /// The kind of each job, `[n]`, where pairs are given one by one, and `None` otherwise: jobs of one kind have the same
    /// scale factor and throughputs, alone and beside each and any job of another kind, or of their own. Kinds are numbered
    /// by their first jobs.
    ///
    /// Kinds are found when first asked for, in a few passes over the pairs.
    pub fn kinds_by_pair(&self) -> Option<&[u32]> {
        let Colocation::Pairs(pairs) = &self.colocation else { return None };
        let found = || {
            let edges = pairs.iter().filter_map(|(pair, speeds)| {
                let jobs = [pair.first(), pair.second()?].map(Id::index);
                let hashes = [0, 1].map(|mine| {
                    let words = speeds.iter().flat_map(|both| [both[mine], both[1 - mine]]);
                    words.fold(0, |hash, speed| mixed(hash ^ speed.to_bits()))
                });
                Some(Edge { jobs, speeds, hashes })
            });
            kinds(self, &edges.collect::<Vec<_>>())
        };
        Some(self.kinds.get_or_init(found))
    }
}

fn kinds(problem: &Problem, edges: &[Edge<'_>]) -> Vec<u32> {
    let n = problem.n_jobs();
    let alone = |job: usize| {
        let index = JobIndex::from_index(job);
        let speeds = problem.throughput().row(index).iter().map(|speed| speed.to_bits());
        speeds.chain([u64::from(problem.jobs()[index].scale_factor)])
    };
    let mut kinds = numbered((0..n).map(|job| alone(job).collect::<Vec<_>>()));
    let mut n_kinds = 0;
    while count(&kinds) > n_kinds && count(&kinds) < n {
        n_kinds = count(&kinds);
        let mut beside = vec![0_u64; n];
        for Edge { jobs: [first, second], hashes, .. } in edges {
            for (job, other, hash) in [(*first, *second, hashes[0]), (*second, *first, hashes[1])] {
                beside[job] = beside[job].wrapping_add(mixed(hash ^ mixed(u64::from(kinds[other]))));
            }
        }
        kinds = numbered(kinds.iter().copied().zip(beside));
    }
    // Hashes may agree by chance, and so may sums of hashes of unlike neighbours.
    let given_up = uneven(&kinds, edges);
    numbered((0..n).map(|job| (kinds[job], given_up[kinds[job] as usize].then_some(job))))
}

/// Whether each kind has jobs with unequal throughputs beside jobs of some kind, or lacks some of those pairs: [kinds].
fn uneven(kinds: &[u32], edges: &[Edge<'_>]) -> Vec<bool> {
    let mut size = vec![0_usize; count(kinds)];
    for kind in kinds {
        size[*kind as usize] += 1;
    }
    let mut uneven = vec![false; size.len()];
    let mut known: BTreeMap<[usize; 2], Uniform<'_>> = BTreeMap::new();
    for Edge { jobs, speeds, .. } in edges {
        let [g, h] = jobs.map(|job| kinds[job] as usize);
        if size[g] == 1 && size[h] == 1 {
            continue;
        }
        let swapped = g > h;
        let two = [g.min(h), g.max(h)];
        let of = known.entry(two).or_insert(Uniform { speeds, swapped, n_pairs: 0 });
        of.n_pairs += 1;
        let same = |(one, other): (&[f64; 2], &[f64; 2])| {
            let place = usize::from(swapped != of.swapped);
            let alike = |mine: usize| one[mine].to_bits() == other[mine ^ place].to_bits();
            alike(0) && alike(1) && (g != h || one[0].to_bits() == one[1].to_bits())
        };
        if !speeds.iter().zip(of.speeds).all(same) {
            (uneven[g], uneven[h]) = (true, true);
        }
    }
    for ([g, h], of) in known {
        let all = if g == h { size[g] * (size[g] - 1) / 2 } else { size[g] * size[h] };
        if of.n_pairs != all {
            (uneven[g], uneven[h]) = (true, true);
        }
    }
    uneven
}

/// Numbers of items, equal for equal items, in the order of first occurrence.
fn numbered<T: Ord>(of: impl Iterator<Item = T>) -> Vec<u32> {
    let mut numbers = BTreeMap::new();
    let number = |of: T| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(of).or_insert(next)
    };
    of.map(number).collect()
}

fn count(kinds: &[u32]) -> usize {
    kinds.iter().max().map_or(0, |most| *most as usize + 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::count;
    use crate::index::{Id, JobId, JobIndex};
    use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
    use crate::workload::Combination;

    type Given = Vec<([usize; 2], Vec<[f64; 2]>)>;

    fn problem(alone: &[f64], pairs: &Given) -> Problem {
        let cluster = crate::Cluster::try_new([("a", 4), ("b", 4)]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        for (index, speed) in alone.iter().enumerate() {
            builder.job(ActiveJob::new(JobId::from_index(index)), &[*speed, 1.0]);
        }
        let pair = |[one, other]: [usize; 2]| {
            Combination::pair(JobIndex::from_index(one), JobIndex::from_index(other))
        };
        builder.colocation(Colocation::Pairs(
            pairs.iter().map(|(jobs, speeds)| (pair(*jobs), speeds.clone())).collect(),
        ));
        builder.build().unwrap()
    }

    fn every_two(n: usize) -> impl Iterator<Item = [usize; 2]> {
        (0..n).flat_map(move |one| (one + 1..n).map(move |other| [one, other]))
    }

    /// Whether any two jobs of a kind may change places.
    fn interchangeable(problem: &Problem, kinds: &[u32]) -> bool {
        let types = || problem.cluster().types().ids();
        let beside = |one: usize, other: usize| -> Vec<Option<[f64; 2]>> {
            let [one, other] = [one, other].map(JobIndex::from_index);
            let pair = Combination::pair(one, other);
            let both = |kind| {
                let mut both = problem.colocated(pair, kind)?;
                if pair.first() != one {
                    both.reverse();
                }
                Some(both)
            };
            types().map(both).collect()
        };
        every_two(kinds.len()).filter(|[one, other]| kinds[*one] == kinds[*other]).all(|[one, other]| {
            let rest = (0..kinds.len()).filter(|job| *job != one && *job != other);
            let [first, second] = [one, other].map(|job| problem.throughput().row(JobIndex::from_index(job)));
            first == second
                && beside(one, other) == beside(other, one)
                && rest.into_iter().all(|job| beside(one, job) == beside(other, job))
        })
    }

    #[test]
    fn kinds_of_a_table_are_found_again() {
        let of = [0_u8, 1, 2, 1, 0, 0, 2, 1, 3, 0];
        let speed = |g: u8, h: u8| 1.0 + f64::from(3 * g + h) / 16.0;
        // jobs of kind 2 run beside no job of kind 2 or 0
        let pairs = every_two(of.len()).map(|jobs| (jobs, jobs.map(|job| of[job])));
        let pairs = pairs.filter(|(_, [g, h])| ![[2, 2], [0, 2], [2, 0]].contains(&[*g, *h]));
        let pairs: Given = pairs.map(|(jobs, [g, h])| (jobs, vec![[speed(g, h), speed(h, g)]; 2])).collect();
        // The first and the last kind are told apart by pairs alone.
        let problem = problem(&of.map(|kind| [4.0, 5.0, 6.0, 4.0][usize::from(kind)]), &pairs);
        assert_eq!(problem.kinds_by_pair().unwrap(), of.map(u32::from));
        assert!(interchangeable(&problem, problem.kinds_by_pair().unwrap()));
    }

    #[test]
    fn jobs_that_are_alike_in_sum_alone_are_kinds_of_their_own() {
        let ring = (0..6).map(|job| ([job, (job + 1) % 6], vec![[1.0, 1.0]; 2])).collect();
        assert_eq!(problem(&[2.0; 6], &ring).kinds_by_pair().unwrap(), [0, 1, 2, 3, 4, 5]);
        // the first job of each pair is slower
        let ordered: Given = every_two(3).map(|jobs| (jobs, vec![[1.0, 1.5]; 2])).collect();
        assert_eq!(problem(&[2.0; 3], &ordered).kinds_by_pair().unwrap(), [0, 1, 2]);
        // three jobs, each the slower one of one pair
        let turns = [[0, 1], [1, 2], [0, 2]];
        let turns = turns.map(|jobs| (jobs, vec![if jobs == [0, 2] { [1.5, 1.0] } else { [1.0, 1.5] }; 2]));
        assert_eq!(problem(&[2.0; 3], &turns.to_vec()).kinds_by_pair().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn a_matrix_has_no_kinds_by_pair() {
        let cluster = crate::Cluster::try_new([("a", 4)]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        builder.job(ActiveJob::new(JobId::from_index(0)), &[1.0]);
        assert!(builder.build().unwrap().kinds_by_pair().is_none());
    }

    proptest! {
        /// Few different speeds, so that many jobs are alike, and some only nearly.
        #[test]
        fn jobs_of_a_kind_may_change_places(
            of in prop::collection::vec(0_usize..3, 2..9),
            table in prop::collection::vec(1_u8..4, 9),
            odd in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 0..3),
        ) {
            let mut pairs: Given = every_two(of.len()).map(|jobs| {
                let [g, h] = jobs.map(|job| of[job]);
                (jobs, vec![[f64::from(table[3 * g + h]), f64::from(table[3 * h + g])]; 2])
            }).collect();
            for (place, speed) in &odd {
                let place = place.index(pairs.len());
                pairs[place].1[0][0] = f64::from(*speed);
            }
            let problem = problem(&of.iter().map(|kind| 4.0 + *kind as f64).collect::<Vec<_>>(), &pairs);
            let kinds = problem.kinds_by_pair().unwrap();
            prop_assert!(interchangeable(&problem, kinds), "{kinds:?}");
            let distinct = of.iter().collect::<std::collections::BTreeSet<_>>().len();
            prop_assert!(!odd.is_empty() || count(kinds) == distinct, "{kinds:?}");
        }
    }
}
