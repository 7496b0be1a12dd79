//! The replies of a load switch in its handshake with a controller.
//!
//! ```text
//!   hello, features, configuration, ports, roles, statistics, barriers, echoes ──> the reply; "the controller knows me"
//! ```
//!
//! A load switch has ports but no rules, and all its statistics are empty. This file never counts an answer and never
//! sends a packet-in.

use flow::{DatapathId, ErrorCode, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version, write};
use std::time::Duration;

use crate::traffic::PORTS;

/// A 1.3 controller that has requested the features but not the ports is assumed to know the switch after this time.
const PORTS_PATIENCE: Duration = Duration::from_millis(500);

/// OFPBRC_BAD_EXPERIMENTER.
const BAD_EXPERIMENTER: ErrorCode = ErrorCode { kind: 1, code: 3 };
/// OFPBRC_BAD_MULTIPART.
const BAD_MULTIPART: ErrorCode = ErrorCode { kind: 1, code: 2 };
/// OFPET_HELLO_FAILED.
const HELLO_FAILED: u16 = 0;
/// OFPPF_10GB_FD, the same bit in both versions.
const TEN_GIGABIT: u32 = 1 << 6;
/// Actions 0 to 11: all actions of 1.0.
const ACTIONS_1_0: u32 = 0xfff;
/// A table size that no learning switch fills.
const TABLE_ENTRIES: u32 = 1_000_000;

/// A load switch, as it describes itself to the controller.
#[derive(Debug)]
pub(crate) struct Greeting {
    version: Version,
    datapath_id: DatapathId,
    config: SwitchConfig,
    role: u32,
    features_asked_at: Option<Duration>,
    ports_asked: bool,
}

impl Greeting {
    pub(crate) fn new(version: Version, datapath_id: DatapathId) -> Self {
        Greeting {
            version,
            datapath_id,
            config: SwitchConfig { flags: 0, miss_send_len: 128 },
            role: ROLE_EQUAL,
            features_asked_at: None,
            ports_asked: false,
        }
    }

    /// Appends the switch's hello.
    pub(crate) fn hello(&self, out: &mut Vec<u8>) {
        write::hello(self.version, 1, Some(1 << self.version.0), out);
    }

    /// Whether the controller has asked for everything that it needs before it accepts packet-ins.
    pub(crate) fn is_known(&self, now: Duration) -> bool {
        self.features_asked_at.is_some_and(|asked_at| {
            self.version == Version::V1_0
                || self.ports_asked
                || now.saturating_sub(asked_at) >= PORTS_PATIENCE
        })
    }

