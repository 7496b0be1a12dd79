//! What the store makes of damaged files, of what is too much, and of a life that ends before the commit.

use super::*;
use burnet_sdk::store::keys;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("burnet-store-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn open(&self) -> (StoreFile, Option<String>) {
        StoreFile::open(&self.0, 7).unwrap()
    }

    fn store(&self) -> StoreFile {
        let (store, remark) = self.open();
        assert_eq!(remark, None);
        store
    }

    fn file(&self) -> PathBuf {
        self.0.join(FILE)
    }

    /// A file in which the app `a` has one key.
    fn with_one_key(self) -> Folder {
        let mut store = self.store();
        put(&mut store, "a", "a/k", &[7; 5000]);
        store.commit().unwrap();
        drop(store);
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MUCH: u64 = 1 << 20;

fn put(store: &mut StoreFile, app: &str, key: &str, value: &[u8]) {
    assert_eq!(store.put(app, MUCH, key, value).unwrap(), PutResult::Done, "{key}");
}

fn used(store: &StoreFile) -> Vec<(&str, u64)> {
    store.used().iter().map(|(app, bytes)| (app.as_str(), *bytes)).collect()
}

/// What is found in a damaged file: an empty store and the file under another name, or what the file still has.
fn check_damaged(bytes: &[u8]) {
    let folder = Folder::new();
    fs::write(folder.file(), bytes).unwrap();
    let (mut store, remark) = folder.open();
    let aside = folder.0.join("store.redb.damaged-7");
    if aside.exists() {
        assert!(remark.unwrap().contains("is now "));
        // Its library may have noted in it that it was opened.
        assert!(fs::metadata(aside).unwrap().len() >= bytes.len() as u64);
        assert!(used(&store).is_empty());
    } else {
        assert!(used(&store).is_empty() || store.get("a/k").unwrap() == Some(vec![7; 5000]));
    }
    put(&mut store, "b", "b/k", b"v");
    store.commit().unwrap();
}

#[test]
fn what_is_no_file_of_ours_is_put_aside() {
    for bytes in [&b"x"[..], &[0; 4096], &[0xff; 100_000]] {
        check_damaged(bytes);
    }
}

#[test]
fn a_file_that_was_cut_or_altered_is_put_aside_or_still_has_what_was_written() {
    let sound = fs::read(Folder::new().with_one_key().file()).unwrap();
    for length in [1, 100, 320, 4096, sound.len() / 2, sound.len() - 1] {
        check_damaged(&sound[..length]);
    }
    for at in (0..512).step_by(61).chain((4096..sound.len().min(80_000)).step_by(4099)) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        check_damaged(&bytes);
    }
}

#[test]
fn a_second_damaged_file_does_not_take_the_place_of_the_first() {
    let folder = Folder::new();
    fs::write(folder.0.join("store.redb.damaged-7"), b"first").unwrap();
    fs::write(folder.file(), b"second").unwrap();
    assert!(
        StoreFile::open(&folder.0, 7).is_err_and(|trouble| trouble.to_string().contains("cannot be renamed"))
    );
    assert!(StoreFile::open(&folder.0, 8).is_ok());
    assert_eq!(fs::read(folder.0.join("store.redb.damaged-7")).unwrap(), b"first");
}

