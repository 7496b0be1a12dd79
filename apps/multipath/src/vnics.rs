//! What the operator sets under `[app.multipath.settings]`, and the rates that flows may expect.
//!
//! In: settings, the flows of the tenant. Out: rates. It decides no path.

use crate::FlowId;
use crate::choice::Choose;
use burnet_sdk::MacAddr;
use burnet_sdk::view::HostId;
use serde::Deserialize;
use std::collections::HashMap;

/// The most VNICs in the settings. More are refused: a slice has no more.
const VNICS_MAX: usize = 4_096;

/// The settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MultipathSettings {
    /// The priority of its rules.
    pub(crate) priority: u16,
    /// Seconds without a packet until a switch removes a rule.
    pub(crate) idle_timeout_s: u16,
    /// `label`, `random` or `hash`.
    pub(crate) choose: String,
    /// What the tenant has bought.
    pub(crate) vnics: Vec<Vnic>,
}

/// A VNIC of the tenant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vnic {
    mac: MacAddr,
    rate_kbps: u64,
}

impl Default for MultipathSettings {
    fn default() -> Self {
        let choose = "label".to_owned();
        MultipathSettings { priority: 10_000, idle_timeout_s: 10, choose, vnics: Vec::new() }
    }
}

impl MultipathSettings {
    /// How paths are chosen.
    ///
    /// # Errors
    /// The word is none of the three, or there are too many VNICs.
    pub(crate) fn choose(&self) -> Result<Choose, String> {
        if self.vnics.len() > VNICS_MAX {
            return Err(format!("{} VNICs; at most {VNICS_MAX} are possible", self.vnics.len()));
        }
        match self.choose.as_str() {
            "label" => Ok(Choose::Label),
            "random" | "hash" => Ok(Choose::Number),
            other => Err(format!("choose = \"{other}\": write \"label\", \"random\" or \"hash\"")),
        }
    }
}

/// The rates of VNICs.
#[derive(Debug, Default)]
pub(crate) struct Rates(HashMap<MacAddr, u64>);

impl Rates {
    pub(crate) fn new(vnics: &[Vnic]) -> Rates {
        Rates(vnics.iter().map(|vnic| (vnic.mac, vnic.rate_kbps.saturating_mul(1_000))).collect())
    }

    /// What each of these flows may expect: an even part of each VNIC's rate. A VNIC that is not in the settings has the rate `unknown_bps`.
    pub(crate) fn expected_bps<'f>(
        &self,
        flows: impl Iterator<Item = &'f FlowId>,
        unknown_bps: u64,
    ) -> impl Fn(&FlowId) -> u64 {
        let (mut sends, mut receives) = (HashMap::<HostId, u64>::new(), HashMap::<HostId, u64>::new());
        for flow in flows {
            *sends.entry(flow.src).or_default() += 1;
            *receives.entry(flow.dst).or_default() += 1;
        }
        let part_bps = move |host: &HostId, flows: &HashMap<HostId, u64>| {
            let rate_bps = self.0.get(&host.mac).copied().unwrap_or(unknown_bps);
            rate_bps / flows.get(host).copied().unwrap_or(1)
        };
        move |flow| part_bps(&flow.src, &sends).min(part_bps(&flow.dst, &receives))
    }
}
