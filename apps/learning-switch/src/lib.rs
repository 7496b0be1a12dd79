//! The learning switch: learns which port each Ethernet address is behind, and installs a rule for each pair of
//! addresses that it knows. The switch then forwards their packets itself.
//!
//! ```text
//!   packet-in ──> learn the source's port
//!                 destination known  ──> rule (in_port, source, destination → port), and the packet that way
//!                 destination unknown ──> the packet out of every other port
//! ```
//!
//! With `match = "flow"`, it installs a rule for each flow instead, as the learning switch of POX does.
//!
//! A rule matches the ingress port and the source address. If a host moves to another port, its packets no longer
//! match the rule, and the app learns the new port. Each switch is handled by itself. The app does not break loops,
//! so in a network with loops its floods circulate.

mod flow_match;
mod switches;
mod table;

use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Field, Interests, MOST_AHEAD, MacAddr, PacketIn, PortNo, PortStatus,
    Settings, SwitchUp,
};
use flow_match::Flows;
use serde::Deserialize;
use std::process::ExitCode;
use switches::Switches;
use table::{AddressTable, seconds};

/// What the operator may set under `[app.learning-switch.settings]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearningSwitchSettings {
    /// What a rule matches.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Idle time-out of its rules in seconds; 0: none. If it is not set, 60, and 10 for flows.
    pub idle_timeout_s: Option<u16>,
    /// Hard time-out of its rules in seconds; 0: none. If it is not set, 600, and 30 for flows.
    pub hard_timeout_s: Option<u16>,
    /// The priority of its rules.
    pub priority: u16,
    /// The most addresses that it remembers for each switch.
    pub max_addresses: usize,
    /// It forgets an address that it has not seen for so many seconds.
    pub forget_after_s: u64,
    /// If true, it forgets everything on all switches when a link goes up or down, as a bridge does when its spanning
    /// tree changes. This is for networks with loops, where hosts are then reached by another path. In a tree it
    /// would only cause floods.
    pub forget_on_link_change: bool,
}

/// What a rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matching {
    /// The ingress port and both Ethernet addresses.
    #[default]
    Addresses,
    /// The flow: all that identifies a connection, or an ARP message. Each new flow comes to the app.
    Flow,
}

impl Matching {
    /// Idle and hard time-out in seconds: the usual ones of learning switches (a minute and ten minutes), and POX's for flows.
    const fn usual_timeouts_s(self) -> (u16, u16) {
        match self {
            Matching::Addresses => (60, 600),
            Matching::Flow => (10, 30),
        }
    }
}

impl Default for LearningSwitchSettings {
    /// 100,000 addresses are more than a large layer-2 network has, and take about 4 MiB.
    fn default() -> Self {
        LearningSwitchSettings {
            matching: Matching::default(),
            idle_timeout_s: None,
            hard_timeout_s: None,
            priority: 100,
            max_addresses: 100_000,
            forget_after_s: 300,
            forget_on_link_change: false,
        }
    }
}

/// The rules that it installs.
#[derive(Clone, Copy, Debug)]
struct RuleForm {
    idle_timeout_s: u16,
    hard_timeout_s: u16,
    priority: u16,
}

impl RuleForm {
    fn new(settings: &LearningSwitchSettings) -> RuleForm {
        let (idle_s, hard_s) = settings.matching.usual_timeouts_s();
        RuleForm {
            idle_timeout_s: settings.idle_timeout_s.unwrap_or(idle_s),
            hard_timeout_s: settings.hard_timeout_s.unwrap_or(hard_s),
            priority: settings.priority,
        }
    }
}

/// The learning switch.
pub struct LearningSwitch {
    settings: LearningSwitchSettings,
    rules: RuleForm,
    /// `None`: rules match addresses. Then a packet-in costs only one check more.
    flows: Option<Box<Flows>>,
    switches: Switches,
    now_s: u32,
    change: LinkChange,
    /// Whether the tables have more than [`LARGE`] addresses together. It is computed once a second.
    is_large: bool,
}

