//! The capabilities and quotas of services, which are data: declared by the services, not fields of the manifest.
//!
//! ```text
//!   OF_NODE, OF_NETWORK: contracts of the node ──┐
//!   [service], manifests of other services ──────┴──> declarations ──> OfService: a value and its declaration
//! ```
//!
//! In: the tables `[capabilities]`, `[quotas]` and `[service]`. Out: validated values. A name that no known service
//! declares is kept without a declaration until `resolve` finds the service that declares it. This module grants
//! nothing.

use std::collections::BTreeMap;

use contract::{Capability, Quota, Service, Takes, service_of};
use serde::{Deserialize, Serialize, Serializer};

use super::AppName;
use super::amounts::Amount;
use super::asks::{Requestable, Visit};
use super::bounds::{Names, listed};
use crate::toml_text::{nearest, slips};

/// The services that each node may need for itself and its apps: one line for each.
static OF_NODE: [Service; 4] = [
    audit_contract::DECLARATION,
    resource_contract::DECLARATION,
    security_contract::DECLARATION,
    store_contract::DECLARATION,
];

/// The services of the network view, which a node runs if it has `[network]`: one line for each.
pub static OF_NETWORK: &[Service] = &[
    discovery_contract::DECLARATION,
    flows_contract::DECLARATION,
    hosts_contract::DECLARATION,
    labels_contract::DECLARATION,
    northbound_contract::DECLARATION,
    paths_contract::DECLARATION,
];

/// A service of the network whose tables apps can also read in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedTable {
    /// The service's name.
    pub service: &'static str,
    /// The capabilities that an app needs to read it there: all of them.
    pub capabilities: &'static [&'static str],
    /// Its size in bytes, unless the operator writes another.
    pub bytes: usize,
}

/// The services with a table in shared memory. A host is visible only with its port, so a reader of hosts needs both.
pub static SHARED: &[SharedTable] = &[
    // A thousand switches with their ports and links.
    SharedTable {
        service: discovery_contract::SERVICE,
        capabilities: &[discovery_contract::READ],
        bytes: 8 << 20,
    },
    // Some thirty thousand hosts.
    SharedTable {
        service: hosts_contract::SERVICE,
        capabilities: &[hosts_contract::READ, discovery_contract::READ],
        bytes: 16 << 20,
    },
];

/// All services that are compiled into the node.
pub fn built_in() -> impl Iterator<Item = &'static Service> {
    OF_NODE.iter().chain(OF_NETWORK)
}

/// Whether the node has a service with this name. No app can have it.
pub fn is_built_in(name: &str) -> bool {
    built_in().any(|service| service.name == name)
}

/// The first part of names that belong to the node itself. They are refused with a reason.
const SYSTEM: &str = "system";

/// The maximum number of capabilities, and of quotas, that one service declares.
pub const DECLARED_MAX: usize = 32;

/// The value of a capability or quota of a service, with its declaration.
#[derive(Clone, Debug)]
pub struct OfService<T, D> {
    /// What was written.
    pub value: T,
    /// The declaration. `None` until [`resolve`], if the service is not built in.
    declared: Option<D>,
}

impl<T: PartialEq, D> PartialEq for OfService<T, D> {
    /// The declaration follows from the name.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Serialize, D> Serialize for OfService<T, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// The capabilities of services that an app has, by name.
pub type ServiceCapabilities = BTreeMap<String, OfService<Names, Capability>>;

/// The quotas of services that an app has, by name.
pub type ServiceQuotas = BTreeMap<String, OfService<Amount, Quota>>;

/// A declaration of a service: [`Capability`] or [`Quota`].
pub(super) trait Declaration: Clone + 'static {
    /// What is written in a table for it.
    type Value: for<'de> Deserialize<'de> + Clone;
    /// All of one service.
    fn of(service: &Service) -> &[Self];
    /// Its name.
    fn name(&self) -> &str;
    /// What is wrong with this value, if something is.
    fn flaw(&self, value: &Self::Value) -> Option<String>;
}

impl Declaration for Capability {
    type Value = Names;

