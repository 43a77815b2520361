//! Rules for waiting and moving: when a rule makes a job wait, and when it moves a job.

use std::fmt;

use crate::dual_agent::cloud::Cloud;

/// The patience of `/patient` without a number.
pub const PATIENCE: f64 = 0.3;

/// The default factor by which a job must be faster elsewhere to move.
pub const WORTH_MOVING: f64 = 1.15;

/// Names of the options that may follow a rule's placement.
pub const WAITING_OPTIONS: [&str; 4] = ["patient", "expecting", "moving", "packing"];

/// A rule for waiting and moving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingRule {
    /// The least part of its best speed at which a job runs, while other jobs run, rather than wait; 0 = it runs wherever it can.
    pub patience: f64,
    /// The weight, from 0 to 1 and in logarithms, of the expected speed on the very servers in the speed that patience is compared
    /// with; at 0, servers of a type count as equal and empty.
    pub expecting: f64,
    /// The factor by which a job must be faster elsewhere to move.
    pub moving: f64,
    /// The part of its speed that a job gives up, where it goes anew, for servers on which 16 fewer workers stay free.
    pub packing: f64,
}

impl Default for WaitingRule {
    fn default() -> Self {
        Self { patience: 0.0, expecting: 0.0, moving: WORTH_MOVING, packing: 0.0 }
    }
}

impl WaitingRule {
    /// Splits options off the end of a text: (the text before them, the rule that they give). The options are `/patient` or
    /// `/patient=NUMBER`, `/expecting=NUMBER`, `/packing=NUMBER`, from 0 to 1, and `/moving=NUMBER`, from 1 to 10.
    ///
    /// # Errors
    /// If an option has no number or one out of its range; the error names the option.
    pub fn split_off(text: &str) -> Result<(&str, Self), String> {
        let mut waiting_rule = Self::default();
        let mut before = text;
        while let Some((rest, last)) = before.rsplit_once('/') {
            let (name, number) = match last.split_once('=') {
                Some((name, number)) => (name, number.parse::<f64>().ok()),
                None => (last, Some(PATIENCE).filter(|_| last == "patient")),
            };
            let (place, range) = match name {
                "patient" => (&mut waiting_rule.patience, 0.0..=1.0),
                "expecting" => (&mut waiting_rule.expecting, 0.0..=1.0),
                "moving" => (&mut waiting_rule.moving, 1.0..=10.0),
                "packing" => (&mut waiting_rule.packing, 0.0..=1.0),
                _ => break,
            };
            let fault = || {
                format!(
                    "`/{last}`, expected `/{name}=` and a number from {} to {}",
                    range.start(),
                    range.end()
                )
            };
            *place = number.filter(|number| range.contains(number)).ok_or_else(fault)?;
            before = rest;
        }
        Ok((before, waiting_rule))
    }

    /// The part of its best speed below which a job waits; 0 while no job runs, because then nothing is measured and no server
    /// would ever seem faster.
    pub fn least_speed(&self, cloud: &Cloud) -> f64 {
        if cloud.world().placed().is_empty() { 0.0 } else { self.patience }
    }
}

impl fmt::Display for WaitingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { patience, expecting, moving, packing } = *self;
        match patience {
            0.0 => {}
            PATIENCE => write!(f, "/patient")?,
            other => write!(f, "/patient={other}")?,
        }
        for (name, number, usual) in
            [("expecting", expecting, 0.0), ("moving", moving, WORTH_MOVING), ("packing", packing, 0.0)]
        {
            if number.total_cmp(&usual).is_ne() {
                write!(f, "/{name}={number}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_rules_are_read_as_they_are_shown() {
        for text in [
            "",
            "/patient",
            "/patient=0.5",
            "/patient=0.5/expecting=0.4/moving=1.02/packing=0.5",
            "/moving=2",
        ] {
            let name = format!("srtf/oracle{text}");
            let (before, waiting_rule) = WaitingRule::split_off(&name).unwrap();
            assert_eq!((before, waiting_rule.to_string().as_str()), ("srtf/oracle", text));
        }
        let (_, waiting_rule) = WaitingRule::split_off("fifo/patient=1/moving=1.5").unwrap();
        assert_eq!(waiting_rule, WaitingRule { patience: 1.0, moving: 1.5, ..WaitingRule::default() });
        for wrong in ["a/patient=2", "a/patient=", "a/expecting", "a/moving=0.5", "a/moving=x/patient"] {
            assert!(WaitingRule::split_off(wrong).is_err(), "{wrong}");
        }
        let error = WaitingRule::split_off("a/moving=0.5/patient").unwrap_err();
        assert_eq!(error, "`/moving=0.5`, expected `/moving=` and a number from 1 to 10");
    }
}
