//! Smallest hitting sets, by branch and bound.

/// The most sets of elements that are looked at for one size.
const SETS_VISITED_MAX: usize = 200_000;

/// A smallest set of elements below `n` that has one element of each set, as flags [n]; `least` is a known lower bound on
/// its size. None if a set is empty, or if the search takes too many steps.
pub(super) fn smallest_hitting(sets: &[Vec<usize>], n: usize, least: usize) -> Option<Vec<bool>> {
    if sets.iter().any(Vec::is_empty) {
        return None;
    }
    for size in least..=n {
        let mut search =
            Hitting { sets, chosen: vec![false; n], forbidden: vec![false; n], steps: SETS_VISITED_MAX };
        if search.hit(size)? {
            return Some(search.chosen);
        }
    }
    None
}

/// A search for a hitting set of a given size.
struct Hitting<'a> {
    sets: &'a [Vec<usize>],
    /// Whether each element is in the set: [n].
    chosen: Vec<bool>,
    /// Whether all hitting sets with an element were looked at already: [n].
    forbidden: Vec<bool>,
    /// Steps that may still be taken.
    steps: usize,
}

impl Hitting<'_> {
    /// Chooses at most `left` more elements so that all sets are hit; false if no choice hits all. None if it takes too many
    /// steps.
    fn hit(&mut self, left: usize) -> Option<bool> {
        self.steps = self.steps.checked_sub(1)?;
        let is_open = |element: &usize| !self.forbidden[*element];
        let mut taken = vec![false; self.chosen.len()];
        let mut apart = 0;
        let mut branch: Option<Vec<usize>> = None;
        for set in self.sets.iter().filter(|set| !set.iter().any(|element| self.chosen[*element])) {
            let open: Vec<usize> = set.iter().copied().filter(is_open).collect();
            // Sets without a common element take one element each.
            if open.iter().all(|element| !taken[*element]) {
                for element in &open {
                    taken[*element] = true;
                }
                apart += 1;
            }
            if branch.as_ref().is_none_or(|smallest| open.len() < smallest.len()) {
                branch = Some(open);
            }
        }
        let Some(branch) = branch else { return Some(true) };
        if apart > left {
            return Some(false);
        }
        let mut hits = false;
        for element in &branch {
            self.chosen[*element] = true;
            hits = self.hit(left - 1)?;
            if hits {
                break;
            }
            self.chosen[*element] = false;
            self.forbidden[*element] = true;
        }
        for element in &branch {
            self.forbidden[*element] = false;
        }
        Some(hits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(sets: &[Vec<usize>], chosen: &[bool]) -> bool {
        sets.iter().all(|set| set.iter().any(|element| chosen[*element]))
    }

    proptest! {
        #[test]
        fn no_hitting_set_is_smaller(
            sets in proptest::collection::vec(proptest::collection::vec(0_usize..8, 1..5), 0..10),
        ) {
            let found = smallest_hitting(&sets, 8, 0).unwrap();
            let size = |chosen: &[bool]| chosen.iter().filter(|chosen| **chosen).count();
            let all = (0_u32..256).map(|bits| (0..8).map(|at| bits & (1 << at) != 0).collect::<Vec<bool>>());
            let least = all.filter(|chosen| hits(&sets, chosen)).map(|chosen| size(&chosen)).min();
            prop_assert!(hits(&sets, &found));
            prop_assert_eq!(Some(size(&found)), least);
        }
    }

    #[test]
    fn an_empty_set_is_hit_by_none() {
        assert_eq!(smallest_hitting(&[vec![0], Vec::new()], 2, 0), None);
        assert_eq!(smallest_hitting(&[], 2, 0), Some(vec![false, false]));
    }
}
