//! A slice's process is killed, and its node restarts: the tenant's table is as it was.

use super::bed;
use emulator::{SwitchOptions, Versions};
use flow::{DatapathId, MacAddr, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version, frame_len};
use slice::vnics::ShapedBy;
use slicer::{Isolation, Limits, Numbers, PortPlan, SlicePlan, Slicer, SwitchPlan};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use test_bed::{Node, PATIENCE, kill};

const DATAPATH: DatapathId = DatapathId(1);
/// A cookie that no cookie of a slice in the switch can be.
const COOKIE: u64 = u64::MAX - 1;

/// The tenant's controller, with the connection of the only switch.
pub(super) struct Tenant {
    listener: TcpListener,
    stream: Option<TcpStream>,
}

impl Tenant {
    pub(super) fn new() -> Tenant {
        Tenant { listener: TcpListener::bind("127.0.0.1:0").unwrap(), stream: None }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Takes the next connection of the switch.
    pub(super) fn accept(&mut self) {
        let begin = Instant::now();
        self.listener.set_nonblocking(true).unwrap();
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            assert!(begin.elapsed() < PATIENCE, "the switch does not connect");
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.stream = Some(stream);
        self.tell(Body::Hello(Hello::default()));
        self.hear_until(|body| matches!(body, Body::Hello(_)));
    }

    /// Waits until the switch ends the connection. Returns whether it has begun another one.
    pub(super) fn hear_end(&mut self) -> bool {
        let mut stream = self.stream.take().unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            ended => _ = ended.unwrap(),
        }
        self.listener.set_nonblocking(true).unwrap();
        self.listener.accept().is_ok()
    }

    fn tell(&mut self, body: Body) {
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid: 7, body }.encode(&mut bytes).unwrap();
        self.stream.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    fn next(&mut self) -> Body {
        let stream = self.stream.as_mut().unwrap();
        let mut bytes = vec![0; 8];
        stream.read_exact(&mut bytes).unwrap();
        bytes.resize(frame_len(&bytes).unwrap().unwrap(), 0);
        stream.read_exact(&mut bytes[8..]).unwrap();
        Message::decode(&bytes).unwrap().body
    }

    /// What comes up to a message, and that message.
    fn hear_until(&mut self, is_meant: impl Fn(&Body) -> bool) -> Vec<Body> {
        let mut heard = Vec::new();
        loop {
            match self.next() {
                Body::EchoRequest(payload) => self.tell(Body::EchoReply(payload)),
                body => heard.push(body),
            }
            if heard.last().is_some_and(&is_meant) {
                return heard;
            }
        }
    }

    /// Sends a message, and gives the errors and flow removeds up to the end of it.
    pub(super) fn do_it(&mut self, body: Body) -> Vec<Body> {
        self.tell(body);
        self.tell(Body::BarrierRequest);
        let heard = self.hear_until(|body| matches!(body, Body::BarrierReply));
        let counts = |body: &Body| matches!(body, Body::Error(_) | Body::FlowRemoved(_));
        heard.into_iter().filter(counts).collect()
    }

