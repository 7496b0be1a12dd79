//! The services of a node, as their declarations: what each app holds of them, and why one is missing.
//!
//! In: grants with the words of the manifest, and the declarations of services. Out: the part of a grant for each
//! service, as bytes that only the service reads. This file names no service.

use crate::Config;
use contract::{Quota, Service};
use monitor_channel::PlanError;
use package::manifest::services::{built_in, is_built_in};

impl Config {
    /// The services that the node does not run, with the reason for apps that call them.
    pub fn missing_services(&self) -> Vec<(String, String)> {
        let missing = built_in().filter(|service| !self.has_service(&service.name));
        let why =
            |service: &Service| Some((service.name.to_string(), service.why_missing.as_ref()?.to_string()));
        missing.filter_map(why).collect()
    }
}

/// Refuses a name that no app may have: an invalid name, or the name of a service.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_app_name(name: &str) -> Result<(), PlanError> {
    monitor_channel::check_app_name(name)?;
    if is_built_in(name) {
        let why = "is the name of a service of the node; give the app another name";
        return Err(PlanError(format!("{name} {why}")));
    }
    Ok(())
}

/// The quotas whose use a built-in service reports to the monitor.
pub(crate) fn reported() -> impl Iterator<Item = &'static Quota> {
    built_in().flat_map(|service| service.quotas.iter()).filter(|quota| quota.reported_for.is_some())
}
