//! The Dantzig-Wolfe loop: price out all subproblems, solve the restricted master program, repeat at its prices.
//!
//! Members respond to prices of worker types; the restricted master finds the mixture of all responses so far that fits the
//! capacity rows best, and its duals are the next prices (Dantzig & Wolfe 1960). Responses at any prices prove a dual
//! bound, a mixture of responses is a feasible answer; where the two meet, it is optimal. Members are grouped and each
//! group's responses are mixed apart, so that few rounds are enough and ties need no breaking. The first prices are those
//! of a sample of the members, and prices are kept in a box around them that is widened where it binds.
//!
//! # The level
//!
//! A level that is held stays where it is. A level that is raised is asked for a little too high: the restricted master
//! then minimizes the factor by which all capacity rows are stretched. Responses to a level, scaled down, are responses to
//! any lower one, and so is their mixture. What the responses cost above the worth of all workers, divided by what a unit of
//! the level costs, bounds the level: the next one to ask for (Newton's step).

use crate::decomposition::columns::Proposals;
use crate::decomposition::restricted_master::RestrictedMaster;

/// Shared rows up to which the prices of the master program are asked for as they are.
const ROWS_MAX: usize = 8;
/// Groups of blocks, whose proposals are mixed apart, and the fewest chunks of a group.
const GROUPS: usize = 48;
const GROUP_CHUNKS_MIN: usize = 4;
/// Askings of a search, for each of the shared rows but a few.
const ASKED_MIN: usize = 80;
const ASKED_EACH: usize = 20;

/// How often members may be asked at prices of so many rows.
pub(super) fn asked_max(n_rows: usize) -> usize {
    ASKED_MIN.max(ASKED_EACH * n_rows)
}
/// Shared rows from which on they are many: prices wander, and the master program is degenerate.
pub(super) const ROWS_MANY: usize = 17;
/// The first smoothing: the weight of the best dual point in the next prices.
const SMOOTHING: f64 = 0.8;
/// By how much the smoothing changes from round to round.
const SMOOTHING_STEP: f64 = 0.1;
/// How wide the range of prices is at first, in prices that are worth all room together.
const WIDE: f64 = 4.0;
/// How far off the prices of a sample are, by the square root of its size; never more than `OFF_MAX`.
const OFF: f64 = 3.0;
const OFF_MAX: f64 = 0.5;
/// Prices below this part of the largest are as uncertain as one of that size.
const PRICE_MIN: f64 = 0.05;
/// By how much a range is widened at the end that holds prices back, in its own width, and how much more the next
/// time.
const WIDER: f64 = 0.5;
const WIDER_STILL: f64 = 1.5;
/// The gap of a sample, by its size.
const SAMPLE_GAP: f64 = 0.05;
/// How far below the highest level that any block can reach it is asked for, relative.
pub(super) const BELOW: f64 = 1e-12;

/// Prices of the shared rows, and the level, at which blocks are asked.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) price: Vec<f64>,
    pub(super) level: Vec<f64>,
}

/// Where prices are looked for.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) price: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    level: Option<f64>,
    /// Prices to ask at after that, before any that follow from proposals.
    known: Vec<Vec<f64>>,
}

/// Warm-start prices: the prices that proved the last search's bound, then the prices whose columns were mixed.
#[derive(Clone, Debug, Default)]
pub struct WarmPrices {
    /// Of a worker of each type, in what is wanted: `[K]` each, types that were added included.
    pub(super) prices: Vec<Vec<f64>>,
    /// In its own units; 0 where there is none.
    pub(super) level: f64,
}

/// Subproblems, capacity and start of a Dantzig-Wolfe search.
pub(super) struct Search<'a> {
    /// What they do at a place; none if one of them can do nothing there.
    pub(super) ask: &'a mut dyn FnMut(&Place) -> Option<Proposals>,
    /// What they do where they are to begin with, if that is known: it is to fit the shared rows.
    pub(super) given: Option<Proposals>,
    /// Of the shared rows, their part: [L]
    pub(super) room: Vec<f64>,
    pub(super) groups: usize,
    pub(super) start: &'a Start,
    /// Where to stop, relative.
    pub(super) gap: f64,
    /// Is the time up?
    pub(super) late: &'a dyn Fn() -> bool,
}

/// The end of a search.
pub(super) struct Found {
    /// The prices and the level that proved the bound.
    pub(super) at: Place,
    /// What a unit of the level costs there; none if one block alone holds it, whatever the prices.
    pub(super) slope: Option<f64>,
    /// The level of the mixture.
    pub(super) level: Vec<f64>,
    /// What was asked, and what part of each group's reply is in the mixture.
    pub(super) mixture: Vec<(Place, Vec<f64>)>,
    /// What part of what was given is: [groups], or empty.
    pub(super) given: Vec<f64>,
    pub(super) asked: u32,
}

impl Found {
    /// Do prices matter? Not where one block alone holds the level.
    pub(super) fn has_prices(&self) -> bool {
        self.slope.is_some()
    }

