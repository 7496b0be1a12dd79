//! The zone numbers of a node's apps, stored in the folder of its records. Also the apps that owned groups and meters
//! in switches, by number.
//!
//! In: the folder and the apps. Out: the apps with their numbers, the new content of the file, and the owners.
//! [`crate::zone_numbers`] chooses the numbers.

use crate::cli::CommandError;
use crate::zone_numbers::{TEXT_BYTES_MAX, ZoneNumbers};
use monitor::owners::{self, Owners};
use monitor::records::owners_file;
use monitor::{APPS_MAX, AppSpec};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// The file in that folder: one line `NUMBER NAME` for each app.
const FILE: &str = "zones";

/// How often, and how long each time, it waits for another node that assigns numbers in the same folder. Assigning
/// takes milliseconds.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Gives each app its number, and stores it. Returns who owned the groups and meters in switches when a node with
/// this folder last ended. Numbers that were unused then are left out: a new app inherits nothing.
///
/// # Errors
/// The file cannot be read or written, another node does not finish, or no numbers are left. Then no app has got a
/// number.
pub fn give_numbers(folder: &Path, apps: &mut [AppSpec]) -> Result<Owners, CommandError> {
    let path = folder.join(FILE);
    let trouble = |error: io::Error| {
        let sentence =
            format!("the file with the numbers of apps, {}, cannot be used: {error}", path.display());
        match error.kind() {
            // The configuration is right: the same command may work in a moment.
            io::ErrorKind::WouldBlock => CommandError::DidNotWork(sentence),
            _ => CommandError::Usage(sentence),
        }
    };
    fs::create_dir_all(folder).map_err(trouble)?;
    let _lock = lock(folder).map_err(trouble)?;
    let text = read(&path, TEXT_BYTES_MAX).map_err(trouble)?;
    let mut numbers = ZoneNumbers::parse(&text).map_err(|why| {
        CommandError::Usage(format!(
            "{}, {why}: these numbers say to which app a rule in a switch belongs; restore the file, or remove it if no switch has rules of this node",
            path.display()
        ))
    })?;
    let before = numbers.clone();
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    if let [first, rest @ ..] = &numbers.give(&names)[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more apps", rest.len()) };
        return Err(CommandError::Usage(format!(
            "all {APPS_MAX} app numbers are in use, so {first}{more} cannot get one. An app keeps its number, because rules, groups and meters \
             in switches may carry it. To free a number, start the node without {first}. With `burnet flows`, find the rules of an app that \
             you no longer use (`zone NUMBER`), and delete them. Then remove its line from {}",
            path.display()
        )));
    }
    let kept = numbers.to_text();
    if kept != text {
        package::state::write_file(&path, kept.as_bytes(), 0o644)
            .map_err(|error| CommandError::Usage(error.to_string()))?;
    }
    for app in apps {
        app.zone = numbers.number_of(&app.name);
    }
    owners(&owners_file(folder), |number| before.is_given(number)).map_err(trouble)
}

/// An invalid line is left out. Then no app may change what that number owned.
fn owners(path: &Path, is_known: impl Fn(u16) -> bool) -> io::Result<Owners> {
    let (owners, damaged) = Owners::parse(&read(path, owners::TEXT_BYTES_MAX)?, is_known);
    if let Some(line) = damaged {
        tracing::warn!(
            "{}, line {line}: it names no group or meter; only apps with rule.write.others can change the group or meter that it named",
            path.display()
        );
    }
    Ok(owners)
}

fn read(path: &Path, bytes_max: usize) -> io::Result<String> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    let mut text = String::new();
    // One byte more shows whether the file is too long.
    file.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    if text.len() > bytes_max {
        return Err(io::Error::other(format!("{} has more than {bytes_max} bytes", path.display())));
    }
    Ok(text)
}

/// A lock, held until it is dropped. Two nodes with one folder must not assign one number twice.
fn lock(folder: &Path) -> io::Result<File> {
    // A user who can open the file could lock it, and so keep every node from starting (flock(2)).
    let path = folder.join(format!("{FILE}.lock"));
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    // A file of an earlier version may be open to other users. Only its owner can and must change that.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    let held = "another node is using that file; start this node again later";
    Err(io::Error::new(io::ErrorKind::WouldBlock, held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor::{AppRole, AppSource, ZoneKind};

    fn app(name: &str) -> AppSpec {
        AppSpec {
            name: name.to_owned(),
            role: AppRole::App,
            duty: None,
            zone: None,
            kind: ZoneKind::Process,
            source: AppSource::BuiltIn(name.to_owned()),
            limits: zone::Limits::default(),
            sandbox: zone::Sandbox::default(),
            settings: serde_json::Map::new(),
            grant: serde_json::Value::Null,
            regions: Default::default(),
            packaged: false,
            paused: false,
            waits: false,
        }
    }

    fn numbers(folder: &Path, names: &[&str]) -> Result<Vec<Option<u16>>, String> {
        let mut apps: Vec<AppSpec> = names.iter().map(|name| app(name)).collect();
        let given = give_numbers(folder, &mut apps).map_err(|error| error.to_string());
        given.map(|_| apps.iter().map(|app| app.zone).collect())
    }

    #[test]
    fn numbers_outlive_the_node_and_are_given_to_nobody_else() {
        let folder = std::env::temp_dir().join(format!("burnet-numbering-{}", std::process::id()));
        assert_eq!(numbers(&folder, &["firewall", "hub"]), Ok(vec![Some(1), Some(2)]));
        assert_eq!(numbers(&folder, &["attacker", "hub"]), Ok(vec![Some(3), Some(2)]));
        assert_eq!(numbers(&folder, &["firewall"]), Ok(vec![Some(1)]));
        let all: String = (1..=APPS_MAX).map(|number| format!("{number} a{number}\n")).collect();
        fs::write(folder.join(FILE), &all).unwrap();
        let refused = numbers(&folder, &["a3", "new", "newer"]).unwrap_err();
        let says = ["new and 1 more apps cannot get one", "burnet flows", "zones"];
        assert!(says.iter().all(|part| refused.contains(part)), "{refused}");
        assert_eq!(
            fs::read_to_string(folder.join(FILE)).unwrap(),
            all,
            "nobody's number has gone to another"
        );
        assert_eq!(numbers(&folder, &["a3"]), Ok(vec![Some(3)]));
        fs::write(folder.join(FILE), "1 firewall\n1 hub\n").unwrap();
        assert!(numbers(&folder, &["hub"]).unwrap_err().contains("zones, line 2: the number"));
        fs::write(folder.join(FILE), "x".repeat(TEXT_BYTES_MAX + 1)).unwrap();
        assert!(numbers(&folder, &["hub"]).unwrap_err().contains("more than"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(numbers(Path::new("/proc/no-such-folder"), &["hub"]).is_err());
    }

    #[test]
    fn a_folder_that_another_node_is_busy_in_did_not_work_and_is_no_mistake_of_the_operators() {
        let folder = std::env::temp_dir().join(format!("burnet-numbering-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let held = lock(&folder).unwrap();
        let refused = give_numbers(&folder, &mut [app("hub")]).unwrap_err();
        assert!(
            matches!(&refused, CommandError::DidNotWork(why) if why.contains("another node")),
            "{refused}"
        );
        let mode = fs::metadata(folder.join(format!("{FILE}.lock"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else can hold it");
        drop(held);
        assert_eq!(numbers(&folder, &["hub"]), Ok(vec![Some(1)]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
