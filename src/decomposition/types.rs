//! Code for a fixed number of worker types: loops over types of a constant length, which the compiler unrolls.
//!
//! Only passes over all jobs are compiled for each number of types in the lists below. An instance with a number of types
//! between two of them is extended by *empty* types, on which no job runs, to the larger one.

/// The largest number of types up to which code is compiled for every number.
const TYPES_EACH: usize = 16;
/// The larger numbers of types that code is compiled for.
const TYPES_LARGE: [usize; 4] = [24, 32, 48, 64];

/// The smallest number of types, at least `n_types`, that code is compiled for; none above 64.
pub(super) fn compiled_for(n_types: usize) -> Option<usize> {
    let large = || TYPES_LARGE.into_iter().find(|large| *large >= n_types);
    if n_types <= TYPES_EACH { Some(n_types).filter(|n| *n > 0) } else { large() }
}

/// The value of `$of`, an `Option`, where `$K` is the number of types as a constant; none if there is no code for it.
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
    fn there_is_code_for_every_number_of_types_that_is_rounded_up_to() {
        for n_types in 1..=64 {
            let compiled = compiled_for(n_types).unwrap();
            assert_eq!(of_types!(compiled, K => Some(K)), Some(compiled), "{n_types}");
            assert!(compiled >= n_types && (n_types > TYPES_EACH || compiled == n_types));
        }
        assert_eq!((compiled_for(0), compiled_for(65)), (None, None));
        assert_eq!(of_types!(65, K => Some(K)), None);
    }
}
