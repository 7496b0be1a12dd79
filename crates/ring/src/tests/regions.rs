//! Regions: against a model, with a writer that is killed, and with memory that holds anything.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::atomic::Ordering;
use crate::memory::Memory;
use crate::memory::mapping::Mapping;
use crate::region::testing::{allocated, hash_of, plausible_words};
use crate::region::{
    KEY_BYTES_MAX, RECORD_BYTES_MAX, REGION_BYTES_MIN, RegionFault, RegionReader, RegionWriter, Unread,
    create_region, is_sealed_region, reading_end,
};

/// All records that a reader sees, by key.
fn all(reader: &RegionReader) -> Result<HashMap<Vec<u8>, Vec<u8>>, Unread> {
    let mut buffer = Vec::new();
    let mut all = HashMap::new();
    for place in 0..reader.places() {
        if let Some(record) = reader.at(place, &mut buffer)? {
            all.insert(record.key.to_vec(), record.value.to_vec());
        }
    }
    Ok(all)
}

fn get(reader: &RegionReader, key: &[u8]) -> Result<Option<Vec<u8>>, Unread> {
    let mut buffer = Vec::new();
    Ok(reader.get(key, &mut buffer)?.map(|record| record.value.to_vec()))
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Remove(u8),
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..40_u8, 0..700_usize).prop_map(|(key, length)| Step::Put(key, length)),
        3 => (0..40_u8).prop_map(Step::Remove),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Few places and cells, so that records have no room often.
    #[test]
    #[cfg_attr(miri, ignore = "many cases take Miri too long")]
    fn a_reader_sees_what_a_map_would_have_except_what_had_no_room(
        steps in steps(), places in prop::sample::select(vec![1_usize, 8, 32, 64]), cells in 0..120_usize,
    ) {
        let (mut writer, reader) = allocated(places, cells);
        let (mut model, mut left_out) = (HashMap::new(), HashMap::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(key, length) => {
                    let (key, value) = (vec![b'k', key], vec![number as u8; length]);
                    let (into, other) = match writer.put(&key, &value) {
                        true => (&mut model, &mut left_out),
                        false => (&mut left_out, &mut model),
                    };
                    other.remove(&key);
                    into.insert(key, value);
                }
                Step::Remove(key) => {
                    let key = vec![b'k', key];
                    let was_there = model.remove(&key).is_some() | left_out.remove(&key).is_some();
                    prop_assert_eq!(writer.remove(&key), was_there);
                }
                Step::Settle => writer.settle(),
            }
            for key in 0..40 {
                let key = vec![b'k', key];
                prop_assert_eq!(get(&reader, &key), Ok(model.get(&key).cloned()));
            }
            prop_assert_eq!(writer.is_full(), !left_out.is_empty());
        }
        writer.settle();
        prop_assert!(reader.version().is_multiple_of(2));
        prop_assert_eq!(reader.count(), model.len() as u64);
        prop_assert_eq!(reader.is_full(), !left_out.is_empty());
        prop_assert_eq!(all(&reader), Ok(model));
    }

    #[test]
    #[cfg_attr(miri, ignore = "many cases take Miri too long")]
    fn memory_that_holds_anything_gives_errors_and_no_end_of_the_reader(
        seed in any::<u64>(), places in prop::sample::select(vec![1_usize, 16, 128]), cells in 0..64_usize,
    ) {
        let (memory, reader) = plausible_words(seed, places, cells);
        let mut buffer = Vec::new();
        for place in 0..places + 2 {
            if let Ok(Some(record)) = reader.at(place, &mut buffer) {
                prop_assert!(record.key.len() <= KEY_BYTES_MAX);
                prop_assert!(record.key.len() + record.value.len() <= RECORD_BYTES_MAX);
            }
        }
        for key in [&b""[..], b"k", b"a longer key than the others"] {
            if let Ok(Some(record)) = reader.get(key, &mut buffer) {
                prop_assert_eq!(record.key, key);
            }
        }
        let _ = (reader.version(), reader.count(), reader.is_full());
        drop(memory);
    }

    #[test]
    #[cfg_attr(miri, ignore = "many cases take Miri too long")]
    fn a_header_that_does_not_fit_its_memory_is_refused(words in prop::array::uniform6(any::<u64>()), length in 0..2_000_usize) {
        let memory = Memory::allocated(length);
        for (word, value) in memory.words().iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        prop_assert!(RegionReader::of(Arc::new(memory)).is_err());
    }
}

