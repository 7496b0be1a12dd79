//! Files that one app reads and another may change.
//!
//! In: apps with their sandboxes. Out: a sentence for each pair. It reads no file.

use monitor_channel::AppSpec;

/// Files that one app may use and another may change, as a sentence for each pair of apps. The reading app should
/// know that the other app can change its input.
pub fn shared_folders(apps: &[AppSpec]) -> Vec<String> {
    let other =
        |one: &AppSpec| apps.iter().filter(|other| other.name != one.name).cloned().collect::<Vec<_>>();
    let line = |reads: &AppSpec, writes: &AppSpec| {
        let (path, folder) = reads.sandbox.fs.changed_by(&writes.sandbox.fs)?;
        Some(format!(
            "app {} may use {}, and app {} may change {}: it would read data that the other app controls; grant each app its own folder",
            reads.name,
            path.display(),
            writes.name,
            folder.display()
        ))
    };
    apps.iter()
        .flat_map(|one| other(one).into_iter().filter_map(|other| line(one, &other)).collect::<Vec<_>>())
        .collect()
}
