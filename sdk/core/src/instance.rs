//! An app as its zone sees it: event frames in, command frames out, by whichever zone.
//!
//! Never knows where the frames come from.

use crate::app::{App, MOST_AHEAD};
use crate::calls::{Calls, Heard};
use crate::commands::{Commands, Level, Ticket};
use crate::labels::Labels;
use crate::settings::Settings;
use crate::view_follower::{ViewFollower, with_needs};
use abi::event::{PacketIn, QueryReply, kind};
use abi::table::AppTable;
use abi::{Event, Frame, Malformed, Receipt};
use flow::frame::FrameFields;
use flow::{DatapathId, Match, PortNo};
use std::time::Duration;
use view::{Batch, Change, Kind};
use zone::guest::Guest;
use zone::region::Region;

/// What an array of packet-ins begins with.
const NO_PACKET: PacketIn<'static> = PacketIn {
    datapath: DatapathId(0),
    in_port: PortNo(0),
    buffer_id: None,
    total_len: 0,
    reason: 0,
    table_id: 0,
    cookie: 0,
    metadata: &[],
    data: &[],
};

/// Whether a packet is within one of these matches.
fn is_within(packet: &PacketIn<'_>, either: &[Match]) -> bool {
    let fields = FrameFields::read(packet.data).from_port(packet.in_port);
    either.iter().any(|wanted| wanted.matches(&fields))
}

/// A running app and its commands.
pub struct Instance<A> {
    app: A,
    out: Commands,
    /// The app receives only packets within one of these matches; if there is none, it receives all.
    either: Vec<Match>,
    /// Whether the time is for the SDK alone, because the app follows the view and has not asked for the time.
    hides_ticks: bool,
    /// The kinds that the app reads in shared memory, and what these need.
    shared_view: Vec<Kind>,
    /// Ticks for which shared memory has not served them.
    ticks_unshared: u32,
}

/// After so many ticks without shared memory, an app that reads it follows the streams instead. A service restarts faster.
const TICKS_UNSHARED_MAX: u32 = 5;

impl<A: App> Instance<A> {
    /// The app with its settings; its subscription and first commands are in [`Instance::frames`].
    pub(crate) fn start(settings: &Settings) -> Result<Self, String> {
        let mut app = A::new(settings)?;
        let mut out = Commands::new();
        let interests = app.interests();
        out.subscribe(&interests);
        out.view = ViewFollower::new(&interests.view);
        out.open_view(0);
        app.on_start(&mut out);
        let hides_ticks = interests.hides_ticks();
        let shared_view = with_needs(&interests.shared_view);
        Ok(Instance {
            app,
            out,
            either: interests.into_either(),
            hides_ticks,
            shared_view,
            ticks_unshared: 0,
        })
    }

    /// Hands it one event frame.
    #[inline]
    pub(crate) fn on_frame(&mut self, frame: &Frame<'_>) -> Result<(), Malformed> {
        let Instance { app, out, either, hides_ticks, .. } = self;
        if frame.header.kind.get() == kind::PACKET_IN {
            // Nearly every event is one, and is read without asking what else it might be.
            let packet = PacketIn::read(frame)?;
            if either.is_empty() || is_within(&packet, either) {
                app.on_packet_in(&packet, out);
            }
            return Ok(());
        }
        match Event::read(frame)? {
            Event::SwitchUp(up) => app.on_switch_up(&up, out),
            Event::SwitchDown(datapath) => app.on_switch_down(datapath, out),
            // It was handed over above.
            Event::PacketIn(_) => {}
            Event::PortStatus(status) => app.on_port_status(&status, out),
            Event::FlowRemoved(removed) => app.on_flow_removed(&removed, out),
            Event::SwitchError(error) => app.on_switch_error(&error, out),
            Event::StatsReply(reply) => app.on_stats_reply(&reply, out),
            Event::Receipt(datapath, receipt) => hear_receipt(app, out, datapath, &receipt),
            Event::Dropped(count) => app.on_dropped(count, out),
            Event::SoftLimit(limit) => app.on_soft_limit(&limit, out),
            Event::Topic(topic) => app.on_topic(&topic, out),
            Event::Query(query) => {
                out.calls.on_query(&query);
                app.on_query(&query, out);
            }
            Event::QueryReply(reply) if Calls::is_of_stream(reply.ticket) => {
                hear_stream(app, out, &reply);
            }
            Event::QueryReply(reply) => {
                let Commands { calls, frames, .. } = out;
                if let Heard::Answer(status, payload) = calls.on_reply(frames, &reply) {
                    let whole = QueryReply { status, more: false, payload: &payload, ..reply };
                    app.on_query_reply(&whole, out);
                }
            }
            Event::QueryCredit(credit) => {
                let Commands { calls, frames, .. } = out;
                calls.on_credit(frames, credit);
                app.on_credit(Ticket(credit.ticket), out);
            }
            Event::QueryOver(over) => {
                out.calls.on_over(over);
                app.on_query_over(&over, out);
            }
            Event::Tick { now_ms } => {
                out.open_view(now_ms);
                if !*hides_ticks {
                    app.on_tick(now_ms, out);
                }
                self.on_tick_of_shared_view();
            }
            Event::Experimenter(message) => match Labels::read(&message) {
                Some(labels) => app.on_labels(&labels, out),
                None => app.on_experimenter(&message, out),
            },
            Event::Shutdown => app.on_shutdown(out),
            // A newer kernel may send events that this app's version does not know.
            Event::Newer(_) => {}
        }
        Ok(())
    }

