//! Sizes, tolerances and limits of this folder, each with its reason.

// --- Sizes of the Dantzig-Wolfe search ---

/// Groups of jobs with columns that are mixed separately: more need fewer passes, but make a larger restricted
/// master.
pub(super) const GROUPS: usize = 48;
/// Fewest chunks of eight jobs in a group: a smaller group is no sample of all jobs.
pub(super) const GROUP_CHUNKS_MIN: usize = 4;
/// Passes over all jobs before a search gives up, at least, and for each worker type.
pub(super) const PASSES_MIN: usize = 80;
pub(super) const PASSES_PER_TYPE: usize = 20;
/// Worker types up to which the restricted master's duals are stable enough to be used unsmoothed.
pub(super) const STABLE_TYPES: usize = 8;
/// Worker types from which on the restricted master is degenerate: duals are always smoothed, pivots chosen by size.
pub(super) const DEGENERATE_TYPES: usize = 17;
/// First weight of the best dual point in smoothed prices, and its change from pass to pass.
pub(super) const DUAL_SMOOTHING: f64 = 0.8;
pub(super) const DUAL_SMOOTHING_STEP: f64 = 0.1;
/// Columns of the last search whose prices the next search begins with.
pub(super) const WARM_PRICES_MAX: usize = 6;

// --- Samples, and the price box around the prices of a sample ---

/// Prices of a sample of at most this many jobs are searched without knowing any.
pub(super) const SAMPLE_MAX: usize = 384;
/// Nash-welfare prices of a sample of at most this many jobs are searched without knowing any: the first widths of such
/// a search cost more for each job.
pub(super) const NASH_SAMPLE_MAX: usize = 256;
/// Growth from one sample to the next: smaller steps cost more passes than better prices save.
pub(super) const SAMPLE_GROWTH: usize = 8;
/// Relative error of a sample's prices, times the square root of its size; at most `SAMPLE_ERROR_MAX`.
pub(super) const SAMPLE_ERROR: f64 = 3.0;
pub(super) const SAMPLE_ERROR_MAX: f64 = 0.5;
/// Relative gap to which a sample of n jobs is solved, times n: a smaller one says nothing about the other jobs.
pub(super) const SAMPLE_GAP: f64 = 0.05;
/// Prices are uncertain by a part of themselves and of this part of the largest price, so that small ones have room.
pub(super) const PRICE_FLOOR: f64 = 0.05;
/// First upper end of the price box, in prices at which all workers together are worth 1.
pub(super) const BOX_FIRST: f64 = 4.0;
/// Widening of the price box where it binds, in its own width, and the growth of that from one time to the next.
pub(super) const BOX_WIDENED: f64 = 0.5;
pub(super) const BOX_WIDENED_MORE: f64 = 1.5;

// --- Gaps, relative ---

/// Gap of a search, as a part of the tolerance asked for: the rest is for rounding in the certificate.
pub(super) const GAP: f64 = 0.1;
/// Gap of a search for a level above a base, as a part of the tolerance asked for: an error of a level is divided by
/// prices, small ones included.
pub(super) const GAP_ABOVE: f64 = 1e-3;
/// Passes without change of the restricted master's optimum, and the factor on `GAP_ABOVE` that is enough after them.
pub(super) const PASSES_STALLED: u32 = 4;
pub(super) const GAP_STALLED: f64 = 1e3;
/// Error of a level above a base, relative to the level and the base together.
pub(super) const LEVEL_ERROR: f64 = 1e-8;
/// Distance below the highest level that a job can reach alone: there, rounding must not make a job infeasible.
pub(super) const BELOW_HIGHEST: f64 = 1e-12;
/// A level lower than this part of the highest counts as zero above a base.
pub(super) const RISE_MIN: f64 = 1e-11;
/// A job that lacks less than this part of its highest throughput has reached it.
pub(super) const LACK_MAX: f64 = 1e-11;
/// A type whose workers are worth less than this part of all workers is not scarce.
pub const SCARCE_MIN: f64 = 1e-6;
/// An objective below this part of the most that all jobs could have is judged absolutely.
pub(super) const OBJECTIVE_MIN: f64 = 1e-9;

// --- Rounding ---