    /// Replies to a message that does not answer a packet-in.
    ///
    /// # Errors
    ///
    /// The reason why the connection cannot be used any more.
    pub(crate) fn on_message(
        &mut self,
        bytes: &[u8],
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            // A hello of an unknown version is valid: its header has all that is needed.
            Err(_) if bytes.get(1) == Some(&0) => return Ok(()),
            Err(bad) => return Err(format!("a message is malformed: {bad}")),
        };
        let xid = message.xid;
        match self.reply(message, now)? {
            Reply::Nothing => Ok(()),
            Reply::Error(error) => {
                write::error(self.version, xid, error, bytes, out);
                Ok(())
            }
            Reply::Body(body) => Message { version: self.version, xid, body: *body }
                .encode(out)
                .map_err(|unwritable| format!("the reply cannot be encoded: {unwritable}")),
        }
    }

    fn reply(&mut self, message: Message, now: Duration) -> Result<Reply, String> {
        Ok(match message.body {
            Body::EchoRequest(data) => Body::EchoReply(data).into(),
            Body::FeaturesRequest => {
                self.features_asked_at.get_or_insert(now);
                Body::FeaturesReply(self.features()).into()
            }
            Body::GetConfigRequest => Body::GetConfigReply(self.config).into(),
            Body::SetConfig(config) => {
                self.config = config;
                Reply::Nothing
            }
            Body::BarrierRequest => Body::BarrierReply.into(),
            Body::RoleRequest(role) => {
                if role.role != ROLE_NOCHANGE {
                    self.role = role.role;
                }
                Body::RoleReply(Role { role: self.role, generation_id: role.generation_id }).into()
            }
            Body::GetAsyncRequest => Body::GetAsyncReply(AsyncConfig::default()).into(),
            Body::QueueGetConfigRequest(asked) => {
                Body::QueueGetConfigReply(QueueGetConfigReply { port: asked.port, queues: Vec::new() }).into()
            }
            Body::MultipartRequest(request) => match self.statistics(request.body) {
                Some(body) => Body::MultipartReply(MultipartReply { flags: 0, body }).into(),
                None => Reply::Error(BAD_MULTIPART),
            },
            Body::Experimenter(_) => Reply::Error(BAD_EXPERIMENTER),
            Body::Error(error) if error.kind == HELLO_FAILED => {
                return Err(format!("the controller does not speak OpenFlow {}", self.version));
            }
            // Changes of the switch's state have no effect here. Messages that only switches send are ignored.
            _ => Reply::Nothing,
        })
    }

    fn features(&self) -> FeaturesReply {
        let is_v10 = self.version == Version::V1_0;
        FeaturesReply {
            datapath_id: self.datapath_id,
            n_buffers: super::template::BUFFER_IDS,
            n_tables: 1,
            auxiliary_id: 0,
            // OFPC_FLOW_STATS, OFPC_TABLE_STATS, OFPC_PORT_STATS.
            capabilities: 0b111,
            actions: if is_v10 { ACTIONS_1_0 } else { 0 },
            ports: if is_v10 { self.ports() } else { Vec::new() },
        }
    }

    fn ports(&self) -> Vec<Port> {
        let [.., high, low] = self.datapath_id.0.to_be_bytes();
        let port = |number: u16| Port {
            port_no: PortNo(number.into()),
            hw_addr: MacAddr([0x06, high, low, 0, 0, number as u8]),
            name: format!("load{number}"),
            config: 0,
            state: 0,
            curr: TEN_GIGABIT,
            advertised: TEN_GIGABIT,
            supported: TEN_GIGABIT,
            peer: 0,
            curr_speed_kbps: 10_000_000,
            max_speed_kbps: 10_000_000,
        };
        (1..=PORTS).map(port).collect()
    }

    /// The reply to a request for statistics. Parts that a load switch does not have are empty.
    fn statistics(&mut self, asked: RequestBody) -> Option<ReplyBody> {
        Some(match asked {
            RequestBody::Desc => ReplyBody::Desc(description()),
            RequestBody::PortDesc => {
                self.ports_asked = true;
                ReplyBody::PortDesc(self.ports())
            }
            RequestBody::Flow(_) => ReplyBody::Flow(Vec::new()),
            RequestBody::Aggregate(_) => {
                ReplyBody::Aggregate(AggregateStats { packet_count: 0, byte_count: 0, flow_count: 0 })
            }
            RequestBody::Table => ReplyBody::Table(vec![table()]),
            RequestBody::TableFeatures(_) => ReplyBody::TableFeatures(vec![table_features()]),
            RequestBody::PortStats(_) => ReplyBody::PortStats(Vec::new()),
            RequestBody::Queue { .. } => ReplyBody::Queue(Vec::new()),
            RequestBody::Group(_) => ReplyBody::Group(Vec::new()),
            RequestBody::GroupDesc => ReplyBody::GroupDesc(Vec::new()),
            RequestBody::Meter(_) => ReplyBody::Meter(Vec::new()),
            RequestBody::MeterConfig(_) => ReplyBody::MeterConfig(Vec::new()),
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(GroupFeatures {
                types: 0,
                capabilities: 0,
                max_groups: [0; 4],
                actions: [0; 4],
            }),
            RequestBody::MeterFeatures => ReplyBody::MeterFeatures(MeterFeatures {
                max_meter: 0,
                band_types: 0,
                capabilities: 0,
                max_bands: 0,
                max_color: 0,
            }),
            RequestBody::Experimenter(_) => return None,
        })
    }
}

/// The reply to a message.
enum Reply {
    Nothing,
    Error(ErrorCode),
    Body(Box<Body>),
}

impl From<Body> for Reply {
    fn from(body: Body) -> Self {
        Reply::Body(Box::new(body))
    }
}

fn description() -> SwitchDesc {
    SwitchDesc {
        mfr_desc: "Burnet".to_owned(),
        hw_desc: "a shell of a switch, for load".to_owned(),
        sw_desc: env!("CARGO_PKG_VERSION").to_owned(),
        serial_num: String::new(),
        dp_desc: String::new(),
    }
}

fn table() -> TableStats {
    TableStats {
        table_id: 0,
        name: "load".to_owned(),
        wildcards: u32::MAX,
        max_entries: TABLE_ENTRIES,
        active_count: 0,
        lookup_count: 0,
        matched_count: 0,
    }
}