    /// Shows the app the packet-ins among the next events, as many as it wants to look ahead; how many events these are, at least one.
    #[inline]
    fn look_ahead(&self, events: &[u8]) -> usize {
        match self.app.look_ahead().min(MOST_AHEAD) {
            0 => 1,
            wanted => self.look_at(events, wanted),
        }
    }

    /// Apart, so that who does not look ahead does not pay for the room.
    #[inline(never)]
    fn look_at(&self, mut events: &[u8], wanted: usize) -> usize {
        let (mut ahead, mut packets) = ([NO_PACKET; MOST_AHEAD], 0);
        for _ in 0..wanted {
            // Damage is found when its turn comes.
            let Ok((frame, rest)) = Frame::split(events) else { break };
            if frame.header.kind.get() == kind::PACKET_IN
                && let Ok(packet) = PacketIn::read(&frame)
                && (self.either.is_empty() || is_within(&packet, &self.either))
            {
                ahead[packets] = packet;
                packets += 1;
            }
            events = rest;
        }
        self.app.on_packet_ins_ahead(&ahead[..packets]);
        wanted
    }

    /// Changes the app's view without a service, for tests.
    pub(crate) fn change_view(&mut self, changes: Vec<Change>) {
        let changes = self.out.view.apply(changes);
        tell_view(&mut self.app, &mut self.out, &changes);
    }

    /// Nothing more waits for now.
    pub(crate) fn on_caught_up(&mut self) {
        self.app.on_caught_up(&mut self.out);
        self.look_at_shared_view();
    }

    /// Tells the app if the view in shared memory has changed.
    fn look_at_shared_view(&mut self) {
        if !self.shared_view.is_empty() && self.out.shared.take_changed() {
            self.app.on_shared_view(&mut self.out);
        }
    }

    /// Follows the streams if shared memory has not served the app for long. They stay open from then on.
    fn on_tick_of_shared_view(&mut self) {
        let Instance { out, shared_view, ticks_unshared, .. } = self;
        if shared_view.is_empty() {
            return;
        }
        *ticks_unshared = if out.shared.is_current(shared_view) { 0 } else { *ticks_unshared + 1 };
        if *ticks_unshared == TICKS_UNSHARED_MAX {
            out.follow_also(shared_view);
            out.log(
                Level::Warning,
                "view: shared memory does not serve this app: it follows the streams instead",
            );
        }
        self.look_at_shared_view();
    }

    /// The app itself.
    pub fn app(&self) -> &A {
        &self.app
    }

    /// What it has commanded since this was last emptied.
    pub(crate) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.out.frames
    }

    /// Lets the app do something apart from an event; appends its commands.
    pub fn act<T>(&mut self, commands: &mut Vec<u8>, act: impl FnOnce(&mut A, &mut Commands) -> T) -> T {
        let acted = act(&mut self.app, &mut self.out);
        commands.append(self.frames());
        acted
    }

    /// [`Guest::start`] by a name that does not clash.
    pub fn start_guest(settings: &[u8], commands: &mut Vec<u8>) -> Result<Self, String> {
        <Self as Guest>::start(settings, commands)
    }
}

