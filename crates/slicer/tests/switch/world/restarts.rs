//! The world over restarts of the slice's process: its journal, and what is in the physical switch.
//!
//! In: nothing but the world. Out: the same with another process, and rules. It checks nothing.

use super::*;

impl World {
    /// The slice's process ends, and another takes its place. The physical switch and the kernel stay.
    pub fn restart(&mut self, plan: &SlicePlan, first_number: u64) {
        self.slicer = Slicer::new(plan).unwrap();
        self.slicer.number_rules_from(first_number);
        self.tickets.clear();
        self.switch_up();
    }

    /// From now on, the slice keeps a journal.
    pub fn keep_journal(&mut self) {
        self.slicer.keep_journals();
        let mut file = Vec::new();
        assert!(self.slicer.write_journal(DATAPATH, true, &mut file));
        self.journal = Some(file);
    }

    /// What the service does after each turn.
    pub(super) fn save(&mut self) {
        let Some(file) = &mut self.journal else { return };
        let mut bytes = Vec::new();
        if self.slicer.write_journal(DATAPATH, false, &mut bytes) {
            file.clear();
        }
        file.extend_from_slice(&bytes);
    }

    /// As [`World::restart`], with the journal of the process that ended.
    pub fn restart_with_memory(&mut self, plan: &SlicePlan, first_number: u64) {
        let file = self.journal.take().unwrap();
        self.slicer = Slicer::new(plan).unwrap();
        self.slicer.number_rules_from(first_number);
        self.slicer.recall(DATAPATH, &file).unwrap();
        self.tickets.clear();
        self.keep_journal();
        self.switch_up();
    }

    /// The operator changes the plan: the slice gives back what it loses.
    pub fn withdraw(&mut self, loss: &Loss) -> Option<Vec<(DatapathId, String)>> {
        let mut outputs = Vec::new();
        self.slicer.withdraw(self.now.as_millis() as u64, loss, &mut outputs);
        self.run(outputs.into());
        self.save();
        self.slicer.withdrawn()
    }

    /// The physical switch loses something, and no process receives a word of it.
    pub fn lose(&mut self, body: Body) {
        drop(self.tell_physical(0, body));
    }

    /// What the physical switch answers in one message.
    pub fn ask_physical(&mut self, body: RequestBody) -> ReplyBody {
        let effects = self.tell_physical(0, Body::MultipartRequest(MultipartRequest { flags: 0, body }));
        match effects.messages.into_iter().next().map(|(_, message)| message.body) {
            Some(Body::MultipartReply(reply)) => reply.body,
            other => panic!("{other:?}"),
        }
    }

    /// The rules of the physical switch, without cookies.
    pub fn entries(&mut self) -> Vec<FlowStats> {
        let wanted = FlowStatsRequest::default();
        let body = RequestBody::Flow(wanted);
        let effects = self.tell_physical(0, Body::MultipartRequest(MultipartRequest { flags: 0, body }));
        let entries = effects.messages.into_iter().flat_map(|(_, message)| match message.body {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => entries,
            other => panic!("{other:?}"),
        });
        // The floor begins again with each process.
        let without_age = |entry: FlowStats| match entry.priority {
            0 | 1 => FlowStats { duration_s: 0, duration_ns: 0, packet_count: 0, byte_count: 0, ..entry },
            _ => entry,
        };
        let mut entries: Vec<FlowStats> =
            entries.map(|entry| without_age(FlowStats { cookie: 0, ..entry })).collect();
        entries.sort_by_key(|entry| format!("{entry:?}"));
        entries
    }
}
