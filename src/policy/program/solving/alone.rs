//! What members alone on worker types get without a program being written.

use super::Solving;
use crate::decomposition::{self, PrimalDual, RaisedLevel, SoftConstraintsKept};
use crate::policy::program::strategy::{Strategy, Unfit};
use crate::program::{Sharing, Wanted};
use crate::solver::certificate::{Certificate, TOLERANCE};
use crate::solver::timing::Stopwatch;

impl Solving {
    /// Why decisions are found by programs over jobs, whatever the objective, if they are.
    pub(in crate::policy::program) fn unwritten(&self) -> Result<(), Unfit> {
        match self.asked() {
            _ if self.large.is_none() => Err(Unfit::Backend),
            _ if self.recorded.is_some() => Err(Unfit::Recorded),
            _ if self.written => Err(Unfit::Explained),
            Some(Strategy::Written | Strategy::Pairs) => Err(Unfit::NotAsked),
            _ => Ok(()),
        }
    }

    /// May decisions be found without programs over jobs?
    pub(in crate::policy::program) fn shares(&self) -> bool {
        self.unwritten().is_ok()
    }

    /// What members share, without a program; the answer is certified. Nothing if prices do not settle, which is no
    /// fallback.
    pub(in crate::policy::program) fn share(
        &mut self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        n_columns: usize,
    ) -> Option<(PrimalDual, Certificate)> {
        let clock = Stopwatch::start();
        // (gone if nothing comes of the search)
        let near = self.warm.as_mut().map(|warm| std::mem::take(&mut warm[goal(wanted)])).unwrap_or_default();
        let shared = decomposition::solve(sharing, wanted, &near, &self.limits);
        self.report.seconds.solve += clock.elapsed().as_secs_f64();
        let (shares, near) = shared?;
        let certificate = self.judged(sharing, wanted, &shares, n_columns)?;
        if let Some(warm) = &mut self.warm {
            warm[goal(wanted)] = near;
        }
        Some((shares, certificate))
    }

    /// A level raised above what members have, without a program; the answer is certified. `near`: prices of the level
    /// before. Nothing if prices do not settle, which is no fallback.
    pub(in crate::policy::program) fn climb(
        &mut self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        near: Vec<Vec<f64>>,
        n_columns: usize,
    ) -> Option<(RaisedLevel, Certificate)> {
        let clock = Stopwatch::start();
        let climbed = decomposition::raise_above(sharing, wanted, near, &self.limits);
        self.report.seconds.solve += clock.elapsed().as_secs_f64();
        let climbed = climbed?;
        let certificate = self.judged(sharing, wanted, &climbed.shares, n_columns)?;
        Some((climbed, certificate))
    }

    /// The certificate of what was found without a program, which is counted like one; nothing if it proves too little.
    fn judged(
        &mut self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        shares: &PrimalDual,
        n_columns: usize,
    ) -> Option<Certificate> {
        let clock = Stopwatch::start();
        let certificate = Certificate::of_jobs(sharing, wanted, shares);
        self.report.seconds.certify += clock.elapsed().as_secs_f64();
        if !certificate.optimal || !self.is_close(wanted, &certificate) {
            return None;
        }
        // (of the program that would have been written)
        let (n, k) = (sharing.instance().n_members(), sharing.instance().n_types());
        let size = match wanted {
            Wanted::Logarithms(_) => [n_columns + n, n + k, 2 * n_columns],
            // (a sum with the row that holds its optimum)
            Wanted::Worth { level, .. } if level <= 0.0 => [n_columns, n + k + 1, 3 * n_columns],
            Wanted::Level | Wanted::Above { .. } | Wanted::Worth { .. } => {
                [n_columns + 1, 2 * n + k, 3 * n_columns + n]
            }
        };
        self.count(size, shares.asked);
        Some(certificate)
    }

    /// Counts a search, as large as the program that was not written.
    fn count(&mut self, [columns, rows, terms]: [usize; 3], asked: u32) {
        let size = &mut self.report.size;
        // (what is left of one after a level is no other program)
        if terms >= size.terms {
            (size.columns, size.rows, size.terms) = (columns, rows, terms);
        }
        self.report.searches += 1;
        self.report.iterations += u64::from(asked);
    }

    /// Is a sum of logarithms as good as programs are solved? An error of a part of all weights is one of that part of
    /// throughputs; the sum may be next to nothing.
    fn is_close(&self, wanted: Wanted<'_>, certificate: &Certificate) -> bool {
        let Wanted::Logarithms(of) = wanted else { return true };
        let size = of.weight.iter().sum::<f64>().max(certificate.primal.abs());
        certificate.bound - certificate.primal <= self.limits.tolerance * size
    }

    /// Promises of members that share kept as far as workers go, those that are `due` in any case: `[members]`. Nothing if
    /// prices do not settle.
    pub(in crate::policy::program) fn keep_promises(
        &mut self,
        sharing: &Sharing<'_>,
        due: &[bool],
        n_columns: usize,
    ) -> Option<SoftConstraintsKept> {
        let clock = Stopwatch::start();
        let kept = decomposition::keep_soft_constraints(sharing, due, &self.limits);
        self.report.seconds.solve += clock.elapsed().as_secs_f64();
        let kept = kept?;
        let counted = kept.part.iter().zip(&sharing.instance().multiplicity);
        let counted: f64 = counted.map(|(part, jobs)| part * jobs).sum();
        let gap = kept.bound - counted;
        if gap.is_nan() || gap > TOLERANCE * counted {
            return None;
        }
        let (n, k) = (sharing.instance().n_members(), sharing.instance().n_types());
        self.count([n_columns + n, 2 * n + k, 3 * n_columns + n], kept.asked);
        Some(kept)
    }
}

/// The position of a search's prices among those of other goals: a level, a linear sum, logarithms.
fn goal(wanted: Wanted<'_>) -> usize {
    match wanted {
        Wanted::Level | Wanted::Above { .. } => 0,
        Wanted::Worth { .. } => 1,
        Wanted::Logarithms(_) => 2,
    }
}