    fn of(service: &Service) -> &[Capability] {
        &service.capabilities
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn flaw(&self, value: &Names) -> Option<String> {
        let is_list = matches!(value, Names::Only(_));
        (is_list && self.takes == Takes::Flag).then(|| format!("{} takes no list: write true", self.name))
    }
}

impl Declaration for Quota {
    type Value = Amount;

    fn of(service: &Service) -> &[Quota] {
        &service.quotas
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn flaw(&self, _: &Amount) -> Option<String> {
        None
    }
}

fn declared<'s, D: Declaration>(services: impl IntoIterator<Item = &'s Service>, name: &str) -> Option<D> {
    services.into_iter().flat_map(D::of).find(|one| one.name() == name).cloned()
}

/// All names of built-in services that a table may have.
pub(super) fn built_in_names<D: Declaration>() -> Vec<&'static str> {
    built_in().flat_map(D::of).map(D::name).collect()
}

/// The capabilities that only services of the node hold.
pub(super) fn reserved_names() -> Vec<String> {
    built_in().map(|service| format!("{SYSTEM}.{}", service.name)).collect()
}

/// Whether this can be the name of a capability or quota of a service that is not built in. A name whose first part
/// is that of a known name, or nearly so, is a typing error.
pub(super) fn may_be_declared_elsewhere(name: &str, known: &[&str]) -> bool {
    let Some((service, rest)) = name.split_once('.') else { return false };
    let is_known = |one: &&str| slips(service, service_of(one)) <= 1;
    AppName::try_from(service.to_owned()).is_ok()
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && service != SYSTEM
        && !known.iter().any(is_known)
}

/// Makes an entry of a table. Its declaration is known if its service is built in.
///
/// # Errors
/// The value has not the form that the service declares.
pub(super) fn entry<D: Declaration>(name: &str, value: D::Value) -> Result<OfService<D::Value, D>, String> {
    let declared: Option<D> = declared(built_in(), name);
    match declared.as_ref().and_then(|it| it.flaw(&value)) {
        Some(flaw) => Err(flaw),
        None => Ok(OfService { value, declared }),
    }
}

/// Gives each entry its declaration.
///
/// # Errors
/// No service declares the name, or the value has another form than the service declares.
pub(super) fn resolve<D: Declaration>(
    entries: &mut BTreeMap<String, OfService<D::Value, D>>,
    services: &[Service],
) -> Result<(), String> {
    for (name, entry) in entries.iter_mut().filter(|(_, entry)| entry.declared.is_none()) {
        let found: D = declared(services, name).ok_or_else(|| unknown::<D>(name, services))?;
        if let Some(flaw) = found.flaw(&entry.value) {
            return Err(flaw);
        }
        entry.declared = Some(found);
    }
    Ok(())
}

fn unknown<D: Declaration>(name: &str, services: &[Service]) -> String {
    let service = service_of(name);
    let of_apps = services.iter().flat_map(D::of);
    let all: Vec<&str> = of_apps.map(D::name).chain(built_in_names::<D>()).collect();
    match nearest(name, &all) {
        Some(near) => format!("no service declares `{name}`: did you mean `{near}`?"),
        None if services.iter().any(|one| one.name == service) => {
            format!("the service {service} does not declare `{name}`")
        }
        None => format!("`{name}` needs the service {service}, which is not installed: install it first"),
    }
}

/// Passes each entry of two tables to a visitor, by name.
pub(super) fn visit<D: Declaration>(
    prefix: &str,
    now: &BTreeMap<String, OfService<D::Value, D>>,
    before: &BTreeMap<String, OfService<D::Value, D>>,
    visitor: &mut impl Visit,
) where
    OfService<D::Value, D>: Requestable,
{
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    for name in now.keys().chain(gone) {
        let (now, before) = (now.get(name).cloned(), before.get(name).cloned());
        visitor.visit(&format!("{prefix}{name}"), &now, &before);
    }
}

/// Only the entries whose names `kept` accepts.
pub(super) fn only<T: Clone, D: Clone>(
    prefix: &str,
    entries: &BTreeMap<String, OfService<T, D>>,
    kept: &impl Fn(&str) -> bool,
) -> BTreeMap<String, OfService<T, D>> {
    let kept = entries.iter().filter(|(name, _)| kept(&format!("{prefix}{name}")));
    kept.map(|(name, entry)| (name.clone(), entry.clone())).collect()
}

