//! One worker's ends of the zones: events go in and commands come out, for each type of zone.
//!
//! The kernel decides which zones receive an event, and which commands are allowed.

use super::call_tracker::CallTracker;
use abi::ZoneId;
use abi::event::write;
use flow::DatapathId;
use kernel::ZoneSet;
use kernel::punt::{Class, class_of};
use kernel::zone_set::is_zone_number;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use zone::ZoneFault;
use zone::fairness::FromApps;
use zone::port::{Delivery, ProcessPort};
use zone::trusted::{TrustedApp, TrustedFault};

/// Events that wait for a trusted app are handed over at the latest when they are so many bytes: what one read brings.
const TRUSTED_BATCH_BYTES: usize = 256 << 10;

/// Commands of one process zone in one turn, so that none keeps the worker from the others: about what a full ring holds of
/// flow mods.
const COMMANDS_PER_TURN: usize = 4096;

/// And so many bytes, or little more: a few long commands are as much as many short ones, and what they made of others is bounded too.
pub(super) const COMMAND_BYTES_PER_TURN: usize = 1 << 20;

/// What other apps made and a trusted app has not received yet, at most; more is dropped.
const FROM_APPS_BYTES: usize = 4 * TRUSTED_BATCH_BYTES;

/// What a zone did that ends it.
#[derive(Debug)]
pub enum Fault {
    /// A process zone broke the rules of its port.
    Process {
        /// Its app.
        app: String,
        /// Which start of it.
        generation: u64,
        /// What it did.
        fault: ZoneFault,
    },
    /// A trusted app is not to be called again.
    Trusted {
        /// Its app.
        app: String,
        /// What it did.
        fault: TrustedFault,
    },
}

/// One worker's end of one zone.
pub enum ZoneEnd {
    /// By rings.
    Process {
        /// Its app.
        app: String,
        /// Which start of it.
        generation: u64,
        /// This worker's end.
        port: Box<ProcessPort>,
    },
    /// By the C table.
    Trusted {
        /// Its app.
        app: String,
        /// The instance of this worker.
        instance: Box<TrustedApp>,
        /// Events that it has not been handed yet.
        events: Vec<u8>,
        /// How much of them which app made.
        from_apps: Box<FromApps>,
        /// Its number.
        zone: ZoneId,
        /// Where it is noted that it is called.
        calls: CallTracker,
        /// The time within its calls.
        in_calls: Duration,
    },
}

impl ZoneEnd {
    /// Of a trusted app that was started within so long.
    pub fn of_trusted(
        app: String,
        instance: TrustedApp,
        zone: ZoneId,
        calls: CallTracker,
        in_calls: Duration,
    ) -> ZoneEnd {
        let (instance, from_apps) = (Box::new(instance), Box::new(FromApps::new(FROM_APPS_BYTES)));
        ZoneEnd::Trusted { app, instance, events: Vec::new(), from_apps, zone, calls, in_calls }
    }

    /// Which start of a process zone it is; 0 for a trusted app.
    pub fn generation(&self) -> u64 {
        match self {
            ZoneEnd::Process { generation, .. } => *generation,
            ZoneEnd::Trusted { .. } => 0,
        }
    }

    /// Its app.
    pub fn app(&self) -> &str {
        match self {
            ZoneEnd::Process { app, .. } | ZoneEnd::Trusted { app, .. } => app,
        }
    }

    /// Hands over a packet-in, which may be dropped if the zone does not keep up: whether it gets it.
    pub fn deliver_packet_in(&mut self, frame: &[u8]) -> Delivery {
        match self {
            ZoneEnd::Process { port, .. } => {
                port.deliver_packet_in(frame, |packet| class_of(packet) == Class::Control)
            }
            ZoneEnd::Trusted { events, .. } => {
                events.extend_from_slice(frame);
                Delivery::Delivered
            }
        }
    }

    /// How many bytes of packet-ins of this switch its ring takes now without dropping one, of how many it has; `None` if it has none.
    pub fn room_for_packet_ins(&mut self, datapath: DatapathId) -> Option<(usize, usize)> {
        match self {
            ZoneEnd::Process { port, .. } => {
                Some((port.room_for_packet_ins(datapath), port.packet_ring_bytes()))
            }
            ZoneEnd::Trusted { .. } => None,
        }
    }

    /// Hands over an event that may not be lost.
    pub fn deliver_control(&mut self, frame: &[u8]) -> Result<(), Fault> {
        match self {
            ZoneEnd::Process { app, generation, port } => {
                port.deliver_control(frame).map_err(|fault| process_fault(app, *generation, fault))
            }
            ZoneEnd::Trusted { events, .. } => {
                events.extend_from_slice(frame);
                Ok(())
            }
        }
    }

    /// Whether events that may not be lost wait for its app to take others first.
    pub fn is_behind(&self) -> bool {
        matches!(self, ZoneEnd::Process { port, .. } if port.is_behind())
    }