#[test]
fn sizes_beyond_the_memory_are_refused_and_do_not_overflow() {
    let check = |places: u64, cells: u64, is_region: bool| {
        let memory = Memory::allocated(512 + 4 * 8 + 16 * 2);
        let opening = [u64::from_le_bytes(*b"burnview"), 1, places, cells];
        for (word, value) in memory.words().iter().zip(opening) {
            word.store(value, Ordering::Relaxed);
        }
        assert_eq!(RegionReader::of(Arc::new(memory)).is_ok(), is_region, "{places} {cells}");
    };
    check(8, 2, true);
    check(8, 3, false);
    check(16, 2, false);
    check(7, 2, false);
    check(0, 2, false);
    check(u64::MAX, 2, false);
    check(1 << 63, u64::MAX, false);
    check(8, u64::MAX / 16 + 1, false);
}

#[test]
fn a_circle_of_cells_ends_where_the_length_says() {
    let (mut writer, reader) = allocated(4, 4);
    assert!(writer.put(b"k", &[7; 300]));
    // Each cell leads to the first.
    reader.set_cell_links(1);
    assert_eq!(get(&reader, b"k").unwrap().map(|value| value.len()), Some(300));
    reader.set_cell_links(99);
    assert_eq!(get(&reader, b"k"), Err(Unread::Damaged));
}

#[test]
fn a_record_that_is_being_changed_is_an_error_after_a_bounded_time() {
    let (mut writer, reader) = allocated(4, 4);
    assert!(writer.put(b"k", b"value"));
    reader.stop_in_a_change(hash_of(&reader, b"k"));
    assert_eq!(get(&reader, b"k"), Err(Unread::Changing));
    assert_eq!(get(&reader, b"other"), Ok(None), "other records are not concerned");
}

/// Changes two records together, over and over. Both have the same bytes, and a length that follows from them.
fn write_pairs(writer: &mut RegionWriter, times: u64) {
    for number in 0..times {
        let byte = (number % 251) as u8;
        for key in [b"first", b"other"] {
            writer.put(key, &vec![byte; usize::from(byte) * 7]);
        }
        writer.settle();
        // Cells change hands.
        writer.put(b"third", &vec![!byte; usize::from(!byte) * 3]);
        writer.remove(b"third");
        writer.settle();
    }
}

fn check_whole(value: &[u8]) -> u8 {
    let byte = value.first().copied().unwrap_or(0);
    assert_eq!(value.len(), usize::from(byte) * 7, "a record of two moments");
    assert!(value.iter().all(|one| *one == byte), "a record of two moments");
    byte
}

/// Reads both records, each whole, and equal if the version says so. Returns whether anything was read.
fn read_pair(reader: &RegionReader) -> bool {
    let version = reader.version();
    let both = [b"first", b"other"].map(|key| get(reader, key));
    let after = reader.version();
    let [Ok(Some(first)), Ok(Some(other))] = &both else {
        assert!(!both.contains(&Err(Unread::Damaged)), "{both:?}");
        return false;
    };
    let (first, other) = (check_whole(first), check_whole(other));
    if version == after && version.is_multiple_of(2) {
        assert_eq!(first, other, "the version says that they belong together");
    }
    true
}

#[test]
fn readers_see_whole_records_while_they_change_and_pairs_by_the_version() {
    let times = if cfg!(miri) { 30 } else { 20_000 };
    let (mut writer, reader) = allocated(16, 64);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    read_pair(&reader);
                }
            });
        }
        write_pairs(&mut writer, times);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(read_pair(&reader));
}

