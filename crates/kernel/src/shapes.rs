//! The known shapes of a zone's rules, each with the decision on it.
//!
//! In: shapes of accepted rules. Out: the shape of a rule, if it is known. It decides nothing; see [`crate::prepared`].

use crate::capability::Capability;
use crate::grant::Grant;
use abi::OpenFlowVersion;
use abi::prepared::{RULE_LEN, RuleShape, RuleUse};
use flow::PortNo;

/// How many shapes are kept for a zone: an app that forwards has one or two, for switches of one version.
const SHAPES: usize = 2;

/// If all places are used, a new shape takes one only after this many rules of unknown shapes. So an app whose rules
/// all differ does not pay for storing each shape.
const OTHERS_MIN: u8 = 16;

/// No packet in the switch (OFP_NO_BUFFER).
const NO_BUFFER: u32 = u32::MAX;

/// The shapes of one zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    shapes: [Option<PreparedShape>; SHAPES],
    /// The place that is replaced next.
    next: usize,
    /// Rules of unknown shapes since a shape was stored.
    others: u8,
}

/// A shape, and the decision on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedShape {
    pub shape: RuleShape,
    pub number: u64,
    pub openflow: OpenFlowVersion,
    /// The table and the priority that the switch gives it.
    pub table_id: u8,
    pub priority: u16,
    pub cookie: u64,
    pub stays: bool,
    /// Whether it may send a packet from the switch's buffer.
    pub may_release: bool,
    pub any_port: bool,
}

impl Prepared {
    #[inline(always)]
    pub fn find(&self, frame: &[u8; RULE_LEN]) -> Option<(&PreparedShape, RuleUse)> {
        let mut found = None;
        for of_zone in &self.shapes {
            if let Some(of_zone) = of_zone
                && let Some(of_use) = of_zone.shape.values(frame)
            {
                found = Some((of_zone, of_use));
                break;
            }
        }
        found
    }

    /// The shape of a frame, and its place.
    pub fn place_of(&self, frame: &[u8; RULE_LEN]) -> Option<(usize, &PreparedShape)> {
        let shapes = self.shapes.iter().enumerate();
        let mut there = shapes.filter_map(|(place, shape)| Some((place, shape.as_ref()?)));
        there.find(|(_, shape)| shape.shape.values(frame).is_some())
    }

    /// The shape with this number, if it is still at this place.
    #[inline(always)]
    pub fn at(&self, place: usize, number: u64) -> Option<&PreparedShape> {
        self.shapes.get(place)?.as_ref().filter(|it| it.number == number)
    }

    /// Whether a new shape may be stored now.
    pub fn has_place(&mut self) -> bool {
        let is_free = self.shapes.iter().any(Option::is_none);
        self.others = self.others.saturating_add(1);
        is_free || self.others >= OTHERS_MIN
    }

    /// Whether the shape is stored already. Then the rule needed a full decision for another reason.
    pub fn has(&mut self, shape: &RuleShape, openflow: OpenFlowVersion) -> bool {
        self.others = 0;
        self.shapes.iter().flatten().any(|it| it.shape == *shape && it.openflow == openflow)
    }

    pub fn keep(&mut self, shape: PreparedShape) {
        let free = self.shapes.iter().position(Option::is_none);
        self.shapes[free.unwrap_or(self.next)] = Some(shape);
        (self.next, self.others) = ((self.next + 1) % SHAPES, 0);
    }
}

/// Whether a decision on a shape is valid for all values except those that are checked. It is not if packets or
/// switches are bounded, or if the app's rules are counted.
pub(crate) fn is_decided_by_shape(grant: &Grant) -> bool {
    let is_bounded = grant.is_bounded(Capability::RuleWrite);
    let bounds = grant.rules();
    let by_value = is_bounded
        && (bounds.flowspace.is_some()
            || bounds.datapaths.is_some()
            || !bounds.switches.is_empty()
            || !bounds.own_ports.is_empty());
    grant.holds(Capability::RuleWrite) && !by_value && grant.quotas().rules_per_datapath.is_none()
}

impl PreparedShape {
    /// Whether a value is within the bounds of the zone's grant.
    #[inline(always)]
    pub fn allows(&self, grant: &Grant, of_use: &RuleUse) -> bool {
        let port = of_use.values.output;
        let is_granted = self.any_port || grant.rules().ports.as_ref().is_none_or(|it| it.contains(&port));
        port <= PortNo::MAX && is_granted && (self.may_release || of_use.buffer_id == NO_BUFFER)
    }
}
