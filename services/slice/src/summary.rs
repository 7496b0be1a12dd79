//! The summary that a slice publishes for the other parts of the node.
//!
//! In: the state of the slice. Out: a summary. It publishes nothing.

use crate::state::SliceState;
use slice_contract::{SHAPED_BYTES_MAX, Summary, VNICS_MAX};

/// How often a summary may be published, in milliseconds. A thousand slices are then five hundred messages a second at most.
pub(crate) const INTERVAL_MS: u64 = 2_000;

pub(crate) fn summary(state: &SliceState) -> Summary {
    let mut sum = Summary { slice: state.slice.clone(), ..Summary::default() };
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    for switch in &state.switches {
        sum.switches += 1;
        sum.switches_up += u64::from(switch.is_up);
        sum.connections += count(switch.controllers.len());
        sum.connections_up += count(switch.controllers.iter().filter(|it| it.version.is_some()).count());
        sum.rules += count(switch.rules);
        sum.pieces += count(switch.pieces);
        sum.flow_mods_total += switch.flow_mods;
        sum.refused_total += switch.refused;
        sum.packet_ins_total += switch.packet_ins;
        sum.packet_ins_dropped_total += switch.packet_ins_dropped;
        sum.packet_ins_unread_total += switch.packet_ins_unread;
        sum.packet_outs_total += switch.packet_outs;
        for vnic in &switch.vnics {
            let mut shaped = vnic.shaped_by.to_string();
            shaped.truncate(shaped.floor_char_boundary(SHAPED_BYTES_MAX));
            sum.shaped.insert(vnic.name.clone(), shaped);
        }
    }
    sum.links_unfit = count(state.links.iter().filter(|link| link.lack.is_some()).count());
    while sum.shaped.len() > VNICS_MAX {
        sum.shaped.pop_last();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{ControllerState, SwitchState};
    use crate::vnics::{ShapedBy, VnicState};
    use flow::DatapathId;

    fn state(rules: usize) -> SliceState {
        let controller = |version: Option<&str>| ControllerState {
            address: "127.0.0.1:1".parse().unwrap(),
            version: version.map(str::to_owned),
            role: None,
            up_ms: None,
            trouble: None,
        };
        let switch = |is_up| SwitchState {
            datapath: DatapathId(1),
            shown_as: DatapathId(1),
            is_up,
            rules,
            pieces: 2 * rules,
            packet_ins: 5,
            packet_ins_dropped: 1,
            packet_ins_unread: 4,
            packet_outs: 3,
            flow_mods: 7,
            refused: 2,
            vnics: vec![VnicState { name: "E".to_owned(), port: 1, shaped_by: ShapedBy::Agent(2) }],
            controllers: vec![controller(Some("1.3")), controller(None)],
        };
        SliceState {
            slice: "blue".to_owned(),
            switches: vec![switch(true), switch(false)],
            links: Vec::new(),
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_summary_has_the_sums_over_all_switches() {
        let expected = Summary {
            slice: "blue".to_owned(),
            switches: 2,
            switches_up: 1,
            connections: 4,
            connections_up: 2,
            rules: 6,
            pieces: 12,
            flow_mods_total: 14,
            refused_total: 4,
            packet_ins_total: 10,
            packet_ins_dropped_total: 2,
            packet_ins_unread_total: 8,
            packet_outs_total: 6,
            links_unfit: 0,
            shaped: [("E".to_owned(), "shaped by agent 2".to_owned())].into(),
        };
        assert_eq!(summary(&state(3)), expected);
    }

    #[test]
    fn only_so_many_vnics_are_in_a_summary() {
        let mut state = state(0);
        let vnic = |number: usize| VnicState {
            name: format!("{number:03}"),
            port: 1,
            shaped_by: ShapedBy::Nobody("ä".repeat(SHAPED_BYTES_MAX)),
        };
        state.switches[0].vnics = (0..=VNICS_MAX).map(vnic).collect();
        let summary = summary(&state);
        assert_eq!(summary.shaped.len(), VNICS_MAX);
        assert_eq!(Summary::from_bytes(&summary.to_bytes()), Ok(summary));
    }
}
