//! What must hold for the streams of the proxy. The fuzz target calls it with what it finds, and a test of the proxy crate with what was
//! kept (`corpus/proxy_stream`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use openflow::stream;
use profile::Profile;
use proxy::{Commands, Event, Method, Passage, Proxy, Settings};

/// How far the time goes in a check: longer than any delay of a profile.
const STEPS_MAX: usize = 4096;

/// Two streams, interleaved: the first byte chooses profile and method; then come pieces, each with a byte for side and time, a byte for
/// its length, and its bytes. What the proxy sends is whole messages, in whatever it gets.
pub fn proxy_stream(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let names = ["null", "hp-procurve-j9451a", "fulcrum-monaco", "pica8-p3290"];
    let profile = profile::built_in(names[usize::from(first & 3)]).expect("a built-in profile");
    let method = if first & 4 == 0 { Method::Full } else { Method::Paper };
    let mut proxy = Proxy::new(Settings { profile, base: Profile::null(), method, seed: 1 });
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
            let event = if side == 0 { Event::FromSwitch(message) } else { Event::FromController(message) };
            is_over |= !holds(&mut proxy, now_ns, event);
            !is_over
        });
        let Ok(gone) = gone else { return };
        streams[side] = stream[gone..].to_vec();
        if is_over {
            return;
        }
        for _ in 0..STEPS_MAX {
            let Some(_) = proxy.next_due_ns().filter(|due| *due <= now_ns) else { break };
            holds(&mut proxy, now_ns, Event::Time);
        }
    }
}

/// One event. Returns whether the session goes on.
fn holds(proxy: &mut Proxy, now_ns: u64, event: Event<'_>) -> bool {
    let mut out = Commands::default();
    let passage = proxy.on_event(now_ns, event, &mut out);
    for bytes in [&out.to_switch, &out.to_controller] {
        assert_eq!(stream::cut(bytes, |_| true).expect("whole messages"), bytes.len());
    }
    assert!(out.end.is_none() || passage == Passage::Taken, "what ends the session is not sent on");
    out.end.is_none()
}