    /// Asks for statistics.
    fn ask(&mut self, body: RequestBody) -> ReplyBody {
        self.tell(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
        match self.hear_until(|body| matches!(body, Body::MultipartReply(_))).pop() {
            Some(Body::MultipartReply(reply)) => reply.body,
            other => panic!("{other:?}"),
        }
    }

    /// Asks for the role of master, with this generation id. Returns the answer.
    fn role(&mut self, generation_id: u64) -> Body {
        self.tell(Body::RoleRequest(Role { role: ROLE_MASTER, generation_id }));
        let mut heard = self.hear_until(|body| matches!(body, Body::RoleReply(_) | Body::Error(_)));
        heard.pop().unwrap()
    }

    /// The rules, as statistics say.
    fn entries(&mut self) -> Vec<FlowStats> {
        let wanted = FlowStatsRequest::default();
        let ReplyBody::Flow(entries) = self.ask(RequestBody::Flow(wanted)) else { panic!("no rules") };
        entries
    }

    /// Priorities, cookies and matches of the rules.
    pub(super) fn rules(&mut self) -> Vec<(u16, u64, Match)> {
        self.entries().into_iter().map(|it| (it.priority, it.cookie, it.matching)).collect()
    }

    /// Packets of the rule with this priority.
    fn packets_of(&mut self, priority: u16) -> u64 {
        self.entries().iter().find(|it| it.priority == priority).unwrap().packet_count
    }

    /// The numbers of meters that have counters.
    fn meters(&mut self) -> Vec<u32> {
        let ReplyBody::Meter(meters) = self.ask(RequestBody::Meter(METER_ALL)) else { panic!("no meters") };
        meters.iter().map(|it| it.meter_id).collect()
    }

    fn port(&mut self) -> Port {
        let ReplyBody::PortDesc(ports) = self.ask(RequestBody::PortDesc) else { panic!("no ports") };
        ports.into_iter().find(|port| port.port_no == PortNo(2)).unwrap()
    }

    /// The configuration of port 2.
    fn config_of_port(&mut self) -> u32 {
        self.port().config
    }

    fn hw_addr(&mut self) -> MacAddr {
        self.port().hw_addr
    }
}

pub(super) fn flow_mod(command: u8, priority: u16, matching: &str, actions: &str) -> Body {
    let fields = FlowModFields {
        command,
        priority,
        cookie: COOKIE,
        flags: FLOW_MOD_SEND_FLOW_REMOVED,
        ..FlowModFields::default()
    };
    let instructions = flow::text::parse_instructions(actions).unwrap();
    Body::FlowMod(fields.with(flow::text::parse_match(matching).unwrap(), instructions))
}

pub(super) fn group() -> Body {
    let actions = vec![flow::Action::output(PortNo(1))];
    let bucket = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions };
    Body::GroupMod(GroupMod { command: 0, group_type: GROUP_TYPE_ALL, group_id: 7, buckets: vec![bucket] })
}

pub(super) fn meter() -> Body {
    let bands = vec![MeterBand { rate: 1_000_000, burst_size: 0, kind: MeterBandKind::Drop }];
    Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 9, bands })
}

/// How many rules the file has that the slice keeps.
pub(super) fn kept(file: &Path) -> Option<usize> {
    let port = |port| PortPlan { port: PortNo(port), shown_as: PortNo(port), is_edge: true };
    let switch = SwitchPlan { datapath: DATAPATH, shown_as: DATAPATH, ports: vec![port(1), port(2)] };
    let plan = SlicePlan {
        name: "blue".to_owned(),
        isolation: Isolation::Vlan(10),
        is_read_only: false,
        switches: vec![switch],
        links: Vec::new(),
        limits: Limits::default(),
        numbers: Numbers::NONE,
    };
    let mut slicer = Slicer::new(&plan).unwrap();
    slicer.recall(DATAPATH, &std::fs::read(file).ok()?).ok()?;
    slicer.rules(DATAPATH).map(|(rules, _)| rules)
}

/// The matches of the slice's rules in the switch with this priority of the tenant.
fn in_switch(node: &Node, priority: u16) -> usize {
    let flows = node.flows().into_iter().flat_map(|switch| switch.flows);
    flows.filter(|it| it.owner == "slice.blue" && it.priority == priority + 2).count()
}

