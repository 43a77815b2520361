//! Throughputs of elastic jobs: samples/s by numbers of parameter servers and workers, measured at some of them.
//!
//! The surface through the measurements is the linear radial basis function
//!
//!   f(x) = Σ_i w_i ‖x − x_i‖          f(x_i) = the speed measured at x_i = (parameter servers, workers)
//!
//! as in DL2 (Peng et al., arXiv 1909.06040). Outside the convex hull of the measurements it bends upwards, which is no property of
//! any job: there the nearest measurement is used, unless the surface is asked for.

use nalgebra::{DMatrix, DVector};

use crate::throughput::ThroughputsError;

/// Measurements of elastic jobs, and the published arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticThroughputs {
    /// The job types.
    pub job_types: Vec<ElasticJobType>,
    /// The number of jobs that arrive in each slot, for each largest number.
    pub arrivals: Vec<(u32, Vec<u32>)>,
}

/// A job type.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticJobType {
    /// Its name.
    pub name: String,
    /// Samples in a step, all workers together.
    pub batch: u32,
    /// Samples in an epoch.
    pub samples_per_epoch: f64,
    /// Epochs to train, as a share of the longest job's.
    pub epochs_share: f64,
    /// Processor and accelerator slots of a worker.
    pub worker: [u16; 2],
    /// Processor and accelerator slots of a parameter server.
    pub parameter_server: [u16; 2],
    /// Size of the model, megabytes.
    pub parameters_mb: f64,
    /// Seconds of computation in a step.
    pub compute_s: f64,
    /// Bandwidth between servers, megabytes/s.
    pub between_servers_mb_per_s: f64,
    /// Bandwidth within a server, megabytes/s.
    pub within_server_mb_per_s: f64,
    /// Measured throughputs; 0 = the run failed.
    pub measured: Vec<SpeedPoint>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedPoint {
    /// Parameter servers, ≥ 1.
    pub parameter_servers: u32,
    /// Workers, ≥ 1.
    pub workers: u32,
    /// Samples/s of all workers together.
    pub samples_per_s: f64,
}

/// The value outside of the measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extrapolation {
    /// The nearest measurement, ties to the one listed first.
    #[default]
    Clamp,
    /// The surface, as published.
    Rbf,
}

/// The options of a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurfaceOptions {
    /// The value outside of the measurements.
    pub outside: Extrapolation,
    /// Whether failed runs are throughputs of 0 on the surface, as published; otherwise they are left out.
    pub keeps_failed: bool,
}

impl SurfaceOptions {
    /// The published options.
    pub const PUBLISHED: Self = Self { outside: Extrapolation::Rbf, keeps_failed: true };

    /// The intended options.
    pub const CORRECTED: Self = Self { outside: Extrapolation::Clamp, keeps_failed: false };
}

/// Throughputs at every number of tasks from 1 to a most.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeedSurface {
    most: usize,
    /// Samples/s: [parameter servers − 1 × workers − 1].
    samples_per_s: Vec<f64>,
}

impl SpeedSurface {
    /// The surface through the points, at up to `most` tasks of each role. Throughputs are at least 0.
    ///
    /// # Errors
    /// If two points are at the same place, or there is no point.
    pub fn fit(
        points: &[SpeedPoint],
        most: usize,
        options: SurfaceOptions,
    ) -> Result<Self, ThroughputsError> {
        let points: Vec<SpeedPoint> = points
            .iter()
            .copied()
            .filter(|point| options.keeps_failed || point.samples_per_s > 0.0)
            .collect();
        let n = points.len();
        if n == 0 {
            return Err(ThroughputsError::Surface { n });
        }
        let places: Vec<(f64, f64)> = points
            .iter()
            .map(|point| (f64::from(point.parameter_servers), f64::from(point.workers)))
            .collect();
        let distance = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).hypot(one.1 - other.1);
        let distances = DMatrix::from_fn(n, n, |row, column| distance(places[row], places[column]));
        let speeds = DVector::from_iterator(n, points.iter().map(|point| point.samples_per_s));
        let weights = distances.lu().solve(&speeds).ok_or(ThroughputsError::Surface { n })?;
        let hull = convex_hull(&points);
        let mut samples_per_s = Vec::with_capacity(most * most);
        for parameter_servers in 1..=most {
            for workers in 1..=most {
                let place = (parameter_servers as f64, workers as f64);
                let speed = if options.outside == Extrapolation::Rbf || is_inside(&hull, place) {
                    places
                        .iter()
                        .zip(weights.iter())
                        .map(|(other, weight)| weight * distance(*other, place))
                        .sum()
                } else {
                    let nearer = |one: &usize, other: &usize| {
                        distance(places[*one], place).total_cmp(&distance(places[*other], place))
                    };
                    (0..n).min_by(nearer).map_or(0.0, |nearest| points[nearest].samples_per_s)
                };
                samples_per_s.push(f64::max(speed, 0.0));
            }
        }
        Ok(Self { most, samples_per_s })
    }

    /// Samples/s of these numbers of tasks; 0 if one is 0, or above the most.
    pub fn samples_per_s(&self, parameter_servers: usize, workers: usize) -> f64 {
        let inside = 1..=self.most;
        if inside.contains(&parameter_servers) && inside.contains(&workers) {
            self.samples_per_s[(parameter_servers - 1) * self.most + workers - 1]
        } else {
            0.0
        }
    }
}

