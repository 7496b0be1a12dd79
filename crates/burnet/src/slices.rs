//! The slices of a node as zones: each is an app in a process zone, with the grant of its part of the network.
//!
//! ```text
//!   [slice.blue] ──> slicer::SlicePlan ──> settings and grant ──> AppSpec `slice.blue` ──> monitor ──> services/slice
//! ```
//!
//! In: the slices of the configuration. Out: apps, or the first slice that cannot run with the reason. It starts none. The kernel holds
//! each slice to its grant, whatever its process does.

use crate::commands::slice::described_in;
use crate::slice_choices::{self, Choices};
use crate::slice_links;
use crate::slice_pauses;
use crate::slice_plan::judge::{Judged, judge_keeping};
use crate::slice_plan::substrate::Substrate;
use burnet_sdk::view::{ConnectPoint, LinkId};
use config::slices::{FailMode, LabelForm, Slice, SliceTls, Vnic};
use config::{AppGrant, Config};
use flow::text::match_to_string;
use flow::{DatapathId, Match, PortNo};
use monitor::{AppRole, AppSource, AppSpec, Regions, ZoneKind};
use serde_json::{Value, json};
use slice::SliceSettings;
use slice::settings::{EndSettings, LabelSettings, VnicPortSettings};
use slice::tls::TlsSettings;
use slice_contract::{NETWORK_TOPIC, STATE_TOPIC, app_name};
use slicer::{End, Isolation, PhysicalLink, SlicePlan, SwitchPlan};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use zone::{Limits, Sandbox};

/// Descriptors of a slice besides its connections: the rings of its workers, the operators that ask, and what every process has open.
const OPEN_FILES: u32 = 256;
/// The memory of a slice, in bytes: its rules, and up to 2 MiB for a connection that does not read.
const MEMORY_BYTES: u64 = 256 << 20;

/// The name of the socket file on which a slice tells its state. Only operators may open it. The configuration makes sure that it is a
/// valid one, and that no two slices have the same.
pub fn socket_name(slice: &str) -> String {
    app_name(slice).to_ascii_lowercase()
}

/// The folder in which a slice keeps what its tenant has made.
fn journals_folder(state: &Path, slice: &str) -> PathBuf {
    state.join("slices").join(socket_name(slice))
}

/// The settings of an app, if it is a slice.
pub fn settings_of(app: &AppSpec) -> Option<SliceSettings> {
    let is_slice = matches!(&app.source, AppSource::BuiltIn(code) if code == slice::CODE);
    serde_json::from_value(Value::Object(app.settings.clone())).ok().filter(|_| is_slice)
}

/// The folder of the journals of an app, if it is a slice that keeps any.
pub fn journals_of(app: &AppSpec) -> Option<PathBuf> {
    let is_slice = matches!(&app.source, AppSource::BuiltIn(code) if code == slice::CODE);
    app.settings.get("journals").filter(|_| is_slice)?.as_str().map(PathBuf::from)
}

/// The node has no folder to keep anything: the slice runs without journals.
pub fn do_without_journals(app: &mut AppSpec) {
    if let Some(folder) = journals_of(app) {
        app.settings.remove("journals");
        app.sandbox.fs.write.retain(|path| *path != folder);
    }
}

/// What a node has for its slices.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeServices {
    /// The service of labels: slices report their flows, and follow their labels.
    pub labels: bool,
    /// The service that lays links: slices follow whether theirs are up.
    pub links: bool,
}

/// The apps of these slices, in the order of the file.
///
/// # Errors
/// The first slice that cannot run: a sentence that names it.
pub fn wanted(config: &Config, slices: &[Slice]) -> Result<Vec<AppSpec>, String> {
    let node =
        NodeServices { labels: crate::services::has_labels(config), links: slice_links::has_service(config) };
    let state = config.node.state.as_deref();
    let paused = slice_pauses::read(state);
    let may_wait = judged_by_view(config);
    let spec = |slice: &Slice| {
        let spec = spec(slice, node, state, may_wait)?;
        Ok(AppSpec { paused: paused.contains(&slice.name), ..spec })
    };
    slices.iter().map(spec).collect()
}