impl Requestable for OfService<Names, Capability> {
    fn words(&self, name: &str) -> String {
        let only = match &self.value {
            Names::All => None,
            Names::Only(names) => Some(listed(names)),
        };
        match (&self.declared, only) {
            (Some(it), Some(only)) => format!("{} {only}", it.permits_only.as_ref().unwrap_or(&it.permits)),
            (Some(it), None) => it.permits.clone().into_owned(),
            (None, only) => {
                let only = only.map(|only| format!(" for {only}")).unwrap_or_default();
                format!("use what the service {} calls {name}{only}", service_of(name))
            }
        }
    }

    fn lies_within(&self, wider: &Self) -> bool {
        match self.declared.as_ref().map(|it| it.takes) {
            Some(Takes::Prefixes) => self.value.lie_within_as_prefixes(&wider.value),
            _ => self.value.lie_within(&wider.value),
        }
    }

    fn danger(&self, _: &str) -> Option<&str> {
        self.declared.as_ref()?.danger.as_deref()
    }
}

impl Requestable for OfService<Amount, Quota> {
    fn words(&self, name: &str) -> String {
        let counts = self.declared.as_ref().map_or(name, |it| it.counts.as_ref());
        self.value.words_with(counts)
    }

    fn lies_within(&self, wider: &Self) -> bool {
        self.value.lies_within(&wider.value)
    }

    fn without(&self) -> Option<String> {
        self.value.without()
    }
}

/// The table `[service]`: what an app declares that is a service for other apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceTable {
    /// Its capabilities by name.
    capabilities: BTreeMap<String, CapabilityTable>,
    /// Its quotas by name.
    quotas: BTreeMap<String, QuotaTable>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilityTable {
    #[serde(default)]
    takes: Form,
    #[serde(deserialize_with = "super::line")]
    permits: String,
    permits_only: Option<Phrase>,
    danger: Option<Phrase>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Flag,
    Names,
    Prefixes,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaTable {
    #[serde(deserialize_with = "super::line")]
    counts: String,
    default: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
struct Phrase(#[serde(deserialize_with = "super::line")] String);

impl ServiceTable {
    /// The declaration of the app with this name.
    ///
    /// # Errors
    /// A declared name does not begin with the service's name, or can be confused with a name of the node.
    pub fn declare(&self, app: &AppName, known: &[&str]) -> Result<Service, String> {
        for name in self.capabilities.keys().chain(self.quotas.keys()) {
            if service_of(name) != app.as_str() || !may_be_declared_elsewhere(name, known) {
                return Err(format!(
                    "the service {app} cannot declare `{name}`: write a name that begins with \"{app}.\" and is unlike the node's own"
                ));
            }
        }
        if self.capabilities.len() > DECLARED_MAX || self.quotas.len() > DECLARED_MAX {
            return Err(format!("a service declares at most {DECLARED_MAX} capabilities and as many quotas"));
        }
        let capability = |(name, it): (&String, &CapabilityTable)| Capability {
            name: name.clone().into(),
            takes: match it.takes {
                Form::Flag => Takes::Flag,
                Form::Names => Takes::Names,
                Form::Prefixes => Takes::Prefixes,
            },
            permits: it.permits.clone().into(),
            permits_only: it.permits_only.clone().map(|Phrase(text)| text.into()),
            danger: it.danger.clone().map(|Phrase(text)| text.into()),
        };
        let quota = |(name, it): (&String, &QuotaTable)| Quota {
            name: name.clone().into(),
            counts: it.counts.clone().into(),
            default: it.default,
            reported_for: None,
        };
        Ok(Service {
            name: app.to_string().into(),
            capabilities: self.capabilities.iter().map(capability).collect(),
            quotas: self.quotas.iter().map(quota).collect(),
            why_missing: None,
        })
    }
}

/// The built-in service that declares this capability.
pub(super) fn declares(capability: &str) -> Option<&'static str> {
    let of = |service: &&Service| service.capabilities.iter().any(|it| it.name == capability);
    built_in().find(of).map(|service| service.name.as_ref())
}
