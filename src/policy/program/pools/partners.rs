//! Who runs beside whom: members' parts of the time of pools that share workers → pairs of members.

/// A member's part of a combination's time on a worker type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Portion {
    pub(super) member: u32,
    /// Class time of the member.
    pub(super) time: f64,
}

/// Pairs the time of members of one pool with that of members of another, of which there is as much: the north-west corner
/// of the transportation problem. Calls back with (member, member, class time).
pub(super) fn between(ours: &[Portion], theirs: &[Portion], mut each: impl FnMut(u32, u32, f64)) {
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

/// Pairs the time of members of one pool among themselves: laid end to end and folded in the middle, so that a job is beside
/// itself only if it has more than half of it. A member of two jobs or more may be beside its own.
pub(super) fn within(portions: &[Portion], each: impl FnMut(u32, u32, f64)) {
    let half = portions.iter().map(|portion| portion.time).sum::<f64>() / 2.0;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut left = half;
    for portion in portions {
        let here = portion.time.min(left);
        left -= here;
        if here > 0.0 {
            first.push(Portion { time: here, ..*portion });
        }
        if portion.time > here {
            second.push(Portion { time: portion.time - here, ..*portion });
        }
    }
    between(&first, &second, each);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn portions(times: &[f64]) -> Vec<Portion> {
        (0..).zip(times).map(|(member, time)| Portion { member, time: *time }).collect()
    }

    proptest! {
        #[test]
        fn everyone_keeps_its_time(times in prop::collection::vec(0.01_f64..2.0, 2..9), cuts in prop::collection::vec(0.01_f64..1.0, 1..9)) {
            let all: f64 = times.iter().sum();
            let of_cuts: f64 = cuts.iter().sum();
            let others: Vec<f64> = cuts.iter().map(|cut| cut * all / of_cuts).collect();
            let mut got = (vec![0.0; times.len()], vec![0.0; others.len()]);
            between(&portions(&times), &portions(&others), |a, b, time| {
                got.0[a as usize] += time;
                got.1[b as usize] += time;
            });
            let near = |got: &[f64], times: &[f64]| got.iter().zip(times).all(|(a, b)| (a - b).abs() < 1e-12);
            prop_assert!(near(&got.0, &times) && near(&got.1, &others));

            let (mut got, mut alone) = (vec![0.0; times.len()], false);
            within(&portions(&times), |a, b, time| {
                got[a as usize] += time;
                got[b as usize] += time;
                alone |= a == b && time > 1e-12;
            });
            prop_assert!(near(&got, &times));
            let most = times.iter().copied().fold(0.0, f64::max);
            prop_assert_eq!(alone, most > all / 2.0 + 1e-12);
        }
    }
}