/// Whether the node judges its slices by its network view, as soon as that has what they name.
pub fn judged_by_view(config: &Config) -> bool {
    let has = |name, needs| matches!(config.network_share(name, needs), Ok(Some(_)));
    config.node.network_description.is_none()
        && has(discovery_contract::SERVICE, discovery::NEEDS)
        && has(northbound_contract::SERVICE, northbound::NEEDS)
}

/// The slices with the links that were chosen for them, now or before. Without a description of the network, a start judges none.
///
/// # Errors
/// The description is wrong, or the first slice that does not fit: a sentence.
pub fn admitted(config: &Config) -> Result<Cow<'_, [Slice]>, String> {
    let Some(file) = config.node.network_description.as_ref().filter(|_| !config.slices.is_empty()) else {
        return Ok(match judged_by_view(config) {
            true => slice_choices::enter(&config.slices, &slice_choices::read(config.node.state.as_deref()))
                .into(),
            false => Cow::Borrowed(&config.slices),
        });
    };
    let description = described_in(file).map_err(|why| why.to_string())?;
    let of_file = |why: String| format!("{}: {why}", file.display());
    let mut substrate = Substrate::new(description).map_err(of_file)?;
    let chosen = slice_choices::read(config.node.state.as_deref());
    let judged = judge_keeping(&mut substrate, &config.slices, false, &chosen);
    let judged = judged.map_err(|unknown| of_file(unknown.to_string()))?;
    let lays_links = slice_links::has_service(config);
    let fits = |judged: Judged| match judged.result {
        Ok(_) => {
            let is_cable = |link| substrate.link(link).is_some();
            slice_links::check(&judged.slice, lays_links, is_cable).map(|()| judged.slice)
        }
        Err(refused) => Err(of_file(refused.why)),
    };
    judged.into_iter().map(fits).collect::<Result<Vec<_>, _>>().map(Cow::Owned)
}

/// The links of slices that name none, as a node with this configuration has chosen them.
pub fn chosen_links(config: &Config) -> Choices {
    let link = |link: PhysicalLink| LinkId {
        from: ConnectPoint { switch: link.from, port: link.from_port },
        to: ConnectPoint { switch: link.to, port: link.to_port },
    };
    let chosen = config.slices.iter().filter(|slice| slice.needs_links());
    let choice = |name: &str| {
        let chosen = config.apps.iter().filter(|app| !app.waits);
        let settings = chosen.filter_map(settings_of).find(|it| it.name == name)?;
        // Links are the same in each zone.
        let links = settings.plan(abi::ZoneId(1)).physical_links();
        Some((name.to_owned(), links.into_iter().map(link).collect()))
    };
    chosen.filter_map(|slice| choice(&slice.name)).collect()
}

