//! What must hold for the streams of the proxy. The fuzz target calls it with what it finds, and a test of the proxy crate with what was
//! kept (`corpus/proxy_stream`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use openflow::{Header, Version, stream};
use profile::Profile;
use proxy::{Commands, Event, Method, Passage, Proxy, Settings};
use std::collections::{BTreeMap, BTreeSet};

/// How often the proxy may want to be called again at one moment. A proxy that never has enough would keep its loop busy for ever.
const CALLS_MAX: usize = 4096;

/// `ofp_type`: the numbers that both versions have.
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REPLY: u8 = 3;
const PACKET_IN: u8 = 10;

fn is_barrier_request(of: Header) -> bool {
    matches!((of.version, of.kind), (Version::V1_0, 18) | (Version::V1_3, 20))
}

fn is_barrier_reply(of: Header) -> bool {
    matches!((of.version, of.kind), (Version::V1_0, 19) | (Version::V1_3, 21))
}

/// Two streams, interleaved: the first byte chooses profile and method; then come pieces, each with a byte for side and time, a byte for
/// its length, and its bytes. What the proxy sends is whole messages, in whatever it gets.
pub fn proxy_stream(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let names = ["null", "hp-procurve-j9451a", "fulcrum-monaco", "pica8-p3290"];
    let profile = profile::built_in(names[usize::from(first & 3)]).expect("a built-in profile");
    let method = if first & 4 == 0 { Method::Full } else { Method::Paper };
    let mut between =
        Between::new(Settings { profile, base: Profile::null(), method, seed: 1, slow_motion: 1 });
    let (mut now_ns, mut streams) = (0, [Vec::new(), Vec::new()]);
    while let [how, length, behind @ ..] = rest {
        let (piece, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        now_ns += u64::from(how >> 1) * 1_000_000;
        let side = usize::from(how & 1);
        streams[side].extend_from_slice(piece);
        let stream = std::mem::take(&mut streams[side]);
        let mut is_over = false;
        let gone = stream::cut(&stream, |message| {
            is_over |= !between.hears(now_ns, side == 0, message);
            !is_over
        });
        let Ok(gone) = gone else { return };
        streams[side] = stream[gone..].to_vec();
        if is_over {
            return;
        }
        between.pass_to(now_ns);
    }
}

/// The proxy, and what both sides have said.
struct Between {
    proxy: Proxy,
    is_null: bool,
    /// Packet-ins of the switch that have not reached the controller.
    packet_ins: u64,
    /// The controller's barriers that are not answered, by transaction id.
    barriers: BTreeMap<u32, u64>,
    /// All transaction ids of the controller.
    xids: BTreeSet<u32>,
}

impl Between {
    fn new(settings: Settings) -> Self {
        let is_null = settings.is_null();
        let proxy = Proxy::new(settings);
        Between { proxy, is_null, packet_ins: 0, barriers: BTreeMap::new(), xids: BTreeSet::new() }
    }

    /// A message. Returns whether the session goes on.
    fn hears(&mut self, now_ns: u64, from_switch: bool, message: &[u8]) -> bool {
        let Ok(header) = Header::read(message) else { panic!("whole messages have a header") };
        if from_switch {
            self.packet_ins += u64::from(header.kind == PACKET_IN);
        } else {
            self.xids.insert(header.xid);
            *self.barriers.entry(header.xid).or_default() += u64::from(is_barrier_request(header));
        }
        let mut out = Commands::default();
        let event = if from_switch { Event::FromSwitch(message) } else { Event::FromController(message) };
        let passage = self.proxy.on_event(now_ns, event, &mut out);
        if out.end.is_some() {
            assert_eq!(passage, Passage::Taken, "what ends the session is not sent on");
            return false;
        }
        if self.is_null && header.kind != HELLO {
            assert_eq!(passage, Passage::Unchanged, "a null profile changes nothing");
            assert!(out.to_switch.is_empty() && out.to_controller.is_empty());
        } else if !from_switch && passage == Passage::Unchanged {
            assert!([ERROR, ECHO_REPLY].contains(&header.kind), "type {} passes the model", header.kind);
        }
        self.hold(&out);
        true
    }

    /// The time goes on until then.
    fn pass_to(&mut self, now_ns: u64) {
        let mut calls = 0;
        while self.proxy.next_due_ns().is_some_and(|due| due <= now_ns) {
            let mut out = Commands::default();
            assert_eq!(self.proxy.on_event(now_ns, Event::Time, &mut out), Passage::Taken);
            self.hold(&out);
            calls += 1;
            assert!(calls < CALLS_MAX, "it never has enough");
        }
    }

    /// What the proxy sends by itself: whole messages; no packet-in and no barrier reply twice; errors about what the controller said.
    fn hold(&mut self, out: &Commands) {
        let whole = |bytes: &[u8], each: &mut dyn FnMut(Header)| {
            let cut = stream::cut(bytes, |message| {
                let header = Header::read(message).expect("a header");
                assert!(header.version.is_spoken() || [HELLO, ERROR].contains(&header.kind), "{header:?}");
                each(header);
                true
            });
            assert_eq!(cut.expect("whole messages"), bytes.len());
        };
        whole(&out.to_switch, &mut |_| {});
        whole(&out.to_controller, &mut |header| {
            if header.kind == PACKET_IN {
                assert!(self.packet_ins > 0, "a packet-in that the switch has not sent");
                self.packet_ins -= 1;
            }
            if is_barrier_reply(header) {
                let open = self.barriers.get_mut(&header.xid).filter(|open| **open > 0);
                *open.expect("a barrier that is not answered yet") -= 1;
            }
            if header.kind == ERROR {
                assert!(self.xids.contains(&header.xid), "an error about nothing: {header:?}");
            }
        });
    }
}
