//! Pools' time as time of members and of their pairs.

use std::collections::BTreeMap;

use super::cuts::Cut;
use super::divide::{self, Given};
use super::exact::{self, Division};
use super::partners::{self, Portion};
use super::profile::tightest;
use super::{Pools, Stage};
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::program::Column;

/// The part of what a level asks for that members must be given when time is divided.
const PART_MIN: f64 = 1.0 - 1e-9;
/// A class time below this is rounding.
const TIME_MIN: f64 = 1e-13;

/// Time of two members beside each other.
#[derive(Clone, Copy, Debug)]
struct Together {
    /// The members, the smaller first, and the worker type.
    at: (u32, u32, usize),
    /// Class time.
    time: f64,
}

impl Pools {
    /// Class times of the members, whose pairs become columns: [columns].
    pub(in crate::policy::program) fn divided(&self, master: &mut Master<'_>) -> Option<Vec<f64>> {
        let stage = self.stage.as_ref()?;
        let (n, k) = (master.reduced().instance.n_members(), self.instance.n_types());
        let mut alone = vec![0.0; n * k];
        let mut together: Vec<Together> = Vec::new();
        let portions = self.portions(stage)?;
        for (column, of) in (0_u32..).zip(self.layout.columns.iter()) {
            let j = of.worker_type;
            let mut pair = |a: u32, b: u32, time: f64| {
                let itself = a == b && master.reduced().instance.multiplicity[a as usize] < 2.0;
                if time > TIME_MIN && !itself {
                    together.push(Together { at: (a.min(b), a.max(b), j), time });
                }
            };
            let of_pool = |pool: usize| portions.get(&(column, pool)).map_or(&[][..], Vec::as_slice);
            let Some(position) = of.combination.checked_sub(self.members.len()) else {
                for portion in of_pool(of.combination) {
                    alone[portion.member as usize * k + j] += portion.time;
                }
                continue;
            };
            match self.pairs[position] {
                (a, b) if a == b => partners::within(of_pool(a), &mut pair),
                (a, b) => partners::between(of_pool(a), of_pool(b), &mut pair),
            }
        }
        drop(portions);
        together.sort_unstable_by_key(|pair| pair.at);
        together.dedup_by(|next, kept| {
            let same = next.at == kept.at;
            kept.time += if same { next.time } else { 0.0 };
            same
        });
        let mut pairs: Vec<(usize, usize)> =
            together.iter().map(|pair| (pair.at.0 as usize, pair.at.1 as usize)).collect();
        pairs.dedup();
        master.admit(pairs);
        let (bound, pairs) = (master.bound(), &master.reduced().pairs);
        let time = |column: &Column| {
            let j = column.worker_type;
            let Some(pair) = column.combination.checked_sub(n) else {
                return alone[column.combination * k + j];
            };
            let of = |pair: &Together| {
                let (a, b, on) = pair.at;
                (a as usize, b as usize, on)
            };
            let at = together.binary_search_by_key(&(pairs[pair].0, pairs[pair].1, j), of);
            at.map_or(0.0, |at| together[at].time)
        };
        Some(bound.columns().iter().map(time).collect())
    }

    /// Divides the pools' time among their members; rows that it lacks where it cannot be.
    pub(super) fn divide(&self, solving: &mut Solving, stage: &mut Stage) -> Option<Vec<Cut>> {
        let mut cuts = Vec::new();
        (stage.parts, stage.part) = (Vec::new(), 1.0);
        for (pool, needs) in stage.needs.iter().enumerate() {
            let given: Vec<Given> = self
                .given(pool, &stage.time)
                .map(|(column, slot)| Given { speed: slot.speed, time: slot.time, own: column.uses > 1.0 })
                .collect();
            // (what rows that it has leave it short of is rounding)
            let slots = self.given(pool, &stage.time).map(|given| given.1);
            let least = PART_MIN.min(tightest(slots, needs).part);
            let quick = divide::divide(&given, self.instance.multiplicity[pool], needs, least);
            let division = match quick {
                Some((part, parts)) => Division::Parts(part, parts),
                None => exact::divide(solving, &given, needs, least)?,
            };
            match division {
                Division::Parts(part, parts) => {
                    stage.part = stage.part.min(part);
                    stage.parts.push(parts);
                }
                Division::Prices(prices) => cuts.push(Cut::of(pool, prices)),
            }
        }
        Some(cuts)
    }

    /// Members' parts of the columns that pools have time of: by column and pool.
    fn portions(&self, stage: &Stage) -> Option<BTreeMap<(u32, usize), Vec<Portion>>> {
        let mut portions: BTreeMap<(u32, usize), Vec<Portion>> = BTreeMap::new();
        for (pool, parts) in stage.parts.iter().enumerate() {
            let columns: Vec<u32> = self.given(pool, &stage.time).map(|(slot, _)| slot.column).collect();
            for column in &columns {
                portions.insert((*column, pool), Vec::new());
            }
            for part in parts {
                let member = self.members[pool][stage.needs[pool].members()[part.place] as usize];
                let place = portions.get_mut(&(columns[part.slot], pool))?;
                place.push(Portion { member, time: part.time });
            }
        }
        Some(portions)
    }
}
