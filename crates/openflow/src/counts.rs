//! Serializes pairs of counters (of a group's bucket, of a meter's band) as objects with named keys.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    packet_count: u64,
    byte_count: u64,
}

pub(crate) fn serialize<S: Serializer>(pairs: &[(u64, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_seq(pairs.iter().map(|&(packet_count, byte_count)| Counts { packet_count, byte_count }))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, u64)>, D::Error> {
    let counts = Vec::<Counts>::deserialize(deserializer)?;
    Ok(counts.into_iter().map(|count| (count.packet_count, count.byte_count)).collect())
}
