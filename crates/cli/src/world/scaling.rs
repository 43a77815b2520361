//! The cost of resizing a job.

use clap::Args;

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Scaling {
    /// Seconds that a job stands still in a slot in which it holds others than in the slot before: 0 as published, a
    /// second if it is resized while it runs, 360 from a checkpoint
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(super) scaling_cost: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
    let fits = seconds >= 0.0 && seconds.is_finite();
    fits.then_some(seconds).ok_or_else(|| format!("{seconds} s, expected a number of at least 0"))
}