/// `may_wait`: if links must be chosen for the slice, it gets a zone that does not run yet.
fn spec(slice: &Slice, node: NodeServices, state: Option<&Path>, may_wait: bool) -> Result<AppSpec, String> {
    let of_slice = |why: String| format!("slice {}: {why}", slice.name);
    if slice.needs_links() && !may_wait {
        return Err(of_slice(NO_LINKS.to_owned()));
    }
    let address = |controller: &config::slices::Controller| {
        controller.address().ok_or_else(|| {
            let why = format!(
                "the name of its controller {controller} has no address: check the name, or write an address"
            );
            of_slice(why)
        })
    };
    let controllers = slice.controllers.iter().map(address).collect::<Result<Vec<_>, _>>()?;
    let tls = slice.tls.as_ref().map(tls).transpose().map_err(of_slice)?;
    // An observer has no rules.
    let journals = state.filter(|_| !slice.is_read_only).map(|state| journals_folder(state, &slice.name));
    let has_links = node.links && slice.links.iter().flatten().next().is_some();
    let node = NodeServices { links: has_links, ..node };
    let settings = SliceSettings { tls, journals, ..settings(slice, controllers, node)? };
    settings.check()?;
    let plan = slice.plan().map_err(|bad| bad.to_string())?;
    let grant = grant(&plan, node).map_err(of_slice)?;
    let connections = u32::try_from(settings.connections()).unwrap_or(u32::MAX);
    // A journal of each switch, and one that takes the place of another.
    let files = u32::try_from(settings.switches.len() + 1).unwrap_or(u32::MAX);
    let mut sandbox = Sandbox::default();
    sandbox.net.connect = settings.controllers.clone();
    sandbox.fs.write = settings.journals.iter().cloned().collect();
    sandbox.net.listen = vec![format!("unix:{}", socket_name(&slice.name)).parse().map_err(of_slice)?];
    let Value::Object(settings) =
        serde_json::to_value(&settings).map_err(|error| of_slice(error.to_string()))?
    else {
        return Err(of_slice("its settings are no object".to_owned()));
    };
    Ok(AppSpec {
        zone: None,
        name: app_name(&slice.name),
        role: AppRole::App,
        duty: None,
        kind: ZoneKind::Process,
        source: AppSource::BuiltIn(slice::CODE.to_owned()),
        limits: Limits {
            memory_bytes: MEMORY_BYTES,
            open_files: OPEN_FILES + connections + files,
            ..Limits::default()
        },
        sandbox,
        settings,
        grant: grant.to_json(),
        regions: Regions::default(),
        packaged: false,
        paused: false,
        waits: slice.needs_links(),
    })
}

/// Why a slice cannot run on a node that knows nothing of its network.
const NO_LINKS: &str = "it names VNICs at several switches, and no links: write the links that `burnet slice plan` chooses. Or add \
                        [network] to burnet.toml, so that the node finds its network, or name its description as node.network_description";

/// The contents of the files. The process of the slice cannot read them itself.
fn tls(files: &SliceTls) -> Result<TlsSettings, String> {
    let read = |key: &str, path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| format!("tls.{key}: {} cannot be read: {error}", path.display()))
    };
    Ok(TlsSettings {
        certificate: read("certificate", &files.certificate)?,
        private_key: read("private_key", &files.private_key)?,
        ca_certificate: read("ca_certificate", &files.ca_certificate)?,
    })
}

fn labels(form: LabelForm) -> LabelSettings {
    match form {
        LabelForm::None => LabelSettings::None,
        LabelForm::Paper => LabelSettings::Paper,
        LabelForm::Experimenter => LabelSettings::Experimenter,
        LabelForm::Speed => LabelSettings::Speed,
    }
}

/// The VNICs, by the ports that the tenant sees.
fn vnics(slice: &Slice) -> BTreeMap<String, EndSettings> {
    let end = |vnic: &Vnic| {
        let port = slice.port(vnic.at).map_or(vnic.at.port, |port| port.shown_as);
        EndSettings::of(End { datapath: vnic.at.switch, port })
    };
    slice.vnics.iter().map(|vnic| (vnic.name.clone(), end(vnic))).collect()
}

/// The ports of VNICs, each with all that are behind it.
fn vnic_ports(slice: &Slice) -> Vec<VnicPortSettings> {
    let mut ports: BTreeMap<(DatapathId, PortNo), VnicPortSettings> = BTreeMap::new();
    for vnic in &slice.vnics {
        let shown = slice.port(vnic.at).map_or(vnic.at.port, |port| port.shown_as);
        let port = ports.entry((vnic.at.switch, vnic.at.port)).or_insert_with(|| VnicPortSettings {
            at: EndSettings::of(End { datapath: vnic.at.switch, port: shown }),
            rate_kbps: 0,
            vnics: Vec::new(),
            agents: Vec::new(),
            meter: true,
        });
        let rate_kbps = u32::try_from(vnic.rate.kbps()).unwrap_or(u32::MAX);
        port.rate_kbps = port.rate_kbps.saturating_add(rate_kbps);
        port.vnics.push(vnic.name.clone());
        port.agents.extend(vnic.edge.and_then(|edge| edge.agent));
        port.meter &= vnic.is_metered;
    }
    ports.into_values().collect()
}

