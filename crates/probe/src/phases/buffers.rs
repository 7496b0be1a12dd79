//! A phase: how many packets the switch keeps for the controller, and how much of them a packet-in has.
//!
//! In: packet-ins of packets that nobody answers. Out: the number of buffers, and the bytes of a packet-in.

use super::cabling::FRAME_BYTES;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules;
use crate::script::{Record, SECOND_NS, Script, Step, Until, When};
use openflow::message::{NO_BUFFER, SwitchConfig};
use openflow::{Body, Version};
use profile::MessageType;
use std::collections::HashSet;

/// Packets at first.
const PACKETS: usize = 600;
/// Packets at most.
const PACKETS_MAX: usize = 3000;
/// How long it takes at most. Buffers may expire after a few seconds.
const LONGEST_NS: f64 = 4e9;
/// What the probe asks for.
const BYTES: u16 = 128;

/// The phase.
#[derive(Debug, Default)]
pub struct Buffers {
    has_run: bool,
}

impl Phase for Buffers {
    fn title(&self) -> String {
        "counting packet buffers".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["packet_in.buffers_packets"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (true, Some(record)) = (self.has_run, last) {
            conclude(record, found);
            return Next::Done;
        }
        self.has_run = true;
        found.leave_out("packet_in.buffer_life_us", "this probe does not wait for buffers to expire");
        let service_ns = found.service(MessageType::PacketIn).service_us.unwrap_or(1000.0) * 1e3;
        let limit_ns = found.packet_in_limit.map_or(0.0, |(rate, _)| 1e9 / rate);
        let every_ns = (1.1 * service_ns).max(1.05 * limit_ns).max(options.watch_tick_ns as f64);
        let said = (2 * found.description.buffers as usize).clamp(PACKETS, PACKETS_MAX);
        let count = said.min((LONGEST_NS / every_ns) as usize).max(16);
        let rest = match found.version {
            Version::V1_0 => rules::delete_rest(),
            _ => rules::add_miss(BYTES),
        };
        let config = Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: BYTES });
        let into = options.ports[0].port;
        let frames = found.take_flows(Width::Ethernet, count).into_iter().zip(0u32..).map(|(flow, index)| {
            let at = SECOND_NS + (f64::from(index) * every_ns) as u64;
            Step::frame(When::At(at), flow, into, FRAME_BYTES, Until::PacketIn)
        });
        let first =
            [Step::send(When::At(0), config), Step::send(When::At(0), rest), Step::barrier(When::At(0))];
        Next::Run(Script::new(first.into_iter().chain(frames).collect(), 3 * SECOND_NS))
    }
}

fn conclude(record: &Record, found: &mut Findings) {
    let packets: Vec<_> = record.outcomes.iter().filter_map(|outcome| outcome.packet_in).collect();
    let Some(first) = packets.first() else {
        return found.leave_out("packet_in.buffers_packets", "no packet-in came");
    };
    if first.buffer_id == NO_BUFFER {
        found.buffers = Some(0);
        return;
    }
    found.miss_send_bytes = u16::try_from(first.bytes).ok();
    let full = packets.iter().position(|packet| packet.buffer_id == NO_BUFFER);
    let ids: HashSet<u32> =
        packets.iter().take(full.unwrap_or(packets.len())).map(|packet| packet.buffer_id).collect();
    found.buffers = u32::try_from(ids.len()).ok();
    if full.is_none() {
        found.leave_out(
            "packet_in.buffers_packets",
            format!("all of {} packets were buffered: at least so many", ids.len()),
        );
    }
}
