//! Throughputs by the spread of a job: for (job type, workers, servers), alone and beside one neighbour.
//!
//! The form in which DeepShare publishes its measurements (Ryu and Eo, ICPADS 2023): dense tables, no model.

/// Measured throughputs of jobs spread over servers.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadThroughputs {
    /// Names of job types.
    pub job_types: Vec<String>,
    /// Numbers of workers that jobs may need, ascending.
    pub workers: Vec<u32>,
    /// Samples that a job is to be trained on: [job type × number of workers].
    pub samples: Vec<f64>,
    /// Named workloads, and the share of each job type in them.
    pub mixes: Vec<(String, Vec<f64>)>,
    /// The measured configurations.
    pub configurations: Vec<SpreadConfiguration>,
    /// Fraction of the throughput alone that is retained: [configuration × its neighbour's configuration].
    pub retained: Vec<f64>,
}

/// A job type on a number of workers and servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadConfiguration {
    /// Position of the job type.
    pub job_type: usize,
    /// Workers in all, ≥ 1.
    pub workers: u32,
    /// Servers that the workers are on, 1 to `workers`.
    pub servers: u32,
    /// Samples/s alone, > 0.
    pub alone: f64,
}

impl SpreadThroughputs {
    /// The position of a configuration; none if it was not measured.
    pub fn position(&self, job_type: usize, workers: u32, servers: u32) -> Option<usize> {
        self.configurations
            .iter()
            .position(|one| one.job_type == job_type && one.workers == workers && one.servers == servers)
    }

    /// Samples that a job of this type and number of workers is to be trained on.
    pub fn samples_of(&self, job_type: usize, workers: u32) -> Option<f64> {
        let column = self.workers.iter().position(|other| *other == workers)?;
        self.samples.get(job_type * self.workers.len() + column).copied()
    }

    /// The fraction that a configuration retains beside another on a server that both use.
    pub fn retained(&self, configuration: usize, beside: usize) -> f64 {
        self.retained[configuration * self.configurations.len() + beside]
    }
}
