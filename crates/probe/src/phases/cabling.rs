//! A phase: whether the test interfaces are at their ports, whether a rule forwards, and how long a frame takes through hardware.
//!
//! In: a packet-out to each port, which a probe that goes on repeats; then frames through one rule. Out: a refusal that names the wrong cable, or the transit against which
//! software is told from hardware.

use crate::findings::Findings;
use crate::flows::{TestFlow, Width};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::us;
use crate::script::{MILLISECOND_NS, Record, SECOND_NS, Script, Step, Until, When};

/// How long a packet-out may take to its port.
const CABLE_NS: u64 = 2 * SECOND_NS;
/// How long the first rule may take to forward. Rarely, a rule of the HP 5406zl takes 22 s.
const FIRST_RULE_NS: u64 = 30 * SECOND_NS;
/// Frames by which the transit is measured.
const TRANSITS: usize = 50;
/// Long enough that software at some megabits a second is slow.
pub(crate) const FRAME_BYTES: usize = 1400;

/// The phase.
#[derive(Debug, Default)]
pub struct Cabling {
    state: State,
    flow: Option<TestFlow>,
    /// The rest is known from an earlier probe.
    only_cables: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Cables,
    Rule,
    Transits,
}

impl Phase for Cabling {
    fn title(&self) -> String {
        "checking the cables".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        // An earlier probe has measured it.
        if self.only_cables { &[] } else { &["cabling"] }
    }

    fn is_kept(&self) -> bool {
        !self.only_cables
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        let [first, second] = &options.ports;
        match (self.state, last) {
            (State::Cables, Some(record)) => {
                if let Some(why) = wrong_cable(record, options) {
                    return Next::Refuse(why);
                }
                if self.only_cables {
                    return Next::Done;
                }
                self.state = State::Rule;
                let flow = found.take_flows(Width::Ethernet, 1)[0];
                self.flow = Some(flow);
                let frames = crate::engine::watch(options, FRAME_BYTES);
                let rule = RuleForm::to(second.port).add_for(flow);
                Next::Run(Script::new(vec![Step::watched(When::At(0), rule, flow, frames)], FIRST_RULE_NS))
            }
            (State::Rule, Some(record)) => match (record.outcomes[0].error, record.outcomes[0].frame) {
                (Some(error), _) => Next::Refuse(format!(
                    "the switch refused the first rule (error type {}, code {})",
                    error.kind, error.code
                )),
                (None, None) => Next::Refuse(format!(
                    "no frame from {} came to {} by a rule in {} s",
                    first.interface,
                    second.interface,
                    FIRST_RULE_NS / SECOND_NS
                )),
                (None, Some(_)) => {
                    self.state = State::Transits;
                    Next::Run(self.transits(options))
                }
            },
            (State::Transits, Some(record)) => {
                conclude(record, options, found);
                Next::Done
            }
            _ => {
                self.state = State::Cables;
                let flows = found.take_flows(Width::Ethernet, 2);
                let steps = options.ports.iter().zip(flows);
                let steps = steps.map(|(at, flow)| Step::packet_out(When::At(0), flow, at.port, FRAME_BYTES));
                Next::Run(Script::new(steps.collect(), CABLE_NS))
            }
        }
    }
}

impl Cabling {
    /// The phase for a probe that goes on: only whether the test interfaces are still at their ports.
    pub fn again() -> Self {
        Cabling { only_cables: true, ..Cabling::default() }
    }

    fn transits(&self, options: &Options) -> Script {
        let steps = self.flow.into_iter().flat_map(|flow| {
            let into = options.ports[0].port;
            let step = Step::frame(When::After(MILLISECOND_NS), flow, into, FRAME_BYTES, Until::Frame);
            std::iter::repeat_n(step, TRANSITS)
        });
        Script::new(steps.collect(), SECOND_NS)
    }
}

/// What is wrong with the cables.
fn wrong_cable(record: &Record, options: &Options) -> Option<String> {
    options.ports.iter().zip(&record.outcomes).find_map(|(meant, outcome)| match outcome.frame {
        None => Some(format!(
            "port {} is not at {}: nothing came in {} s",
            meant.port,
            meant.interface,
            CABLE_NS / SECOND_NS
        )),
        Some(frame) if frame.port != meant.port => {
            let other = options.ports.iter().find(|other| other.port == frame.port);
            let other = other.map_or("another interface", |other| other.interface.as_str());
            Some(format!("port {} is not at {}: its frame came to {other}", meant.port, meant.interface))
        }
        Some(_) => None,
    })
}

fn conclude(record: &Record, options: &Options, found: &mut Findings) {
    let transits: Vec<f64> =
        record.outcomes.iter().filter_map(|outcome| outcome.transit_ns()).map(us).collect();
    // The longest of some dozen: rare outliers of the driver are below the margin, or they would hide software.
    found.hardware_transit_us = crate::samples::quantile(&transits, 0.9).unwrap_or_default();
    found.software_above_us = found.hardware_transit_us + us(options.transit_margin_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{FrameSeen, Outcome};
    use flow::PortNo;

    #[test]
    fn a_wrong_cable_is_named_by_its_port_and_interface() {
        let options = Options::simulated("x", "2026-11-25");
        let came_to = |port| Outcome {
            frame: Some(FrameSeen { sent_ns: 0, at_ns: 1, port: PortNo(port) }),
            ..Outcome::default()
        };
        let check = |outcomes: [Outcome; 2], expected: Option<&str>| {
            let record = Record { outcomes: outcomes.to_vec(), ..Record::default() };
            assert_eq!(wrong_cable(&record, &options).as_deref(), expected);
        };
        check([came_to(1), came_to(2)], None);
        check([came_to(1), Outcome::default()], Some("port 2 is not at veth2: nothing came in 2 s"));
        check([came_to(2), came_to(1)], Some("port 1 is not at veth1: its frame came to veth2"));
    }
}