#[test]
fn a_folder_that_is_not_there_is_trouble_and_nothing_is_put_aside() {
    let folder = Folder::new();
    assert!(StoreFile::open(&folder.0.join("nowhere"), 7).is_err());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn what_was_committed_is_there_again_and_what_was_not_is_not() {
    let folder = Folder::new().with_one_key();
    let mut store = folder.store();
    put(&mut store, "a", "a/lost", b"v");
    assert_eq!(store.get("a/lost").unwrap(), Some(b"v".to_vec()), "this turn sees it");
    drop(store);
    let mut store = folder.store();
    assert_eq!((store.get("a/lost").unwrap(), used(&store)), (None, vec![("a", 5003)]));
}

#[test]
fn nobody_has_more_than_its_hard_limit_but_may_come_down_to_it() {
    let folder = Folder::new();
    let mut store = folder.store();
    let mut put = |key: &str, length: usize, hard| store.put("a", hard, key, &vec![0; length]).unwrap();
    assert_eq!(put("k", 10, 10), PutResult::AppIsFull);
    assert_eq!(put("k", 9, 10), PutResult::Done);
    assert_eq!(put("l", 0, 10), PutResult::AppIsFull);
    assert_eq!(put("k", 9, 10), PutResult::Done, "as much as before is not more");
    assert_eq!(put("k", 8, 5), PutResult::Done, "less is less, whatever the limit is now");
    assert_eq!(put("k", 9, 5), PutResult::AppIsFull);
    assert_eq!(used(&store), [("a", 9)]);
}

#[test]
fn a_key_counts_for_who_wrote_it_last() {
    let folder = Folder::new();
    let mut store = folder.store();
    put(&mut store, "a", "k", b"123");
    put(&mut store, "b", "l", b"1");
    put(&mut store, "b", "k", b"12345");
    assert_eq!(used(&store), [("b", 8)]);
    assert!(store.delete("k").unwrap());
    assert!(!store.delete("k").unwrap());
    assert_eq!(used(&store), [("b", 2)]);
    store.commit().unwrap();
    drop(store);
    assert_eq!(used(&folder.store()), [("b", 2)]);
}

#[test]
fn all_together_have_no_more_than_the_store_takes() {
    let folder = Folder::new();
    let mut store = folder.store();
    store.bytes_max = 10;
    put(&mut store, "a", "k", b"12345");
    assert_eq!(store.put("b", MUCH, "l", b"1234").unwrap(), PutResult::StoreIsFull);
    put(&mut store, "b", "l", b"123");
    put(&mut store, "b", "k", b"123");
    assert_eq!(used(&store), [("b", 8)]);
}

#[test]
fn a_list_has_the_keys_of_its_prefix_behind_the_last_one() {
    let folder = Folder::new();
    let mut store = folder.store();
    ["a", "a/1", "a/2", "a/3", "b"].iter().for_each(|key| put(&mut store, "a", key, b""));
    let mut check = |prefix: &str, after: &str, expected: &[&str]| {
        let (parts, more) = store.list(prefix, after).unwrap();
        let found: Vec<&str> = parts.iter().flat_map(|part| keys(part)).collect();
        assert_eq!((found.as_slice(), more), (expected, false), "{prefix} {after}");
    };
    check("", "", &["a", "a/1", "a/2", "a/3", "b"]);
    check("a/", "", &["a/1", "a/2", "a/3"]);
    check("a/", "a/2", &["a/3"]);
    check("a/", "a/3", &[]);
    check("a/", "b", &[]);
    check("a/", "a", &["a/1", "a/2", "a/3"]);
    check("c", "", &[]);
}

#[test]
fn a_long_list_comes_in_parts_and_goes_on_where_it_ended() {
    let folder = Folder::new();
    let mut store = folder.store();
    let key = |number: usize| format!("{number:0>200}");
    (0..1500).for_each(|number| put(&mut store, "a", &key(number), b""));
    let (parts, more) = store.list("0", "").unwrap();
    assert!(more && parts.len() == PARTS_MAX && parts.iter().all(|part| part.len() <= PART_BYTES_MAX));
    let first: Vec<&str> = parts.iter().flat_map(|part| keys(part)).collect();
    let (rest, more) = store.list("0", first[first.len() - 1]).unwrap();
    assert!(!more);
    let all = first.len() + rest.iter().map(|part| keys(part).count()).sum::<usize>();
    assert_eq!(all, 1500);
}

/// A file as a version of Burnet would have written it that has this format.
fn file_of_format(folder: &Folder, format: Option<u64>) {
    let database = Database::create(folder.file()).unwrap();
    let turn = database.begin_write().unwrap();
    turn.open_table(KEYS).unwrap().insert("a/k", ("a", &b"old"[..])).unwrap();
    if let Some(format) = format {
        turn.open_table(format::ABOUT).unwrap().insert(format::FORMAT, format).unwrap();
    }
    turn.commit().unwrap();
}

fn format_of(folder: &Folder) -> u64 {
    let database = Database::open(folder.file()).unwrap();
    let turn = database.begin_write().unwrap();
    let about = turn.open_table(format::ABOUT).unwrap();
    about.get(format::FORMAT).unwrap().unwrap().value()
}

#[test]
fn a_newer_file_is_refused_and_left_as_it_is() {
    for format in [format::NEWEST + 1, u64::MAX] {
        let folder = Folder::new();
        file_of_format(&folder, Some(format));
        let why = StoreFile::open(&folder.0, 7).err().unwrap().to_string();
        assert!(
            why.contains(&format!("has format {format}, and this version of Burnet knows up to 2")),
            "{why}"
        );
        assert_eq!(format_of(&folder), format);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "it is not put aside");
    }
}

