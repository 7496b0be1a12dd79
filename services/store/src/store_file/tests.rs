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
