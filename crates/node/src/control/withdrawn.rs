//! Which losses of slices were withdrawn from switches: a file, so that a later kernel process does not do it again.
//!
//! ```text
//!   wanted, the file ──> what is left, for the workers ──> Withdrawn ──> the file: a number in each line
//! ```
//!
//! A withdrawal that is done twice would delete rules which the slice has made since. In: wanted withdrawals, and those that workers have done. Out: what is
//! left, and the file. It waits for the disk only when the node ends. Bound: only numbers that are still wanted are kept.

use config::Config;
use package::state::write_file;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The withdrawals that are done.
pub(super) struct WithdrawnFile {
    done: BTreeSet<u64>,
    wanted: Vec<kernel::Withdrawal>,
    has_changed: bool,
    writer: Option<(SyncSender<String>, JoinHandle<()>)>,
}

impl WithdrawnFile {
    /// Reads the file. Without a folder, nothing outlives this process.
    pub(super) fn open(folder: Option<&Path>) -> WithdrawnFile {
        let path = folder.map(|folder| folder.join(config::WITHDRAWN_FILE));
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let done = config::read_withdrawn(&text);
        WithdrawnFile { done, wanted: Vec::new(), has_changed: false, writer: path.and_then(start) }
    }

    /// From now on, those of this configuration are wanted. Returns what is left of them.
    pub(super) fn left(&mut self, config: &Config) -> Arc<[kernel::Withdrawal]> {
        let ids: BTreeSet<u64> = config.withdrawals.iter().map(|it| it.id).collect();
        let before = self.done.len();
        self.done.retain(|id| ids.contains(id));
        self.has_changed |= before != self.done.len();
        self.wanted = config.withdrawals.iter().map(config::Withdrawal::to_kernel).collect();
        self.wanted_still()
    }

    fn wanted_still(&mut self) -> Arc<[kernel::Withdrawal]> {
        self.wanted.retain(|it| !self.done.contains(&it.id));
        self.wanted.iter().cloned().collect()
    }

    /// These are done. Returns what is left. All workers must know it, because the switch may have another worker next time.
    pub(super) fn on_done(&mut self, ids: Vec<u64>) -> Arc<[kernel::Withdrawal]> {
        let is_wanted = |id: &u64| self.wanted.iter().any(|it| it.id == *id);
        self.done.extend(ids.into_iter().filter(is_wanted));
        self.has_changed = true;
        self.wanted_still()
    }

    /// Sends the file to the writer if it has changed. If the disk is slow, a later turn does it.
    pub(super) fn keep(&mut self) {
        let Some((writer, _)) = self.writer.as_ref().filter(|_| self.has_changed) else { return };
        self.has_changed = writer.try_send(config::write_withdrawn(&self.done)).is_err();
    }

    /// The node ends: waits until all is written.
    pub(super) fn finish(&mut self) {
        let Some((writer, thread)) = self.writer.take() else { return };
        if self.has_changed {
            // A writer that has ended has logged the reason.
            let _ = writer.send(config::write_withdrawn(&self.done));
        }
        drop(writer);
        if thread.join().is_err() {
            tracing::error!("the withdrawals from switches are not stored: the writer thread panicked");
        }
    }
}

/// One version waits while another is written. Later changes are in the next version.
fn start(path: PathBuf) -> Option<(SyncSender<String>, JoinHandle<()>)> {
    let (sender, texts) = sync_channel(1);
    let thread = std::thread::Builder::new().name("withdrawn".to_owned());
    let started = thread.spawn(move || write_all(&path, &texts));
    started
        .map(|thread| (sender, thread))
        .inspect_err(|error| tracing::warn!("the withdrawals from switches cannot be stored: {error}"))
        .ok()
}

fn write_all(path: &Path, texts: &Receiver<String>) {
    while let Ok(text) = texts.recv() {
        if let Err(error) = write_file(path, text.as_bytes(), 0o600) {
            tracing::error!(
                "the withdrawals from switches cannot be stored, and are done again by the next kernel process: {error}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_not_done_again_by_the_next_process_and_forgotten_when_nobody_wants_it() {
        let folder = std::env::temp_dir().join(format!("burnet-withdrawn-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = |ids: &[u64]| {
            let around = config::Environment { uid: 1000, home: Some("/h".into()), ..Default::default() };
            let args = config::RunArgs::default();
            let mut config = Config::merge(config::ConfigFile::default(), &args, &around, &[]).unwrap();
            let withdrawal = |id: &u64| config::Withdrawal {
                id: *id,
                zone: 3,
                datapath: flow::DatapathId(1),
                ports: Vec::new(),
                parts: None,
            };
            config.withdrawals = ids.iter().map(withdrawal).collect();
            config
        };
        let ids = |left: Arc<[kernel::Withdrawal]>| left.iter().map(|it| it.id).collect::<Vec<_>>();
        let mut file = WithdrawnFile::open(Some(&folder));
        assert_eq!(ids(file.left(&config(&[1, 2, 3]))), [1, 2, 3]);
        assert_eq!(ids(file.on_done(vec![2, 9])), [1, 3]);
        file.keep();
        file.finish();
        let mut file = WithdrawnFile::open(Some(&folder));
        assert_eq!(ids(file.left(&config(&[1, 2, 3]))), [1, 3]);
        assert_eq!(ids(file.left(&config(&[3]))), [3]);
        file.finish();
        assert_eq!(std::fs::read_to_string(folder.join(config::WITHDRAWN_FILE)).unwrap(), "");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