/// Whether links have changed, so that learned ports may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkChange {
    /// No link has changed.
    None,
    /// A link has changed, and everything was forgotten. Only what was learned since then may be wrong.
    Forgotten,
    /// Links have changed again after everything was forgotten.
    Again,
}

/// Tables with more addresses than this together, of 16 bytes each, do not stay in a core's own cache beside everything else. Then a look-up
/// waits for memory.
const LARGE: usize = 8_192;

/// The length of an Ethernet header in bytes. Shorter packets are ignored.
const ETHERNET_LEN: usize = 14;

/// Frames to these addresses (01:80:c2:00:00:00 to 0f, IEEE 802.1Q table 8-1) are for the neighbour. A bridge never
/// forwards them.
const LINK_LOCAL_PREFIX: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// EtherType of LLDP: probes of link discovery, which are not traffic.
const LLDP: u16 = 0x88cc;

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<LearningSwitch>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<LearningSwitch>()
}

impl App for LearningSwitch {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: LearningSwitchSettings = settings.read()?;
        Ok(LearningSwitch {
            rules: RuleForm::new(&settings),
            flows: (settings.matching == Matching::Flow).then(Box::default),
            settings,
            switches: Switches::default(),
            now_s: 0,
            change: LinkChange::None,
            is_large: false,
        })
    }

    /// Forgetting on all switches needs an app that sees all of them.
    fn serves_switches_apart(settings: &Settings) -> bool {
        settings.read::<LearningSwitchSettings>().is_ok_and(|settings| !settings.forget_on_link_change)
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().switches().ports().ticks()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, _: &mut Commands) {
        self.switches.insert(up.datapath, AddressTable::new(self.settings.max_addresses));
        if let Some(flows) = &mut self.flows {
            flows.on_switch_up(up.datapath, up.openflow);
        }
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.switches.remove(datapath);
        if let Some(flows) = &mut self.flows {
            flows.on_switch_down(datapath);
        }
    }

    fn on_port_status(&mut self, status: &PortStatus, out: &mut Commands) {
        if (status.is_gone() || !status.port.facts().live)
            && let Some(table) = self.switches.get_mut(status.datapath)
        {
            table.forget_port(status.port.port_no());
        }
        if self.settings.forget_on_link_change {
            self.on_link_change(out);
        }
    }

    #[inline(always)]
    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        if self.flows.is_some() {
            return self.on_packet_of_flow(needed_of(packet), out);
        }
        match self.way_of(packet) {
            Way::Nowhere => {}
            Way::To { port, source, destination } => {
                forward(&self.rules, packet, source, destination, port, out)
            }
            Way::Everywhere => flood(packet, out),
        }
    }

    fn look_ahead(&self) -> usize {
        if self.is_large { MOST_AHEAD } else { 0 }
    }

    fn on_packet_ins_ahead(&self, packets: &[PacketIn]) {
        for of_one_switch in packets.chunk_by(|one, next| one.datapath == next.datapath) {
            let table = of_one_switch.first().and_then(|packet| self.switches.get(packet.datapath));
            let Some(table) = table else { continue };
            for (destination, source) in of_one_switch.iter().filter_map(|packet| forwardable(packet.data)) {
                table.fetch(destination);
                table.fetch(source);
            }
        }
    }

    fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        self.now_s = seconds(now_ms);
        if std::mem::replace(&mut self.change, LinkChange::None) == LinkChange::Again {
            self.forget_everything(out);
        }
        let since_s = seconds(now_ms.saturating_sub(self.settings.forget_after_s.saturating_mul(1000)));
        self.switches.iter_mut().for_each(|(_, table)| table.forget_unseen(since_s));
        self.is_large = self.switches.iter_mut().map(|(_, table)| table.len()).sum::<usize>() > LARGE;
    }
}