    /// Hands over what another app made, if the zone keeps up: whether it gets it.
    pub fn deliver_from_app(&mut self, maker: ZoneId, frame: &[u8]) -> bool {
        match self {
            ZoneEnd::Process { port, .. } => port.deliver_from_app(maker, frame) == Delivery::Delivered,
            ZoneEnd::Trusted { events, from_apps, .. } => {
                let free_bytes = FROM_APPS_BYTES.saturating_sub(events.len());
                let has_room = from_apps.admit(maker, frame.len(), free_bytes);
                if has_room {
                    events.extend_from_slice(frame);
                }
                has_room
            }
        }
    }

    /// Whether its app runs here, and receives events only when it is run.
    pub fn is_trusted(&self) -> bool {
        matches!(self, ZoneEnd::Trusted { .. })
    }

    /// Whether so much waits for a trusted app that it should receive it now.
    pub fn is_full(&self) -> bool {
        matches!(self, ZoneEnd::Trusted { events, .. } if events.len() >= TRUSTED_BATCH_BYTES)
    }

    /// Passes a trusted app the events that wait for it; a process zone reads its own.
    pub fn run(&mut self) -> Result<(), Fault> {
        let ZoneEnd::Trusted { app, instance, events, zone, calls, in_calls, .. } = self else {
            return Ok(());
        };
        if events.is_empty() {
            return Ok(());
        }
        let (heard, took) = calls.timing(*zone, || instance.on_events(events));
        *in_calls += took;
        events.clear();
        heard.map_err(|fault| Fault::Trusted { app: app.clone(), fault })
    }

