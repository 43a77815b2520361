//! A level program without one: the numbers of members that share worker types, each with its time and its demand.
//!
//!   time:      Σ_j Y`[m,j]` ≤ n_m                               for every member
//!   demand:    Σ_j T`[m,j]`·Y`[m,j]` / n_m ≥ d_m·t                for every member
//!   capacity:  Σ_m s_m·Y`[m,j]` ≤ w_j                           for every worker type
//!
//! Either the level t is raised, or it is held and the most is made of what members get. That is what
//! [`with_demands`](super::BoundObjective::with_demands) writes down term by term; where a million members have terms
//! of their own, to write them takes longer than to solve them.

use super::bound::BoundObjective;
use super::instance::Instance;
use super::inversion::Inversion;

/// Members alone on worker types, and what each asks for.
#[derive(Clone, Debug)]
pub struct Sharing<'a> {
    instance: &'a Instance,
    /// Leaf per unit of the level, ≥ 0: `[members]`.
    pub demand: Vec<f64>,
}

/// What is wanted of members that share.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The highest level.
    Level,
    /// The largest Σ worth·leaf at a level that is held.
    Worth {
        /// That level.
        level: f64,
        /// Of a unit of each member's leaf, ≥ 0: `[members]`.
        worth: &'a [f64],
    },
}

impl BoundObjective<'_> {
    /// Members that share, of these demands `[members]`; nothing where there is more to the program: pairs, the policy's
    /// own constraints, leaves that are no throughputs, demands that are no finite numbers from 0, or no demand at all.
    pub fn sharing(&self, demand: Vec<f64>) -> Option<Sharing<'_>> {
        let by_throughput = self.objective.inversion().is_some_and(Inversion::leaf_is_throughput);
        let plain = self.instance.pairs.is_empty() && self.objective.constraints().is_empty();
        let finite = demand.iter().all(|demand| *demand >= 0.0 && demand.is_finite());
        let fits = by_throughput && plain && finite && demand.iter().any(|demand| *demand > 0.0);
        fits.then_some(Sharing { instance: self.instance, demand })
    }
}

impl Sharing<'_> {
    /// The numbers that members have but their demands.
    pub fn instance(&self) -> &Instance {
        self.instance
    }

    /// May a member have time of a worker type?
    pub fn runs(&self, member: usize, worker_type: usize) -> bool {
        let fits = self.instance.has_room(self.instance.scale_factor[member], worker_type);
        fits && self.instance.capacity[worker_type] > 0.0 && self.instance.alone(member)[worker_type] > 0.0
    }

    /// The most class time that a member can have of a worker type: 0 where it cannot run.
    pub fn most(&self, member: usize, worker_type: usize) -> f64 {
        let Instance { capacity, multiplicity, scale_factor, .. } = self.instance;
        let most = (capacity[worker_type] / scale_factor[member]).min(multiplicity[member]);
        if self.runs(member, worker_type) { most } else { 0.0 }
    }

    /// A level that a member alone could not better, with all of its time where it is fastest.
    pub fn limit(&self, member: usize) -> f64 {
        let speeds = self.instance.alone(member).iter().enumerate();
        let faster =
            |most: f64, (j, speed): (usize, &f64)| if self.runs(member, j) { most.max(*speed) } else { most };
        let fastest = speeds.fold(0.0, faster);
        if self.demand[member] > 0.0 { fastest / self.demand[member] } else { f64::INFINITY }
    }
}
