//! The part of an app's grant that each service receives, encoded by the service's own contract.
//!
//! In: a grant with the words of the manifest. Out: bytes for the kernel, which passes them to the service with each
//! call. There is one line for each service. Only the contract knows what the bytes mean.

use crate::Config;
use crate::grant::AppGrant;
use package::manifest::bounds::Names;
use package::manifest::capabilities::StorePrefixes;
use store_contract::Prefixes;

/// The part of a grant that concerns one service. `None` if this grant does not allow calls to the service.
type Part = fn(&AppGrant) -> Option<Vec<u8>>;

/// The services that have their own capabilities.
pub const PARTS: &[(&str, Part)] = &[(store_contract::SERVICE, store)];

/// Services that a node may not run, and how an operator enables them.
const WHY_MISSING: &[(&str, &str)] = &[(
    store_contract::SERVICE,
    "this node keeps no store: name a state folder (--state DIR, or node.state in burnet.toml) and start the node again",
)];

impl Config {
    /// The services that the node does not run, with the reason for apps that call them.
    pub fn missing_services(&self) -> Vec<(String, String)> {
        let missing = WHY_MISSING.iter().filter(|(name, _)| !self.has_service(name));
        missing.map(|(name, why)| ((*name).to_owned(), (*why).to_owned())).collect()
    }
}

fn store(grant: &AppGrant) -> Option<Vec<u8>> {
    let (read, write) = (&grant.capabilities.store_read, &grant.capabilities.store_write);
    if read.is_none() && write.is_none() {
        return None;
    }
    let hard = grant.quotas.store_bytes.map(|amount| u32::try_from(amount.hard).unwrap_or(u32::MAX));
    let part = store_contract::Grant {
        read: prefixes(read),
        write: prefixes(write),
        hard_bytes: hard.unwrap_or(store_contract::BYTES_DEFAULT),
    };
    Some(part.to_bytes())
}

fn prefixes(written: &Option<StorePrefixes>) -> Prefixes {
    match written {
        None => Prefixes::Nothing,
        Some(StorePrefixes(Names::All)) => Prefixes::All,
        Some(StorePrefixes(Names::Only(prefixes))) => Prefixes::Only(prefixes.iter().cloned().collect()),
    }
}
