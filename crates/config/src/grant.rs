//! An app's grant, on its way from the configuration to the kernel.
//!
//! ```text
//!   [app.NAME.capabilities], a package ──> AppGrant ──JSON, by the monitor──> kernel process ──> kernel::Grant
//! ```
//!
//! In: what was written. Out: the same in the kernel's types. It adds nothing: what is not written is not granted.

use crate::services;
use flow::PortNo;
use kernel::{Bounds, Capability, Grant, Quota, SwitchBounds, VendorParts, Vendors};
use package::manifest::amounts::Amount;
use package::manifest::bounds::{Flowspace, Names};
use package::manifest::switches::Scope;
use package::manifest::{Capabilities, Needs, Quotas};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use zone::{Limits, Sandbox};

/// A soft limit that is not written is this percentage of the hard limit.
const SOFT_PERCENT: u64 = 80;

/// Where an app's capabilities come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GrantedBy {
    /// The operator's `[app.NAME.capabilities]`.
    #[default]
    Configuration,
    /// The manifest in the binary, of a built-in app.
    BuiltIn,
    /// The package. The operator granted some or all of its requests.
    Package,
    /// The manifest with this path.
    Manifest(PathBuf),
    /// The block in the comments of this program.
    Comments(PathBuf),
    /// `--grant-all`, because no other source exists.
    GrantAll,
}

impl fmt::Display for GrantedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantedBy::Configuration => f.write_str("the configuration"),
            GrantedBy::BuiltIn => f.write_str("its built-in manifest"),
            GrantedBy::Package => f.write_str("its package"),
            GrantedBy::Manifest(path) => write!(f, "{}", path.display()),
            GrantedBy::Comments(path) => write!(f, "the comments of {}", path.display()),
            GrantedBy::GrantAll => f.write_str("--grant-all"),
        }
    }
}

/// An app's grant, with the words of manifest and configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppGrant {
    /// What the app may do.
    pub capabilities: Capabilities,
    /// How much the app may do.
    pub quotas: Quotas,
    /// The app's place in the operator's order. `None`: after all apps that have a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u16>,
}

