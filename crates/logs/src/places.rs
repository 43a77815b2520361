//! Positions of things that each have a text: a hash table that keeps no texts itself.

use std::hash::{BuildHasher, RandomState};

/// Mark of a free slot, in the place of a position.
const FREE: u32 = u32::MAX;

/// Positions by the hashes of texts. The order of the slots differs from run to run and must not be visible.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Slots of hash and position; their number is a power of two, and at least an eighth are free.
    slots: Vec<(u32, u32)>,
    n: usize,
    hashes: RandomState,
}

impl Places {
    /// The position of a text; `text_at` gives the text of a position. None if the text was not added.
    pub(crate) fn find<'t>(&self, text: &str, text_at: impl Fn(usize) -> &'t str) -> Option<usize> {
        let hash = self.hash(text);
        let mut slot = hash as usize;
        loop {
            let (of, position) = *self.slots.get(slot & self.slots.len().wrapping_sub(1))?;
            if position == FREE {
                return None;
            }
            if of == hash && text_at(position as usize) == text {
                return Some(position as usize);
            }
            slot += 1;
        }
    }

    /// Adds the position of a text that is not in the table.
    ///
    /// # Panics
    /// If the position is 2³² − 1 or above: that number of texts takes more memory than there is.
    pub(crate) fn add(&mut self, text: &str, position: usize) {
        if self.n >= self.slots.len() / 8 * 7 {
            let twice = vec![(0, FREE); (2 * self.slots.len()).max(16)];
            for slot in std::mem::replace(&mut self.slots, twice) {
                if slot.1 != FREE {
                    self.put(slot);
                }
            }
        }
        let position = u32::try_from(position).ok().filter(|position| *position != FREE);
        self.put((self.hash(text), position.expect("fewer than 2^32 - 1 of anything")));
        self.n += 1;
    }

    fn put(&mut self, slot: (u32, u32)) {
        let mask = self.slots.len() - 1;
        let mut at = slot.0 as usize & mask;
        while self.slots[at].1 != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn hash(&self, text: &str) -> u32 {
        let [.., a, b, c, d] = self.hashes.hash_one(text).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_where_it_was_put() {
        let texts: Vec<String> = (0..3000).map(|number| format!("t{number}")).collect();
        let mut places = Places::default();
        let find = |places: &Places, text: &str| places.find(text, |at| &texts[at]);
        assert_eq!(find(&places, "t0"), None);
        for (position, text) in texts.iter().enumerate() {
            places.add(text, position);
        }
        for (position, text) in texts.iter().enumerate() {
            assert_eq!(find(&places, text), Some(position));
        }
        assert_eq!(find(&places, "t3000"), None);
    }
}
