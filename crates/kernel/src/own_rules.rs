//! Commands of apps that reach the kernel's own table-miss rules.
//!
//! In: flow mods, and the later tables in which the kernel has its rule. Out: whether a command addresses the kernel's rule, and
//! which of these rules are gone once it is sent. It refuses nothing: the caller does.

use crate::bounds::{ALL_TABLES, command as flow_command};
use crate::dispatch::Kernel;
use crate::passage::{ANY_GROUP, is_strict};
use crate::rules::OWN_COOKIE;
use crate::wide::covers_all;
use abi::OpenFlowVersion;
use abi::command::FlowMod;
use flow::canonical::{begins_with_usual, read_match};
use flow::{DatapathId, PortNo};

impl Kernel {
    /// Whether the command addresses a table-miss rule of the kernel: that of table 0, or of a table to which apps pass
    /// packets on. An add would replace the rule, and in 1.0 no cookie protects it from a strict command. A loose command
    /// reaches only its owner's rules.
    #[inline]
    pub(crate) fn is_kernels_own(&mut self, datapath: DatapathId, it: &FlowMod<'_>) -> bool {
        // It names no field.
        !begins_with_usual(it.matching)
            && (matches!(it.table_id, 0 | ALL_TABLES) || self.has_later_punt(datapath, it.table_id))
            && self.has_its_key(datapath, it)
    }

    #[cold]
    fn has_later_punt(&self, datapath: DatapathId, table_id: u8) -> bool {
        self.sessions.datapaths.get(&datapath).is_some_and(|there| there.later_punts.has(table_id))
    }

    #[cold]
    fn has_its_key(&mut self, datapath: DatapathId, it: &FlowMod<'_>) -> bool {
        let openflow = self.sessions.check_here(datapath).unwrap_or(OpenFlowVersion::V1_3);
        let mut key = |matching: &[u8]| self.ownership.keys.of(openflow, datapath, 0, 0, matching);
        let is_it = key(it.matching) == key(&[]);
        is_strict(it.command) && is_it && self.receivers.want_packets()
    }

    /// A command may replace, change or delete the kernel's own table-miss rules of later tables. Its cookie tells: only
    /// commands of apps that may change the rules of others reach them.
    #[inline]
    pub(crate) fn note_own(&mut self, datapath: DatapathId, it: &FlowMod<'_>, stamped: &FlowMod<'_>) {
        let reaches =
            it.command == flow_command::ADD || (stamped.cookie ^ OWN_COOKIE) & stamped.cookie_mask == 0;
        if reaches && !begins_with_usual(it.matching) {
            self.note_own_reached(datapath, it);
        }
    }

    #[cold]
    fn note_own_reached(&mut self, datapath: DatapathId, it: &FlowMod<'_>) {
        let Some(there) = self.sessions.datapaths.get(&datapath) else { return };
        let is_in = |table_id: &u8| it.table_id == ALL_TABLES || it.table_id == *table_id;
        let tables: Vec<u8> = there.later_punts.tables().filter(is_in).collect();
        let outputs = [PortNo::ANY, PortNo::CONTROLLER];
        let may_be_chosen =
            it.command < flow_command::DELETE || outputs.contains(&it.out_port) && it.out_group == ANY_GROUP;
        if tables.is_empty() || !may_be_chosen || is_strict(it.command) && it.priority > 0 {
            return;
        }
        if read_match(it.matching).is_ok_and(|matching| covers_all(&matching)) {
            self.precedence.pending.get_or_insert_default().own = Some((datapath, tables));
        }
    }
}