/// What the zone of a slice with these controllers gets.
///
/// # Errors
/// A sentence that names the slice: it cannot run.
pub fn settings(
    slice: &Slice,
    controllers: Vec<SocketAddr>,
    node: NodeServices,
) -> Result<SliceSettings, String> {
    let plan = slice.plan().map_err(|bad| bad.to_string())?;
    let settings = SliceSettings {
        is_standalone: slice.fail == FailMode::Standalone,
        has_labels: node.labels,
        follows_links: node.links,
        vnics: vnics(slice),
        vnic_ports: vnic_ports(slice),
        labels: labels(slice.labels),
        ..SliceSettings::of(&plan, controllers)
    };
    settings.check().map(|()| settings)
}

/// What the zone of a slice gets, and what the kernel lets it do, for those who run it without a process. It dials nobody.
///
/// # Errors
/// A sentence that names the slice: it cannot run.
pub fn zone(slice: &Slice, node: NodeServices) -> Result<(SliceSettings, kernel::Grant), String> {
    let plan = slice.plan().map_err(|bad| bad.to_string())?;
    let grant = grant(&plan, node).map_err(|why| format!("slice {}: {why}", slice.name))?;
    Ok((settings(slice, Vec::new(), node)?, grant.to_kernel()))
}

/// What the slice may do: with its packets, by its ports, at its switches. On a node with labels, it reports its own flows. On one that lays links,
/// it follows its own.
fn grant(plan: &SlicePlan, node: NodeServices) -> Result<AppGrant, String> {
    let switches = |bounds: fn(&SlicePlan, &SwitchPlan) -> Value| -> Value {
        // A list in a grant is never empty: a switch without ports is not granted, and no own ports are left out.
        let with_ports = plan.switches.iter().filter(|switch| !switch.ports.is_empty());
        let bounds = |switch: &SwitchPlan| {
            let (mut bounds, own) = (bounds(plan, switch), own_ports(switch));
            if !own.is_empty() {
                bounds["own_ports"] = json!(own);
            }
            bounds
        };
        with_ports.map(|switch| (switch.datapath.to_string(), bounds(switch))).collect()
    };
    let mut capabilities = json!({
        "packet.in": { "switches": switches(heard) },
        "view.read": true,
        "stats.read": true,
        "publish": [STATE_TOPIC, NETWORK_TOPIC],
    });
    if node.labels {
        capabilities[labels_contract::OWN] = json!([plan.name]);
    }
    if node.links {
        capabilities[paths_contract::SLICE_LINKS] = json!([plan.name]);
    }
    if !plan.is_read_only {
        capabilities["packet.out"] = json!({ "switches": switches(sent) });
        capabilities["rule.write"] = json!({
            "switches": switches(ruled),
            "tables": [0],
            "priority": [1, u16::MAX],
            "rules_per_datapath": rules_max(plan),
        });
    }
    let capabilities = serde_json::from_value(capabilities);
    let capabilities =
        capabilities.map_err(|error| format!("its part of the network is too large: {error}"))?;
    let quotas = serde_json::from_value(json!({ "packet_ins_caused_per_s": caused_max(plan) }));
    let quotas = quotas.map_err(|error| format!("its limits are no quotas: {error}"))?;
    Ok(AppGrant { capabilities, quotas, ..AppGrant::default() })
}

/// All packet-ins of a slice come by its own rules, and a packet that waits for a rule goes through them. So the kernel's quota for both is what
/// the limits of the slice allow at all switches together. Without limits, there is none.
fn caused_max(plan: &SlicePlan) -> u32 {
    let limits = &plan.limits;
    let each = limits.packet_ins_per_s.hard.saturating_add(limits.packet_outs_per_s.hard);
    let switches = u32::try_from(plan.switches.len()).unwrap_or(u32::MAX);
    each.saturating_mul(switches.max(1)).max(1)
}

