//! The beginning of a session: the version, what the switch is, and whether it has foreign rules.
//!
//! ```text
//!   hello ──> features ──> description ──> flow entries ──┬── none, or a probe's ──> Ready
//!                                                         └── foreign ──> Refused, or cleared
//! ```
//!
//! In: the switch's messages. Out: requests, and how it ended. It never removes a rule: it says whether that is needed.

use crate::findings::Description;
use crate::rules;
use openflow::message::{
    FeaturesReply, Hello, HelloElement, MULTIPART_MORE, MultipartReply, ReplyBody, RequestBody,
};
use openflow::{Body, Message, Version};

/// The transaction ids of the handshake. Scripts use higher ones.
const FEATURES_XID: u32 = 1;
const DESCRIPTION_XID: u32 = 2;
const FLOWS_XID: u32 = 3;
/// The first transaction id that the handshake does not use.
pub const XIDS: u32 = 16;

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Hello,
    Features,
    Description,
    Flows,
}

/// What a message led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Further messages are awaited. These are sent now.
    Ask(Vec<Message>),
    /// It is over.
    Ready,
    /// The switch cannot be probed, for this reason.
    Refused(String),
}

/// A handshake.
#[derive(Debug)]
pub struct Handshake {
    step: Step,
    offered: Vec<Version>,
    /// The version that both sides speak.
    pub version: Version,
    /// What the switch declares about itself.
    pub description: Description,
    /// How many flow entries it has that no probe added.
    pub foreign: usize,
    /// How many it has from an earlier probe.
    pub left_over: usize,
}

impl Handshake {
    /// Begins: the messages to send when the switch connects.
    pub fn new(offered: &[Version]) -> (Self, Vec<Message>) {
        let highest = offered.iter().copied().max().unwrap_or(Version::V1_3);
        let bitmap = offered.iter().fold(0u32, |bits, version| bits | 1 << version.0);
        // A hello of 1.0 has no elements.
        let elements = if highest == Version::V1_0 {
            Vec::new()
        } else {
            vec![HelloElement::VersionBitmap(vec![bitmap])]
        };
        let hello = Message { version: highest, xid: 0, body: Body::Hello(Hello { elements }) };
        let handshake = Handshake {
            step: Step::Hello,
            offered: offered.to_vec(),
            version: highest,
            description: Description::default(),
            foreign: 0,
            left_over: 0,
        };
        (handshake, vec![hello])
    }

    /// What it waits for, for people.
    pub fn waits_for(&self) -> &'static str {
        match self.step {
            Step::Hello => "hello",
            Step::Features => "features request",
            Step::Description => "description request",
            Step::Flows => "request for its flow entries",
        }
    }

    /// The switch sent a message.
    pub fn on_message(&mut self, message: &Message) -> Progress {
        match (&message.body, self.step) {
            (Body::Hello(hello), Step::Hello) => self.on_hello(message.version, hello),
            (Body::FeaturesReply(features), Step::Features) => self.on_features(features),
            (Body::MultipartReply(reply), _) => self.on_part(message.xid, reply),
            // A switch without descriptions can be probed all the same.
            (Body::Error(_), Step::Description) if message.xid == DESCRIPTION_XID => self.ask_for_flows(),
            (Body::Error(error), _) if message.xid < XIDS => Progress::Refused(format!(
                "the switch refused the {} (error type {}, code {})",
                self.waits_for(),
                error.kind,
                error.code
            )),
            _ => Progress::Ask(Vec::new()),
        }
    }

    fn on_hello(&mut self, theirs: Version, hello: &Hello) -> Progress {
        let bitmap = hello.elements.iter().find_map(|element| match element {
            HelloElement::VersionBitmap(words) => words.first().copied(),
            HelloElement::Unknown { .. } => None,
        });
        let speaks = |version: &Version| match bitmap {
            Some(bits) => bits >> version.0 & 1 == 1,
            // Without a bitmap, the lower of both versions is spoken (OpenFlow 1.3.5, 6.3.1).
            None => *version == theirs.min(self.version),
        };
        let Some(version) = self.offered.iter().copied().filter(speaks).max() else {
            return Progress::Refused(format!(
                "the switch speaks OpenFlow {theirs}, and no version that was offered"
            ));
        };
        self.version = version;
        self.step = Step::Features;
        self.ask(FEATURES_XID, Body::FeaturesRequest)
    }

    fn on_features(&mut self, features: &FeaturesReply) -> Progress {
        self.description.buffers = features.n_buffers;
        self.description.datapath_id = features.datapath_id.0;
        self.step = Step::Description;
        self.ask(DESCRIPTION_XID, rules::request(RequestBody::Desc))
    }

    fn on_part(&mut self, xid: u32, reply: &MultipartReply) -> Progress {
        match (&reply.body, self.step) {
            (ReplyBody::Desc(of), Step::Description) if xid == DESCRIPTION_XID => {
                self.description.manufacturer = of.mfr_desc.clone();
                self.description.hardware = of.hw_desc.clone();
                self.description.software = of.sw_desc.clone();
                self.ask_for_flows()
            }
            (ReplyBody::Flow(entries), Step::Flows) if xid == FLOWS_XID => {
                let ours = entries.iter().filter(|entry| rules::is_ours(entry.cookie)).count();
                self.left_over += ours;
                self.foreign += entries.len() - ours;
                if reply.flags & MULTIPART_MORE == 0 { Progress::Ready } else { Progress::Ask(Vec::new()) }
            }
            _ => Progress::Ask(Vec::new()),
        }
    }

    fn ask_for_flows(&mut self) -> Progress {
        self.step = Step::Flows;
        self.ask(FLOWS_XID, rules::flow_stats())
    }

    fn ask(&self, xid: u32, body: Body) -> Progress {
        Progress::Ask(vec![Message { version: self.version, xid, body }])
    }
}
