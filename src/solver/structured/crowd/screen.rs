//! Members that do the same wherever prices may still be: they are counted once, and only the others are asked.
//!
//! A vertex stays the best one as long as no price of time or leaf, and no reduced cost, changes its sign. All of these
//! are linear in the prices of worker types, so the corners of a range of prices tell, and what a vertex takes is linear
//! in the level (Ghaoui, Viallon & Rabbani, *Safe feature elimination in sparse supervised learning*, 2012, drop columns of
//! other programs for such a reason).

use super::corner::Best;
use super::{Crowd, Replies};
use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::prices::Start;
use crate::solver::structured::vertex::Place;

/// Fewer members than this are asked at once.
const MEMBERS_MIN: usize = 1024;
/// How far below where it is asked for a level may end, as a part of it: at least, at most, and in squares of how far off
/// prices may be, for a bound by prices is off by as much.
const FALL_MIN: f64 = 1e-4;
const FALL_MAX: f64 = 0.05;
const FALL: f64 = 0.5;
/// A vertex that takes less than this of a member's time, or leaves less of it, may be another one.
const INSIDE: f64 = 1e-9;

/// Who asks a crowd, time after time.
pub(super) struct Asking<'a, const K: usize> {
    crowd: &'a Crowd<K>,
    groups: usize,
    start: &'a Start,
    /// Is the level held?
    held: bool,
    asked: u32,
    screened: Option<Screened<K>>,
}

/// A crowd, of which most are decided.
struct Screened<const K: usize> {
    within: Range<K>,
    /// What those who are decided do at the least and at the highest level.
    decided: [Replies; 2],
    rest: Crowd<K>,
    /// Of each chunk of the rest.
    group: Vec<usize>,
}

/// Where prices and levels may be.
#[derive(Clone, Copy, Debug)]
struct Range<const K: usize> {
    /// Prices.
    low: [f64; K],
    high: [f64; K],
    level: [f64; 2],
}

impl<'a, const K: usize> Asking<'a, K> {
    pub(super) fn new(crowd: &'a Crowd<K>, groups: usize, start: &'a Start, held: bool) -> Self {
        Self { crowd, groups, start, held, asked: 0, screened: None }
    }

    /// What members do at a place; nothing if one of them cannot reach the level.
    pub(super) fn ask(&mut self, place: &Place) -> Option<Replies> {
        self.asked += 1;
        // (a level is known well enough when it has been asked for once)
        let now = self.asked == if self.held { 1 } else { 2 };
        if now && self.crowd.n >= MEMBERS_MIN {
            let within = self.range(place);
            self.screened = within.has(place).then(|| self.crowd.screened(place, within, self.groups));
        }
        match self.screened.as_ref().filter(|screened| screened.within.has(place)) {
            Some(screened) => screened.ask(place),
            None => self.crowd.ask(place, self.groups),
        }
    }

    /// Where prices are looked for, in units of those of a place.
    fn range(&self, place: &Place) -> Range<K> {
        let Start { price, low, high, .. } = self.start;
        let unit = place.price.iter().sum::<f64>() / price.iter().sum::<f64>();
        let parts = low.iter().zip(high).map(|(low, high)| (high - low) / (high + low));
        let off = parts.fold(0.0, f64::max);
        let fall = if self.held { 0.0 } else { (FALL * off * off).clamp(FALL_MIN, FALL_MAX) };
        let level = place.level[0];
        let of = |prices: &[f64]| std::array::from_fn(|j| prices[j] * unit);
        Range { low: of(low), high: of(high), level: [level * (1.0 - fall), level] }
    }
}

impl<const K: usize> Range<K> {
    fn has(&self, place: &Place) -> bool {
        let (level, [least, most]) = (place.level[0], self.level);
        let of = |j: usize| (self.low[j]..=self.high[j]).contains(&place.price[j]);
        (least..=most).contains(&level) && (0..K).all(of)
    }
}

impl<const K: usize> Screened<K> {
    fn ask(&self, place: &Place) -> Option<Replies> {
        let [least, most] = self.within.level;
        let (width, [at_least, at_most]) = (most - least, &self.decided);
        let part = if width > 0.0 { (place.level[0] - least) / width } else { 1.0 };
        let mixed = |low: &[f64], high: &[f64]| -> Vec<f64> {
            low.iter().zip(high).map(|(low, high)| low + part * (high - low)).collect()
        };
        let mut all = Replies {
            cost: mixed(&at_least.cost, &at_most.cost),
            usage: mixed(&at_least.usage, &at_most.usage),
            least: 0.0,
            slope: 0.0,
        };
        all.least = all.value(&place.price);
        if width > 0.0 {
            all.slope = (at_most.value(&place.price) - at_least.value(&place.price)) / width;
        }
        self.rest.reply(place, |chunk| self.group[chunk], &mut all).then_some(all)
    }
}

