//! The class time of members alone and in pairs, from the time that each member has of each column of the kind program.
//!
//! Class time is time summed over the jobs of a member. In a column of two kinds the members of both have the same time
//! in all, so any matching of the two, as in a transportation problem, says which member runs beside which.

use std::collections::BTreeMap;

use super::KindProgram;
use super::divide::MemberTime;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::strategy::GaveUp;
use crate::program::Column;

/// A class time below this is rounding.
const TIME_MIN: f64 = 1e-13;

/// Class time of two members together on a worker type.
struct PairTime {
    /// The smaller member, then the larger.
    members: [u32; 2],
    worker_type: usize,
    time: f64,
}

impl PairTime {
    /// The column over members that it is the time of.
    fn column(&self) -> ([u32; 2], usize) {
        (self.members, self.worker_type)
    }
}

impl KindProgram {
    /// Class times of the columns over members, [columns]: the pairs that have time become columns.
    pub(in crate::policy::program) fn class_time(
        &self,
        columns: &mut ProgramColumns<'_>,
    ) -> Result<Vec<f64>, GaveUp> {
        let solved = self.solved.as_ref().ok_or(GaveUp::Undivided)?;
        let mut times: BTreeMap<(u32, usize), Vec<MemberTime>> = BTreeMap::new();
        for (kind, divided) in solved.divided.iter().enumerate() {
            for time in divided {
                times.entry((time.column, kind)).or_default().push(*time);
            }
        }
        let (n, k) = (columns.reduced().instance.n_members(), self.instance.n_types());
        let mut alone = vec![0.0; n * k];
        let mut together: Vec<PairTime> = Vec::new();
        for (column, of) in (0_u32..).zip(self.binding.columns.iter()) {
            let j = of.worker_type;
            let of_kind = |kind: usize| times.get(&(column, kind)).map_or(&[][..], Vec::as_slice);
            let Some(pair) = of.combination.checked_sub(self.members.len()) else {
                for MemberTime { member, time, .. } in of_kind(of.combination) {
                    alone[*member as usize * k + j] += time;
                }
                continue;
            };
            let each = |a: u32, b: u32, time: f64| {
                // A division leaves a job no more than rounding beside itself.
                let itself = a == b && columns.reduced().instance.multiplicity[a as usize] < 2.0;
                if time > TIME_MIN && !itself {
                    together.push(PairTime { members: [a.min(b), a.max(b)], worker_type: j, time });
                }
            };
            match &self.instance.pairs[pair].parts[..] {
                [one, other] => pair_between(of_kind(one.member), of_kind(other.member), each),
                [one] => pair_within(of_kind(one.member), each),
                _ => {}
            }
        }
        together.sort_unstable_by_key(PairTime::column);
        together.dedup_by(|next, kept| {
            let same = next.column() == kept.column();
            kept.time += if same { next.time } else { 0.0 };
            same
        });
        let mut pairs: Vec<_> =
            together.iter().map(|pair| (pair.members[0] as usize, pair.members[1] as usize)).collect();
        pairs.dedup();
        columns.admit(pairs);
        let (bound, pairs) = (columns.bound(), &columns.reduced().pairs);
        let time = |column: &Column| {
            let j = column.worker_type;
            let Some(pair) = column.combination.checked_sub(n) else {
                return alone[column.combination * k + j];
            };
            let (a, b) = pairs[pair];
            let of = |pair: &PairTime| (pair.members.map(|member| member as usize), pair.worker_type);
            together.binary_search_by_key(&([a, b], j), of).map_or(0.0, |at| together[at].time)
        };
        Ok(bound.columns().iter().map(time).collect())
    }
}

/// Pairs members of one kind with members of another by the north-west corner rule of the transportation problem; both
/// lists have the same time in all. Calls back with (member, member, class time).
fn pair_between(ours: &[MemberTime], theirs: &[MemberTime], mut each: impl FnMut(u32, u32, f64)) {
    let (mut ours, mut theirs) = (ours.iter().copied(), theirs.iter().copied());
    let (mut one, mut other) = (ours.next(), theirs.next());
    while let (Some(a), Some(b)) = (&mut one, &mut other) {
        let time = a.time.min(b.time);
        each(a.member, b.member, time);
        (a.time, b.time) = (a.time - time, b.time - time);
        let spent = (a.time <= 0.0, b.time <= 0.0);
        if spent.0 {
            one = ours.next();
        }
        if spent.1 {
            other = theirs.next();
        }
    }
}

/// Pairs members of one kind with each other: their times are laid end to end and folded in the middle, so that a job
/// is beside itself only if it has more than half of all. A member of two jobs or more may be paired with itself.
fn pair_within(times: &[MemberTime], each: impl FnMut(u32, u32, f64)) {
    let mut of_first_half = times.iter().map(|of| of.time).sum::<f64>() / 2.0;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for of in times {
        let here = of.time.min(of_first_half);
        of_first_half -= here;
        if here > 0.0 {
            first.push(MemberTime { time: here, ..*of });
        }
        if of.time > here {
            second.push(MemberTime { time: of.time - here, ..*of });
        }
    }
    pair_between(&first, &second, each);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(times: &[f64]) -> Vec<MemberTime> {
        (0..).zip(times).map(|(member, time)| MemberTime { column: 0, member, time: *time }).collect()
    }

    proptest! {
        #[test]
        fn every_member_keeps_its_time(times in prop::collection::vec(0.01_f64..2.0, 2..9), cuts in prop::collection::vec(0.01_f64..1.0, 1..9)) {
            let sum: f64 = times.iter().sum();
            let of_cuts: f64 = cuts.iter().sum();
            let others: Vec<f64> = cuts.iter().map(|cut| cut * sum / of_cuts).collect();
            let mut got = (vec![0.0; times.len()], vec![0.0; others.len()]);
            pair_between(&all(&times), &all(&others), |a, b, time| {
                got.0[a as usize] += time;
                got.1[b as usize] += time;
            });
            let near = |got: &[f64], times: &[f64]| got.iter().zip(times).all(|(a, b)| (a - b).abs() < 1e-12);
            prop_assert!(near(&got.0, &times) && near(&got.1, &others));

            let (mut got, mut alone) = (vec![0.0; times.len()], false);
            pair_within(&all(&times), |a, b, time| {
                got[a as usize] += time;
                got[b as usize] += time;
                alone |= a == b && time > 1e-12;
            });
            prop_assert!(near(&got, &times));
            let most = times.iter().copied().fold(0.0, f64::max);
            prop_assert_eq!(alone, most > sum / 2.0 + 1e-12);
        }
    }
}
