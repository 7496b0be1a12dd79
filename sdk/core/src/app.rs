//! The trait of an app: a type with event handlers.
//!
//! The zone calls the handlers, through `instance`.

use crate::commands::{Commands, Ticket};
use crate::labels::Labels;
use crate::settings::Settings;
use crate::stream::Update;
use abi::Receipt;
use abi::event::{
    Experimenter, FlowRemoved, PacketIn, PortStatus, Query, QueryOver, QueryReply, SoftLimit, StatsReply,
    SwitchError, SwitchUp, Topic, kind,
};
use flow::{DatapathId, Match};
use view::{Batch, Kind, Snapshot};

/// The maximum number of packet-ins that an app can prefetch. Sixteen were faster than eight. With more, a core fetches as many cache lines at a
/// time as it can.
pub const MOST_AHEAD: usize = 32;

/// A network application. The default of each handler does nothing.
pub trait App: Sized + 'static {
    /// Creates the app from its settings. An error is a sentence for the operator.
    fn new(settings: &Settings) -> Result<Self, String>;

    /// Whether the app serves each switch independently of the others. Then a process zone has one thread and one instance for
    /// each worker, as a trusted app has. Otherwise, one instance serves all switches.
    fn serves_switches_apart(_: &Settings) -> bool {
        false
    }

    /// The events that the app subscribes to. Called once, before any handler.
    fn interests(&self) -> Interests;

    /// Called once, after the subscription: for commands that need no event.
    fn on_start(&mut self, _out: &mut Commands) {}

    /// A switch is connected. Called also for each switch that was connected before the app started.
    fn on_switch_up(&mut self, _up: &SwitchUp, _out: &mut Commands) {}

    /// A switch is disconnected.
    fn on_switch_down(&mut self, _datapath: DatapathId, _out: &mut Commands) {}

    /// A packet-in.
    fn on_packet_in(&mut self, _packet: &PacketIn, _out: &mut Commands) {}

    /// How many packet-ins ahead [`App::on_packet_ins_ahead`] gets now, at most [`MOST_AHEAD`]. If the app's memory does not fit
    /// the processor's caches, return [`MOST_AHEAD`]. If it fits, return 0 to save the work. Only trusted apps get this call: their
    /// events come in batches.
    fn look_ahead(&self) -> usize {
        0
    }

    /// The packet-ins that come next. Call [`crate::prefetch`] for the memory that they need, so that the processor fetches it for
    /// several packets at the same time. Do nothing else.
    fn on_packet_ins_ahead(&self, _packets: &[PacketIn]) {}

    /// A port was added, removed or changed.
    fn on_port_status(&mut self, _status: &PortStatus, _out: &mut Commands) {}

    /// A rule was removed that was added with the flag for this event.
    fn on_flow_removed(&mut self, _removed: &FlowRemoved, _out: &mut Commands) {}

    /// A switch sent an error for a command without a receipt.
    fn on_switch_error(&mut self, _error: &SwitchError, _out: &mut Commands) {}

    /// An experimenter message of a switch. The app needs the capability `vendor` for it: `vendor = ["nicira:message"]`.
    fn on_experimenter(&mut self, _message: &Experimenter, _out: &mut Commands) {}

    /// Labels of links, from a slice of which this node is the tenant: what the flows of others leave. The app subscribes to
    /// [`Interests::experimenters`], and needs the capability `vendor = ["0x00627572:message"]`. All labels of a switch come some time after it is up, later only changes.
    fn on_labels(&mut self, _labels: &Labels, _out: &mut Commands) {}

    /// A reply, or a part of one, to a statistics request.
    fn on_stats_reply(&mut self, _reply: &StatsReply, _out: &mut Commands) {}

    /// The outcome of a command that requested a receipt.
    fn on_receipt(&mut self, _datapath: DatapathId, _receipt: &Receipt, _out: &mut Commands) {}

    /// This many packet-ins were dropped, because the app was too slow.
    fn on_dropped(&mut self, _count: u64, _out: &mut Commands) {}

    /// The app exceeds a soft limit of a quota or of a machine resource (`limit.quota` has its number), or is below it again.
    /// Beyond the hard limit, commands are refused or the app is stopped.
    fn on_soft_limit(&mut self, _limit: &SoftLimit, _out: &mut Commands) {}

    /// Whether it is a service of the node that serves the monitor.
    #[doc(hidden)]
    fn serves_monitor(&self) -> bool {
        false
    }

    /// A message of the monitor to a service of the node. An error is a sentence, and ends the service.
    #[doc(hidden)]
    fn on_monitor(&mut self, _message: &[u8], _out: &mut Commands) -> Result<(), String> {
        Ok(())
    }

    /// All waiting events of one worker were delivered, or a large batch of them. Work for them can be completed together. Only an
    /// app in a process zone gets this call.
    fn on_caught_up(&mut self, _out: &mut Commands) {}

    /// A published message.
    fn on_topic(&mut self, _topic: &Topic, _out: &mut Commands) {}

    /// A call to this app as a service. [`Commands::answer`] answers it, now or later.
    fn on_query(&mut self, _query: &Query, _out: &mut Commands) {}

    /// A call to this app as a service ended before its last part: the caller ended or cancelled it, or the deadline has passed.
    fn on_query_over(&mut self, _over: &QueryOver, _out: &mut Commands) {}

    /// The whole answer to a call of a service, or the reason why there is none.
    fn on_query_reply(&mut self, _reply: &QueryReply, _out: &mut Commands) {}

    /// An update of a stream that this app follows: a snapshot entry, a change, missed changes, or the end. The ticket is that of
    /// [`Commands::follow`].
    fn on_stream(&mut self, _stream: Ticket, _update: &Update, _out: &mut Commands) {}

    /// The network view changed: one atomic update. `view` is the state after it. Only for the kinds in [`Interests::view`], and those
    /// that they need. The first call brings the objects that exist already.
    fn on_view(&mut self, _changes: &Batch, _view: &Snapshot, _out: &mut Commands) {}

    /// The network view in shared memory changed, for an app with [`Interests::shared_view`]. Several changes can be one call. The SDK
    /// looks after each group of events, and at least about once per second. It also calls this after [`App::on_view`]. [`Commands::object`] and [`Commands::objects`] read the
    /// present state.
    fn on_shared_view(&mut self, _out: &mut Commands) {}

    /// A caller granted more credit. Parts that [`Commands::answer`] buffers were already sent. A service with a
    /// [`crate::stream::Table`] sends more of it.
    fn on_credit(&mut self, _query: Ticket, _out: &mut Commands) {}

    /// Called about once per second, with a monotonic clock.
    fn on_tick(&mut self, _now_ms: u64, _out: &mut Commands) {}

    /// The time of [`Commands::wake_after`] has passed.
    fn on_wake(&mut self, _out: &mut Commands) {}

    /// The zone will end.
    fn on_shutdown(&mut self, _out: &mut Commands) {}
}

