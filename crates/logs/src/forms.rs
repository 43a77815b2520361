//! The readers, one a form.

pub(crate) mod slurm_state;
pub(crate) mod cluster_log;
pub(crate) mod spot;
pub(crate) mod dlrm;
mod resources;
pub(crate) mod kueue;
pub(crate) mod log;
pub(crate) mod openb;
pub(crate) mod pai;
pub(crate) mod philly;
pub(crate) mod tres;
mod runs;
pub(crate) mod sacct;
pub(crate) mod scontrol;