    /// The prices whose columns are in the mixture, at most this many, by descending weight.
    pub(super) fn mixed(&self, most: usize) -> impl Iterator<Item = &Place> {
        let weight = |(_, weights): &(Place, Vec<f64>)| weights.iter().sum::<f64>();
        let mut mixed: Vec<&(Place, Vec<f64>)> = self.mixture.iter().collect();
        mixed.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        mixed.into_iter().take(most).map(|(place, _)| place)
    }
}

/// How many groups so many chunks of blocks make.
pub(super) fn groups(n_chunks: usize) -> usize {
    (n_chunks / GROUP_CHUNKS_MIN).clamp(1, GROUPS)
}

/// The gap to which the prices of a sample of so many blocks are worth finding.
pub(super) fn sample_gap(size: usize) -> f64 {
    SAMPLE_GAP / size as f64
}

/// Dual price smoothing: the next prices are a mixture of the best dual point and of the restricted master's duals, which
/// wander where rows are many (Wentges 1997).
#[derive(Debug)]
pub(super) struct DualSmoothing {
    on: bool,
    /// The weight of the best dual point, from 0 to 1.
    part: f64,
    /// From the best dual point to the restricted master's duals, at the last prices asked for.
    towards: Vec<f64>,
}

impl DualSmoothing {
    pub(super) fn of(n_rows: usize, groups: usize) -> Self {
        // (where blocks are few, so are the prices that they tell apart)
        let on = n_rows >= ROWS_MANY || n_rows > ROWS_MAX && groups == GROUPS;
        Self { on, part: SMOOTHING, towards: Vec::new() }
    }

    /// Prices to ask for.
    pub(super) fn price(&mut self, best: &[f64], next: Vec<f64>) -> Vec<f64> {
        if !self.on {
            return next;
        }
        self.towards = next.iter().zip(best).map(|(next, best)| next - best).collect();
        next.iter().zip(&self.towards).map(|(next, towards)| next - self.part * towards).collect()
    }

    /// Takes in what was proposed: was it too near, or not near enough (Pessoa et al. 2018)?
    pub(super) fn note(&mut self, proposals: &Proposals, room: &[f64]) {
        if self.towards.is_empty() {
            return;
        }
        let used = proposals.usage.iter().zip(self.towards.iter().cycle()).map(|(usage, by)| usage * by);
        let rises = used.sum::<f64>() > worth(&self.towards, room);
        self.part = if rises {
            (self.part - SMOOTHING_STEP).max(0.0)
        } else {
            self.part + SMOOTHING_STEP * (1.0 - self.part)
        };
        self.towards.clear();
    }
}

impl Start {
    /// Where to look if nothing is known of prices.
    pub(super) fn anywhere(room: &[f64]) -> Self {
        let n = room.len() as f64;
        let price: Vec<f64> = room.iter().map(|bound| 1.0 / (bound * n)).collect();
        let high = price.iter().map(|price| price * WIDE * n).collect();
        Self { low: vec![0.0; price.len()], price, high, level: None, known: Vec::new() }
    }

    /// A price box around the prices of a sample of this size.
    pub(super) fn near(found: &Found, size: usize) -> Self {
        Self::about(found.at.price.clone(), size, found.level.first().copied())
    }

    /// The same where the search before ended at prices, for about as many blocks; nothing if there was none.
    pub(super) fn known(mut prices: Vec<Vec<f64>>, size: usize, level: f64) -> Option<Self> {
        let rest = prices.split_off(1.min(prices.len()));
        let about = Self::about(prices.pop()?, size, Some(level));
        Some(Self { known: rest, ..about })
    }

    fn about(price: Vec<f64>, size: usize, level: Option<f64>) -> Self {
        let off = (OFF / (size as f64).sqrt()).min(OFF_MAX);
        let most = price.iter().fold(1e-12_f64, |most, price| most.max(*price));
        let by = |price: &f64| off * (price + PRICE_MIN * most);
        let low = price.iter().map(|price| (price - by(price)).max(0.0)).collect();
        let high = price.iter().map(|price| price + by(price)).collect();
        Self { price, low, high, level, known: Vec::new() }
    }
}