fn hear_receipt<A: App>(app: &mut A, out: &mut Commands, datapath: DatapathId, receipt: &Receipt<'_>) {
    // A stream that is refused never begins.
    out.calls.unfollow(receipt.ticket);
    match out.view.refuse(receipt.ticket, receipt.reason) {
        Some(why) => out.log(Level::Warning, &why),
        None => app.on_receipt(datapath, receipt, out),
    }
}

/// Hands a part of a stream to the app, or to its view.
fn hear_stream<A: App>(app: &mut A, out: &mut Commands, reply: &QueryReply<'_>) {
    let Some(mut part) = out.calls.begin_part(reply) else { return };
    let ticket = reply.ticket;
    let is_of_view = out.view.has(ticket);
    let was_current = out.view.is_current();
    while let Some(update) = out.calls.next_update(&mut out.frames, &mut part) {
        if !is_of_view {
            app.on_stream(Ticket(ticket), &update, out);
        } else if let Some(why) = out.view.hear(ticket, &update) {
            out.log(Level::Warning, &why);
        }
    }
    if is_of_view {
        let changes = out.view.end_part(ticket);
        if let Some(first) = changes.refused.first() {
            let (count, key, why) = (changes.refused.len(), first.key, first.why);
            out.log(
                Level::Warning,
                &format!("view: {count} changes were refused, the first of {key}: {why:?}"),
            );
        }
        tell_view(app, out, &changes);
        // The last stream to begin may have no objects. The app sees those of the others from now on.
        if changes.is_empty() && !was_current && out.view.is_current() {
            app.on_shared_view(out);
        }
    }
}

fn tell_view<A: App>(app: &mut A, out: &mut Commands, changes: &Batch) {
    if !changes.is_empty() {
        let view = out.view();
        app.on_view(changes, &view, out);
        app.on_shared_view(out);
    }
}

/// Commands are handed over when there are so many bytes of them: a page with those of the packets that an app may look ahead at.
const HANDED_OVER_BYTES: usize = 2_048;

impl<A: App> Instance<A> {
    /// Hands the app events until it has commanded so much: how many bytes of them it has taken.
    fn take(&mut self, events: &[u8], commands: &mut Vec<u8>, most: usize) -> Result<usize, Malformed> {
        std::mem::swap(&mut self.out.frames, commands);
        let (mut done, mut ahead, mut rest) = (Ok(()), 0, events);
        while !rest.is_empty() && done.is_ok() {
            if ahead == 0 {
                if self.out.frames.len() >= most {
                    break;
                }
                ahead = self.look_ahead(rest);
            }
            ahead -= 1;
            done = Frame::split(rest).and_then(|(frame, behind)| {
                rest = behind;
                self.on_frame(&frame)
            });
        }
        std::mem::swap(&mut self.out.frames, commands);
        done.map(|()| events.len() - rest.len())
    }
}

impl<A: App> Guest for Instance<A> {
    fn start(settings: &[u8], commands: &mut Vec<u8>) -> Result<Self, String> {
        let mut instance = Instance::start(&Settings::from_json(settings)?)?;
        commands.append(instance.frames());
        Ok(instance)
    }

    fn on_zone(&mut self, zone: abi::ZoneId) {
        self.out.own_zone = Some(zone);
    }

    fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), Malformed> {
        self.take(events, commands, usize::MAX).map(drop)
    }

    fn on_some_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<usize, Malformed> {
        self.take(events, commands, HANDED_OVER_BYTES)
    }

    fn on_caught_up(&mut self, commands: &mut Vec<u8>) {
        Instance::on_caught_up(self);
        commands.append(self.frames());
    }

    fn take_wake(&mut self) -> Option<Duration> {
        self.out.wake_after.take()
    }

    fn on_wake(&mut self, commands: &mut Vec<u8>) -> Result<(), String> {
        self.look_at_shared_view();
        self.act(commands, |app, out| app.on_wake(out));
        Ok(())
    }

    fn on_region(&mut self, region: Region) {
        match region {
            Region::Writes(region) => self.out.region = Some(region),
            region => self.out.shared.on_region(region),
        }
    }

    fn serves_monitor(&self) -> bool {
        self.app.serves_monitor()
    }

    fn on_monitor(&mut self, message: &[u8], commands: &mut Vec<u8>) -> Result<(), String> {
        self.app.on_monitor(message, &mut self.out)?;
        commands.append(self.frames());
        Ok(())
    }

    fn take_for_monitor(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.out.for_monitor)
    }
}