fn table_features() -> TableFeatures {
    TableFeatures {
        table_id: 0,
        name: "load".to_owned(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: TABLE_ENTRIES,
        properties: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

    /// The body of the reply to a message, if there is one.
    fn said_to(greeting: &mut Greeting, body: Body) -> Result<Option<Body>, String> {
        let mut bytes = Vec::new();
        Message { version: greeting.version, xid: 42, body }.encode(&mut bytes).unwrap();
        let mut out = Vec::new();
        greeting.on_message(&bytes, Duration::ZERO, &mut out)?;
        if out.is_empty() {
            return Ok(None);
        }
        let reply = Message::decode(&out).unwrap();
        assert_eq!((reply.version, reply.xid), (greeting.version, 42));
        Ok(Some(reply.body))
    }

    fn statistics(body: RequestBody) -> Body {
        Body::MultipartRequest(MultipartRequest { flags: 0, body })
    }

    #[test]
    fn nonsense_ends_the_connection_and_an_unknown_hello_does_not() {
        let mut greeting = Greeting::new(Version::V1_3, DatapathId(1));
        let mut out = Vec::new();
        let mut hear = |bytes: &[u8]| greeting.on_message(bytes, Duration::ZERO, &mut out);
        assert!(hear(&[4, 99, 0, 8, 0, 0, 0, 0]).is_err());
        assert!(hear(&[6, 0, 0, 8, 0, 0, 0, 0]).is_ok());
        assert!(out.is_empty());
    }

    #[test]
    fn a_controller_that_does_not_speak_the_version_says_so() {
        let error = ErrorMessage { kind: 0, code: 0, experimenter: None, data: b"1.3 only".to_vec() };
        let refused = said_to(&mut Greeting::new(Version::V1_0, DatapathId(1)), Body::Error(error));
        assert_eq!(refused.unwrap_err(), "the controller does not speak OpenFlow 1.0");
    }

    #[test]
    fn what_is_asked_of_every_switch_is_answered() {
        for version in VERSIONS {
            let mut greeting = Greeting::new(version, DatapathId(0x0a0b));
            let Some(Body::FeaturesReply(features)) = said_to(&mut greeting, Body::FeaturesRequest).unwrap()
            else {
                panic!("no features")
            };
            assert_eq!(features.datapath_id, DatapathId(0x0a0b));
            assert_eq!(features.ports.len(), if version == Version::V1_0 { 4 } else { 0 });
            let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
            assert_eq!(said_to(&mut greeting, Body::SetConfig(config)), Ok(None));
            assert_eq!(
                said_to(&mut greeting, Body::GetConfigRequest),
                Ok(Some(Body::GetConfigReply(config)))
            );
            assert_eq!(
                said_to(&mut greeting, Body::EchoRequest(vec![7])),
                Ok(Some(Body::EchoReply(vec![7])))
            );
            assert_eq!(said_to(&mut greeting, Body::BarrierRequest), Ok(Some(Body::BarrierReply)));
            for asked in [RequestBody::Desc, RequestBody::Table, RequestBody::PortStats(PortNo::ANY)] {
                let reply = said_to(&mut greeting, statistics(asked.clone())).unwrap();
                assert!(matches!(reply, Some(Body::MultipartReply(_))), "{asked:?}: {reply:?}");
            }
        }
    }

    #[test]
    fn what_is_asked_of_switches_of_1_3_is_answered() {
        let mut greeting = Greeting::new(Version::V1_3, DatapathId(1));
        let role = |role| Role { role, generation_id: 5 };
        assert_eq!(
            said_to(&mut greeting, Body::RoleRequest(role(ROLE_MASTER))),
            Ok(Some(Body::RoleReply(role(ROLE_MASTER))))
        );
        assert_eq!(
            said_to(&mut greeting, Body::RoleRequest(role(ROLE_NOCHANGE))),
            Ok(Some(Body::RoleReply(role(ROLE_MASTER))))
        );
        for asked in [
            RequestBody::TableFeatures(Vec::new()),
            RequestBody::GroupFeatures,
            RequestBody::MeterFeatures,
            RequestBody::PortDesc,
        ] {
            let reply = said_to(&mut greeting, statistics(asked.clone())).unwrap();
            assert!(matches!(reply, Some(Body::MultipartReply(_))), "{asked:?}: {reply:?}");
        }
        let foreign = Experimenter { experimenter: 0x2320, exp_type: Some(1), data: Vec::new() };
        let reply = said_to(&mut greeting, Body::Experimenter(foreign)).unwrap();
        assert!(matches!(reply, Some(Body::Error(_))), "{reply:?}");
    }

    #[test]
    fn a_switch_is_known_when_it_was_asked_what_it_is_and_has() {
        let mut of_1_0 = Greeting::new(Version::V1_0, DatapathId(1));
        assert!(!of_1_0.is_known(PORTS_PATIENCE));
        said_to(&mut of_1_0, Body::FeaturesRequest).unwrap();
        assert!(of_1_0.is_known(Duration::ZERO));
        let mut of_1_3 = Greeting::new(Version::V1_3, DatapathId(1));
        said_to(&mut of_1_3, Body::FeaturesRequest).unwrap();
        assert!(!of_1_3.is_known(Duration::ZERO));
        assert!(of_1_3.is_known(PORTS_PATIENCE), "it is never asked for its ports");
        said_to(&mut of_1_3, statistics(RequestBody::PortDesc)).unwrap();
        assert!(of_1_3.is_known(Duration::ZERO));
    }
}
