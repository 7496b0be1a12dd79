//! An app that sends the store the operations in its settings, and prints the results for tests.
//!
//! It first sends each operation of one list. Then it repeats those of another list, one at each tick if the one
//! before was answered. The operations are `put KEY BYTES`, `get KEY`, `delete KEY`, `list PREFIX`. It does nothing
//! useful.

use burnet_sdk::store::{keys, status};
use burnet_sdk::{App, Commands, DatapathId, Interests, QueryReply, Receipt, Settings, SoftLimit, Ticket};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoarderSettings {
    first: Vec<String>,
    then: Vec<String>,
}

struct Hoarder {
    settings: HoarderSettings,
    ticks: usize,
    open: BTreeMap<u64, String>,
}

impl App for Hoarder {
    fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Hoarder { settings: settings.read()?, ticks: 0, open: BTreeMap::new() })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks()
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        // Each worker ticks: what is asked by one could come before what was asked by another.
        if !self.open.is_empty() {
            return;
        }
        let HoarderSettings { first, then } = &self.settings;
        let next = first.get(self.ticks).or_else(|| then.get((self.ticks - first.len()) % then.len().max(1)));
        if let Some(ask) = next.cloned() {
            let Ticket(ticket) = give(&ask, out);
            self.open.insert(ticket, ask);
        }
        self.ticks += 1;
    }

    fn on_query_reply(&mut self, reply: &QueryReply, _: &mut Commands) {
        let came = match reply.status {
            status::DONE => "done",
            status::NOT_FOUND => "not found",
            status::APP_FULL => "the app's share is full",
            status::NOT_GRANTED => "refused",
            _ => "something else",
        };
        let ask = self.open.remove(&reply.ticket).unwrap_or_default();
        let listed: Vec<&str> =
            if ask.starts_with("list") { keys(reply.payload).collect() } else { Vec::new() };
        if reply.status == status::NOT_GRANTED {
            return println!("{ask}: {came}: {}", String::from_utf8_lossy(reply.payload));
        }
        println!("{ask}: {came}, {} bytes {listed:?}", reply.payload.len());
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        let ask = self.open.remove(&receipt.ticket).unwrap_or_default();
        println!("{ask}: {}: {}", receipt.outcome, receipt.reason);
    }

    fn on_soft_limit(&mut self, limit: &SoftLimit, _: &mut Commands) {
        println!("told of {}: {}, and {} is the soft limit", limit.quota, limit.used, limit.soft);
    }
}

fn give(ask: &str, out: &mut Commands) -> Ticket {
    let words: Vec<&str> = ask.split(' ').collect();
    match words[..] {
        ["put", key, bytes] => out.store_put(key, &vec![0x5a; bytes.parse().unwrap_or_default()]),
        ["delete", key] => out.store_delete(key),
        ["list", prefix] => out.store_list(prefix, ""),
        [_, key] => out.store_get(key),
        _ => out.store_get(ask),
    }
}

fn main() -> ExitCode {
    burnet_sdk::run::<Hoarder>()
}
