//! Sends bundles: flow mods of an app that a switch applies all together, or not at all.
//!
//! In: bundles of apps. Out: their flow mods in the outputs of switches, if the kernel accepts every one of them. It never decides whether
//! one is accepted.

use super::{COMPARED_PER_TURN, NO_ERROR, Worker};
use abi::command::{Bundle, Command};
use abi::{Frame, ZoneId};
use flow::{DatapathId, ErrorCode};
use southbound::Refused;

/// One bundle may use a turn's share of comparisons, but no more.
const TOO_MANY_COMPARED: &str =
    "the flow mods of the bundle must be compared with too many rules of other apps: send them alone";

/// Why nothing of a bundle is sent.
type NotSent = (ErrorCode, String);

impl Worker {
    /// Executes a bundle that the kernel has accepted as a whole.
    pub(super) fn send_bundle(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'_>,
        (ticket, wants_receipt): (u64, bool),
        bundle: Bundle<'_>,
    ) {
        let (datapath, tag) = (frame.datapath(), self.tag(zone, ticket));
        // Nothing is charged for a bundle that the switch cannot get.
        if let Err(refused) = self.southbound.check_bundle(datapath, tag) {
            let (error, words) = in_words(&refused);
            return self.refuse_with(zone, frame, error, &words);
        }
        self.dispatch.kernel.begin_bundle(datapath);
        let sent = self.accept_all(zone, bundle).and_then(|flow_mods| {
            let sent = self.southbound.send_bundle(datapath, &flow_mods, tag, wants_receipt);
            sent.map_err(|refused| in_words(&refused))
        });
        if let Err((error, words)) = sent {
            self.give_up_bundle(zone, datapath);
            self.refuse_with(zone, frame, error, &words);
        }
    }

    /// The flow mods of a bundle, if the kernel accepts all of them.
    fn accept_all<'c>(&mut self, zone: ZoneId, bundle: Bundle<'c>) -> Result<Vec<Command<'c>>, NotSent> {
        let count = bundle.flow_mods().count();
        let mut flow_mods = Vec::with_capacity(count);
        for (number, frame) in (1..).zip(bundle.flow_mods()) {
            let now_ms = self.now_ms;
            let decided = self.dispatch.kernel.on_bundled(zone, &frame, now_ms, &mut self.dispatch.effects);
            match decided {
                Ok(flow_mod) => flow_mods.push(flow_mod),
                Err(refusal) => {
                    let why = self.dispatch.kernel.in_words(&refusal).to_string();
                    let words = format!("flow mod {number} of {count} in the bundle: {why}");
                    self.to_record.count(zone, &refusal, || words.clone());
                    return Err((refusal.as_error().unwrap_or(NO_ERROR), words));
                }
            }
            self.carry_out_effects();
            if self.dispatch.kernel.compared() > COMPARED_PER_TURN {
                return Err((NO_ERROR, TOO_MANY_COMPARED.to_owned()));
            }
        }
        Ok(flow_mods)
    }

    /// Nothing of a bundle was sent, though the kernel has recorded flow mods of it.
    fn give_up_bundle(&mut self, zone: ZoneId, datapath: DatapathId) {
        self.dispatch.kernel.on_failed(datapath, zone);
        self.dispatch.kernel.on_bundle_over(datapath, &mut self.dispatch.effects);
        self.carry_out_effects();
    }
}

fn in_words(refused: &Refused) -> NotSent {
    (refused.as_error().unwrap_or(NO_ERROR), refused.to_string())
}