impl Search<'_> {
    /// The least cost at a level that stays what it is; costs below `unit` are judged absolutely.
    pub(super) fn hold(&mut self, level: &[f64], unit: f64) -> Option<Found> {
        let Search { ask, given, room, groups, start, gap, late } = self;
        let mut master =
            RestrictedMaster::new(room.clone(), *groups, false, start.low.clone(), start.high.clone());
        if let Some(given) = given {
            master.add(given);
        }
        let mut asked = vec![Place { price: start.price.clone(), level: level.to_vec() }];
        let mut bound = (f64::NEG_INFINITY, 0);
        let mut wider = WIDER;
        let mut smoothing = DualSmoothing::of(room.len(), *groups);
        for round in 0..asked_max(room.len()) {
            if late() {
                return None;
            }
            let proposals = ask(&asked[round])?;
            smoothing.note(&proposals, room);
            let proven = proposals.least - worth(&asked[round].price, room);
            if proven > bound.0 {
                bound = (proven, round);
            }
            master.add(&proposals);
            if let Some(known) = start.known.get(round) {
                asked.push(Place { price: known.clone(), level: level.to_vec() });
                continue;
            }
            let mixture = master.solve()?;
            let met = mixture.objective - bound.0 <= *gap * bound.0.abs().max(unit);
            let held_back = master.widen(wider);
            wider *= if held_back { WIDER_STILL } else { 1.0 };
            if !held_back && met {
                let at = asked[bound.1].clone();
                let given = given.is_some();
                return Some(found(&master, (asked, given), at, (level.to_vec(), Some(0.0))));
            }
            let price = smoothing.price(&asked[bound.1].price, mixture.price);
            asked.push(Place { price, level: level.to_vec() });
        }
        None
    }

    /// The highest level at which blocks fit, `most` being the highest at which each fits by itself.
    pub(super) fn raise(&mut self, most: f64) -> Option<Found> {
        let Search { ask, room, groups, start, gap, late, .. } = self;
        let unit = worth(&start.price, room).recip();
        let scaled = |prices: &[f64]| -> Vec<f64> { prices.iter().map(|price| price * unit).collect() };
        let mut master =
            RestrictedMaster::new(room.clone(), *groups, true, scaled(&start.low), scaled(&start.high));
        let mut ask = |price: Vec<f64>, level: f64| {
            let place = Place { price, level: vec![level] };
            ask(&place).map(|proposals| (place, proposals))
        };
        // what no level exceeds, going by what is asked for costs and how much more it would for more
        let bound = |place: &Place, proposals: &Proposals| {
            place.level[0] + (worth(&place.price, room) - proposals.least) / proposals.slope
        };
        let highest = most * (1.0 - BELOW);
        let mut level = start.level.unwrap_or(highest).min(highest);
        let (mut place, mut proposals) = ask(scaled(&start.price), level)?;
        let first = bound(&place, &proposals);
        if first > level && level < highest {
            level = first.min(highest);
            (place, proposals) = ask(place.price, level)?;
        }
        let mut best = (f64::INFINITY, place.clone(), proposals.slope);
        let mut asked = Vec::new();
        let mut wider = WIDER;
        let mut smoothing = DualSmoothing::of(room.len(), *groups);
        for _ in 0..asked_max(room.len()) {
            smoothing.note(&proposals, room);
            let proven = bound(&place, &proposals);
            if proven < best.0 {
                best = (proven, place.clone(), proposals.slope);
            }
            master.add(&proposals);
            asked.push(place);
            let lower = best.0.min(level);
            if late() || lower.is_nan() || lower <= 0.0 {
                return None;
            }
            master.scale(lower / level);
            level = lower;
            if let Some(known) = start.known.get(asked.len() - 1) {
                (place, proposals) = ask(scaled(known), level)?;
                continue;
            }
            let mixture = master.solve()?;
            let held_back = master.widen(wider);
            wider *= if held_back { WIDER_STILL } else { 1.0 };
            if !held_back && mixture.objective <= 1.0 + *gap {
                // (at the highest level one block alone holds it, whatever the prices)
                let slope = (level < highest).then_some(best.2);
                let level = level / mixture.objective.max(1.0);
                return Some(found(&master, (asked, false), best.1, (vec![level], slope)));
            }
            (place, proposals) = ask(smoothing.price(&best.1.price, mixture.price), level)?;
        }
        None
    }
}

/// What room costs at prices.
pub(super) fn worth(price: &[f64], room: &[f64]) -> f64 {
    price.iter().zip(room).map(|(price, room)| price * room).sum()
}

/// What a search ends with; what was given comes before what was asked.
fn found(
    master: &RestrictedMaster,
    (asked, given): (Vec<Place>, bool),
    at: Place,
    (level, slope): (Vec<f64>, Option<f64>),
) -> Found {
    let n_asked = asked.len();
    let parts = master.parts();
    let weights = |round: usize, scale: f64| {
        let mut weights = vec![0.0; master.groups];
        for (_, group, part) in parts.iter().filter(|(of, _, _)| *of == round) {
            weights[*group] = part * scale;
        }
        weights
    };
    let mut mixture = Vec::new();
    for (round, place) in asked.into_iter().enumerate() {
        // proposals to a higher level count as what they are of this one
        let scale = match (&level[..], &place.level[..]) {
            ([level], [asked]) if level < asked => level / asked,
            _ => 1.0,
        };
        let weights = weights(round + usize::from(given), scale);
        if weights.iter().any(|weight| *weight != 0.0) {
            mixture.push((place, weights));
        }
    }
    let given = if given { weights(0, 1.0) } else { Vec::new() };
    Found { at, slope, level, mixture, given, asked: u32::try_from(n_asked).unwrap_or(u32::MAX) }
}