impl<const K: usize> Crowd<K> {
    /// Tells members that are decided within a range from others, at a place in it.
    fn screened(&self, place: &Place, within: Range<K>, groups: usize) -> Screened<K> {
        let nothing = || Replies::nothing(groups, K);
        let rest = Self::room_for(0, self.per_worker, [false; 3]);
        let mut screened = Screened { within, decided: [nothing(), nothing()], rest, group: Vec::new() };
        let (rent, [least, most]) = (self.rent(place), within.level);
        let rents = [within.low, within.high].map(|price| self.rented(&price));
        for group in 0..groups {
            let mut free = 0;
            for chunk in (group..self.demand.len()).step_by(groups) {
                let highest = self.best(chunk, &rent, most);
                let lowest = if least < most { self.best(chunk, &rent, least) } else { highest };
                let best = [lowest, highest];
                let mut parts = best.map(|best| best.part);
                for i in 0..LANES.min(self.n - chunk * LANES) {
                    if self.is_decided((chunk, i), &best, &rents) {
                        continue;
                    }
                    for part in parts.iter_mut().flatten() {
                        part.0[i] = 0.0;
                    }
                    if free == 0 {
                        screened.rest.grow(self);
                        screened.group.push(group);
                        free = LANES;
                    }
                    let last = screened.rest.demand.len() - 1;
                    screened.rest.copy((last, LANES - free), self, (chunk, i));
                    free -= 1;
                }
                for (part, all) in parts.iter().zip(&mut screened.decided) {
                    self.count(chunk, group, part, all);
                }
            }
        }
        screened
    }

    /// Does a member stay at its best vertex wherever rents are from the least to the highest?
    fn is_decided(
        &self,
        (chunk, i): (usize, usize),
        best: &[Best<K>; 2],
        [low, high]: &[[f64; K]; 2],
    ) -> bool {
        if best.iter().any(|best| best.value.0[i] == f64::INFINITY) {
            return false;
        }
        let speed = |j: usize| self.speed[chunk][j].0[i];
        let takes = |j: usize| best.each_ref().map(|best| best.part[j].0[i]);
        let mut types = (0..K).filter(|j| takes(*j).iter().any(|part| *part != 0.0));
        let others = |one: usize, other: usize| (0..K).filter(move |j| *j != one && *j != other);
        match (types.next(), types.next(), types.next()) {
            (Some(one), None, _) => {
                let mut others = others(one, one).filter(|j| speed(*j) > 0.0);
                if takes(one).iter().all(|part| *part < 1.0 - INSIDE && *part > INSIDE) {
                    // for as long as the leaf takes: its cost is no gain, and nothing is cheaper for its speed
                    self.cost_at((chunk, i), one, low[one]) >= 0.0
                        && others.all(|j| low[j] * speed(one) >= high[one] * speed(j))
                } else if takes(one).iter().all(|part| *part >= 1.0) && !self.worth.is_empty() {
                    let most = self.cost_at((chunk, i), one, high[one]);
                    let faster = best.iter().all(|best| best.leaf.0[i] == 0.0);
                    faster && most <= 0.0 && others.all(|j| self.cost_at((chunk, i), j, low[j]) >= most)
                } else {
                    false
                }
            }
            (Some(one), Some(other), None) => {
                let (fast, slow) = if speed(one) > speed(other) { (one, other) } else { (other, one) };
                let apart = speed(fast) - speed(slow);
                let inside = [one, other].iter().all(|j| takes(*j).iter().all(|part| *part > INSIDE));
                let least = |of: [(f64, usize); 3]| -> f64 {
                    of.iter().map(|(by, j)| by * if *by > 0.0 { low[*j] } else { high[*j] }).sum()
                };
                let dearer = |j: usize| {
                    let of = [(apart, j), (speed(slow) - speed(j), fast), (speed(j) - speed(fast), slow)];
                    speed(j) == 0.0 || least(of) >= 0.0
                };
                // prices of leaf and of time, and what others cost beside them
                inside
                    && apart > 0.0
                    && self.cost_at((chunk, i), fast, low[fast]) >= self.cost_at((chunk, i), slow, high[slow])
                    && speed(slow) * low[fast] >= speed(fast) * high[slow]
                    && others(one, other).all(dearer)
            }
            _ => false,
        }
    }

