//! Whether a pool's time can be divided at all, and if not, what keeps it from being: a linear program over its members.

use super::cuts::MemberPrice;
use super::divide::{Given, Part};
use super::needs::Needs;
use crate::policy::program::solving::Solving;
use crate::program::{Program, Range, Sense};

/// Prices below this part of the dearest throughput are rounding of nothing.
const PRICE_MIN: f64 = 1e-12;

/// What became of a division.
#[derive(Clone, Debug)]
pub(super) enum Division {
    /// Everyone has this part of what it needs.
    Parts(f64, Vec<Part>),
    /// Not everyone can have what it needs: no time has that is worth less to members at these prices.
    Prices(Vec<MemberPrice>),
}

/// Divides what a pool was given, if it can be, so that all have at least the part `least` of what they need.
///
/// The program: maximize t ≤ 1 with Σ_c v_c·z_ic ≥ t·n_i·r_i, Σ_c z_ic ≤ n_i and Σ_i z_ic = y_c, where a job has half of
/// the time of pairs within the pool at most. The dual values of the first two are the prices.
pub(super) fn divide(solving: &mut Solving, given: &[Given], needs: &Needs, least: f64) -> Option<Division> {
    let (n, n_slots) = (needs.len(), given.len());
    let fastest = given.iter().fold(0.0_f64, |most, slot| most.max(slot.speed));
    let mut program = Program::new(Sense::Maximize);
    for place in 0..n {
        let jobs = needs.jobs(place);
        for slot in given {
            // (no other bound, which could have a price that no row has)
            let half = if slot.own && jobs < 2.0 { slot.time / 2.0 } else { f64::INFINITY };
            let implied = Range { lower: 0.0, upper: half.min(slot.time).min(jobs) };
            program.push_column(Range { lower: 0.0, upper: half }, implied, 0.0);
        }
    }
    let all = Range { lower: 0.0, upper: 1.0 };
    let part = program.push_column(all, all, 1.0);
    let of = |place: usize| place * n_slots..(place + 1) * n_slots;
    for place in 0..n {
        program.push_row(Range::at_most(needs.jobs(place)), of(place).map(|column| (column, 1.0)));
    }
    for place in 0..n {
        let asked = (part, -needs.jobs(place) * needs.throughput(place) / fastest);
        let got = of(place).zip(given).map(|(column, slot)| (column, slot.speed / fastest));
        program.push_row(Range::at_least(0.0), got.chain([asked]));
    }
    for (at, slot) in given.iter().enumerate() {
        program.push_row(Range::exactly(slot.time), (0..n).map(|place| (place * n_slots + at, 1.0)));
    }
    let answer = solving.solve_near(&program, None)?;
    let x = &answer.solution.columns;
    if x[part] >= least {
        let parts = (0..n).flat_map(|place| {
            let timed = of(place).enumerate().filter(|(_, column)| x[*column] > 0.0);
            timed.map(move |(slot, column)| Part { slot, place, time: x[column] })
        });
        return Some(Division::Parts(x[part], parts.collect()));
    }
    let duals = &answer.solution.row_duals;
    let most = duals[n..2 * n].iter().fold(0.0_f64, |most, dual| most.max(-dual));
    let price = |place: usize| MemberPrice {
        place: needs.members()[place],
        throughput: (-duals[n + place]).max(0.0) / most,
        time: duals[place].max(0.0) * fastest / most,
    };
    let mut prices: Vec<MemberPrice> = (0..n).map(price).collect();
    prices.retain(|price| price.throughput > PRICE_MIN || price.time > PRICE_MIN * fastest);
    prices.sort_unstable_by_key(|price| price.place);
    Some(Division::Prices(prices))
}