/// The C table of an app, by which the kernel runs it as a trusted app. A shared object exports it by `burnet_sdk::shared_object!`.
pub const fn table<A: App>() -> AppTable {
    zone::guest::table::<Instance<A>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Interests;
    use abi::event::write;
    use std::cell::RefCell;

    /// Writes down by which port what came: `(1)` ahead, `1` in its turn.
    struct Diary(RefCell<String>);

    impl App for Diary {
        fn new(_: &Settings) -> Result<Self, String> {
            Ok(Diary(RefCell::default()))
        }

        fn interests(&self) -> Interests {
            Interests::none().packets().ticks()
        }

        fn look_ahead(&self) -> usize {
            2
        }

        fn on_packet_ins_ahead(&self, packets: &[PacketIn]) {
            packets.iter().for_each(|packet| *self.0.borrow_mut() += &format!("({}) ", packet.in_port.0));
        }

        fn on_packet_in(&mut self, packet: &PacketIn, _: &mut Commands) {
            *self.0.borrow_mut() += &format!("{} ", packet.in_port.0);
        }

        fn on_tick(&mut self, _: u64, _: &mut Commands) {
            *self.0.borrow_mut() += "tick ";
        }
    }

    /// Hears what comes by port 1 or port 2, and the rest if it asks for all.
    struct Choosy(Vec<u32>);

    impl App for Choosy {
        fn new(_: &Settings) -> Result<Self, String> {
            Ok(Choosy(Vec::new()))
        }

        fn interests(&self) -> Interests {
            let by = |port| Match::any().with(flow::Field::InPort, PortNo(port));
            Interests::none().packets_within(by(1)).packets_within(by(2))
        }

        fn on_packet_in(&mut self, packet: &PacketIn, _: &mut Commands) {
            self.0.push(packet.in_port.0);
        }
    }

    #[test]
    fn packets_within_either_of_two_matches_are_heard_and_no_others() {
        let mut instance = Instance::<Choosy>::start(&Settings::from_json(b"{}").unwrap()).unwrap();
        let events = [1, 3, 2, 1].map(packet_in).concat();
        assert!(instance.on_events(&events, &mut Vec::new()).is_ok());
        assert_eq!(instance.app.0, [1, 2, 1]);
    }

    #[test]
    fn one_match_is_for_the_kernel_and_every_packet_is_more_than_any_match() {
        let arp = Match::any().with(flow::Field::EthType, 0x0806_u16);
        let one = Interests::none().packets_within(arp.clone());
        assert_eq!((one.subscribed(), one.into_either()), (arp.clone(), Vec::new()));
        let all = Interests::none().packets_within(arp.clone()).packets().packets_within(arp);
        assert_eq!((all.subscribed(), all.into_either()), (Match::any(), Vec::new()));
    }

    fn packet_in(port: u32) -> Vec<u8> {
        let mut frame = Vec::new();
        let packet = PacketIn {
            datapath: DatapathId(1),
            in_port: PortNo(port),
            reason: 0,
            table_id: 0,
            cookie: 0,
            buffer_id: None,
            total_len: 0,
            metadata: &[],
            data: &[],
        };
        assert!(write::packet_in(&mut frame, 1, &packet));
        frame
    }

    fn tick() -> Vec<u8> {
        let mut frame = Vec::new();
        assert!(write::tick(&mut frame, 1, 1_000));
        frame
    }

    /// What is written down of a batch of events, and whether it was sound.
    fn check(events: &[Vec<u8>], expected: &str, is_sound: bool) {
        let mut instance = Instance::<Diary>::start(&Settings::from_json(b"{}").unwrap()).unwrap();
        let done = instance.on_events(&events.concat(), &mut Vec::new());
        assert_eq!((instance.app.0.borrow().trim_end(), done.is_ok()), (expected, is_sound));
    }

    #[test]
    fn damage_is_found_in_its_turn_and_not_before() {
        check(&[packet_in(1), vec![0xff; 7]], "(1) 1", false);
        check(&[vec![0xff; 7]], "", false);
    }

    #[test]
    fn an_app_that_looks_ahead_is_shown_what_comes_and_then_gets_it_once() {
        check(&[], "", true);
        check(&[packet_in(1)], "(1) 1", true);
        check(&[1, 2, 3].map(packet_in), "(1) (2) 1 2 (3) 3", true);
        check(&[packet_in(1), tick(), tick(), packet_in(2)], "(1) 1 tick (2) tick 2", true);
    }
}
