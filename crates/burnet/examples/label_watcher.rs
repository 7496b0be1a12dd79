//! An app of a tenant that logs each label that its slice says. Tests use it to look at labels as an app receives them.
//!
//! In: labels. Out: log lines. It does nothing useful.

use burnet_sdk::{App, Commands, Interests, Labels, Level, Settings};

struct Watcher;

impl App for Watcher {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Watcher)
    }

    fn interests(&self) -> Interests {
        Interests::none().experimenters()
    }

    fn on_labels(&mut self, labels: &Labels, out: &mut Commands) {
        let stale = if labels.is_stale { " (stale)" } else { "" };
        for label in labels.iter() {
            let rate = |kbps: Option<u64>| kbps.map_or("none".to_owned(), |kbps| kbps.to_string());
            let (left, capacity) = (rate(label.label_kbps), rate(label.capacity_kbps));
            let line = format!("label {}/{}: {left} of {capacity}{stale}", labels.datapath, label.port);
            out.log(Level::Information, &line);
        }
    }
}

burnet_sdk::main!(Watcher);
