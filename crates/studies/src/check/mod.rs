//! Decisions on random instances, judged by arithmetic that does not depend on how they were found.
//!
//! [`draw`] makes an instance from a seed, with numbers spread over a given number of decades; [`decide`] lets a policy
//! decide it by a backend; `judge` looks for claims that are untrue. The judge sees the snapshot's numbers and the printed
//! shares, nothing else: it shares no code with programs, solvers or certificates. It checks these claims:
//!
//! | claim | untrue if |
//! |---|---|
//! | shares | one is below 0, a job has more than all of its time, a type gives more workers than it has, or a job has time where it cannot run |
//! | a value | it is not what the shares are worth |
//! | an optimum | some allocation, of another backend or policy, is worth more; two optima have different values |
//! | a bound | some allocation is worth more |
//! | a deadline that is kept | the shares miss it |
//! | as few deadlines dropped as possible | some allocation keeps more |
//! | no solution, no finite optimum | some allocation has a finite value |
//!
//! Allocations that are compared with others are first scaled down until they break no constraint.

mod arithmetic;
mod decided;
mod draw;
mod judge;
mod tally;

pub use arithmetic::{Numbers, Row, View, Worth};
pub use decided::{Decided, Verdict, decide};
pub use draw::draw;
pub use judge::{Fault, Judge};
pub use tally::Tally;

#[cfg(test)]
mod tests;