/// The path of the region, for the process that is killed.
const REGION: &str = "BURNET_TEST_REGION";

/// Not a test by itself: the writer of the next one.
#[test]
#[cfg(not(miri))]
fn writer_until_killed() {
    let Some(path) = std::env::var_os(REGION) else { return };
    let fd: OwnedFd = std::fs::File::options().read(true).write(true).open(path).unwrap().into();
    write_pairs(&mut RegionWriter::attach(&fd).unwrap(), u64::MAX);
}

#[test]
#[cfg(not(miri))]
fn a_writer_that_is_killed_in_a_change_leaves_whole_records_or_an_error() {
    for round in 0..12_u64 {
        let fd = create_region(REGION_BYTES_MIN).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::regions::writer_until_killed"])
            .env(REGION, path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !is_sealed_region(&fd) {
            assert!(began.elapsed() < Duration::from_secs(60), "the writer did not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        let reader = RegionReader::attach(&reading_end(fd.as_fd()).unwrap()).unwrap();
        let mut reads = 0;
        // Some reads, or the writer is not scheduled: then it is killed where it is.
        while reads < 500 + round * 37 && began.elapsed() < Duration::from_secs(20) {
            reads += u64::from(read_pair(&reader));
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        // As it was left: the same answer each time, and at most one record that cannot be read.
        let left = [b"first", b"other"].map(|key| get(&reader, key));
        assert!(left.iter().filter(|one| one.is_err()).count() <= 1, "{left:?}");
        for value in left.iter().flatten().flatten() {
            check_whole(value);
        }
        assert_eq!([b"first", b"other"].map(|key| get(&reader, key)), left);
    }
}

#[test]
#[cfg(not(miri))]
fn after_its_writer_has_attached_nobody_can_map_a_region_writable_or_resize_it() {
    let fd = create_region(REGION_BYTES_MIN).unwrap();
    assert!(!is_sealed_region(&fd));
    assert!(
        matches!(RegionReader::attach(&fd), Err(RegionFault::NotSealed)),
        "it could still get another writer"
    );
    let mut writer = RegionWriter::attach(&fd).unwrap();
    assert!(is_sealed_region(&fd));
    assert!(RegionWriter::attach(&fd).is_err());
    let read_only = reading_end(fd.as_fd()).unwrap();
    // What an app could try with its descriptor: open it again, with all rights that its owner can give it.
    let path = format!("/proc/self/fd/{}", read_only.as_raw_fd());
    rustix::fs::fchmod(&read_only, rustix::fs::Mode::from_bits_retain(0o666)).unwrap();
    let again: OwnedFd = std::fs::File::options().read(true).write(true).open(path).unwrap().into();
    for fd in [&fd, &read_only, &again] {
        assert!(Mapping::new(fd.as_fd(), REGION_BYTES_MIN).is_err(), "a writable mapping");
        assert!(rustix::fs::ftruncate(fd, 4_096).is_err());
        assert!(rustix::io::write(fd, b"garbage").is_err());
        assert!(rustix::io::pwrite(fd, b"garbage", 8_192).is_err());
    }
    assert!(writer.put(b"k", b"v"));
    writer.settle();
    for fd in [&read_only, &again] {
        assert_eq!(get(&RegionReader::attach(fd).unwrap(), b"k"), Ok(Some(b"v".to_vec())));
    }
    assert!(
        rustix::fs::fallocate(
            &again,
            rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE,
            0,
            4_096
        )
        .is_err()
    );
}

#[test]
#[cfg(not(miri))]
fn what_is_no_region_is_refused() {
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    assert!(matches!(RegionReader::attach(&null), Err(RegionFault::NotSealed)));
    assert!(matches!(RegionWriter::attach(&null), Err(RegionFault::NotSealed)));
    let other = crate::memory::mapping::unshrinkable(c"other", 4_096).unwrap();
    assert!(matches!(RegionWriter::attach(&other), Err(RegionFault::NotARegion)));
}
