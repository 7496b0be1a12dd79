//! A switch, as the operator sees it.
//!
//! In: what the roster, the session and the kernel have of it. Out: the view. It asks nobody.

use kernel::{Metering, OfSwitch, RuleReport};
use operator::contract::{MeterView, PaceView, PortView, RulesBeforeView, SwitchView};
use southbound::session::State;
use southbound::{PaceSnapshot, SessionSnapshot, SwitchRecord};

/// A switch that is up, with its session and what the kernel keeps of it.
pub fn switch_view(
    record: &SwitchRecord,
    sessions: &[SessionSnapshot],
    kept: &[OfSwitch],
    now_ms: u64,
) -> SwitchView {
    let kept = kept.iter().find(|kept| kept.datapath == record.datapath);
    let dropped = kept.map(|kept| kept.dropped).unwrap_or_default();
    // A second connection may claim the same datapath id until it is refused.
    let session = sessions
        .iter()
        .find(|session| session.state == State::Up && session.identity.datapath == record.datapath);
    let counters = session.map(|session| session.counters).unwrap_or_default();
    let port = |port: &abi::event::PortRecord| {
        let facts = port.facts();
        PortView {
            port_no: facts.port_no,
            name: facts.name.to_owned(),
            hw_addr: facts.hw_addr,
            live: facts.live,
        }
    };
    SwitchView {
        datapath: record.datapath,
        version: record.version.to_string(),
        peer: record.peer.to_string(),
        tls: record.tls,
        up_ms: now_ms.saturating_sub(record.since_ms),
        n_tables: record.n_tables,
        n_buffers: record.n_buffers,
        description: record
            .desc
            .as_ref()
            .map(|desc| format!("{} {} {}", desc.mfr_desc, desc.hw_desc, desc.sw_desc)),
        ports: record.ports.iter().map(port).collect(),
        packet_ins: counters.packet_ins,
        flow_mods: counters.flow_mods,
        packet_outs: counters.packet_outs,
        errors: counters.errors_in,
        trouble: session.is_none().then(|| "its counters did not arrive in time".to_owned()),
        control_dropped: dropped.control_dropped,
        data_dropped: dropped.data_dropped,
        unheard: dropped.unheard,
        meter: kept.and_then(|kept| meter_view(&kept.metering)),
        rules_before: kept.map(|kept| rules_before(kept.rule_report)),
        pace: session.and_then(|session| session.pace.as_ref()).map(pace_view),
    }
}

fn pace_view(pace: &PaceSnapshot) -> PaceView {
    let PaceSnapshot { profile, waiting, wait_ms } = pace.clone();
    PaceView { profile, waiting, wait_ms }
}

fn rules_before(report: RuleReport) -> RulesBeforeView {
    match report {
        RuleReport::Waiting => RulesBeforeView::Waiting,
        RuleReport::Answered(of_apps) => RulesBeforeView::Known { of_apps },
        RuleReport::Unanswered(of_apps) => RulesBeforeView::Unanswered { of_apps },
    }
}

fn meter_view(metering: &Metering) -> Option<MeterView> {
    Some(match metering {
        Metering::Off => return None,
        Metering::Asked | Metering::Making(_) | Metering::Made(_) | Metering::Missed(_) => MeterView::Pending,
        Metering::On { meter, dropped } => {
            MeterView::On { meter_id: meter.meter_id, per_s: meter.per_s, dropped: *dropped }
        }
        Metering::Without(why) => MeterView::Without { reason: why.to_string() },
    })
}