/// The corners (parameter servers, workers) of the convex hull, counter-clockwise, by Andrew's monotone chain.
fn convex_hull(points: &[SpeedPoint]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> =
        points.iter().map(|point| (f64::from(point.parameter_servers), f64::from(point.workers))).collect();
    sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for pass in 0..2 {
        let start = hull.len();
        for &point in &sorted {
            while hull.len() >= start + 2 && turn(hull[hull.len() - 2], hull[hull.len() - 1], point) <= 0.0 {
                hull.pop();
            }
            hull.push(point);
        }
        hull.pop();
        if pass == 0 {
            sorted.reverse();
        }
    }
    hull
}

/// Twice the area of the triangle, positive if it turns left.
fn turn(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

fn is_inside(hull: &[(f64, f64)], place: (f64, f64)) -> bool {
    (0..hull.len()).all(|corner| turn(hull[corner], hull[(corner + 1) % hull.len()], place) >= 0.0)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "what is read or copied is compared exactly")]
mod tests {
    use super::*;

    fn point(parameter_servers: u32, workers: u32, samples_per_s: f64) -> SpeedPoint {
        SpeedPoint { parameter_servers, workers, samples_per_s }
    }

    #[test]
    fn a_surface_goes_through_its_points_and_keeps_its_edge() {
        let points =
            [point(1, 1, 10.0), point(1, 5, 6.0), point(5, 1, 30.0), point(3, 3, 0.0), point(2, 2, 12.0)];
        let clamped = SpeedSurface::fit(&points, 8, SurfaceOptions::CORRECTED).unwrap();
        for point in points.iter().filter(|point| point.samples_per_s > 0.0) {
            let found = clamped.samples_per_s(point.parameter_servers as usize, point.workers as usize);
            assert!((found - point.samples_per_s).abs() < 1e-9, "{point:?}: {found}");
        }
        // (3, 3) failed: it is on the edge from (1, 5) to (5, 1), and interpolated.
        assert!(clamped.samples_per_s(3, 3) > 6.0);
        assert_eq!(clamped.samples_per_s(8, 1), 30.0);
        assert_eq!(clamped.samples_per_s(0, 1), 0.0);
        let rbf = SurfaceOptions { outside: Extrapolation::Rbf, keeps_failed: false };
        let surface = SpeedSurface::fit(&points, 8, rbf).unwrap();
        assert_eq!(surface.samples_per_s(3, 3), clamped.samples_per_s(3, 3));
        assert_ne!(surface.samples_per_s(8, 1), 30.0);
        let released = SpeedSurface::fit(&points, 8, SurfaceOptions::PUBLISHED).unwrap();
        assert!(released.samples_per_s(3, 3) < 1e-9);
    }

    #[test]
    fn two_points_by_hand() {
        // Two weights a, b at distance 2: f(1,1) = 2b = 4, f(3,1) = 2a = 6; halfway a + b = 5.
        let surface =
            SpeedSurface::fit(&[point(1, 1, 4.0), point(3, 1, 6.0)], 3, SurfaceOptions::PUBLISHED).unwrap();
        assert!((surface.samples_per_s(2, 1) - 5.0).abs() < 1e-12);
        assert!(SpeedSurface::fit(&[], 3, SurfaceOptions::PUBLISHED).is_err());
    }
}
