//! Deletes rules that shadow rules of an earlier app in the operator's order.
//!
//! In: decisions of `kernel::precedence`. Out: deletes by the node itself, log lines, records. It decides nothing.

use super::{Worker, now_unix_ms};
use abi::ZoneId;
use abi::command::{Command, FlowMod, What};
use abi::zone_id::COOKIE_MASK;
use audit_contract::Record;
use flow::DatapathId;
use kernel::Eviction;
use southbound::Tag;

/// OFPFC_DELETE_STRICT.
const DELETE_STRICT: u8 = 4;

impl Worker {
    /// Deletes the rules that shadow a rule of an app before their owners, and reports them.
    pub(super) fn evict(&mut self) {
        for eviction in self.dispatch.kernel.take_evictions() {
            let words = self.delete_for(&eviction);
            let app = self.app_named(eviction.owner).to_owned();
            tracing::warn!(app, datapath = %eviction.datapath, "{words}");
            let record = Record::new(now_unix_ms(), "rule_evicted", "node", words).of_app(&app);
            self.tell_records(vec![record]);
        }
    }

    /// Deletes one rule, and returns a text about it.
    fn delete_for(&mut self, it: &Eviction) -> String {
        let (cookie, cookie_mask) = (it.owner.stamp(0), !COOKIE_MASK);
        let rule = FlowMod {
            command: DELETE_STRICT,
            cookie,
            cookie_mask,
            table_id: it.table_id,
            priority: it.priority,
            matching: &it.matching,
            ..FlowMod::ADD
        };
        let what = What::FlowMod(rule);
        let command = Command { datapath: it.datapath, ticket: 0, wants_receipt: false, what };
        let sent = self.southbound.send(it.datapath, &command, cookie, Tag::of_node(0));
        let of = self.app_named(it.for_zone);
        let why = match it.takes_all {
            true => format!(
                "a rule with priority {} in table {} takes every packet that {of} receives, which is earlier in [apps] order",
                it.priority, it.table_id
            ),
            false => format!(
                "a rule with priority {} shadows a rule of {of}, which is earlier in [apps] order",
                it.priority
            ),
        };
        match sent {
            Ok(()) => format!("{why}: deleted"),
            Err(refused) => format!("{why}: the rule could not be deleted: {refused}"),
        }
    }

    /// Reports a rule that shadows another app's. The kernel accepted it, because the operator only wants a report.
    pub(super) fn tell_of_shadow(
        &mut self,
        zone: ZoneId,
        of: ZoneId,
        datapath: DatapathId,
        [its, priority]: [u16; 2],
    ) {
        let (app, of) = (self.app_named(zone).to_owned(), self.app_named(of));
        let words = format!("a rule with priority {priority} shadows a rule of {of} with priority {its}");
        tracing::debug!(app, %datapath, "{words}");
        let record = Record::new(now_unix_ms(), "rule_shadows", "app", words).of_app(&app);
        self.tell_records(vec![record]);
    }

    fn app_named(&self, zone: ZoneId) -> &str {
        self.dispatch.kernel.zone(zone).map_or("an app that is not running", |zone| zone.name.as_str())
    }
}
