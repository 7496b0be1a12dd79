//! An app that prints how many links are up, and that sends a forged probe out of a port.
//!
//! In: the network view. Out: lines for a test, and one packet-out. It installs no rule.

use burnet_sdk::view::{Batch, Kind, LinkState, Object, Snapshot};
use burnet_sdk::{App, Commands, DatapathId, Interests, PortNo, Settings, SwitchUp};

/// A probe of the switch 1, port 1, without a signature.
const FORGED: &[u8] =
    b"\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01\x88\xcc\x02\x16\x07dpid:0000000000000001\
                        \x04\x05\x02\x00\x00\x00\x01\x06\x02\x00\x78\x00\x00";

struct LinkWatcher {
    up: Option<usize>,
}

impl App for LinkWatcher {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(LinkWatcher { up: None })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches().view(&[Kind::Link])
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        if up.datapath == DatapathId(1) {
            println!("sends a forged probe");
            out.packet_out(up.datapath).frame(FORGED).output(PortNo(1)).output(PortNo(2)).send();
        }
    }

    fn on_view(&mut self, _: &Batch, view: &Snapshot, _: &mut Commands) {
        let is_up = |object: &Object| matches!(object, Object::Link(link) if link.state == LinkState::Up);
        let up = view.records(Kind::Link).filter(|record| is_up(&record.object)).count();
        if self.up.replace(up) != Some(up) {
            println!("links up: {up}.");
        }
    }
}

burnet_sdk::main!(LinkWatcher);