    /// Takes commands, whole frames one after the other, into `frames`, whose old content is dropped. `scratch` is a buffer.
    pub fn take_commands(&mut self, frames: &mut Vec<u8>, scratch: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            ZoneEnd::Trusted { instance, .. } => {
                instance.take_commands(frames);
                Ok(())
            }
            ZoneEnd::Process { app, generation, port } => {
                frames.clear();
                for _ in 0..COMMANDS_PER_TURN {
                    if frames.len() >= COMMAND_BYTES_PER_TURN {
                        break;
                    }
                    match port.take_command(scratch) {
                        Ok(Some(frame)) => frames.extend_from_slice(frame.bytes),
                        Ok(None) => break,
                        Err(fault) => return Err(process_fault(app, *generation, fault)),
                    }
                }
                Ok(())
            }
        }
    }

    /// The worker is awake, and need not be woken.
    pub fn begin_turn(&mut self) {
        if let ZoneEnd::Process { port, .. } = self {
            port.begin_turn();
        }
    }

    /// Shows a process zone what was delivered in this turn.
    pub fn flush(&mut self) -> Result<(), Fault> {
        match self {
            ZoneEnd::Process { app, generation, port } => {
                port.flush().map_err(|fault| process_fault(app, *generation, fault))
            }
            ZoneEnd::Trusted { .. } => Ok(()),
        }
    }

    /// Whether a process zone lost packet-ins since this was last asked, as it does not keep up.
    pub fn has_dropped(&mut self) -> bool {
        match self {
            ZoneEnd::Process { port, .. } => port.has_dropped(),
            ZoneEnd::Trusted { .. } => false,
        }
    }

    /// Says that the worker is going to sleep. `false` if there is something to do first.
    pub fn about_to_sleep(&mut self) -> bool {
        match self {
            ZoneEnd::Process { port, .. } => port.about_to_sleep(),
            ZoneEnd::Trusted { events, .. } => events.is_empty(),
        }
    }

    /// Tells a process zone of the packet-ins that it was too slow for.
    pub fn tell_dropped(&mut self, scratch: &mut Vec<u8>) -> Result<(), Fault> {
        let ZoneEnd::Process { port, .. } = self else { return Ok(()) };
        let dropped = port.take_dropped();
        if dropped == 0 {
            return Ok(());
        }
        scratch.clear();
        write::dropped(scratch, 0, dropped);
        self.deliver_control(scratch)
    }

    /// How many packet-ins, and events that other apps made, were dropped since it was attached.
    pub fn dropped(&self) -> u64 {
        match self {
            ZoneEnd::Process { port, .. } => port.dropped() + port.undelivered(),
            ZoneEnd::Trusted { .. } => 0,
        }
    }

    /// How long something has waited in its ring of which it has taken nothing.
    pub fn lag_ms(&mut self, now_ms: u64) -> u32 {
        match self {
            ZoneEnd::Process { port, .. } => port.lag_ms(now_ms),
            ZoneEnd::Trusted { .. } => 0,
        }
    }

    /// For how long it has taken nothing of what waits in its ring, while it was looked at.
    pub fn standstill_ms(&mut self, now_ms: u64) -> u64 {
        match self {
            ZoneEnd::Process { port, .. } => port.standstill_ms(now_ms),
            ZoneEnd::Trusted { .. } => 0,
        }
    }

    /// The time within the calls of a trusted app, in microseconds; a process has processor time of its own.
    pub fn calls_us(&self) -> u64 {
        match self {
            ZoneEnd::Process { .. } => 0,
            ZoneEnd::Trusted { in_calls, .. } => u64::try_from(in_calls.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Registers it with the worker's poll.
    pub fn register(&self, registry: &Registry, token: Token) -> std::io::Result<()> {
        match self {
            ZoneEnd::Process { port, .. } => registry.register(
                &mut SourceFd(&port.wake_fd().as_fd().as_raw_fd()),
                token,
                Interest::READABLE,
            ),
            ZoneEnd::Trusted { .. } => Ok(()),
        }
    }

    /// Takes it out of the worker's poll.
    pub fn deregister(&self, registry: &Registry) {
        if let ZoneEnd::Process { port, .. } = self {
            // The descriptor is closed right after, which would take it out as well.
            let _ = registry.deregister(&mut SourceFd(&port.wake_fd().as_fd().as_raw_fd()));
        }
    }
}

fn process_fault(app: &str, generation: u64, fault: ZoneFault) -> Fault {
    Fault::Process { app: app.to_owned(), generation, fault }
}

/// All zones of one worker, by number.
#[derive(Default)]
pub struct ZoneEnds {
    /// As long as the highest number that was put needs: each turn looks at all places.
    ends: Vec<Option<ZoneEnd>>,
    /// Which start of its app has each place, or had it last; the low 16 bits.
    generations: Vec<u16>,
    /// Those that another app has called. They are woken first.
    services: ZoneSet,
}

impl ZoneEnds {
    /// One of them.
    pub fn get(&mut self, zone: ZoneId) -> Option<&mut ZoneEnd> {
        self.ends.get_mut(usize::from(zone.0))?.as_mut()
    }

    /// Which start of its app this zone has, or had last, in 16 bits; 0 for a trusted app.
    #[inline]
    pub fn generation(&self, zone: ZoneId) -> u16 {
        self.generations.get(usize::from(zone.0)).copied().unwrap_or_default()
    }

    /// Puts one in place of what was there, which is given back. Nothing happens for a number that no zone can have.
    pub fn put(&mut self, zone: ZoneId, end: ZoneEnd) -> Option<ZoneEnd> {
        if !is_zone_number(zone.0) {
            return None;
        }
        let place = usize::from(zone.0);
        self.services.remove(zone);
        self.ends.resize_with(self.ends.len().max(place + 1), || None);
        self.generations.resize(self.ends.len(), 0);
        // Only the start before must differ, and a node does not keep receipts for 65,536 starts.
        self.generations[place] = end.generation() as u16;
        self.ends[place].replace(end)
    }

    /// Takes one out.
    pub fn take(&mut self, zone: ZoneId) -> Option<ZoneEnd> {
        self.services.remove(zone);
        self.ends.get_mut(usize::from(zone.0))?.take()
    }

    /// Another app has called it, so it is a service.
    pub fn note_called(&mut self, zone: ZoneId) {
        self.services.insert(zone);
    }

    /// Wakes the zones that have events. Services come first: an app that follows the view waits for what they make of the same event. On
    /// two cores, the app was woken before `discovery` and took its core, so that each new switch was a third later in the view.
    pub fn flush(&mut self, faults: &mut Vec<(ZoneId, Fault)>) {
        let numbers = self.numbers();
        let ZoneEnds { ends, services, .. } = self;
        let mut flush = |zone: ZoneId| {
            let Some(end) = ends.get_mut(usize::from(zone.0)).and_then(Option::as_mut) else { return };
            faults.extend(end.flush().err().map(|fault| (zone, fault)));
        };
        services.for_each(&mut flush);
        numbers.filter(|zone| !services.contains(*zone)).for_each(flush);
    }

    /// The numbers of all places, whether a zone is there or not.
    pub fn numbers(&self) -> impl Iterator<Item = ZoneId> + use<> {
        // `put` takes no number that is longer than a zone's.
        (1..self.ends.len() as u16).map(ZoneId)
    }

    /// Every zone that is there, to look at.
    pub fn all(&self) -> impl Iterator<Item = (ZoneId, &ZoneEnd)> {
        self.ends.iter().enumerate().filter_map(|(number, end)| Some((ZoneId(number as u16), end.as_ref()?)))
    }

    /// Every zone that is there.
    pub fn iter(&mut self) -> impl Iterator<Item = (ZoneId, &mut ZoneEnd)> {
        let numbered = self.ends.iter_mut().enumerate();
        numbered.filter_map(|(number, end)| Some((ZoneId(number as u16), end.as_mut()?)))
    }
}
