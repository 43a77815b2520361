//! Flags that forecasts have in common: the number of forks, and their span.

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::conditions::time;
use apportion::units::Seconds;
use apportion_studies::forecast::future::FORKS_MAX;
use apportion_studies::forecast::{Arriving, JobSteps, Settings};

/// The forks of a forecast.
#[derive(Args, Clone, Debug)]
pub(crate) struct ForkArguments {
    /// Number of forks; 1000 where not given
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=FORKS_MAX as u64))]
    forks: Option<usize>,
    /// The part of the forks that the interval holds; as many are before it as after
    #[arg(long, value_name = "P", default_value = "0.8", value_parser = part)]
    pub(crate) interval: f64,
    /// Time before the forecast from which arrivals are drawn
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, default_value = "14d")]
    history: Seconds,
    /// Whether jobs arrive after the time
    #[arg(long, value_enum, default_value = "resampled")]
    arrivals: ArrivalsFlag,
    /// The longest time that a fork goes on after the forecast
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true, default_value = "30d")]
    limit: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ArrivalsFlag {
    /// Arrivals as before, by whole days drawn at random
    Resampled,
    /// No arrivals
    None,
}

fn part(text: &str) -> Result<f64, String> {
    let parsed: Option<f64> = text.parse().ok();
    let within = parsed.filter(|part| *part > 0.0 && *part < 1.0);
    within.ok_or_else(|| format!("`{text}` is no part, expected a number above 0 and below 1, such as 0.8"))
}

impl ForkArguments {
    /// The settings of a forecast. `n_forks` is the number of forks if `--forks` is not given.
    pub(crate) fn settings(&self, n_forks: usize, seed: u64, steps: JobSteps) -> Settings {
        let arriving = match self.arrivals {
            ArrivalsFlag::Resampled => Arriving::Resampled,
            ArrivalsFlag::None => Arriving::None,
        };
        Settings {
            n_forks: self.forks.unwrap_or(n_forks),
            seed,
            steps,
            arriving,
            history: self.history,
            limit: self.limit,
        }
    }
}
