//! A tenant's controller: the OpenFlow connections with the switches of its slice, and what its app decides.
//!
//! ```text
//!   bytes of a virtual switch ──> hello, labels behind ports, errors ──> Controller ──> messages ──> bytes for virtual switches
//! ```
//!
//! In: bytes of virtual switches, labels of the event stream, time. Out: bytes. It knows its slice alone: what the tenant of a real one would.

use flow::DatapathId;
use openflow::labels::{LabelMessage, NO_LABEL, split_labels};
use openflow::message::{ErrorMessage, Hello};
use openflow::{Body, Message, Version};
use slice::settings::LabelSettings;
use slicer::Connection;
use std::collections::BTreeMap;
use view::LinkId;

/// The most errors of which each is kept. All are counted.
const ERRORS_MAX: usize = 256;

/// What a controller wants to send: a message for the virtual switch of a physical one.
pub type Outgoing = (DatapathId, Body);

/// The label of a port, as a controller heard it: the port where the link begins, by the number that the tenant sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardLabel {
    /// The physical switch, by which connections are known here.
    pub datapath: DatapathId,
    /// The port.
    pub port: flow::PortNo,
    /// The label in kbit/s. `None`: there is none.
    pub kbps: Option<u64>,
}

/// What a tenant's controller decides. It gets all messages but hellos and errors.
pub trait Controller: Send {
    /// The connection of a switch is open.
    fn on_open(&mut self, datapath: DatapathId, version: Version, out: &mut Vec<Outgoing>);

    /// A message of a switch.
    fn on_message(&mut self, datapath: DatapathId, message: &Message, now_ms: u64, out: &mut Vec<Outgoing>);

    /// A label came.
    fn on_label(&mut self, _label: HeardLabel, _now_ms: u64, _out: &mut Vec<Outgoing>) {}

    /// Time has passed.
    fn on_time(&mut self, _now_ms: u64, _out: &mut Vec<Outgoing>) {}

    /// When it wants [`Controller::on_time`] next.
    fn next_ms(&self) -> Option<u64> {
        None
    }

    /// How often it moved a flow to another path.
    fn moves(&self) -> usize {
        0
    }
}

/// The controller of a tenant that only observes. It sends no message, and adds no rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observer;

impl Controller for Observer {
    fn on_open(&mut self, _: DatapathId, _: Version, _: &mut Vec<Outgoing>) {}

    fn on_message(&mut self, _: DatapathId, _: &Message, _: u64, _: &mut Vec<Outgoing>) {}
}

/// An error that a tenant got.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantError {
    /// The virtual switch that sent it, by its physical one.
    pub datapath: DatapathId,
    /// The name of the message that got it.
    pub message: String,
    /// The name of the error, in the version of the connection.
    pub error: String,
    /// Why, if the slice or the kernel has a sentence.
    pub why: Option<String>,
}

/// A tenant with its connections.
pub(crate) struct Tenant {
    version: Version,
    form: LabelSettings,
    controller: Box<dyn Controller>,
    /// By switch: whether the connection is open.
    open: BTreeMap<DatapathId, bool>,
    xid: u32,
    /// How often it got each error.
    pub(crate) errors: BTreeMap<TenantError, u64>,
    /// How many errors it got.
    pub(crate) error_count: u64,
}

/// An error with the message that it answers.
pub(crate) struct Refused {
    pub(crate) error: TenantError,
    /// As much of the message as the error quotes.
    pub(crate) quoted: Vec<u8>,
}

impl Tenant {
    pub(crate) fn new(version: Version, form: LabelSettings, controller: Box<dyn Controller>) -> Tenant {
        Tenant {
            version,
            form,
            controller,
            open: BTreeMap::new(),
            xid: 0,
            errors: BTreeMap::new(),
            error_count: 0,
        }
    }

    /// A virtual switch dials.
    pub(crate) fn on_connected(&mut self, datapath: DatapathId) {
        self.open.insert(datapath, false);
    }

    /// Whether its connections receive labels on the wire. 1.0 has no speed of a port.
    fn hears_on_the_wire(&self) -> bool {
        match self.form {
            LabelSettings::None => false,
            LabelSettings::Speed => self.version != Version::V1_0,
            LabelSettings::Paper | LabelSettings::Experimenter => true,
        }
    }

    /// A message of a virtual switch. Returns an error that it is.
    pub(crate) fn on_bytes(
        &mut self,
        from: Connection,
        bytes: &[u8],
        now_ms: u64,
        out: &mut Vec<(DatapathId, Vec<u8>)>,
    ) -> Option<Refused> {
        let datapath = from.datapath;
        let is_paper = self.form == LabelSettings::Paper && self.open.get(&datapath) == Some(&true);
        let (plain, labels) = match is_paper {
            true => split_labels(bytes).unwrap_or_else(|_| (bytes.to_vec(), Vec::new())),
            false => (bytes.to_vec(), Vec::new()),
        };
        let Ok(message) = Message::decode(&plain) else { return None };
        let mut said = Vec::new();
        match &message.body {
            Body::Hello(_) => self.on_hello(datapath, &mut said),
            Body::Error(error) => return Some(self.on_error(datapath, message.version, error)),
            _ => {
                self.hear_labels(datapath, &message, &labels, now_ms, &mut said);
                self.controller.on_message(datapath, &message, now_ms, &mut said);
            }
        }
        self.send(said, out);
        None
    }

