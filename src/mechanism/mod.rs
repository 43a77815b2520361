//! The mechanism, from shares of time to time slices: an allocation and the time received → the jobs that run next,
//! and their workers.
//!
//! In: an [`Allocation`](crate::Allocation), the workers that exist now, and the slices that ran since the last call. Out:
//! [leases](GrantedLease) for the next round. It does not know which policy it serves, whether it runs in a simulation, and what
//! time it is: instants are arguments.
//!
//! ```text
//! record(what ran), project(what runs on) → due(now)? → settle(now), adopt(allocation) → assign(order of worker types) → leases
//! ```
//!
//! Source: Narayanan et al., OSDI '20, section 5. [`MechanismOptions`] names every point at which the published
//! system differs from the mechanism it describes.

mod ahead;
pub(crate) mod key_order;
mod leases;
mod ledger;
mod options;
mod placement;
mod priority;
mod refill;
mod rest;
mod rounds;
mod selection;
mod standing;
mod state;
#[cfg(test)]
mod tests;

pub use leases::GrantedLease;
pub use options::{
    Fillers, Gangs, IdleWorkers, LastReset, LastServer, MechanismOptions, OverdueJobs, PairStart,
    SlowFillers, Ties, Unallocated,
};
pub use placement::Workers;
pub use priority::Priority;
pub use rounds::{Mechanism, Rules};
pub use standing::Standing;
pub use state::MechanismState;