impl LearningSwitch {
    /// Learns from a packet, and says where it must go. It is inlined into both of its callers, as all of the usual one is.
    #[inline(always)]
    fn way_of(&mut self, packet: &PacketIn) -> Way {
        let Some((destination, source)) = forwardable(packet.data) else { return Way::Nowhere };
        let Some(table) = self.switches.get_mut(packet.datapath) else { return Way::Nowhere };
        if !source.is_multicast() {
            table.learn(source, packet.in_port, self.now_s);
        }
        match table.port_of(destination) {
            // The destination is on the segment that the packet came from. Sending it back would only duplicate it.
            Some(port) if port == packet.in_port => Way::Nowhere,
            Some(port) => Way::To { port, source, destination },
            None => Way::Everywhere,
        }
    }

    /// A packet-in with `match = "flow"`. It is apart from the usual way, which costs as if it were not there, but for one look.
    ///
    /// The packet comes as a copy of what is needed. By a reference, each packet-in would be read as a whole and written into memory, whether this
    /// function is called or not.
    #[cold]
    #[inline(never)]
    fn on_packet_of_flow(&mut self, packet: PacketIn, out: &mut Commands) {
        match (self.way_of(&packet), &mut self.flows) {
            (Way::To { port, .. }, Some(flows)) => forward_flow(&self.rules, flows, &packet, port, out),
            (Way::Everywhere, _) => flood(&packet, out),
            _ => {}
        }
    }

    /// Many ports report one failure. The first report makes the app forget everything at once. Later ones make it
    /// forget once more at the next tick. So a flapping port costs at most one flood of learning a tick.
    fn on_link_change(&mut self, out: &mut Commands) {
        match self.change {
            LinkChange::None => {
                self.forget_everything(out);
                self.change = LinkChange::Forgotten;
            }
            LinkChange::Forgotten | LinkChange::Again => self.change = LinkChange::Again,
        }
    }

    fn forget_everything(&mut self, out: &mut Commands) {
        for (datapath, table) in self.switches.iter_mut() {
            table.forget_all();
            out.rule(datapath).delete_within().send();
        }
    }
}

/// Where a packet must go.
enum Way {
    /// It is not forwarded.
    Nowhere,
    /// To this port, where its destination is.
    To { port: PortNo, source: MacAddr, destination: MacAddr },
    /// Out of every other port.
    Everywhere,
}

#[inline(always)]
fn flood(packet: &PacketIn, out: &mut Commands) {
    out.packet_out(packet.datapath).packet(packet).output(PortNo::FLOOD).send();
}

/// Destination and source of a frame, if a switch may forward it.
fn forwardable(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let header: &[u8; ETHERNET_LEN] = frame.first_chunk()?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, type_high, type_low] = *header;
    let destination = [a, b, c, d, e, f];
    let link_local = destination[..5] == LINK_LOCAL_PREFIX && f <= 0x0f;
    let forwardable = !link_local && u16::from_be_bytes([type_high, type_low]) != LLDP;
    forwardable.then_some((MacAddr(destination), MacAddr([g, h, i, j, k, l])))
}

/// Installs the rule for what was learned, and sends the packet on. If the switch has buffered the packet, the flow
/// mod releases it; otherwise a packet-out carries it.
fn forward(
    rules: &RuleForm,
    packet: &PacketIn,
    source: MacAddr,
    destination: MacAddr,
    port: PortNo,
    out: &mut Commands,
) {
    out.rule(packet.datapath)
        .priority(rules.priority)
        .idle_timeout_s(rules.idle_timeout_s)
        .hard_timeout_s(rules.hard_timeout_s)
        .matching(|m| {
            m.field(Field::InPort, packet.in_port)
                .field(Field::EthDst, destination)
                .field(Field::EthSrc, source);
        })
        .output(port)
        .buffer(packet.buffer_id)
        .send();
    if packet.buffer_id.is_none() {
        out.packet_out(packet.datapath).packet(packet).output(port).send();
    }
}

