//! One copy of the loops over worker types for each number of types, so that they have a fixed length.

/// There are loops for any number of types up to this.
pub(super) const TYPES_ANY: usize = 16;
/// Numbers of types above that there are loops for.
const LARGE: [usize; 4] = [24, 32, 48, 64];

/// With how many types there are loops for these, where it takes more; nothing if none are as many.
pub(super) fn padded_to(n_types: usize) -> Option<usize> {
    let larger = LARGE.into_iter().find(|large| *large >= n_types);
    larger.filter(|large| n_types > TYPES_ANY && *large > n_types)
}

/// What `$of` gives where `$K` is the number of types, as an `Option`; nothing if there are no loops for it.
macro_rules! of_types {
    ($n_types:expr, $K:ident => $of:expr) => {
        of_types!($n_types, $K => $of; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 24 32 48 64)
    };
    ($n_types:expr, $K:ident => $of:expr; $($n:literal)*) => {
        match $n_types {
            $($n => {
                const $K: usize = $n;
                $of
            })*
            _ => None,
        }
    };
}

pub(super) use of_types;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_loops_for_as_many_types_as_are_added_to() {
        for n_types in 1..=64 {
            let padded = padded_to(n_types).unwrap_or(n_types);
            assert_eq!(of_types!(padded, K => Some(K)), Some(padded), "{n_types}");
            assert!(padded >= n_types && (n_types > TYPES_ANY || padded == n_types));
        }
        assert_eq!(padded_to(65), None);
        assert_eq!(of_types!(65, K => Some(K)), None);
    }
}
