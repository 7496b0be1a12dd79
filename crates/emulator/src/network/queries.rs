//! Begins series of queries between hosts, and makes their reports.
//!
//! In: a series' parameters. Out: its number, and reports. It never sends a packet: the hosts do.

use std::net::IpAddr;
use std::time::Duration;

use super::{Network, NetworkEffects};
use crate::host::flow::IpVersion;
use crate::host::query::{QueriesRefused, QueriesReport, QuerySpec};
use crate::host::{Answers, SeriesPlace};

/// How many series a network may have. They are kept until it ends, since they are its results.
pub const SERIES_MAX: usize = 256;

/// The number of a series of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueriesId(pub(super) u64);

impl Network {
    /// Begins a series of queries now. The host that answers needs no further preparation.
    ///
    /// # Errors
    ///
    /// A host does not exist, the parameters are invalid, or there are too many series. Then nothing begins.
    pub fn start_queries(
        &mut self,
        spec: &QuerySpec,
        now: Duration,
        effects: &mut NetworkEffects,
    ) -> Result<QueriesId, QueriesRefused> {
        self.pass_to(now);
        let from = self.host_named(&spec.from).map_err(QueriesRefused::Host)?;
        let to = self.host_named(&spec.to).map_err(QueriesRefused::Host)?;
        if let Some(fault) = spec.fault() {
            return Err(fault);
        }
        if from == to {
            return Err(QueriesRefused::ToItself);
        }
        if self.query_hosts.len() >= SERIES_MAX {
            return Err(QueriesRefused::TooMany);
        }
        let [seed, peer_seed] = [(); 2].map(|()| self.random.next_u64());
        let answers = Answers { reply_bytes: spec.reply_bytes };
        self.hosts[to].answer_queries(spec.port, answers, peer_seed)?;
        let id = self.query_hosts.len() as u64;
        self.query_hosts.push(from);
        let ends = (self.address_for_queries(from, spec.ip), self.address_for_queries(to, spec.ip));
        let records_max = spec.queries_max().min(self.records_left);
        self.records_left -= records_max;
        let place = SeriesPlace { id, ends, seed, records_max };
        let (now, is_up) = (self.clock, self.is_host_up(from));
        self.at_host(from, effects, |host, out| {
            host.begin_queries(spec, place, now, out);
            if !is_up {
                host.fail();
            }
        });
        Ok(QueriesId(id))
    }

    fn address_for_queries(&self, host: usize, ip: IpVersion) -> IpAddr {
        match ip {
            IpVersion::V4 => self.hosts[host].address().into(),
            IpVersion::V6 => self.hosts[host].global_v6().into(),
        }
    }

    /// The result of a series so far, or `None` if it does not exist.
    pub fn queries_report(&self, id: QueriesId) -> Option<QueriesReport> {
        let from = *self.query_hosts.get(usize::try_from(id.0).ok()?)?;
        self.hosts.get(from)?.report_queries(id.0, self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SwitchOptions;
    use crate::host::query::{RECORDS_MAX, RECORDS_OF_ALL_MAX};
    use crate::topology::Topology;

    #[test]
    fn all_series_together_have_a_bound_of_records() {
        let topology: Topology = "single,2".parse().unwrap();
        let mut network = Network::new(&topology, &SwitchOptions::default(), Duration::ZERO);
        let mut left = |spec: &QuerySpec| {
            network.start_queries(spec, Duration::ZERO, &mut NetworkEffects::default()).unwrap();
            network.records_left
        };
        let short = QuerySpec { duration: Duration::from_secs(10), ..QuerySpec::new("h1", "h2") };
        assert_eq!(left(&short), RECORDS_OF_ALL_MAX - 200, "one each 50 ms");
        let endless = QuerySpec { duration: Duration::MAX, ..short };
        assert_eq!(left(&endless), RECORDS_OF_ALL_MAX - 200 - RECORDS_MAX);
        let then: Vec<usize> = (0..4).map(|_| left(&endless)).collect();
        assert_eq!(then[2..], [0, 0], "the fourth gets less, and the fifth nothing");
    }
}