/// The subscription of an app. Receipts, errors and answers to its own commands come without a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interests {
    pub(crate) events: u64,
    /// Whether the app gets every packet-in, regardless of its matches.
    all_packets: bool,
    within: Vec<Match>,
    /// The kinds of objects of the network view.
    pub(crate) view: Vec<Kind>,
    /// The kinds that the app reads in shared memory.
    pub(crate) shared_view: Vec<Kind>,
}

impl Interests {
    /// No events.
    pub fn none() -> Self {
        Interests {
            events: 0,
            all_packets: false,
            within: Vec::new(),
            view: Vec::new(),
            shared_view: Vec::new(),
        }
    }

    /// The events for the kernel. The SDK needs the time to follow the view.
    pub(crate) fn subscribed_events(&self) -> u64 {
        let for_view = if self.reads_view() { kind::bit(kind::TICK) } else { 0 };
        self.events | for_view
    }

    fn reads_view(&self) -> bool {
        !(self.view.is_empty() && self.shared_view.is_empty())
    }

    /// Whether the time is for the SDK alone.
    pub(crate) fn hides_ticks(&self) -> bool {
        self.reads_view() && self.events & kind::bit(kind::TICK) == 0
    }

    /// The match for the kernel: a subscription has room for one.
    pub(crate) fn subscribed(&self) -> Match {
        match self.within.as_slice() {
            [only] if !self.all_packets => only.clone(),
            _ => Match::any(),
        }
    }

    /// The matches that the SDK checks: a packet-in must be within one of them. Empty if the kernel checks.
    pub(crate) fn into_either(self) -> Vec<Match> {
        if self.all_packets || self.within.len() < 2 { Vec::new() } else { self.within }
    }

    fn with(mut self, kind: u16) -> Self {
        self.events |= kind::bit(kind);
        self
    }

    /// Every packet-in. The kernel adds a table-miss rule to the switches.
    pub fn packets(mut self) -> Self {
        self.all_packets = true;
        self.with(kind::PACKET_IN)
    }

    /// Only packet-ins within this match. Call it again to add a match. With several matches, the app's process compares each packet
    /// with them in turn.
    pub fn packets_within(mut self, packets: Match) -> Self {
        self.within.push(packets);
        self.with(kind::PACKET_IN)
    }

    /// Of the packet-ins that the app subscribes to, only those that its own rules send. The kernel adds no table-miss rule for the
    /// app, so it receives nothing before it has rules with an output to the controller. OpenFlow 1.0 does not name the rule of a
    /// packet-in: from such a switch, the app receives what any rule sends, and what no rule matched.
    ///
    /// ```
    /// # use burnet_sdk_core::Interests;
    /// let interests = Interests::none().packets().of_own_rules();
    /// ```
    pub fn of_own_rules(mut self) -> Self {
        self.events |= kind::OF_OWN_RULES;
        self
    }

    /// Switches that connect and disconnect.
    pub fn switches(self) -> Self {
        self.with(kind::SWITCH_UP).with(kind::SWITCH_DOWN)
    }

    /// Ports that are added, removed or changed.
    pub fn ports(self) -> Self {
        self.with(kind::PORT_STATUS)
    }

    /// Removed rules.
    pub fn flow_removed(self) -> Self {
        self.with(kind::FLOW_REMOVED)
    }

    /// Experimenter messages of switches. The app receives those that its capability `vendor` names.
    pub fn experimenters(self) -> Self {
        self.with(kind::EXPERIMENTER)
    }

    /// The network view: objects of these kinds, and of those that they need to be visible. The SDK follows the services, and follows
    /// them again after a failure. [`App::on_view`] gets each change, and [`Commands::view`] is the present state. The app needs
    /// the capability `view.read`, and that of each other service, such as `host.read`.
    pub fn view(mut self, kinds: &[Kind]) -> Self {
        self.view.extend_from_slice(kinds);
        self
    }

    /// The network view in shared memory: objects of these kinds, read when the app needs them ([`Commands::object`]). All apps share one
    /// copy. [`App::on_shared_view`] tells of changes. If there is no shared memory for them, or it is full, the SDK follows the streams
    /// after some seconds, as for [`Interests::view`]. The app needs the same capabilities as for that.
    pub fn shared_view(mut self, kinds: &[Kind]) -> Self {
        self.shared_view.extend_from_slice(kinds);
        self
    }

    /// Published messages.
    pub fn topics(self) -> Self {
        self.with(kind::TOPIC)
    }

    /// The time, about once per second.
    pub fn ticks(self) -> Self {
        self.with(kind::TICK)
    }
}
