//! Least squares for the [`network`](super::network) model.
//!
//!   minimise  Σ (β / (1 + c(a) h(b)) − measured)²  +  ridge · |p − prior|²
//!
//! over p = (logit c₂, ln h₂ per job type; logit β; γ₁…γ₄) by Levenberg–Marquardt from several random starts. Two
//! variants are fitted, with growth in servers and workers and without, and the one that predicts held-out pairs
//! better is kept.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::fit::{FitError, FitReport, FitSettings, Observation, Predict, Trial, logistic, uniform};
use super::levenberg_marquardt::{Prior, Residuals, Visitor, minimize};
use super::network::{Configuration, Growth, MeasuredRow, NetworkModel, Traffic, doublings};

/// Fits traffic to a table of measured pairs of configurations, and judges it on held-out pairs. The model keeps
/// the table.
///
/// Configurations on one server are not observations.
///
/// # Errors
/// If the settings are out of range or too few pairs are measured.
///
/// # Panics
/// If a row of the table does not have one value per row.
pub fn fit_network(
    measured: Vec<MeasuredRow>,
    workers_per_server: u32,
    settings: &FitSettings,
) -> Result<(NetworkModel, FitReport), FitError> {
    let mut names: Vec<String> = Vec::new();
    let mut sites = Vec::new();
    for row in &measured {
        let known = names.iter().position(|name| *name == row.job.job_type);
        let job_type = known.unwrap_or_else(|| {
            names.push(row.job.job_type.clone());
            names.len() - 1
        });
        sites.push(Site { job_type, doublings: doublings(row.job.workers, row.job.servers) });
    }
    let observations = observations(&measured);
    let worker_types = ["all".to_owned()];
    let trial = Trial::new(&observations, &worker_types, settings)?;
    let variants = [
        ("network, traffic grows with servers and workers", true),
        ("network, traffic of a job type is the same at every size", false),
    ];
    let fit = |grows: bool| {
        let (sites, n_job_types) = (sites.clone(), names.len());
        move |seen: &[Observation]| Fitted::to(Layout { n_job_types, grows }, sites.clone(), seen, settings)
    };
    let candidates = variants.into_iter().map(|(name, grows)| trial.try_out(name, fit(grows))).collect();
    let (fitted, report) = trial.choose(candidates);
    let model = fitted.into_model(&names, workers_per_server, measured);
    Ok((model, report))
}

fn observations(measured: &[MeasuredRow]) -> Vec<Observation> {
    let spread = |job: &Configuration| job.servers > 1;
    let mut observations = Vec::new();
    for (job, row) in measured.iter().enumerate().filter(|(_, row)| spread(&row.job)) {
        assert_eq!(row.beside.len(), measured.len(), "a row has one value per row");
        for (other, retained) in
            row.beside.iter().enumerate().filter(|(other, _)| spread(&measured[*other].job))
        {
            if let Some(retained) = *retained {
                observations.push(Observation { worker_type: 0, job, other, retained });
            }
        }
    }
    observations
}

/// A configuration in the fit.
#[derive(Clone, Copy, Debug)]
struct Site {
    job_type: usize,
    /// The pair (ln(S/2), ln(W/2)).
    doublings: (f64, f64),
}

/// The positions of the quantities in the parameters: logit c₂ [job type], ln h₂ [job type], logit β, γ₁…γ₄.
#[derive(Clone, Copy, Debug)]
struct Layout {
    n_job_types: usize,
    grows: bool,
}

/// The strength of the prior: a parameter one unit from its prior costs as much as one measurement missed by 0.03.
const RIDGE: f64 = 1e-3;
/// The prior of logit β: β = 0.95 in the absence of evidence.
const EFFICIENCY_PRIOR: f64 = 3.0;

impl Layout {
    fn efficiency(self) -> usize {
        2 * self.n_job_types
    }

    fn growth(self) -> usize {
        2 * self.n_job_types + 1
    }

    /// The logit of c of a configuration.
    fn communication(self, parameters: &[f64], site: Site) -> f64 {
        let growth = &parameters[self.growth()..];
        parameters[site.job_type] + growth[0] * site.doublings.0 + growth[1] * site.doublings.1
    }