impl AppGrant {
    /// The form in which `monitor_channel::AppSpec` carries it.
    pub fn to_json(&self) -> Value {
        // A map of text keys and numbers, which JSON can always represent.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads the result of [`Self::to_json`]. Null means an app that may do nothing.
    ///
    /// # Errors
    /// A sentence for the log. It means that both ends of this node differ.
    pub fn read(json: Value) -> Result<AppGrant, String> {
        if json.is_null() {
            return Ok(AppGrant::default());
        }
        serde_json::from_value(json).map_err(|error| format!("its grant cannot be read: {error}"))
    }

    /// As JSON with the words of a manifest, for people who read the records.
    pub fn in_words(&self) -> String {
        let said = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        let capabilities = said(serde_json::to_string(&self.capabilities));
        let quotas = match self.quotas == Quotas::default() {
            true => String::new(),
            false => format!(", quotas {}", said(serde_json::to_string(&self.quotas))),
        };
        format!("{capabilities}{quotas}")
    }

    /// The whole grant in one line, with the sandbox's grants.
    pub fn summary(&self, sandbox: &Sandbox) -> String {
        let needs = Needs {
            capabilities: self.capabilities.clone(),
            quotas: self.quotas.clone(),
            ..Needs::default()
        };
        let paths = |name: &str, paths: &[PathBuf]| {
            let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            (!shown.is_empty()).then(|| format!(", {name} {}", shown.join(" ")))
        };
        let places: Vec<String> = sandbox.net.connect.iter().map(ToString::to_string).collect();
        let listens: Vec<String> = sandbox.net.listen.iter().map(ToString::to_string).collect();
        let machine = [
            paths("fs.read", &sandbox.fs.read),
            paths("fs.write", &sandbox.fs.write),
            (!places.is_empty()).then(|| format!(", net.connect {}", places.join(" "))),
            (!listens.is_empty()).then(|| format!(", net.listen {}", listens.join(" "))),
            sandbox.spawn.then(|| ", spawn".to_owned()),
        ];
        machine.into_iter().flatten().fold(needs.summary(), |all, one| all + &one)
    }

    /// The same in the kernel's types.
    pub fn to_kernel(&self) -> Grant {
        let grant = granted(&self.capabilities);
        let grant = self.rank.into_iter().fold(grant, Grant::with_rank);
        let grant = self.with_services(grant);
        grant.with_quotas(kernel::Quotas {
            commands_per_s: self.quotas.commands_per_s.map(quota),
            packet_outs_per_s: self.quotas.packet_outs_per_s.map(quota),
            packet_out_bytes_per_s: self.quotas.packet_out_bytes_per_s.map(quota),
            copies_per_switch_per_s: self.quotas.copies_per_switch_per_s.map(quota),
            packet_ins_caused_per_s: self.quotas.packet_ins_caused_per_s.map(quota),
            stats_per_s: self.quotas.stats_per_s.map(quota),
            rules_per_datapath: rules_per_datapath(&self.capabilities),
        })
    }

    /// With what each service is told of it.
    fn with_services(&self, grant: Grant) -> Grant {
        let parts = package::manifest::parts(&self.capabilities, &self.quotas.services);
        parts.into_iter().fold(grant, |grant, (service, part)| grant.with_service(&service, part.to_bytes()))
    }

    /// Sets the limits of what the app keeps in the store.
    pub fn limit_store(&self, limits: &mut Limits) {
        let share = self.store_bytes();
        (limits.store_bytes, limits.soft.store_bytes) = (share.map(|it| it.hard), share.map(|it| it.soft));
    }

    /// The limit of what the app keeps in the store, if it may write there. It is the only use that a service reports.
    pub fn store_bytes(&self) -> Option<Quota> {
        let holds = |name: &str| self.capabilities.services.contains_key(name);
        let declared = services::reported().find(|quota| quota.reported_for.as_deref().is_some_and(holds))?;
        let written = self.quotas.services.get(declared.name.as_ref()).map(|entry| entry.value);
        let default = declared.default.map(|hard| Amount { soft: None, hard });
        written.or(default).map(quota)
    }
}

fn rules_per_datapath(capabilities: &Capabilities) -> Option<Quota> {
    let hard = capabilities.rule_write.as_ref()?.rules_per_datapath?;
    Some(quota(Amount { soft: None, hard: hard.into() }))
}

pub(crate) fn quota(amount: Amount) -> Quota {
    // A larger number is cut to the largest `u32`: as a limit it has the same effect.
    let limit = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let soft =
        amount.soft.unwrap_or(amount.hard / 100 * SOFT_PERCENT + amount.hard % 100 * SOFT_PERCENT / 100);
    Quota { soft: limit(soft), hard: limit(amount.hard) }
}

/// What `--grant-all` grants, with the words of a manifest.
pub fn all_of_grant_all() -> Capabilities {
    let whole = |capability: &Capability| (capability.name().to_owned(), Value::Bool(true));
    let written: serde_json::Map<_, _> = Capability::GRANT_ALL.iter().map(whole).collect();
    // A test shows that each name in the list is a valid key. An unknown key would grant nothing.
    serde_json::from_value(Value::Object(written)).unwrap_or_default()
}

fn granted(written: &Capabilities) -> Grant {
    let mut grant = Grant::nothing();
    let wholes = [
        (Capability::RuleWriteOthers, written.rule_write_others),
        (Capability::RuleDeleteForeign, written.rule_delete_foreign),
        (Capability::RuleRead, written.rule_read),
        (Capability::StatsRead, written.stats_read),
        (Capability::ViewRead, written.view_read),
        (Capability::ViewAnnotate, written.view_annotate),
        (Capability::HostRead, written.host_read),
    ];
    for (capability, _) in wholes.into_iter().filter(|(_, whole)| whole.is_some()) {
        grant = grant.with(capability);
    }
    let named = [
        (Capability::Query, written.query.as_ref()),
        (Capability::Publish, written.publish.as_ref()),
        (Capability::Subscribe, written.subscribe.as_ref()),
    ];
    for (capability, names) in named {
        grant = match names {
            None => grant,
            Some(Names::All) => grant.with(capability),
            Some(Names::Only(names)) => {
                grant.with_names(capability, kernel::Names::new(names.iter().cloned().collect()))
            }
        };
    }
    if let Some(list) = &written.vendor {
        let parts =
            list.iter().map(|it| VendorParts { vendor: it.vendor, kind: it.kind, subtype: it.subtype });
        grant = grant.with_vendors(Vendors::new(parts.collect()));
    }
    with_bounded(grant, written)
}

fn with_bounded(mut grant: Grant, written: &Capabilities) -> Grant {
    if let Some(it) = &written.packet_in {
        grant = grant.with_packets_in(bounds(it.scope()));
    }
    if let Some(it) = &written.packet_out {
        grant = grant.with_packets_out(bounds(it.scope()));
    }
    if let Some(it) = &written.port_write {
        grant = grant.with_ports(bounds(it.scope()));
    }
    if let Some(it) = &written.rule_write {
        let mut bounds = bounds(it.scope());
        bounds.tables = it.tables.as_ref().map(|tables| tables.iter().copied().collect());
        if let Some(range) = it.priority {
            bounds.priorities = range.low..=range.high;
        }
        grant = grant.with_rules(bounds);
    }
    grant
}

fn bounds(scope: Scope<'_>) -> Bounds {
    let matches = |it: &Option<Flowspace>| it.as_ref().map(|flowspace| flowspace.matches().to_vec());
    let listed = |it: &Option<BTreeSet<PortNo>>| it.as_ref().map(|ports| ports.iter().copied().collect());
    let at_one = scope.switches.iter().flatten().map(|(datapath, here)| {
        let (ports, own_ports) = (listed(&here.ports), listed(&here.own_ports));
        (*datapath, SwitchBounds { flowspace: matches(&here.flowspace), ports, own_ports })
    });
    Bounds {
        flowspace: matches(scope.flowspace),
        ports: listed(scope.ports),
        datapaths: scope.datapaths.as_ref().map(|datapaths| datapaths.iter().copied().collect()),
        own_ports: listed(scope.own_ports).unwrap_or_default(),
        switches: at_one.collect(),
        ..Bounds::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;
    use flow::vendor::{NICIRA, PartKind, VendorPart};

    /// The grant that an `[app.x]` with these lines gives.
    fn said(text: &str) -> AppGrant {
        let file = super::super::ConfigFile::parse(text, std::path::Path::new("t")).unwrap();
        let (_, table) = file.apps().remove(0);
        let capabilities = table.capabilities.unwrap_or_default();
        AppGrant { capabilities, quotas: table.quotas, rank: None }
    }

    /// Its grant as the kernel process reads it.
    fn granted_by(text: &str) -> Grant {
        let said = said(text);
        let heard = AppGrant::read(said.to_json()).unwrap();
        assert_eq!(heard, said);
        heard.to_kernel()
    }

    #[test]
    fn what_is_not_written_is_not_granted() {
        let grant = granted_by("[app.x.capabilities]\n'stats.read' = true");
        let held: Vec<_> = Capability::all().filter(|capability| grant.holds(*capability)).collect();
        assert_eq!(held, [Capability::StatsRead]);
        assert!(Capability::all().all(|one| !granted_by("[app.x.capabilities]").holds(one)));
    }

    #[test]
    fn an_app_of_which_nothing_is_written_gets_nothing() {
        assert_eq!(granted_by("[app.x]"), Grant::nothing());
        assert_eq!(AppGrant::read(Value::Null).unwrap().to_kernel(), Grant::nothing());
        assert!(AppGrant::read(Value::Bool(true)).is_err());
    }

    #[test]
    fn grant_all_gives_its_list_everywhere_and_nothing_else() {
        let grant = AppGrant { capabilities: all_of_grant_all(), ..AppGrant::default() }.to_kernel();
        assert!(Capability::all().all(|one| grant.holds(one) == Capability::GRANT_ALL.contains(&one)));
        assert!(!grant.holds(Capability::RuleWriteOthers) && grant.service("store").is_none());
        let view = grant.service("discovery").unwrap();
        assert_eq!(
            view, br#"{"capabilities":{"view.annotate":true,"view.read":true}}"#,
            "as the kernel itself has it"
        );
    }

    #[test]
    fn without_bounds_a_capability_reaches_everywhere() {
        let grant = granted_by(
            "[app.x.capabilities]\n'packet.in' = true\n'rule.write' = {}\n'query' = true\n'packet.out' = true",
        );
        let bounded = |one: &Capability| grant.is_bounded(*one);
        assert_eq!(Capability::all().filter(bounded).count(), 0);
    }

    #[test]
    fn every_bound_arrives() {
        let grant = granted_by(
            "[app.x.capabilities]\n'rule.write' = { match = ['ip'], tables = [3], priority = [7, 9], ports = [1], \
             datapaths = ['2'], rules_per_datapath = 1000 }\n'publish' = ['link']\n'packet.in' = { match = ['arp'] }",
        );
        assert_eq!(
            grant.rules(),
            &Bounds {
                flowspace: Some(vec![flow::text::parse_match("ip").unwrap()]),
                tables: Some([3].into_iter().collect()),
                priorities: 7..=9,
                ports: Some(vec![PortNo(1)]),
                datapaths: Some(vec![DatapathId(2)]),
                ..Bounds::default()
            }
        );
        assert_eq!(grant.quotas().rules_per_datapath, Some(Quota { soft: 800, hard: 1000 }));
        assert!(grant.holds_for(Capability::Publish, "link.up") && grant.is_bounded(Capability::PacketIn));
    }

    #[test]
    fn bounds_of_single_switches_arrive() {
        let grant = granted_by(
            "[app.x.capabilities]\n'rule.write' = { match = ['ip'], ports = [1], switches = { '2' = { ports = [7, 8], own_ports = [9] }, \
             '0x3' = { match = ['arp'] } } }\n'packet.in' = { own_ports = [4], switches = { '2' = { match = ['ip'] } } }",
        );
        let space = |text: &str| Some(vec![flow::text::parse_match(text).unwrap()]);
        let (ports, own_ports) = (Some(vec![PortNo(7), PortNo(8)]), Some(vec![PortNo(9)]));
        let only_ports = SwitchBounds { flowspace: None, ports, own_ports };
        let only_packets = SwitchBounds { flowspace: space("arp"), ..SwitchBounds::default() };
        let switches = [(DatapathId(2), only_ports), (DatapathId(3), only_packets)].into();
        let (flowspace, ports) = (space("ip"), Some(vec![PortNo(1)]));
        assert_eq!(grant.rules(), &Bounds { flowspace, ports, switches, ..Bounds::default() });
        assert_eq!(grant.packets_in().own_ports, [PortNo(4)]);
        assert!(
            grant.packets_in().has_switch(DatapathId(2)) && !grant.packets_in().has_switch(DatapathId(3))
        );
    }

    #[test]
    fn vendors_parts_arrive_and_nothing_else_brings_them() {
        let learn = VendorPart { vendor: NICIRA, kind: PartKind::Action, subtype: 16 };
        let holds = |text: &str| granted_by(text).holds_vendor(learn);
        assert!(holds("[app.x.capabilities]\n'vendor' = ['nicira:action:16']"));
        assert!(holds("[app.x.capabilities]\nvendor = ['nicira']"));
        assert!(!holds("[app.x.capabilities]\nvendor = ['nicira:action:14', 'onf']"));
        assert!(!holds(
            "[app.x.capabilities]\n'rule.write' = true\n'packet.out' = true\n'rule.write.others' = true"
        ));
        assert!(!holds("[app.x]"));
    }

    #[test]
    fn who_may_write_into_the_store_has_a_share_of_it_and_nobody_else() {
        let share = |text: &str| said(text).store_bytes();
        let quota = "[app.x.quotas]\nstore_bytes = 100\n";
        assert_eq!((share("[app.x]"), share(quota)), (None, None));
        assert_eq!(share("[app.x.capabilities]\n'store.read' = true"), None);
        let writes = "[app.x.capabilities]\n'store.write' = ['x/']\n";
        assert_eq!(share(writes), Some(Quota { soft: 838_860, hard: 1 << 20 }));
        assert_eq!(share(&format!("{quota}{writes}")), Some(Quota { soft: 80, hard: 100 }));
    }

    #[test]
    fn a_service_is_told_of_its_part_of_a_grant_and_of_nothing_else() {
        let grant = granted_by(
            "[app.x.capabilities]\n'store.read' = ['a/', 'b']\n'store.write' = true\n[app.x.quotas]\nstore_bytes = 9",
        );
        let part = store_contract::Grant::from_bytes(grant.service("store").unwrap()).unwrap();
        let read = store_contract::Prefixes::Only(vec!["a/".to_owned(), "b".to_owned()]);
        let expected = store_contract::Grant { read, write: store_contract::Prefixes::All, hard_bytes: 9 };
        assert_eq!(part, expected);
        assert!(grant.service("audit").is_none() && !grant.holds(Capability::Query));
        let reads = granted_by("[app.x.capabilities]\n'view.read' = true");
        assert!(reads.service("store").is_none() && reads.holds(Capability::ViewRead));
        assert_eq!(reads.service("discovery").unwrap(), br#"{"capabilities":{"view.read":true}}"#);
    }

    #[test]
    fn quotas_need_no_capabilities_beside_them() {
        let grant =
            granted_by("[app.x.quotas]\ncommands_per_s = 10\npacket_outs_per_s = { soft = 1, hard = 2 }");
        assert!(!grant.holds(Capability::RuleWrite), "and bring none");
        assert_eq!(grant.quotas().commands_per_s, Some(Quota { soft: 8, hard: 10 }));
        assert_eq!(grant.quotas().packet_outs_per_s, Some(Quota { soft: 1, hard: 2 }));
        let grant = granted_by(
            "[app.x.quotas]\npacket_out_bytes_per_s = 10\npacket_ins_caused_per_s = 20\nstats_per_s = 30\n\
             copies_per_switch_per_s = 40",
        );
        let quotas = grant.quotas();
        assert_eq!(quotas.packet_out_bytes_per_s, Some(Quota { soft: 8, hard: 10 }));
        assert_eq!(quotas.packet_ins_caused_per_s, Some(Quota { soft: 16, hard: 20 }));
        assert_eq!(quotas.copies_per_switch_per_s, Some(Quota { soft: 32, hard: 40 }));
        assert_eq!(quotas.stats_per_s, Some(Quota { soft: 24, hard: 30 }));
    }
}
