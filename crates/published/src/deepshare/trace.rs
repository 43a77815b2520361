//! Reader of DeepShare's traces: JSON such as `{"0": {"model": "MoE", "gpu_demand": 8, "total_samples_to_train": 130785.648}}`.

use serde::Deserialize;

use apportion::spec::{Entries, Source, SpecError};

/// A job of a DeepShare trace.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepShareJob {
    /// Name of the model that is trained.
    pub model: String,
    /// Workers that the job needs at once.
    pub workers: u32,
    /// Samples to train on.
    pub samples: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    model: String,
    gpu_demand: u32,
    total_samples_to_train: f64,
}

/// Reads a trace; jobs are in the order of the text.
///
/// # Errors
/// If the text is no DeepShare trace, or a job has no work; with line and column.
pub fn read_deepshare_trace(source: &Source) -> Result<Vec<DeepShareJob>, SpecError> {
    let raw: Entries<Raw> = source.parse()?;
    let mut jobs = Vec::new();
    for (id, Raw { model, gpu_demand, total_samples_to_train: samples }) in raw {
        if !(samples.is_finite() && samples > 0.0) {
            let message = format!("{samples} samples, expected a finite number above 0");
            return Err(source.error_at(&format!("{id}.total_samples_to_train"), message, None));
        }
        jobs.push(DeepShareJob { model, workers: gpu_demand, samples });
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_keep_their_order() {
        let job = |id: u32, samples: &str| {
            format!(r#""{id}": {{"model": "m{id}", "gpu_demand": 4, "total_samples_to_train": {samples}}}"#)
        };
        let read = |text: String| read_deepshare_trace(&Source::new("trace0", text));
        let jobs = read(format!("{{{}, {}}}", job(10, "5.5"), job(2, "1"))).unwrap();
        let models: Vec<&str> = jobs.iter().map(|job| job.model.as_str()).collect();
        assert_eq!(models, ["m10", "m2"]);
        let error = read(format!("{{{}}}", job(0, "-1"))).unwrap_err().to_string();
        assert!(error.contains("-1 samples, expected a finite number above 0"), "{error}");
    }
}
