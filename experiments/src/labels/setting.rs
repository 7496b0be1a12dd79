//! The setting of figures 1 and 2: the network, both tenants, their flows, and the slips of the paper about them.
//!
//! In: names of the paper. Out: the tenants and flows of a rehearsal. It runs nothing.

use crate::report::Claim;
use rehearsal::{Choose, Fabric, Pair, Plan, STAY_MS, SliceNo, Vnic, VnicNo};

/// A gigabit a second.
pub const G: u64 = 1_000_000_000;
/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// How far a rate may be from what is asked.
pub const RATE_LIMIT: f64 = 0.05;
/// Both tenants.
pub const RED: SliceNo = SliceNo(0);
pub const BLUE: SliceNo = SliceNo(1);

/// How long a notice takes to a controller. Nobody knows the paper's; this is a local connection with room to spare.
const NOTICE_US: u64 = 500;

/// A flow of the figures.
#[derive(Clone, Copy, Debug)]
pub struct FigureFlow {
    /// Its name in the paper.
    pub name: &'static str,
    /// The tenant and both VNICs.
    pub pair: Pair,
}

const fn flow(name: &'static str, slice: SliceNo, source: u32) -> FigureFlow {
    let pair = Pair { slice, source: VnicNo(source), destination: VnicNo(source + 1) };
    FigureFlow { name, pair }
}

/// In the order in which they begin.
pub const FLOWS: [FigureFlow; 3] = [flow("A to B", RED, 0), flow("E to F", BLUE, 2), flow("C to D", BLUE, 0)];

/// Figure 1a, with the servers of A and C at s5, E at s6, B and D at s7, F at s8.
pub fn fabric(link_gbps: u64) -> Fabric {
    Fabric::figure_one(link_gbps * G)
}

/// Red has A and B; blue has C, D, E and F.
///
/// # Errors
/// A server is not in the network.
pub fn plans(fabric: &Fabric, choose: Choose) -> Result<Vec<Plan>, String> {
    plans_at(fabric, choose, G)
}

/// The same tenants, with rates in this unit.
///
/// # Errors
/// As [`plans`].
pub fn plans_at(fabric: &Fabric, choose: Choose, unit_bps: u64) -> Result<Vec<Plan>, String> {
    let plan = |vnics: &[(&str, u64)]| -> Result<Plan, String> {
        let vnic = |(name, rate): &(&str, u64)| -> Result<Vnic, String> {
            let server = fabric.server_named(name).ok_or(format!("figure 1a has no server {name}"))?;
            Ok(Vnic { server, rate_bps: rate * unit_bps })
        };
        let vnics = vnics.iter().map(vnic).collect::<Result<_, _>>()?;
        Ok(Plan {
            vnics,
            choose,
            stay_ms: STAY_MS,
            notice_us: NOTICE_US,
            is_metered: true,
            step: None,
            links: None,
        })
    };
    Ok(vec![plan(&[("s5", 8), ("s7", 8)])?, plan(&[("s5", 2), ("s7", 2), ("s6", 10), ("s8", 10)])?])
}

/// Whether a rate in Gb/s is near enough.
pub fn is_near(gbps: f64, expected: f64) -> bool {
    (gbps - expected).abs() <= RATE_LIMIT * expected
}

/// A claim about the rate of a flow.
pub fn rate_claim(what: &str, gbps: f64, asked: f64, paper: Option<f64>) -> Claim {
    let asked_text = format!("{asked} Gb/s, within {:.0} %", RATE_LIMIT * 100.0);
    let claim = Claim::asked(what, &asked_text, format!("{gbps:.2} Gb/s"), is_near(gbps, asked));
    match paper {
        Some(paper) => claim.beside(&format!("{paper} Gb/s")),
        None => claim,
    }
}

/// Where the paper's text contradicts itself or leaves a question open, as far as it concerns these figures.
pub fn slips() -> Vec<String> {
    [
        "Slip: 4, 6 and 6 Gb/s are rounded. In proportion 8 to 10 it is 4.44 and 5.56, and the sum is 15.6, not 16 Gb/s.",
        "Slip: A gets less than E, which the paper calls unfair. But A asked for 8 and E for 10, so proportional shares must differ.",
        "Slip: the text names the link S1 to S3; all three flows go from S3 to S1.",
        "Slip: section III says that a VNIC's traffic does not exceed its bandwidth. In figure 2a, A sends 10 Gb/s with a VNIC of 8.",
        "Slip: the field `label` has no unit. Burnet says kb/s.",
    ]
    .map(str::to_owned)
    .to_vec()
}
