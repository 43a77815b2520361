//! The few calls of HiGHS that its safe wrapper lacks: bases, and (for tests) reading a model file.
#![expect(unsafe_code, reason = "the safe wrapper has no call for a basis; all of our unsafe code is here")]

use highs::{Model, SolvedModel};
use highs_sys::HighsInt;

use crate::solver::backend::{Basis, BasisStatus};

/// Gives HiGHS a basis whose lengths the caller has checked against the model. False if it is refused.
pub(super) fn set_basis(model: &mut Model, basis: &Basis) -> bool {
    assert_eq!(basis.columns.len(), model.num_cols(), "a basis has a status for every column");
    assert_eq!(basis.rows.len(), model.num_rows(), "a basis has a status for every row");
    let columns: Vec<HighsInt> = basis.columns.iter().copied().map(code_of).collect();
    let rows: Vec<HighsInt> = basis.rows.iter().copied().map(code_of).collect();
    // SAFETY: the pointer is that of a live model, and both arrays have the lengths that the call reads,
    // asserted above.
    let status = unsafe { highs_sys::Highs_setBasis(model.as_mut_ptr(), columns.as_ptr(), rows.as_ptr()) };
    status != highs_sys::STATUS_ERROR
}

/// The basis HiGHS ended with; none if it has none, or one that [`Basis`] cannot express.
pub(super) fn basis(solved: &mut SolvedModel, n_columns: usize, n_rows: usize) -> Option<Basis> {
    let model = solved.as_mut_ptr();
    let mut columns: Vec<HighsInt> = vec![0; n_columns];
    let mut rows: Vec<HighsInt> = vec![0; n_rows];
    // SAFETY: the pointer is that of a live model; the sizes are compared with HiGHS's own before it writes
    // that many entries into the two arrays.
    let status = unsafe {
        let sizes = (highs_sys::Highs_getNumCols(model), highs_sys::Highs_getNumRows(model));
        if (usize::try_from(sizes.0), usize::try_from(sizes.1)) != (Ok(n_columns), Ok(n_rows)) {
            return None;
        }
        highs_sys::Highs_getBasis(model, columns.as_mut_ptr(), rows.as_mut_ptr())
    };
    if status == highs_sys::STATUS_ERROR {
        return None;
    }
    let read = |codes: Vec<HighsInt>| codes.into_iter().map(status_of).collect::<Option<Vec<_>>>();
    Some(Basis { columns: read(columns)?, rows: read(rows)? })
}

fn code_of(status: BasisStatus) -> HighsInt {
    match status {
        BasisStatus::Basic => highs_sys::kHighsBasisStatusBasic,
        BasisStatus::Lower => highs_sys::kHighsBasisStatusLower,
        BasisStatus::Upper => highs_sys::kHighsBasisStatusUpper,
        BasisStatus::Free => highs_sys::kHighsBasisStatusZero,
    }
}

fn status_of(code: HighsInt) -> Option<BasisStatus> {
    match code {
        highs_sys::kHighsBasisStatusBasic => Some(BasisStatus::Basic),
        highs_sys::kHighsBasisStatusLower => Some(BasisStatus::Lower),
        highs_sys::kHighsBasisStatusUpper => Some(BasisStatus::Upper),
        highs_sys::kHighsBasisStatusZero => Some(BasisStatus::Free),
        _ => None,
    }
}

/// The model that HiGHS reads from a file, to judge our LP and MPS text; none if it fails.
#[cfg(test)]
pub(crate) fn read_model(path: &std::path::Path) -> Option<Model> {
    let mut model = Model::new(highs::ColProblem::new());
    let path = std::ffi::CString::new(path.to_str()?).ok()?;
    // SAFETY: the pointer is that of a live model, and the path ends in a zero byte.
    let status = unsafe { highs_sys::Highs_readModel(model.as_mut_ptr(), path.as_ptr()) };
    (status == highs_sys::STATUS_OK).then_some(model)
}