#[test]
fn a_tenants_table_survives_a_kill_of_its_slice_and_a_restart_of_the_node() {
    let (bed, mut tenant) = (bed(), Tenant::new());
    let slice = format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:1', 's1:2']\nports = ['s1:3']\n",
        tenant.address()
    );
    let start = |listen: &str| bed.node().config(&slice).listen(listen).log("info").start_ready();
    let node = start("127.0.0.1:0");
    let address = node.address().to_string();
    let _network = node.network("single,3", &SwitchOptions::default());
    let file: PathBuf = bed.state().join("slices/slice.blue/0000000000000001.journal");
    let wait_kept = |node: &Node, rules| node.wait("the rules are kept", |_| kept(&file) == Some(rules));
    tenant.accept();
    let port_mod =
        PortMod { port_no: PortNo(2), hw_addr: tenant.hw_addr(), config: 1 << 6, mask: 1 << 6, advertise: 0 };
    for body in [
        Body::PortMod(port_mod),
        group(),
        flow_mod(FLOW_ADD, 5, "", "output:2"),
        flow_mod(FLOW_ADD, 6, "in_port=1", "group:7"),
        flow_mod(FLOW_ADD, 9, "dl_dst=02:00:00:00:00:09", "output:1"),
        flow_mod(FLOW_ADD, 10, "dl_dst=02:00:00:00:00:10", "output:1"),
    ] {
        assert_eq!(tenant.do_it(body.clone()), [], "{body:?}");
    }
    let mut before = tenant.rules();
    assert_eq!(before.len(), 4);
    wait_kept(&node, 4);
    kill(node.pid_of("slice.blue").unwrap());
    tenant.accept();
    check_state(&mut tenant, &node, &before, 9);
    assert_eq!(tenant.do_it(flow_mod(FLOW_ADD, 11, "in_port=2", "group:7")), []);
    before = tenant.rules();
    wait_kept(&node, 4);
    drop(node);
    let node = start(&address);
    tenant.accept();
    check_state(&mut tenant, &node, &before, 10);
    assert_eq!(tenant.do_it(flow_mod(FLOW_ADD, 12, "in_port=2", "group:7")), [], "the group is the slice's");
    assert_eq!(tenant.do_it(flow_mod(FLOW_DELETE, 0, "", "")).len(), 4, "all rules, each with its end");
    assert!([5, 6, 10, 11, 12].iter().all(|priority| in_switch(&node, *priority) == 0));
}

/// The tenant's table is as before, and a strict delete of the rule with this priority reaches all of its pieces.
fn check_state(tenant: &mut Tenant, node: &Node, before: &[(u16, u64, Match)], priority: u16) {
    assert_eq!(tenant.rules(), before);
    assert_eq!(tenant.config_of_port(), 1 << 6);
    let refused = tenant.do_it(group());
    assert!(
        matches!(&refused[..], [Body::Error(error)] if (error.kind, error.code) == (6, 0)),
        "{refused:?}"
    );
    assert_eq!(in_switch(node, priority), 3);
    let matching = format!("dl_dst=02:00:00:00:00:{priority:02}");
    let heard = tenant.do_it(flow_mod(FLOW_DELETE_STRICT, priority, &matching, ""));
    assert!(matches!(&heard[..], [Body::FlowRemoved(it)] if it.cookie == COOKIE), "{heard:?}");
    assert_eq!(in_switch(node, priority), 0);
}

/// Whether the switch holds the VNIC at port 1 to its rate.
fn is_vnic_metered(node: &Node) -> bool {
    let mut flows = node.flows().into_iter().flat_map(|switch| switch.flows);
    let is_metered = flows.any(|it| {
        it.owner == "slice.blue" && it.matching.contains("in_port=1") && it.actions.contains("meter:")
    });
    let shown = super::show(node, "blue");
    is_metered && matches!(shown.switches[0].vnics[0].shaped_by, ShapedBy::Meter(_))
}