/// A copy with all that is needed to send a packet on.
#[inline(always)]
fn needed_of<'a>(packet: &PacketIn<'a>) -> PacketIn<'a> {
    PacketIn { total_len: 0, reason: 0, table_id: 0, cookie: 0, metadata: &[], ..*packet }
}

/// The same with a rule for the packet's flow alone. A packet that does not show its flow goes on without a rule.
fn forward_flow(rules: &RuleForm, flows: &mut Flows, packet: &PacketIn, port: PortNo, out: &mut Commands) {
    let has_rule = flows.read(packet);
    if has_rule {
        out.rule(packet.datapath)
            .priority(rules.priority)
            .idle_timeout_s(rules.idle_timeout_s)
            .hard_timeout_s(rules.hard_timeout_s)
            .matching(|m| flows.write(m))
            .output(port)
            .buffer(packet.buffer_id)
            .send();
    }
    if !has_rule || packet.buffer_id.is_none() {
        out.packet_out(packet.datapath).packet(packet).output(port).send();
    }
}

#[cfg(test)]
mod flow_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::{PortFacts, PortRecord, write};
    use burnet_sdk::testing::Trial;

    /// A frame between two addresses, which are given by their last octets.
    fn frame(destination: u8, source: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 0x08, 0x00];
        frame.extend_from_slice(&[0; 46]);
        frame
    }

    fn started() -> Trial<LearningSwitch> {
        let mut trial = Trial::start(r#"{"idle_timeout_s": 5, "hard_timeout_s": 30}"#).unwrap();
        trial.switch_up(1, &[1, 2, 3]);
        trial
    }

    const FLOODED_FROM_1: &str = "packet-out of:0000000000000001 in_port=1 actions=[output:FLOOD]";

    #[test]
    fn settings_that_do_not_exist_are_refused_by_name() {
        let refusal = Trial::<LearningSwitch>::start(r#"{"idle": 1}"#).err().unwrap();
        assert!(refusal.contains("unknown field `idle`"), "{refusal}");
    }

    #[test]
    fn what_is_no_frame_goes_nowhere() {
        assert!(started().packet_in(1, 1, &[2; 13]).is_empty());
        assert!(started().packet_in(99, 1, &frame(2, 1)).is_empty(), "from a switch that never came up");
    }

    #[test]
    fn it_looks_ahead_while_its_tables_have_many_addresses_together() {
        let mut app = started();
        app.switch_up(2, &[1, 2, 3]);
        let many = |app: &mut Trial<LearningSwitch>, switch, addresses: std::ops::Range<u16>| {
            for address in addresses {
                let [high, low] = address.to_be_bytes();
                let mut frame = frame(2, low);
                frame[10] = high;
                app.packet_in(switch, 1, &frame);
            }
            app.tick(1_000);
            app.app().look_ahead()
        };
        assert_eq!(many(&mut app, 1, 0..4_096), 0);
        assert_eq!(many(&mut app, 2, 0..4_096), 0);
        assert_eq!(many(&mut app, 1, 4_096..4_097), MOST_AHEAD);
        app.tick(10_000_000);
        assert_eq!(app.app().look_ahead(), 0);
    }

    #[test]
    fn what_is_meant_for_the_neighbour_goes_no_further() {
        let mut bpdu = frame(0, 1);
        bpdu[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
        assert!(started().packet_in(1, 1, &bpdu).is_empty());
        let mut lldp = frame(2, 1);
        lldp[12..14].copy_from_slice(&LLDP.to_be_bytes());
        assert!(started().packet_in(1, 1, &lldp).is_empty());
    }

    #[test]
    fn a_packet_to_the_unknown_goes_out_of_every_other_port() {
        assert_eq!(started().packet_in(1, 1, &frame(2, 1)), [FLOODED_FROM_1]);
    }

    #[test]
    fn a_packet_to_a_known_address_gets_a_rule_and_goes_there() {
        let mut app = started();
        app.packet_in(1, 1, &frame(2, 1));
        let rule = "add-rule of:0000000000000001 priority=100 idle=5 hard=30 \
                    match=[in_port=0x2,eth_dst=0x20000000001,eth_src=0x20000000002] actions=[output:1]";
        let sent = "packet-out of:0000000000000001 in_port=2 actions=[output:1]";
        assert_eq!(app.packet_in(1, 2, &frame(1, 2)), [rule, sent]);
    }

    #[test]
    fn a_packet_that_the_switch_keeps_goes_through_the_rule() {
        let mut app = started();
        app.packet_in(1, 1, &frame(2, 1));
        let commands = app.buffered_packet_in(1, 2, &frame(1, 2), 77);
        assert_eq!(commands.len(), 1);
        assert!(
            commands[0].starts_with("add-rule of:0000000000000001 priority=100 buffer=77"),
            "{commands:?}"
        );
    }

    #[test]
    fn a_packet_for_its_own_segment_is_left_there() {
        let mut app = started();
        app.packet_in(1, 1, &frame(9, 2));
        assert!(app.packet_in(1, 1, &frame(2, 1)).is_empty());
    }

    #[test]
    fn a_host_that_moves_is_found_at_its_new_port() {
        let mut app = started();
        app.packet_in(1, 1, &frame(9, 1));
        app.packet_in(1, 3, &frame(9, 1));
        let commands = app.packet_in(1, 2, &frame(1, 2));
        assert!(commands[0].ends_with("actions=[output:3]"), "{commands:?}");
    }

    /// Reports that a port was removed.
    fn port_gone(app: &mut Trial<LearningSwitch>) -> Vec<String> {
        let facts = PortFacts {
            port_no: PortNo(3),
            hw_addr: MacAddr::default(),
            live: false,
            administratively_up: true,
            curr_speed_kbps: 0,
            name: "s1-eth3",
        };
        let port = PortRecord::new(facts);
        app.event(|out, sequence| {
            let status = PortStatus { datapath: DatapathId(1), reason: 2, port: &port };
            write::port_status(out, sequence, &status)
        })
    }

    #[test]
    fn when_a_link_goes_everything_is_forgotten_if_that_is_wanted() {
        let mut trial = Trial::start(r#"{"forget_on_link_change": true}"#).unwrap();
        trial.switch_up(1, &[1, 2, 3]);
        trial.packet_in(1, 1, &frame(9, 1));
        let deleted = port_gone(&mut trial);
        assert_eq!(deleted.len(), 1);
        assert!(deleted[0].starts_with("delete-rule of:0000000000000001"), "{deleted:?}");
        assert_eq!(trial.packet_in(1, 2, &frame(1, 2)).len(), 1, "1 is not known any more");
        assert!(port_gone(&mut trial).is_empty(), "the second word of it waits");
        assert_eq!(trial.tick(1000), deleted);
        assert!(trial.tick(2000).is_empty());
        assert!(port_gone(&mut started()).is_empty(), "and not, if it is not wanted");
    }

    #[test]
    fn switches_learn_for_themselves() {
        let mut app = started();
        app.switch_up(2, &[1, 2]);
        app.packet_in(1, 2, &frame(9, 5));
        let sent = "packet-out of:0000000000000002 in_port=1 actions=[output:FLOOD]";
        assert_eq!(app.packet_in(2, 1, &frame(5, 1)), [sent]);
    }

    #[test]
    fn what_was_learned_is_forgotten_with_the_switch_and_with_time() {
        let mut app = started();
        app.packet_in(1, 2, &frame(9, 5));
        app.switch_down(1);
        app.switch_up(1, &[1, 2]);
        assert_eq!(app.packet_in(1, 1, &frame(5, 1)), [FLOODED_FROM_1]);
        app.packet_in(1, 2, &frame(9, 5));
        app.tick(1_000_000);
        assert_eq!(app.packet_in(1, 1, &frame(5, 1)), [FLOODED_FROM_1]);
    }
}
