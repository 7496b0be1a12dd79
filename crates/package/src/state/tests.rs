//! The state folder: what is refused in it, what tampering is found, and what a crash leaves.

use super::*;
use crate::file::NewFile;
use crate::install::Record;
use crate::key::PrivateKey;
use crate::moment::Moment;
use crate::path::PackagePath;
use crate::verification::FolderState;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

/// A state folder of a test's own, gone when the test is.
struct Scratch(State);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("burnet-state-{}-{number}", std::process::id()));
        Scratch(State::at(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.root);
    }
}

fn package(version: &str) -> Package<'static> {
    let manifest = format!(
        "name = 'my-app'\nversion = '{version}'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/main'\n"
    );
    let file = |path: &str, bytes: &[u8]| NewFile {
        path: PackagePath::try_from(path.to_owned()).unwrap(),
        executable: path.starts_with("bin/"),
        bytes: bytes.to_vec(),
    };
    Package::make(vec![
        file("app.toml", manifest.as_bytes()),
        file("bin/main", b"#!/bin/sh\n"),
        file("lib/a", b"a"),
    ])
    .unwrap()
}

fn install(state: &State, package: &Package<'_>) -> (AppName, Record) {
    let manifest = package.manifest();
    let record = Record {
        version: manifest.version.clone(),
        digest: package.digest(),
        granted: BTreeSet::new(),
        trusted: None,
        fall: None,
    };
    state.install(package, &record, &state.lock().unwrap()).unwrap();
    (manifest.name.clone(), record)
}

