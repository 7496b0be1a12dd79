//! Whose a rule is, in words.
//!
//! In: a rule of a look, and the apps of the node. Out: its owner, and how it relates to what is wanted. It decides nothing.

use burnet_sdk::view::EntryState;
use flows_contract::SeenRule;
use std::collections::BTreeMap;

/// The cookie of the kernel's own rules.
const KERNELS_COOKIE: u64 = 0x6275_726e_6574;

/// The bits of a cookie behind the owner.
const COOKIE_BITS: u32 = 48;

/// The owner of the sets of intents, and the first part of their names. The number of the intent follows.
const PATHS: &str = "paths";
const INTENT: &str = "intent/";

/// Whose a rule is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The app, `kernel`, or `foreign`.
    pub name: String,
    /// The set that wants it.
    pub set: Option<String>,
    /// The intent behind the set.
    pub intent: Option<u64>,
    /// How it relates to what is wanted: `installed`, `pending`, `changed`, `orphan`, `unmanaged`, `foreign`.
    pub state: &'static str,
}

/// The number of the intent whose set this is.
pub fn intent_of(owner: &str, set: &str) -> Option<u64> {
    set.strip_prefix(INTENT).filter(|_| owner == PATHS)?.parse().ok()
}

/// Whose a rule is. `apps`: names by the numbers of zones.
pub fn owner(rule: &SeenRule, apps: &BTreeMap<u16, String>) -> Owner {
    let plain = |name: &str, state| Owner { name: name.to_owned(), set: None, intent: None, state };
    if let Some(claim) = &rule.wanted {
        let state = match (rule.is_own, claim.is_same, claim.state) {
            (false, _, _) => "foreign",
            (_, false, _) => "changed",
            (_, true, EntryState::Installed) => "installed",
            (_, true, _) => "pending",
        };
        let intent = intent_of(&claim.owner, &claim.set);
        return Owner { name: claim.owner.clone(), set: Some(claim.set.clone()), intent, state };
    }
    if rule.is_own {
        return plain("flows", "orphan");
    }
    if rule.cookie == KERNELS_COOKIE {
        return plain("kernel", "unmanaged");
    }
    let zone = u16::try_from(rule.cookie >> COOKIE_BITS).unwrap_or_default();
    match apps.get(&zone) {
        Some(app) => plain(app, "unmanaged"),
        None => plain("foreign", "foreign"),
    }
}

/// What an operator should know about a rule that is not simply installed.
pub fn remark(owner: &Owner) -> Option<String> {
    let set = owner.set.as_deref().unwrap_or_default();
    let wants = || match owner.intent {
        Some(intent) => format!("intent {intent}"),
        None => format!("set {set:?} of {}", owner.name),
    };
    match owner.state {
        "foreign" if owner.set.is_some() => {
            Some(format!("another controller added this rule in the place of a rule that {} wants", wants()))
        }
        "foreign" => Some("no app of this node added this rule".to_owned()),
        "changed" => Some(format!("{} wants other instructions here", wants())),
        "pending" => Some(format!("{} wants it, and the switch has not confirmed it yet", wants())),
        "orphan" => Some("no set wants this rule any more".to_owned()),
        _ => None,
    }
}