#[test]
fn an_older_file_is_migrated_and_keeps_what_it_has() {
    let folder = Folder::new();
    file_of_format(&folder, None);
    assert_eq!(folder.store().get("a/k").unwrap(), Some(b"old".to_vec()));
    assert_eq!(format_of(&folder), format::NEWEST);
    assert_eq!(used(&folder.store()), [("a", 6)]);
    let new = Folder::new().with_one_key();
    assert_eq!(format_of(&new), format::NEWEST);
}

#[test]
fn a_file_without_keys_of_the_store_is_put_aside() {
    for about in [None, Some(0)] {
        let folder = Folder::new();
        let database = Database::create(folder.file()).unwrap();
        let turn = database.begin_write().unwrap();
        match about {
            None => drop(turn.open_table(TableDefinition::<u64, u64>::new("other")).unwrap()),
            Some(format) => {
                drop(turn.open_table(format::ABOUT).unwrap().insert(format::FORMAT, format).unwrap())
            }
        }
        turn.commit().unwrap();
        drop(database);
        assert!(folder.open().1.unwrap().contains("is damaged"));
    }
}

/// Numbers that look random and are the same for the same seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

/// The commits of the file that is damaged. Commit `n` writes the key `a/n` and replaces `a/last`.
const COMMITS: usize = 12;

fn value(commit: usize) -> Vec<u8> {
    vec![u8::try_from(commit).unwrap(); 700 * commit + 1]
}

fn file_of_many_commits() -> Vec<u8> {
    let folder = Folder::new();
    let mut store = folder.store();
    for commit in 0..COMMITS {
        put(&mut store, "a", &format!("a/{commit:02}"), &value(commit));
        put(&mut store, "a", "a/last", &value(commit));
        store.commit().unwrap();
    }
    drop(store);
    fs::read(folder.file()).unwrap()
}

/// What is read from a damaged file is what some commit left, whole, or the file was put aside.
fn check_torn(bytes: &[u8], how: &str) {
    let folder = Folder::new();
    fs::write(folder.file(), bytes).unwrap();
    let (mut store, _) = folder.open();
    let (parts, _) = store.list("a/", "").unwrap();
    let found: Vec<String> = parts.iter().flat_map(|part| keys(part)).map(str::to_owned).collect();
    if found.is_empty() {
        return;
    }
    let last = found.len() - 2;
    for (commit, key) in found[..=last].iter().enumerate() {
        assert_eq!(
            (key.as_str(), store.get(key).unwrap()),
            (&*format!("a/{commit:02}"), Some(value(commit))),
            "{how}"
        );
    }
    assert_eq!(
        (found[last + 1].as_str(), store.get("a/last").unwrap()),
        ("a/last", Some(value(last))),
        "{how}"
    );
}

#[test]
fn a_torn_file_is_noticed_wherever_it_is_torn() {
    const SEED: u64 = 7;
    let sound = file_of_many_commits();
    let mut numbers = Numbers(SEED);
    for round in 0..60 {
        let length = numbers.below(sound.len());
        check_torn(&sound[..length], &format!("seed {SEED}, round {round}: cut to {length}"));
        let mut bytes = sound.clone();
        let flips = 1 + numbers.below(8);
        let places: Vec<usize> = (0..flips).map(|_| numbers.below(sound.len())).collect();
        places.iter().for_each(|at| bytes[*at] ^= 1 << numbers.below(8));
        check_torn(&bytes, &format!("seed {SEED}, round {round}: flipped at {places:?}"));
        // A page that was not written, as after a loss of power.
        let page = 4096 * numbers.below(sound.len() / 4096);
        let mut bytes = sound.clone();
        bytes[page..page + 4096].fill(0);
        check_torn(&bytes, &format!("seed {SEED}, round {round}: no page at {page}"));
    }
}

#[test]
fn a_copy_has_what_is_on_disk_and_makes_the_same_store() {
    let folder = Folder::new();
    let mut store = folder.store();
    put(&mut store, "a", "a/1", b"one");
    put(&mut store, "b", "a/2", b"two");
    store.commit().unwrap();
    put(&mut store, "a", "a/3", b"not committed");
    store.save(&folder.0).unwrap();
    let copy = fs::read(folder.0.join(store_contract::SAVED)).unwrap();
    let entries = crate::copy::read(&copy).unwrap();
    assert_eq!(
        entries.iter().map(|entry| (entry.app, entry.key)).collect::<Vec<_>>(),
        [("a", "a/1"), ("b", "a/2")]
    );
    let other = Folder::new();
    StoreFile::create(&other.0, &entries).unwrap();
    assert!(StoreFile::create(&other.0, &entries).is_err(), "nothing is replaced");
    let mut made = other.store();
    assert_eq!((made.get("a/2").unwrap(), used(&made)), (Some(b"two".to_vec()), vec![("a", 6), ("b", 6)]));
}