/// `tamper` gets the folder of an installed package.
fn tampered(tamper: impl FnOnce(&Path), expected: &str) {
    let scratch = Scratch::new();
    let (name, record) = install(&scratch.0, &package("1.0.0"));
    tamper(&scratch.0.package_folder(&name, &record.digest));
    let why = scratch.0.installed(&name, &record).unwrap_err().to_string();
    assert!(why.starts_with("my-app 1.0.0: was altered on disk: ") && why.contains(expected), "{why}");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn tampering_with_an_installed_package_is_found() {
    tampered(
        |folder| fs::write(folder.join("bin/main"), "#!/bin/ed\n").unwrap(),
        "bin/main has other content",
    );
    tampered(|folder| fs::write(folder.join("bin/main"), "").unwrap(), "bin/main has other content");
    tampered(
        |folder| fs::write(folder.join("bin/main"), "#!/bin/sh\n#").unwrap(),
        "bin/main has other content",
    );
    tampered(|folder| mode(&folder.join("bin/main"), 0o644), "bin/main has another mode");
    tampered(|folder| mode(&folder.join("lib/a"), 0o664), "lib/a can be changed by others (mode 0664)");
    tampered(|folder| fs::remove_file(folder.join("lib/a")).unwrap(), "lib/a is missing");
    tampered(|folder| fs::write(folder.join("lib/b"), "").unwrap(), "lib/b was not installed");
    tampered(
        |folder| fs::remove_file(folder.join("package.digests")).unwrap(),
        "package.digests cannot be read",
    );
    tampered(
        |folder| fs::write(folder.join("package.signatures"), "x").unwrap(),
        "package.signatures, line 1",
    );
    tampered(|folder| fs::remove_dir_all(folder).unwrap(), "package.digests cannot be read");
    let linked = |folder: &Path| {
        fs::rename(folder.join("lib/a"), folder.join("../a")).unwrap();
        symlink("../../a", folder.join("lib/a")).unwrap();
    };
    tampered(linked, "lib/a is not a plain file");
    let linked_folder = |folder: &Path| {
        fs::rename(folder.join("lib"), folder.join("../lib")).unwrap();
        symlink("../lib", folder.join("lib")).unwrap();
    };
    tampered(linked_folder, "lib is not a plain file");
}

/// If a file and its list are changed, the digest differs from the record's.
#[test]
fn a_list_that_was_changed_along_is_found_by_the_record() {
    let other = package("1.0.1").list().to_string();
    tampered(|folder| fs::write(folder.join("package.digests"), &other).unwrap(), "is not the installed one");
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let scratch = Scratch::new();
    let state = &scratch.0;
    let name: KeyName = "alice".parse().unwrap();
    let key = PrivateKey::from_random(name.clone(), &[1; 32]);
    assert!(state.private_key(&name).unwrap_err().to_string().contains("burnet key new alice makes one"));
    let public = state.keep_key(&key, &state.lock().unwrap()).unwrap();
    assert_eq!(read_public_key(&public).unwrap(), key.public());
    assert_eq!(state.own_keys().unwrap(), [key.public()]);
    assert_eq!(state.private_key(&name).unwrap().public(), key.public());
    let path = state.key_path(&name, "key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for loose in [0o640, 0o604, 0o660] {
        mode(&path, loose);
        let why = state.private_key(&name).unwrap_err().to_string();
        assert!(why.contains(&format!("by others (mode {loose:04o})")) && why.contains("chmod 600"), "{why}");
    }
    let again = state.keep_key(&key, &state.lock().unwrap()).unwrap_err().to_string();
    assert!(again.contains("a key alice already exists"), "{again}");
}

#[test]
fn two_do_not_change_it_at_once() {
    let scratch = Scratch::new();
    let held = scratch.0.lock().unwrap();
    assert!(scratch.0.lock().unwrap_err().to_string().contains("try again when it is done"));
    drop(held);
    assert!(scratch.0.lock().is_ok());
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let scratch = Scratch::new();
    drop(scratch.0.lock().unwrap());
    let (lock, other) = (scratch.0.root.join("lock"), scratch.0.root.join("other"));
    fs::write(&other, "").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&other, &lock).unwrap();
    assert!(scratch.0.lock().unwrap_err().to_string().contains("it is a link"));
    assert_eq!(fs::metadata(&other).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn a_store_that_cannot_be_read_trusts_nobody_by_mistake() {
    let scratch = Scratch::new();
    let state = &scratch.0;
    assert_eq!(state.trust().unwrap(), TrustStore::default());
    drop(state.lock().unwrap());
    fs::write(state.root.join("trust.toml"), "[[keys]]").unwrap();
    assert!(
        state.trust().unwrap_err().to_string().contains("line 1: unknown key `keys`: did you mean `key`?")
    );
    fs::write(state.root.join("trust.toml"), b"\xff").unwrap();
    assert!(state.trust().unwrap_err().to_string().contains("not UTF-8"));
    fs::write(state.root.join("trust.toml"), vec![b'#'; TRUST_BYTES_MAX + 1]).unwrap();
    assert!(state.trust().unwrap_err().to_string().contains("more than"));
}

#[test]
fn an_update_keeps_one_version_before_it_and_clears_what_a_crash_left() {
    let scratch = Scratch::new();
    let state = &scratch.0;
    install(state, &package("0.9.0"));
    let (name, before) = install(state, &package("1.0.0"));
    fs::create_dir(state.app(&name).join(".new-1")).unwrap();
    let (_, record) = install(state, &package("1.1.0"));
    let mut expected = vec![record.digest.to_string(), before.digest.to_string(), "record.toml".to_owned()];
    expected.sort();
    assert_eq!(names_in(&state.app(&name)).unwrap(), expected);
    // A node that runs it can start it again.
    assert!(state.installed(&name, &before).is_ok());
    assert_eq!(state.record(&name).unwrap(), Some(record.clone()));
    let unpacked = state.installed(&name, &record).unwrap();
    assert_eq!(unpacked.manifest.version.to_string(), "1.1.0");
    assert_eq!(state.apps().unwrap(), std::slice::from_ref(&name));
    // Again over itself, which mends it.
    fs::write(unpacked.folder.join("lib/a"), "x").unwrap();
    install(state, &package("1.1.0"));
    assert!(state.installed(&name, &record).is_ok());
    assert!(state.remove(&name, &state.lock().unwrap()).unwrap());
    assert!(!state.remove(&name, &state.lock().unwrap()).unwrap());
    assert_eq!(state.apps().unwrap(), []);
}

#[test]
fn what_cannot_be_installed_leaves_what_was_installed() {
    let scratch = Scratch::new();
    let state = &scratch.0;
    let (name, record) = install(state, &package("1.0.0"));
    // In the place of the draft's folder stands something that cannot be removed as a folder.
    fs::write(state.app(&name).join(format!(".new-{}", std::process::id())), "").unwrap();
    let newer = package("1.1.0");
    assert!(state.install(&newer, &record, &state.lock().unwrap()).is_err());
    assert!(state.installed(&name, &state.record(&name).unwrap().unwrap()).is_ok());
}

#[test]
fn a_link_in_the_state_folder_is_not_followed() {
    let Scratch(state) = &Scratch::new();
    drop(state.lock().unwrap());
    let elsewhere = state.root.join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    for name in ["trust.toml", "users.toml"] {
        symlink(&elsewhere, state.root.join(name)).unwrap();
    }
    assert!(state.trust().unwrap_err().to_string().contains("trust.toml cannot be read: it is no file"));
    assert!(state.users().unwrap_err().to_string().contains("users.toml cannot be read: it is no file"));
}

#[test]
fn what_the_operator_names_may_be_a_link() {
    let Scratch(state) = &Scratch::new();
    drop(state.lock().unwrap());
    let (file, link) = (state.root.join("file"), state.root.join("link"));
    fs::write(&file, "a package").unwrap();
    symlink("file", &link).unwrap();
    assert_eq!(read_package_file(&link), Ok(b"a package".to_vec()));
}

#[test]
fn users_of_apps_are_kept_by_name() {
    let Scratch(state) = &Scratch::new();
    assert_eq!(state.users(), Ok(BTreeMap::new()));
    let lock = state.lock().unwrap();
    let users = BTreeMap::from([("hub".to_owned(), 7), ("my.app-2".to_owned(), u32::MAX)]);
    state.keep_users(&users, &lock).unwrap();
    assert_eq!(state.users(), Ok(users));
    fs::write(state.root.join("users.toml"), "hub = 1\nmine = 'root'\n").unwrap();
    assert!(state.users().unwrap_err().to_string().contains("users.toml, line 2: "));
}

/// What is found is believed for as long as nothing changed; what changed is found whatever its times say.
#[test]
fn what_was_whole_is_read_again_only_when_it_changed() {
    let scratch = Scratch::new();
    let package = package("1.0.0");
    let (name, record) = install(&scratch.0, &package);
    let folder = scratch.0.package_folder(&name, &record.digest);
    let mut cache = FolderCache::default();
    let later = Moment::from_unix_s(u64::MAX);
    let is = |look: FolderState, expected: &str| {
        let look = format!("{look:?}");
        assert!(look.starts_with(expected), "{look}");
    };
    is(cache.check(&folder.join("none"), &record.digest, later), "Gone");
    is(cache.check(&folder, &Digest::of(b"another"), later), "Altered(\"its package was altered on disk");
    is(cache.check(&folder, &record.digest, later), "Intact");
    is(cache.check(&folder, &record.digest, later), "Intact");
    let program = folder.join("bin/main");
    let times = fs::metadata(&program).unwrap().modified().unwrap();
    // As long as before, in place, and with the old time put back.
    let mut file = OpenOptions::new().write(true).open(&program).unwrap();
    file.write_all(b"#!/bin/hs\n").unwrap();
    file.set_modified(times).unwrap();
    is(
        cache.check(&folder, &record.digest, later),
        "Altered(\"its package was altered on disk: bin/main has",
    );
    // Also when nothing was remembered, since it changed just now.
    let mut anew = FolderCache::default();
    is(anew.check(&folder, &record.digest, Moment::from_unix_s(0)), "Altered");
    install(&scratch.0, &package);
    is(cache.check(&folder, &record.digest, later), "Intact");
    fs::write(folder.join("more"), "").unwrap();
    is(
        cache.check(&folder, &record.digest, later),
        "Altered(\"its package was altered on disk: more was not installed",
    );
    fs::remove_dir_all(&folder).unwrap();
    is(cache.check(&folder, &record.digest, later), "Gone");
}

#[test]
fn what_root_makes_in_the_state_folder_of_a_user_belongs_to_that_user() {
    use std::os::unix::fs::chown;
    let scratch = Scratch::new();
    let (state, user) = (&scratch.0, 54_321);
    fs::create_dir_all(state.root()).unwrap();
    if chown(state.root(), Some(user), Some(user)).is_err() {
        return eprintln!(
            "left out: what_root_makes_in_the_state_folder_of_a_user_belongs_to_that_user: this is not root"
        );
    }
    install(state, &package("1.0.0"));
    write_file(&state.keys().join("k"), b"secret", 0o600).unwrap();
    let mut folders = vec![state.root().to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let (path, metadata) =
                entry.map(|it| (it.path(), fs::symlink_metadata(it.path()).unwrap())).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (user, user), "{}", path.display());
            seen += 1;
            folders.extend(metadata.is_dir().then_some(path));
        }
    }
    assert!(seen > 8, "{seen}");
    assert_eq!(fs::metadata(state.keys().join("k")).unwrap().mode() & 0o777, 0o600);
}