#[test]
fn counters_meters_and_the_generation_id_survive_a_kill_of_the_slice_and_a_restart_of_the_node() {
    let (bed, mut tenant) = (bed(), Tenant::new());
    let slice = format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:2']\nports = ['s1:3']\n\
         vnics = {{ A = {{ port = 's1:1', rate = '1M' }} }}\n",
        tenant.address()
    );
    let start = |listen: &str| bed.node().config(&slice).listen(listen).log("info").start_ready();
    let mut node = start("127.0.0.1:0");
    let address = node.address().to_string();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = node.network("single,3", &options);
    let file: PathBuf = bed.state().join("slices/slice.blue/0000000000000001.journal");
    tenant.accept();
    assert!(matches!(tenant.role(10), Body::RoleReply(_)));
    for body in [
        meter(),
        flow_mod(FLOW_ADD, 5, "in_port=1", "output:3"),
        flow_mod(FLOW_ADD, 6, "in_port=2", "meter:9,output:3"),
    ] {
        assert_eq!(tenant.do_it(body.clone()), [], "{body:?}");
    }
    let frame = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[0; 50]].concat();
    let mut sent = 0;
    let mut send = |tenant: &mut Tenant, node: &Node| {
        (0..3).for_each(|_| network.send_frame("h2", frame.clone()).unwrap());
        sent += 3;
        let mut counted = 0;
        let begin = Instant::now();
        while counted != sent {
            assert!(begin.elapsed() < PATIENCE, "{counted} of {sent} packets");
            counted = tenant.packets_of(6);
        }
        node.wait("the VNIC is metered", is_vnic_metered);
        sent
    };
    send(&mut tenant, &node);
    node.wait("the rules are kept", |_| kept(&file) == Some(2));
    for restarts_node in [false, true] {
        if restarts_node {
            drop(node);
            node = start(&address);
        } else {
            kill(node.pid_of("slice.blue").unwrap());
        }
        tenant.accept();
        let (stale, again) = (tenant.role(9), tenant.role(10));
        assert!(matches!(&stale, Body::Error(error) if (error.kind, error.code) == (11, 0)), "{stale:?}");
        assert!(matches!(again, Body::RoleReply(_)), "{again:?}");
        let exists = tenant.do_it(meter());
        assert!(
            matches!(&exists[..], [Body::Error(error)] if (error.kind, error.code) == (12, 1)),
            "{exists:?}"
        );
        assert_eq!(tenant.meters(), [9], "its counters, and not those of the VNIC's meter");
        send(&mut tenant, &node);
    }
    let sent = send(&mut tenant, &node);
    let heard = tenant.do_it(flow_mod(FLOW_DELETE_STRICT, 6, "in_port=2", ""));
    let [Body::FlowRemoved(removed)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((removed.priority, removed.cookie, removed.packet_count), (6, COOKIE, sent));
}

#[test]
fn groups_of_a_slice_with_own_ports_alone_work_also_after_a_restart_of_the_node() {
    let (bed, mut tenant) = (bed(), Tenant::new());
    let slice = format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:1', 's1:2']\n",
        tenant.address()
    );
    let start = |listen: &str| bed.node().config(&slice).listen(listen).log("info").start_ready();
    let mut node = start("127.0.0.1:0");
    let address = node.address().to_string();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = node.network("single,2", &options);
    let file: PathBuf = bed.state().join("slices/slice.blue/0000000000000001.journal");
    tenant.accept();
    assert_eq!(tenant.do_it(group()), []);
    let frame = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[0; 50]].concat();
    let received = || {
        let counters = network.host_counters().into_iter();
        counters.filter(|(name, _)| name == "h1").map(|(_, it)| it.frames_in).sum::<u64>()
    };
    for (restarts, priority) in [(0, 5), (1, 6)] {
        let rewritten = "set_field:02:00:00:00:00:07->eth_dst,group:7";
        assert_eq!(tenant.do_it(flow_mod(FLOW_ADD, priority, "in_port=2", rewritten)), []);
        network.send_frame("h2", frame.clone()).unwrap();
        let begin = Instant::now();
        while received() != restarts + 1 {
            assert!(begin.elapsed() < PATIENCE, "{} frames", received());
        }
        // A switch may begin to count again when the group is modified to what it is.
        let ReplyBody::Group(groups) = tenant.ask(RequestBody::Group(GROUP_ALL)) else { panic!("no groups") };
        let counted: Vec<_> = groups.iter().map(|it| (it.group_id, it.packet_count > 0)).collect();
        assert_eq!(counted, [(7, true)]);
        if restarts == 0 {
            node.wait("the rule is kept", |_| kept(&file) == Some(1));
            drop(node);
            node = start(&address);
            tenant.accept();
        }
    }
    drop(node);
}