/// The limit of the slice, and its floor: a rule for each port and match. With addresses, it has one for each host in place of its port.
fn rules_max(plan: &SlicePlan) -> u32 {
    let ports = plan.switches.iter().map(|switch| switch.ports.len()).max().unwrap_or_default();
    let floor = match &plan.isolation {
        Isolation::Vlan(_) => ports,
        Isolation::Flowspace(matches) => ports * matches.len(),
        Isolation::Address(addresses) => (ports + addresses.hosts.len()) * addresses.physical_packets().len(),
    };
    plan.limits.rules.hard.saturating_add(u32::try_from(floor).unwrap_or(u32::MAX))
}

fn heard(plan: &SlicePlan, _: &SwitchPlan) -> Value {
    bounded(plan, json!({}))
}

fn ruled(plan: &SlicePlan, switch: &SwitchPlan) -> Value {
    let ports: Vec<PortNo> = switch.ports.iter().map(|port| port.port).collect();
    bounded(plan, json!({ "ports": ports }))
}

/// A packet-out may also go through the slice's rules.
fn sent(plan: &SlicePlan, switch: &SwitchPlan) -> Value {
    let ports: Vec<PortNo> = switch.ports.iter().map(|port| port.port).chain([PortNo::TABLE]).collect();
    bounded(plan, json!({ "ports": ports }))
}

/// Bounds with the packets of the slice. A grant of all packets names none.
fn bounded(plan: &SlicePlan, mut bounds: Value) -> Value {
    let packets = slice_links::between_switches(plan);
    if !packets.iter().any(Match::is_any) {
        bounds["match"] = packets_of(&packets);
    }
    bounds
}

fn own_ports(switch: &SwitchPlan) -> Vec<PortNo> {
    switch.ports.iter().filter(|port| port.is_edge).map(|port| port.port).collect()
}