    fn on_hello(&mut self, datapath: DatapathId, said: &mut Vec<Outgoing>) {
        said.push((datapath, Body::Hello(Hello::default())));
        self.open.insert(datapath, true);
        self.controller.on_open(datapath, self.version, said);
    }

    fn on_error(&mut self, datapath: DatapathId, version: Version, error: &ErrorMessage) -> Refused {
        use openflow::names::{error_code_name, error_type_name, message_type_name};
        let kind = error_type_name(version, error.kind).unwrap_or_else(|| format!("type {}", error.kind));
        let code = error_code_name(version, error.kind, error.code)
            .unwrap_or_else(|| format!("code {}", error.code));
        let message = error.data.get(1).and_then(|kind| message_type_name(version, *kind));
        let message = message.unwrap_or("a message").to_owned();
        let error_name = format!("{kind}, {code}");
        let tenant_error = TenantError { datapath, message, error: error_name, why: None };
        Refused { error: tenant_error, quoted: error.data.clone() }
    }

    /// Counts an error.
    pub(crate) fn note(&mut self, error: TenantError) {
        self.error_count += 1;
        if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&error) {
            *self.errors.entry(error).or_default() += 1;
        }
    }

    fn hear_labels(
        &mut self,
        datapath: DatapathId,
        message: &Message,
        behind_ports: &[u32],
        now_ms: u64,
        said: &mut Vec<Outgoing>,
    ) {
        if !self.hears_on_the_wire() {
            return;
        }
        let heard = match (self.form, &message.body) {
            (LabelSettings::Experimenter, Body::Experimenter(it)) => of_experimenter(it),
            (LabelSettings::Paper, body) => {
                ports_of(body).into_iter().zip(behind_ports.iter().copied()).collect()
            }
            (LabelSettings::Speed, Body::PortStatus(status)) => {
                vec![(status.port.port_no, status.port.curr_speed_kbps)]
            }
            _ => Vec::new(),
        };
        for (port, kbps) in heard {
            let kbps = (kbps != NO_LABEL).then_some(u64::from(kbps));
            self.controller.on_label(HeardLabel { datapath, port, kbps }, now_ms, said);
        }
    }

    /// A label of the event stream. A tenant that receives labels on its connections reads those.
    pub(crate) fn on_stream(&mut self, label: HeardLabel, now_ms: u64, out: &mut Vec<(DatapathId, Vec<u8>)>) {
        if !self.hears_on_the_wire() {
            let mut said = Vec::new();
            self.controller.on_label(label, now_ms, &mut said);
            self.send(said, out);
        }
    }

    /// Time has passed.
    pub(crate) fn on_time(&mut self, now_ms: u64, out: &mut Vec<(DatapathId, Vec<u8>)>) {
        let mut said = Vec::new();
        self.controller.on_time(now_ms, &mut said);
        self.send(said, out);
    }

    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.controller.next_ms()
    }

    pub(crate) fn moves(&self) -> usize {
        self.controller.moves()
    }

    /// Sends a message that its app did not decide on.
    pub(crate) fn say(&mut self, datapath: DatapathId, body: Body, out: &mut Vec<(DatapathId, Vec<u8>)>) {
        self.send(vec![(datapath, body)], out);
    }

    fn send(&mut self, said: Vec<Outgoing>, out: &mut Vec<(DatapathId, Vec<u8>)>) {
        for (datapath, body) in said {
            self.xid += 1;
            let mut bytes = Vec::new();
            // A message that its version cannot say is not sent.
            if self.open.contains_key(&datapath)
                && (Message { version: self.version, xid: self.xid, body }).encode(&mut bytes).is_ok()
            {
                out.push((datapath, bytes));
            }
        }
    }
}

fn of_experimenter(message: &openflow::message::Experimenter) -> Vec<(flow::PortNo, u32)> {
    match LabelMessage::read(message) {
        Ok(Some(LabelMessage::Labels { labels, .. })) => {
            labels.iter().map(|label| (label.port, label.label_kbps)).collect()
        }
        _ => Vec::new(),
    }
}

/// The ports that a message describes, in order.
fn ports_of(body: &Body) -> Vec<flow::PortNo> {
    use openflow::message::ReplyBody;
    match body {
        Body::PortStatus(status) => vec![status.port.port_no],
        Body::FeaturesReply(reply) => reply.ports.iter().map(|port| port.port_no).collect(),
        Body::MultipartReply(reply) => match &reply.body {
            ReplyBody::PortDesc(ports) => ports.iter().map(|port| port.port_no).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The port where a link begins.
pub(crate) fn begins_at(link: LinkId) -> (DatapathId, flow::PortNo) {
    (link.from.switch, link.from.port)
}
