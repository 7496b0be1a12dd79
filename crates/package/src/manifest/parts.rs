//! The part of a grant that each service receives with a call.
//!
//! In: capabilities and quotas with the words of a manifest. Out: one [`contract::Part`] for each service. It grants nothing.

use std::collections::BTreeMap;

use contract::{Part, Permitted, service_of};

use super::Capabilities;
use super::bounds::Names;
use super::services::{OfService, ServiceQuotas, built_in, declares};

/// The part for each service of which a capability is held, by the service's name. A capability that the kernel enforces is also in
/// the part of the service that declares it.
pub fn parts(capabilities: &Capabilities, quotas: &ServiceQuotas) -> BTreeMap<String, Part> {
    let of_services = capabilities.services.iter().map(|(name, it)| (name.as_str(), &it.value));
    let shared = capabilities.wholes().into_iter().filter(|(name, held)| *held && declares(name).is_some());
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for (name, names) in of_services.chain(shared.map(|(name, _)| (name, &Names::All))) {
        let permitted = match names {
            Names::All => Permitted::All,
            Names::Only(names) => Permitted::Only(names.iter().cloned().collect()),
        };
        let service = declares(name).unwrap_or_else(|| service_of(name));
        let part = parts.entry(service.to_owned()).or_default();
        part.capabilities.insert(name.to_owned(), permitted);
    }
    for (name, OfService { value, .. }) in quotas {
        let declaring = built_in().find(|service| service.quotas.iter().any(|it| it.name == *name));
        let service = declaring.map_or(service_of(name), |service| &service.name);
        if let Some(part) = parts.get_mut(service) {
            part.quotas.insert(name.clone(), value.hard);
        }
    }
    parts
}