/// Rounding of a few operations, relative: of a job's cost, of the sum of all costs, of an optimum that stalls.
pub(super) const COST_ROUNDING: f64 = 1e-14;
/// Time fractions may be above 1 or below 0 by this much: rounding of a quotient of throughputs.
pub(super) const TIME_ROUNDING: f64 = 1e-13;
/// A point below a line by less than this part of the line's numbers lies on it.
pub(super) const ON_LINE: f64 = 4e-16;
/// Throughputs that differ by less than this part of them are equal: a mixture of the two types gains nothing.
pub(super) const SAME_SPEED: f64 = 1e-12;
/// Throughputs nearer than this make a mixture of two types a difference of large numbers, so it is never decided.
pub(super) const APART: f64 = 1e-6;

// --- Best responses ---

/// Worker types up to which all pairs are enumerated; above, the lower hull is faster.
pub(super) const ENUMERATED_TYPES: usize = 3;

// --- The restricted master's simplex; costs, usage and capacities are near 1 ---

/// Reduced costs above this do not enter: rounding.
pub(super) const REDUCED_COST: f64 = -1e-13;
/// Reduced costs above this do not enter after `PIVOTS_STALLED` pivots without progress: columns that differ by
/// rounding would take turns forever.
pub(super) const REDUCED_COST_STALLED: f64 = -1e-12;
pub(super) const PIVOTS_STALLED: usize = 40;
/// Basic values may be below zero by this much before a solve, and after it, where the rest is repaired by clipping.
pub(super) const NEGATIVE: f64 = -1e-12;
pub(super) const NEGATIVE_FOUND: f64 = -1e-9;
/// Smaller pivots are not taken.
pub(super) const RESTRICTED_PIVOT_MIN: f64 = 1e-10;
/// Basic values may fall below zero by this much for a larger pivot (Harris 1973).
pub(super) const HARRIS: f64 = 1e-11;
/// Pivots of a solve for each row; fewer from `DEGENERATE_TYPES` on, where a solve that takes long seldom ends.
pub(super) const PIVOTS_PER_ROW_MAX: usize = 60;
pub(super) const PIVOTS_PER_ROW_MAX_DEGENERATE: usize = 20;
/// Pivots after which the inverse is computed again.
pub(super) const PIVOTS_KEPT: usize = 64;

// --- Nash welfare: smoothing widths μ ---

/// First width where nothing is known of prices.
pub(super) const WIDTH_FIRST: f64 = 0.2;
/// Last width of a sample as a part of the worth of all workers, times the square root of its size; and the least.
pub(super) const WIDTH_SAMPLE: f64 = 0.3;
pub(super) const WIDTH_SAMPLE_MIN: f64 = 1e-8;
/// Last width of all jobs.
pub(super) const WIDTH_LAST: f64 = 1e-12;
/// Ratio of one width to the one before: Newton's method still converges in a few steps.
pub(super) const NARROWER: f64 = 0.2;
/// Newton steps below this part of the width end the work at a width.
pub(super) const STEP_MIN: f64 = 0.2;
/// Newton steps at one width, and at the end for the relative shifts of prices.
pub(super) const NEWTON_STEPS_MAX: u32 = 60;
pub(super) const SHIFTS_MAX: u32 = 8;
/// A choice worse than the best by more than this many widths has no weight: exp(-40) is below rounding.
pub(super) const WORSE: f64 = 40.0;
/// Types whose workers are worth less than this part of all weights count for little in the length of a step.
pub(super) const STEP_WORTH_MIN: f64 = 0.01;
/// A type whose workers are worth less than this many widths may have idle workers: at a width, and between samples.
pub(super) const IDLE_WIDTHS: f64 = 100.0;
pub(super) const IDLE_WIDTHS_SAMPLE: f64 = 4.0;
/// Distance that prices may move as the width goes to 0, in widths.
pub(super) const MOVED: f64 = 15.0;
/// Searches, each with a wider price box than the one before, and the growth of the box and of `MOVED` from one to
/// the next.
pub(super) const BOXES_MAX: u32 = 5;
pub(super) const BOX_GROWTH: f64 = 4.0;
pub(super) const MOVED_GROWTH: f64 = 6.0;
/// Evaluations of undecided jobs before a search gives up: for each job, and besides. A program is as fast then.
pub(super) const EVALUATIONS_PER_JOB: usize = 40;
pub(super) const EVALUATIONS_BESIDES: usize = 600_000;
/// Worker types up to which Nash welfare is solved here. With more, jobs must run on `NASH_TYPES_OF_JOB` types on
/// average: where they run on few, the program with a cone for each job is faster.
pub(super) const NASH_TYPES: usize = 32;
pub(super) const NASH_TYPES_OF_JOB: usize = 6;
