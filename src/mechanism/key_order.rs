//! An order of many records by one number each, and by the whole record only if these numbers are alike.

use std::cmp::Ordering;

/// A sort of records in ascending order, with its buffers.
///
/// The upper bits of a record's key and the record's index are one number of 64 bits: such numbers are sorted without branches.
/// Records whose keys have the same upper bits are compared in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyOrder {
    packed: Vec<u64>,
}

impl KeyOrder {
    /// The indices of records in ascending order. `keys` has each record's key, and `compare` compares the records of two indices in
    /// full, their keys first.
    pub(crate) fn sorted(
        &mut self,
        keys: impl ExactSizeIterator<Item = u64>,
        compare: impl Fn(u32, u32) -> Ordering,
    ) -> impl Iterator<Item = u32> {
        let indices = u64::try_from(keys.len()).unwrap_or(u64::MAX).next_power_of_two() - 1;
        let index = move |packed: u64| u32::try_from(packed & indices).expect("fewer than 2^32 records");
        self.packed.clear();
        self.packed.extend(keys.zip(0_u64..).map(|(key, index)| key & !indices | index));
        self.packed.sort_unstable();
        for alike in self.packed.chunk_by_mut(|one, other| one & !indices == other & !indices) {
            if alike.len() > 1 {
                alike.sort_unstable_by(|one, other| compare(index(*one), index(*other)));
            }
        }
        self.packed.iter().map(move |packed| index(*packed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Records are in the order of a full comparison, whatever their keys have in common.
        #[test]
        fn records_are_in_the_order_of_a_full_comparison(
            records in prop::collection::vec(
                (prop_oneof![0_u64..4, u64::MAX - 4..=u64::MAX, any::<u64>()], 0_u8..4), 0..200,
            ),
        ) {
            let compare = |one: u32, other: u32| {
                (records[one as usize], one).cmp(&(records[other as usize], other))
            };
            let mut order = KeyOrder::default();
            let sorted: Vec<u32> = order.sorted(records.iter().map(|(key, _)| *key), compare).collect();
            let mut expected: Vec<u32> = (0..).take(records.len()).collect();
            expected.sort_by(|one, other| compare(*one, *other));
            prop_assert_eq!(sorted, expected);
        }
    }
}
