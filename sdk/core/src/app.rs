//! What an app is: a type with handlers.
//!
//! Never calls them; the zone does, through `instance`.

use crate::commands::{Commands, Ticket};
use crate::settings::Settings;
use crate::stream::Update;
use abi::Receipt;
use abi::event::{
    FlowRemoved, PacketIn, PortStatus, Query, QueryOver, QueryReply, SoftLimit, StatsReply, SwitchError,
    SwitchUp, Topic, kind,
};
use flow::{DatapathId, Match};

/// No app is told of more packet-ins ahead than this. Sixteen looked up together gave more than eight one after the other; more was not tried.
pub const MOST_AHEAD: usize = 16;

/// A network application. Each handler that is left out does nothing.
pub trait App: Sized + 'static {
    /// Comes to be from its settings. A refusal is a sentence for the operator.
    fn new(settings: &Settings) -> Result<Self, String>;

    /// Whether, with these settings, each switch can be served without knowing of the others. Then a process zone of a node with several workers has a
    /// thread and an instance for each of them, as a trusted app has; else one instance hears all switches.
    fn serves_switches_apart(_: &Settings) -> bool {
        false
    }

    /// What it wants to hear. Asked once, before any handler is called.
    fn interests(&self) -> Interests;

    /// Called once, after the subscription: for commands that need no event.
    fn on_start(&mut self, _out: &mut Commands) {}

    /// A switch is there. Comes for every switch that was there already when the app started, too.
    fn on_switch_up(&mut self, _up: &SwitchUp, _out: &mut Commands) {}

    /// A switch is gone.
    fn on_switch_down(&mut self, _datapath: DatapathId, _out: &mut Commands) {}

    /// A packet came up.
    fn on_packet_in(&mut self, _packet: &PacketIn, _out: &mut Commands) {}

    /// Of how many packet-ins ahead [`App::on_packet_ins_ahead`] is to be told, now; [`MOST_AHEAD`] at most. An app whose memory does not
    /// fit the processor's caches does well to say about sixteen; one whose does spares the work with 0. Only a trusted app is told: its zone
    /// has events in batches.
    fn look_ahead(&self) -> usize {
        0
    }

    /// Packet-ins whose turn will come soon, if nothing goes wrong before: look at the memory that they will need, so that what is
    /// needed for several is fetched at the same time, and do no more.
    fn on_packet_ins_ahead(&self, _packets: &[PacketIn]) {}

    /// A port came, went or changed.
    fn on_port_status(&mut self, _status: &PortStatus, _out: &mut Commands) {}

    /// A rule is gone that was added with a wish to be told.
    fn on_flow_removed(&mut self, _removed: &FlowRemoved, _out: &mut Commands) {}

    /// A switch complained of a command of this app that asked for no receipt.
    fn on_switch_error(&mut self, _error: &SwitchError, _out: &mut Commands) {}

    /// An answer, or a part of one, to a statistics request.
    fn on_stats_reply(&mut self, _reply: &StatsReply, _out: &mut Commands) {}

    /// What became of a command that asked for a receipt.
    fn on_receipt(&mut self, _datapath: DatapathId, _receipt: &Receipt, _out: &mut Commands) {}

    /// So many packet-ins were dropped, since the app did not keep up.
    fn on_dropped(&mut self, _count: u64, _out: &mut Commands) {}

    /// It uses more than a soft limit of a quota or of what it takes of the machine (`limit.quota` says which), or no more than that again.
    /// Beyond the hard limit commands are refused, or the app is ended.
    fn on_soft_limit(&mut self, _limit: &SoftLimit, _out: &mut Commands) {}

    /// Whether it is a service of the node that serves the monitor.
    #[doc(hidden)]
    fn serves_monitor(&self) -> bool {
        false
    }

    /// The monitor tells a service of the node something. An error is a sentence, and ends the service.
    #[doc(hidden)]
    fn on_monitor(&mut self, _message: &[u8], _out: &mut Commands) -> Result<(), String> {
        Ok(())
    }

    /// All that waited at one worker was handed over, or many events of it: what was done for them can be finished together. Only an app in a
    /// process zone is told.
    fn on_caught_up(&mut self, _out: &mut Commands) {}

    /// Something was published.
    fn on_topic(&mut self, _topic: &Topic, _out: &mut Commands) {}

    /// A question came to this app as a service; [`Commands::answer`] answers it, now or later.
    fn on_query(&mut self, _query: &Query, _out: &mut Commands) {}

    /// A query to this app as a service is over before it was answered to the end: its caller is gone or has cancelled it, or its deadline has passed.
    fn on_query_over(&mut self, _over: &QueryOver, _out: &mut Commands) {}

    /// The whole answer to a query or to what was asked of the store, or why there is none.
    fn on_query_reply(&mut self, _reply: &QueryReply, _out: &mut Commands) {}

    /// Something of a stream that this app follows: an entry of the snapshot, a change, what it missed, or the end. The ticket is that of
    /// [`Commands::follow`].
    fn on_stream(&mut self, _stream: Ticket, _update: &Update, _out: &mut Commands) {}

    /// A caller takes more of the answer to its query. Parts that [`Commands::answer`] keeps are sent already. A service with a
    /// [`crate::stream::Table`] sends more of it.
    fn on_credit(&mut self, _query: Ticket, _out: &mut Commands) {}

    /// About once a second, with a clock that only goes forward.
    fn on_tick(&mut self, _now_ms: u64, _out: &mut Commands) {}

    /// The zone is about to end.
    fn on_shutdown(&mut self, _out: &mut Commands) {}
}

/// What an app wants to hear. Receipts, errors and answers come to whom they are meant for without being asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interests {
    pub(crate) events: u64,
    /// Whether it wants every packet-in, whatever matches it names besides.
    all_packets: bool,
    within: Vec<Match>,
}

impl Interests {
    /// Nothing.
    pub fn none() -> Self {
        Interests { events: 0, all_packets: false, within: Vec::new() }
    }

    /// The match that the kernel is given: a subscription has room for one.
    pub(crate) fn subscribed(&self) -> Match {
        match self.within.as_slice() {
            [only] if !self.all_packets => only.clone(),
            _ => Match::any(),
        }
    }

    /// The matches, within one of which a packet must be to be heard; none where the kernel has looked already.
    pub(crate) fn into_either(self) -> Vec<Match> {
        if self.all_packets || self.within.len() < 2 { Vec::new() } else { self.within }
    }

    fn with(mut self, kind: u16) -> Self {
        self.events |= kind::bit(kind);
        self
    }

    /// Every packet-in. The kernel sees to it that switches send up what no rule matches.
    pub fn packets(mut self) -> Self {
        self.all_packets = true;
        self.with(kind::PACKET_IN)
    }

    /// Packet-ins of packets within this match only. Called again: of those within that one as well, and each packet is then compared with one match
    /// after the other, in the app's own time.
    pub fn packets_within(mut self, packets: Match) -> Self {
        self.within.push(packets);
        self.with(kind::PACKET_IN)
    }

    /// Switches that come and go.
    pub fn switches(self) -> Self {
        self.with(kind::SWITCH_UP).with(kind::SWITCH_DOWN)
    }

    /// Ports that come, go or change.
    pub fn ports(self) -> Self {
        self.with(kind::PORT_STATUS)
    }

    /// Rules that are gone.
    pub fn flow_removed(self) -> Self {
        self.with(kind::FLOW_REMOVED)
    }

    /// What others publish.
    pub fn topics(self) -> Self {
        self.with(kind::TOPIC)
    }

    /// The time, about once a second.
    pub fn ticks(self) -> Self {
        self.with(kind::TICK)
    }
}
