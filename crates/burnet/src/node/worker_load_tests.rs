//! A worker under load: a switch that says as little as a load generator does, and apps that are slower than their switches.

use super::*;
use std::io::{ErrorKind, Read};

/// Types of messages of 1.0 (1.0.0, 5.1).
const FLOW_MOD: u8 = 14;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const STATS_REQUEST: u8 = 16;

/// A switch of 1.0 that answers barriers, and passes over every statistics request.
struct Silent {
    stream: TcpStream,
    read: Vec<u8>,
    flow_mods: usize,
    passed_over: usize,
}

impl Silent {
    fn connect(bench: &mut Bench, datapath: DatapathId) -> Silent {
        let before = bench.worker.dispatch.kernel.switches().count();
        let stream = bench.connect(&handshake(datapath));
        stream.set_nonblocking(true).unwrap();
        bench.turn_until(|worker| worker.dispatch.kernel.switches().count() == before + 1);
        Silent { stream, read: Vec::new(), flow_mods: 0, passed_over: 0 }
    }

    /// Takes what is there.
    fn take(&mut self) {
        let mut room = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => panic!("the node has ended the session"),
                Ok(count) => self.read.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut rest = self.read.as_slice();
        while let Some(header) = rest.first_chunk::<8>() {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            if rest.len() < length {
                break;
            }
            match header[1] {
                FLOW_MOD => self.flow_mods += 1,
                STATS_REQUEST => self.passed_over += 1,
                BARRIER_REQUEST => {
                    let mut reply = *header;
                    reply[1] = BARRIER_REPLY;
                    self.stream.write_all(&reply).unwrap();
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        self.read = rest.to_vec();
    }
}

#[test]
fn a_switch_that_is_silent_about_its_tables_gets_every_rule_and_none_is_refused() {
    const RULES: usize = 50_000;
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let (mut said, mut turns) = (0, 0);
    // It times out without a word, so that each counts as another: it may be gone.
    let rule = FlowMod { idle_timeout_s: 5, ..FlowMod::ADD };
    while switch.flow_mods < RULES {
        assert!(turns < 100_000, "{} of {said} rules came", switch.flow_mods);
        said += app.command_unheard((RULES - said).min(1_000), What::FlowMod(rule));
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        // The clock stands still: what waits here waits for the switch and not for time to pass.
        bench.turn();
        switch.take();
        turns += 1;
    }
    assert_eq!((said, switch.flow_mods), (RULES, RULES));
    let counters = bench.worker.dispatch.kernel.zone(VICTIM).unwrap().counters;
    assert_eq!((counters.commands, counters.refusals), (RULES as u64, 0));
    assert!(switch.passed_over > 1, "it was asked what it is, and how large its tables are");
}