    /// What all of a member's time costs on a type at a rent.
    fn cost_at(&self, (chunk, i): (usize, usize), j: usize, rent: f64) -> f64 {
        let worth = self.worth.get(chunk).map_or(0.0, |worth| worth.0[i]);
        self.workers[chunk].0[i] * rent - worth * self.speed[chunk][j].0[i]
    }

    /// Makes room for eight more, of whom as much is told as of others.
    fn grow(&mut self, like: &Self) {
        let mut speed = [Lane::ZERO; K];
        speed[0] = Lane::ONE;
        self.speed.push(speed);
        self.demand.push(Lane::ZERO);
        self.workers.push(Lane::ZERO);
        if !like.worth.is_empty() {
            self.worth.push(Lane::ZERO);
        }
        if !like.base.is_empty() {
            self.base.push(Lane::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Speeds, the part of the fastest that is asked for, workers, worth.
    type Member = ([f64; 3], f64, f64, f64);

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let speed = prop_oneof![5 => 0.1_f64..3.0, 1 => Just(0.0), 1 => Just(1.0)];
        let speeds = (0.1_f64..3.0, speed.clone(), speed).prop_map(|(one, two, three)| [one, two, three]);
        let asked = prop_oneof![1 => Just(0.0), 9 => 0.05_f64..1.0];
        let member = (speeds, asked, 1.0_f64..5.0, 0.0_f64..2.0);
        prop::collection::vec(member, 20..300)
    }

    fn crowd(members: &[Member], worth: bool) -> Crowd<3> {
        let mut crowd = Crowd::room_for(members.len(), [0.1, 0.3, 0.2], [worth, false, false]);
        for (member, (speed, asked, workers, of_worth)) in members.iter().enumerate() {
            let (chunk, i) = (member / LANES, member % LANES);
            let fastest = speed.iter().copied().fold(0.0, f64::max);
            for (to, speed) in crowd.speed[chunk].iter_mut().zip(speed) {
                to.0[i] = *speed;
            }
            crowd.demand[chunk].0[i] = asked * fastest;
            crowd.workers[chunk].0[i] = *workers;
            if worth {
                crowd.worth[chunk].0[i] = *of_worth;
            }
        }
        crowd
    }

    proptest! {
        #[test]
        fn whoever_is_decided_does_what_it_would_anywhere_in_the_range(
            members in members(),
            worth in any::<bool>(),
            (price, level) in (prop::array::uniform3(0.1_f64..3.0), 0.3_f64..1.0),
            (off, fall) in (prop_oneof![Just(1e-6), 0.0_f64..0.5], 0.0_f64..0.1),
            at in prop::collection::vec((prop::array::uniform3(0.01_f64..0.99), 0.01_f64..0.99), 5),
        ) {
            let (crowd, groups) = (crowd(&members, worth), 3);
            let fall = if worth { 0.0 } else { fall };
            let low: [f64; 3] = price.map(|price| price * (1.0 - off));
            let high: [f64; 3] = price.map(|price| price * (1.0 + off));
            let within = Range { low, high, level: [level * (1.0 - fall), level] };
            let screened = crowd.screened(&Place::exactly(price.to_vec(), vec![level]), within, groups);
            if off < 1e-5 && fall < 1e-3 {
                let undecided: f64 = screened.rest.workers.iter().map(|workers| workers.sum()).sum();
                let all: f64 = crowd.workers.iter().map(|workers| workers.sum()).sum();
                prop_assert!(members.len() < 50 || undecided < 0.8 * all, "{undecided} of {all}");
            }
            for (parts, part) in at {
                let between = |j: usize| low[j] + parts[j] * (high[j] - low[j]);
                let level = level * (1.0 - fall * part);
                let place = Place::exactly((0..3).map(between).collect(), vec![level]);
                prop_assert!(within.has(&place));
                let (all, some) = (crowd.ask(&place, groups).unwrap(), screened.ask(&place).unwrap());
                let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * (1.0 + one.abs());
                for (one, other) in all.usage.iter().chain(&all.cost).zip(some.usage.iter().chain(&some.cost)) {
                    prop_assert!(near(*one, *other), "{one} {other}");
                }
                prop_assert!(near(all.least, some.least), "{} {}", all.least, some.least);
                // (the slope of a sum over a narrow range has fewer digits)
                let slope = (all.slope - some.slope).abs() <= 1e-9 * (1.0 + all.slope.abs()) / fall.max(1e-4);
                prop_assert!(fall < 1e-4 || slope, "{} {}", all.slope, some.slope);
            }
        }
    }
}