    /// The logarithm of h of a configuration.
    fn flows(self, parameters: &[f64], site: Site) -> f64 {
        let growth = &parameters[self.growth()..];
        parameters[self.n_job_types + site.job_type]
            + growth[2] * site.doublings.0
            + growth[3] * site.doublings.1
    }
}

struct Fitted {
    layout: Layout,
    sites: Vec<Site>,
    parameters: Vec<f64>,
}

impl Fitted {
    fn to(layout: Layout, sites: Vec<Site>, observations: &[Observation], settings: &FitSettings) -> Self {
        let mut center = vec![0.0; layout.growth() + 4];
        center[layout.efficiency()] = EFFICIENCY_PRIOR;
        let prior = Prior { center, ridge: RIDGE };
        let residuals = NetworkResiduals { layout, sites: &sites, observations };
        let mut generator = Pcg64::seed_from_u64(settings.seed);
        let mut best: Option<(f64, Vec<f64>)> = None;
        for _ in 0..settings.starts {
            let mut start = prior.center.clone();
            for parameter in &mut start[..2 * layout.n_job_types] {
                *parameter = uniform(&mut generator, -1.0, 1.0);
            }
            let found = minimize(&residuals, &prior, start);
            if best.as_ref().is_none_or(|(cost, _)| found.cost < *cost) {
                best = Some((found.cost, found.parameters));
            }
        }
        let parameters = best.map_or(prior.center, |(_, parameters)| parameters);
        Self { layout, sites, parameters }
    }

    fn into_model(
        self,
        names: &[String],
        workers_per_server: u32,
        measured: Vec<MeasuredRow>,
    ) -> NetworkModel {
        let p = &self.parameters;
        let growth = &p[self.layout.growth()..];
        // The bounds keep it away from 0 and 1, where the odds are not finite.
        let communication = |job: usize| logistic(p[job]).clamp(1e-12, 1.0 - 1e-12);
        let traffic =
            |job: usize| Traffic { communication: communication(job), flows: p[names.len() + job].exp() };
        NetworkModel {
            workers_per_server,
            efficiency: logistic(p[self.layout.efficiency()]),
            job_types: names.iter().enumerate().map(|(job, name)| (name.clone(), traffic(job))).collect(),
            growth: Growth {
                communication_servers: growth[0],
                communication_workers: growth[1],
                flows_servers: growth[2],
                flows_workers: growth[3],
            },
            measured,
            measured_sets: Vec::new(),
        }
    }
}

impl Predict for Fitted {
    fn predict(&self, o: &Observation) -> f64 {
        let (layout, p) = (self.layout, &self.parameters);
        let communication = logistic(layout.communication(p, self.sites[o.job]));
        let flows = layout.flows(p, self.sites[o.other]).exp();
        logistic(p[layout.efficiency()]) / (1.0 + communication * flows)
    }
}

struct NetworkResiduals<'a> {
    layout: Layout,
    sites: &'a [Site],
    observations: &'a [Observation],
}

impl Residuals for NetworkResiduals<'_> {
    fn each(&self, p: &[f64], visit: &mut Visitor<'_>) {
        let layout = self.layout;
        let (at, growth) = (layout.efficiency(), layout.growth());
        let efficiency = logistic(p[at]);
        for o in self.observations {
            let (job, other) = (self.sites[o.job], self.sites[o.other]);
            let communication = logistic(layout.communication(p, job));
            let delay = communication * layout.flows(p, other).exp();
            let kept = efficiency / (1.0 + delay);
            // This is d kept / d ln delay.
            let by_delay = -kept * delay / (1.0 + delay);
            let by_communication = by_delay * (1.0 - communication);
            let slopes = [
                (at, kept * (1.0 - efficiency)),
                (job.job_type, by_communication),
                (layout.n_job_types + other.job_type, by_delay),
                (growth, by_communication * job.doublings.0),
                (growth + 1, by_communication * job.doublings.1),
                (growth + 2, by_delay * other.doublings.0),
                (growth + 3, by_delay * other.doublings.1),
            ];
            visit(kept - o.retained, if layout.grows { &slopes } else { &slopes[..3] });
        }
    }
}
