//! Backends by name, and the chains that are used where none is named.

use crate::program::Program;
use crate::solver::backend::{Backend, SolveError};
use crate::solver::clarabel::Clarabel;
#[cfg(feature = "good_lp")]
use crate::solver::good_lp::MicroLp;
#[cfg(feature = "highs")]
use crate::solver::highs::{Highs, Method};
use crate::solver::separable::Separable;
use crate::solver::simplex::Simplex;

/// A backend of this build.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name of the backend.
    pub name: &'static str,
    /// Other names of the backend.
    pub aliases: &'static [&'static str],
    /// A one-line description.
    pub summary: &'static str,
    make: fn() -> Box<dyn Backend>,
}

impl Entry {
    /// A fresh backend.
    pub fn make(&self) -> Box<dyn Backend> {
        (self.make)()
    }
}

/// Every backend of this build; HiGHS needs the feature `highs`, microlp the feature `good_lp`.
pub const BACKENDS: &[Entry] = &[
    #[cfg(feature = "highs")]
    Entry {
        name: "highs-simplex",
        aliases: &["highs"],
        summary: "HiGHS dual simplex: linear programs, vertex solutions, warm starts",
        make: || Box::new(Highs::new(Method::Simplex)),
    },
    #[cfg(feature = "highs")]
    Entry {
        name: "highs-ipm",
        aliases: &[],
        summary: "HiGHS interior point with crossover: linear programs, vertex solutions",
        make: || Box::new(Highs::new(Method::InteriorPointToVertex)),
    },
    #[cfg(feature = "highs")]
    Entry {
        name: "highs-interior",
        aliases: &[],
        summary: "HiGHS interior point without crossover: linear programs, central solutions",
        make: || Box::new(Highs::new(Method::InteriorPointToCentre)),
    },
    Entry {
        name: "simplex",
        aliases: &[],
        summary: "primal simplex, pure Rust: linear programs, vertex solutions, made for warm starts",
        make: || Box::new(Simplex::default()),
    },
    Entry {
        name: "separable",
        aliases: &[],
        summary: "interior point over functions of one number, pure Rust: sums of logarithms, roots and inverses",
        make: || Box::new(Separable),
    },
    Entry {
        name: "clarabel",
        aliases: &[],
        summary: "Clarabel interior point, pure Rust: linear and conic programs, central solutions",
        make: || Box::new(Clarabel),
    },
    #[cfg(feature = "good_lp")]
    Entry {
        name: "good_lp-microlp",
        aliases: &["microlp"],
        summary: "microlp simplex through good_lp, pure Rust: small linear programs, no duals",
        make: || Box::new(MicroLp),
    },
];

/// The backend of this name or alias.
///
/// # Errors
/// [`SolveError::UnknownBackend`] with the names there are, if this build has none of this name.
///
/// ```
/// let backend = apportion::solver::registry::backend("clarabel")?;
/// assert_eq!(backend.name(), "clarabel");
/// let error = apportion::solver::registry::backend("abacus").unwrap_err();
/// assert!(error.to_string().starts_with("unknown backend `abacus`, expected one of "));
/// # Ok::<(), apportion::solver::SolveError>(())
/// ```
pub fn backend(name: &str) -> Result<Box<dyn Backend>, SolveError> {
    entry(name).map(Entry::make)
}

/// The entry of this name or alias.
///
/// # Errors
/// [`SolveError::UnknownBackend`], as for [`backend`].
pub fn entry(name: &str) -> Result<&'static Entry, SolveError> {
    BACKENDS.iter().find(|entry| entry.name == name || entry.aliases.contains(&name)).ok_or_else(|| {
        let expected: Vec<String> = BACKENDS.iter().map(|entry| format!("`{}`", entry.name)).collect();
        SolveError::UnknownBackend { name: name.to_owned(), expected: expected.join(", ") }
    })
}

/// The chain for a program where no backend is named. Linear: HiGHS's simplex, its interior point with crossover, then
/// Clarabel (without HiGHS: Clarabel, then microlp, which Clarabel's bound may certify). Conic: [`conic_chain`].
pub fn default_chain(program: &Program) -> Vec<Box<dyn Backend>> {
    if !program.is_linear() {
        return conic_chain();
    }
    made(&["highs-simplex", "highs-ipm", "clarabel", "good_lp-microlp"])
}

/// The chain for conic programs: separable, which declines cones that are no function of one number, then Clarabel.
pub fn conic_chain() -> Vec<Box<dyn Backend>> {
    made(&["separable", "clarabel"])
}

/// The chain that ends near the analytic centre of the optimal face: Clarabel, then HiGHS without crossover or, with
/// cones, separable.
pub fn central_chain(program: &Program) -> Vec<Box<dyn Backend>> {
    if program.is_linear() { made(&["clarabel", "highs-interior"]) } else { made(&["clarabel", "separable"]) }
}

/// A chain of the named backend, then the others of `chain`, so that a program which the first declines, such as one
/// with cones, is still solved.
///
/// # Errors
/// [`SolveError::UnknownBackend`], as for [`backend`].
pub fn led_by(name: &str, chain: Vec<Box<dyn Backend>>) -> Result<Vec<Box<dyn Backend>>, SolveError> {
    let first = backend(name)?;
    let others: Vec<_> = chain.into_iter().filter(|backend| backend.name() != first.name()).collect();
    Ok(std::iter::once(first).chain(others).collect())
}

/// Backends of these names, as far as this build has them. Microlp, slow beyond a few hundred jobs, is used only
/// without HiGHS.
fn made(names: &[&str]) -> Vec<Box<dyn Backend>> {
    let has_highs = cfg!(feature = "highs");
    names
        .iter()
        .filter(|name| !(has_highs && **name == "good_lp-microlp"))
        .filter_map(|name| backend(name).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Sense;

    #[test]
    fn every_name_and_alias_leads_to_one_backend() {
        let mut names = Vec::new();
        for entry in BACKENDS {
            assert_eq!(entry.make().name(), entry.name);
            names.extend([entry.name].iter().chain(entry.aliases).copied());
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name is used twice");
        for name in names {
            assert!(backend(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = backend("higs").unwrap_err().to_string();
        assert!(message.starts_with("unknown backend `higs`, expected one of `"), "{message}");
        assert!(BACKENDS.iter().all(|entry| message.contains(entry.name)), "{message}");
    }

    #[test]
    fn the_named_backend_goes_first_and_none_goes_twice() {
        let program = Program::new(Sense::Maximize);
        for entry in BACKENDS {
            let chain = led_by(entry.name, default_chain(&program)).unwrap();
            let mut names: Vec<&str> = chain.iter().map(|backend| backend.name()).collect();
            assert_eq!(names[0], entry.name);
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