/// A file system in memory of one MiB, where a test may have one: only root can mount.
struct SmallDisk(Folder);

impl SmallDisk {
    fn new() -> Option<SmallDisk> {
        let disk = SmallDisk(Folder::new());
        disk.mount("-t tmpfs -o size=1m tmpfs").then_some(disk)
    }

    fn mount(&self, how: &str) -> bool {
        let mut mount = std::process::Command::new("mount");
        let done = mount.args(how.split(' ')).arg(&self.0.0).output();
        let done = done.is_ok_and(|output| output.status.success());
        if !done {
            println!("left out: mount {how} is not permitted here");
        }
        done
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0.0).output();
    }
}

/// Puts until the disk refuses. Returns the number of commits that succeeded, and the error.
fn fill(store: &mut StoreFile) -> (usize, String) {
    for number in 0..10_000 {
        let key = format!("a/{number:04}");
        let done = store.put("a", u64::MAX, &key, &[7; 20_000]).and_then(|_| store.commit());
        if let Err(error) = done {
            return (number, error.to_string());
        }
    }
    panic!("the disk has no end");
}

#[test]
fn a_full_disk_refuses_new_keys_and_keeps_the_old_ones() {
    let Some(disk) = SmallDisk::new() else { return };
    let mut store = disk.0.store();
    let (done, why) = fill(&mut store);
    assert!(done > 0 && why.contains("No space left on device"), "{done} {why}");
    drop(store);
    let (mut store, _) = disk.0.open();
    let last = format!("a/{:04}", done - 1);
    assert_eq!(store.get(&last).unwrap(), Some(vec![7; 20_000]));
    assert!(store.save(&disk.0.0).unwrap_err().to_string().contains("No space left on device"));
    assert!(store.delete(&last).unwrap());
}

#[test]
fn a_disk_that_may_only_be_read_refuses_all_and_keeps_the_file() {
    let Some(disk) = SmallDisk::new() else { return };
    let mut store = disk.0.store();
    put(&mut store, "a", "a/k", b"v");
    store.commit().unwrap();
    drop(store);
    if !disk.mount("-o remount,ro") {
        return;
    }
    let why = StoreFile::open(&disk.0.0, 7).err().unwrap().to_string();
    assert!(why.contains("Read-only file system"), "{why}");
    assert!(disk.mount("-o remount,rw"));
    assert_eq!(disk.0.store().get("a/k").unwrap(), Some(b"v".to_vec()));
}

fn changes_of(all: &[(&'static str, Option<&'static [u8]>)]) -> Vec<Change<'static>> {
    all.iter().map(|(key, value)| Change { key, value: *value }).collect()
}

#[test]
fn several_changes_are_made_all_or_none() {
    let folder = Folder::new();
    let mut store = folder.store();
    put(&mut store, "b", "k/1", b"of b");
    let mut change = |hard_bytes, all: &[(&'static str, Option<&'static [u8]>)]| {
        let changes = changes_of(all);
        let result = store.change_all("a", hard_bytes, changes.iter().copied()).unwrap();
        let values: Vec<_> = all.iter().map(|(key, _)| store.get(key).unwrap()).collect();
        (result, values, store.used().get("a").copied().unwrap_or_default())
    };
    let value = |bytes: &[u8]| Some(bytes.to_vec());
    let all: [(&str, Option<&[u8]>); 3] = [("k/1", Some(b"one")), ("k/2", Some(b"two")), ("k/3", None)];
    assert_eq!(change(11, &all), (PutResult::AppIsFull, vec![value(b"of b"), None, None], 0));
    assert_eq!(change(12, &all), (PutResult::Done, vec![value(b"one"), value(b"two"), None], 12));
    // What is replaced or deleted makes room.
    let other: [(&str, Option<&[u8]>); 2] = [("k/1", None), ("k/2", Some(b"longer"))];
    assert_eq!(change(9, &other), (PutResult::Done, vec![None, value(b"longer")], 9));
    store.commit().unwrap();
    assert_eq!(used(&store), [("a", 9)]);
    drop(store);
    assert_eq!(used(&folder.store()), [("a", 9)], "as it is counted when the file is opened");
}
