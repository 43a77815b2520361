//! What is made anew for each number of worker types, so that loops over them have a known end.

/// What `$of` gives where `$K` is the number of types, as an `Option`; nothing if there are more than 16.
macro_rules! of_types {
    ($n_types:expr, $K:ident => $of:expr) => {
        of_types!($n_types, $K => $of; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
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