/// The packets of the slice between switches. What enters or leaves by its own ports is within the grant anyway. The ports by which
/// packets may enter are the slice's own matter: a packet of the tenant's controller enters by none of them.
fn packets_of(packets: &[Match]) -> Value {
    packets.iter().map(match_to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps;
    use config::{ConfigFile, Environment, RunArgs};
    use flow::Field;

    fn config(text: &str) -> Config {
        let file = ConfigFile::parse(text, std::path::Path::new("t")).unwrap();
        let around = Environment { uid: 1000, ..Environment::default() };
        let args = RunArgs { records: Some("/r".into()), ..RunArgs::default() };
        Config::merge(file, &args, &around, &apps::ALL).unwrap()
    }

    fn wanted(config: &Config) -> Result<Vec<AppSpec>, String> {
        super::wanted(config, &admitted(config)?)
    }

    const BLUE: &str = "[slice.blue]\ncontrollers = ['127.0.0.1:6702']\nisolation = 'vlan'\ntag = 7\n\
                        own_ports = ['s1:1', 's2:1 as 9']\nlinks = ['s1:3-s2:3']\n";

    #[test]
    fn a_slice_is_granted_its_packets_its_ports_and_its_controllers_alone() {
        let specs = wanted(&config(BLUE)).unwrap();
        let [spec] = &specs[..] else { panic!("{specs:?}") };
        assert_eq!((spec.name.as_str(), spec.kind), ("slice.blue", ZoneKind::Process));
        assert_eq!(spec.sandbox.net.connect, ["127.0.0.1:6702".parse().unwrap()]);
        let listen: Vec<String> = spec.sandbox.net.listen.iter().map(ToString::to_string).collect();
        assert_eq!(listen, ["unix:slice.blue"]);
        let grant = AppGrant::read(spec.grant.clone()).unwrap().to_kernel();
        let rules = grant.rules();
        assert_eq!((rules.priorities.clone(), rules.switches.len()), (1..=u16::MAX, 2));
        let here = &rules.switches[&flow::DatapathId(2)];
        assert_eq!(here.flowspace, Some(vec![flow::text::parse_match("dl_vlan=7").unwrap()]));
        assert_eq!(here.ports, Some(vec![PortNo(1), PortNo(3)]));
        assert_eq!(here.own_ports, Some(vec![PortNo(1)]));
        assert!(!rules.has_switch(flow::DatapathId(3)));
        assert_eq!(grant.quotas().rules_per_datapath.unwrap().hard, 4_096 + 2);
    }

    #[test]
    fn a_slice_with_addresses_is_granted_those_between_switches() {
        let text = "[slice.red]\ncontrollers = ['127.0.0.1:6702']\nisolation = 'address'\nprefix = '10.7.0.0/24'\n\
                    addresses = '10.0.0.0/24'\nports = ['s1:3']\nhosts = { '10.0.0.1' = 's1:1' }\n";
        let spec = spec(&config(text).slices[0], NodeServices::default(), None, false).unwrap();
        let settings: SliceSettings = serde_json::from_value(Value::Object(spec.settings.clone())).unwrap();
        assert_eq!(settings.plan(abi::ZoneId(1)).isolation, config(text).slices[0].plan().unwrap().isolation);
        let grant = AppGrant::read(spec.grant).unwrap().to_kernel();
        let here = &grant.rules().switches[&flow::DatapathId(1)];
        let within = |text: &str| {
            let packet = flow::text::parse_match(text).unwrap().with(Field::VlanVid, 0u16);
            flow::relation::within(&packet, here.flowspace.as_deref().unwrap())
        };
        assert!(
            within("ip,nw_src=10.7.0.1,nw_dst=10.7.0.2") && within("arp,arp_spa=10.7.0.1,arp_tpa=10.7.0.2")
        );
        assert!(!within("ip,nw_src=10.0.0.1,nw_dst=10.7.0.2") && !within("ip,nw_dst=10.7.0.2"));
        assert_eq!(here.own_ports, Some(vec![PortNo(1)]));
        assert_eq!(grant.quotas().rules_per_datapath.unwrap().hard, 4_096 + 6);
    }

    #[test]
    fn packet_ins_of_a_slice_are_bounded_by_its_limits_alone() {
        let check = |limits: &str, expected: u32| {
            let spec = &wanted(&config(&format!("{BLUE}{limits}"))).unwrap()[0];
            let grant = AppGrant::read(spec.grant.clone()).unwrap().to_kernel();
            assert_eq!(grant.quotas().packet_ins_caused_per_s.unwrap().hard, expected, "{limits}");
        };
        check("", u32::MAX);
        check("[slice.blue.limits]\npacket_ins_per_s = 100\n", u32::MAX);
        check("[slice.blue.limits]\npacket_ins_per_s = 100\npacket_outs_per_s = 50\n", 300);
    }

    #[test]
    fn a_slice_with_the_longest_name_has_a_socket_file() {
        let name = "B".repeat(config::slices::NAME_BYTES_MAX);
        let specs = wanted(&config(&BLUE.replace("slice.blue", &format!("slice.{name}")))).unwrap();
        assert_eq!(specs[0].sandbox.net.listen.len(), 1);
    }

    #[test]
    fn a_slice_of_a_node_with_labels_reports_its_own_flows_alone() {
        let vnics = "vnics = { E = { port = 's1:1', rate = '10M' } }\n";
        let check = |text: &str, expected: Option<&str>| {
            let spec = &wanted(&config(text)).unwrap()[0];
            let own = spec.grant["capabilities"].get(labels_contract::OWN).map(ToString::to_string);
            assert_eq!(own.as_deref(), expected, "{text}");
            assert_eq!(spec.settings["has_labels"], expected.is_some(), "{text}");
            assert_eq!(spec.settings["vnics"]["E"]["shown_as"], 1, "{text}");
            AppGrant::read(spec.grant.clone()).unwrap().to_kernel();
        };
        check(&format!("{BLUE}{vnics}"), None);
        check(&format!("{BLUE}{vnics}[network]\n"), Some(r#"["blue"]"#));
        check(&format!("{BLUE}{vnics}[network]\nservices = ['discovery']\n"), None);
    }

    #[test]
    fn a_slice_of_all_packets_is_granted_them() {
        let text = "[slice.all]\ncontrollers = ['127.0.0.1:1']\nisolation = 'flowspace'\nmatches = ['arp', '']\n\
                    ports = ['s1:1', 's1:2']\nown_ports = ['s2:3']\n";
        let spec = spec(&config(text).slices[0], NodeServices::default(), None, false).unwrap();
        let grant = AppGrant::read(spec.grant).unwrap().to_kernel();
        for (switch, ports, own) in
            [(1, vec![PortNo(1), PortNo(2)], None), (2, vec![PortNo(3)], Some(vec![PortNo(3)]))]
        {
            let here = &grant.rules().switches[&flow::DatapathId(switch)];
            assert_eq!((&here.flowspace, &here.ports, &here.own_ports), (&None, &Some(ports), &own));
        }
        assert!(
            grant.packets_in().has_switch(flow::DatapathId(1))
                && !grant.packets_in().has_switch(flow::DatapathId(3))
        );
    }

    #[test]
    fn an_observer_is_granted_no_change() {
        let text = "[slice.eye]\ncontrollers = ['127.0.0.1:6702']\nisolation = 'flowspace'\nmatches = ['ip']\n\
                    read_only = true\nports = ['s1:1']\n";
        let spec = spec(&config(text).slices[0], NodeServices::default(), None, false).unwrap();
        let grant = AppGrant::read(spec.grant).unwrap().to_kernel();
        assert!(grant.holds(kernel::Capability::PacketIn));
        assert!(!grant.holds(kernel::Capability::PacketOut) && !grant.holds(kernel::Capability::RuleWrite));
    }

    #[test]
    fn with_a_description_of_the_network_slices_are_admitted_and_get_links() {
        let file = std::env::temp_dir().join(format!("burnet-admission-{}.toml", std::process::id()));
        let network = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:3-s2:3'\n[[nic]]\nports = ['s1:1', 's1:2']\n[[nic]]\nports = ['s2:1']\n";
        std::fs::write(&file, network).unwrap();
        let slice = |name: &str, tag: u16, vnics: &str| {
            format!(
                "[slice.{name}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = {tag}\nvnics = {{ {vnics} }}\n"
            )
        };
        let blue = slice("blue", 7, "A = { port = 's1:1', rate = '8M' }, B = { port = 's2:1', rate = '8M' }");
        let red = slice("red", 8, "C = { port = 's1:2', rate = '4M' }");
        let with = |slices: &str| {
            let mut config = config(slices);
            config.node.network_description = Some(file.clone());
            wanted(&config)
        };
        assert!(wanted(&config(&blue)).unwrap_err().contains("node.network_description"));
        let specs = with(&blue).unwrap();
        let links = specs[0].settings["links"].as_array().unwrap();
        assert_eq!(links.len(), 1, "{links:?}");
        let why = with(&(blue.clone() + &red)).unwrap_err();
        let expected = "slice red: C asks for 4.0M; the NIC of s1:1 has 2.0M of 10.0M left";
        assert!(why.starts_with(&file.display().to_string()) && why.contains(expected), "{why}");
        std::fs::remove_file(&file).unwrap();
        assert!(with(&blue).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        let tls = "[slice.blue.tls]\ncertificate = '/nowhere/a'\nprivate_key = 'b'\nca_certificate = 'c'\n";
        let why = wanted(&config(&format!("{BLUE}{tls}"))).unwrap_err();
        assert!(why.starts_with("slice blue: tls.certificate: /nowhere/a cannot be read"), "{why}");
        let nowhere = BLUE.replace("127.0.0.1:6702", "nowhere.invalid:6702");
        let why = wanted(&config(&nowhere)).unwrap_err();
        assert!(
            why.starts_with("slice blue: the name of its controller nowhere.invalid:6702 has no address"),
            "{why}"
        );
        assert!(wanted(&config(BLUE)).is_ok());
    }
}
