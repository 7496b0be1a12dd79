//! Explores with loom the interleavings and permitted memory orders of a region's writer and a reader. A record is of one
//! moment, also if its cells go to another record meanwhile, and equal versions mean records that belong together.

use loom::thread;

use crate::region::testing::allocated;

fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(test);
}

#[test]
fn a_record_is_of_one_moment_also_if_its_cells_go_to_another() {
    check(|| {
        // One cell is left for changes, so that a record takes over the cell of another.
        let (mut writer, reader) = allocated(2, 1);
        writer.put(b"a", b"aaaaaaaaa");
        writer.settle();
        let writing = thread::spawn(move || {
            writer.remove(b"a");
            writer.put(b"b", b"bbbbbbbbb");
            writer.settle();
        });
        let mut buffer = Vec::new();
        if let Ok(Some(record)) = reader.get(b"a", &mut buffer) {
            assert_eq!((record.key, record.value), (&b"a"[..], &b"aaaaaaaaa"[..]));
        }
        if let Ok(Some(record)) = reader.get(b"b", &mut buffer) {
            assert_eq!((record.key, record.value), (&b"b"[..], &b"bbbbbbbbb"[..]));
        }
        writing.join().unwrap();
        assert_eq!(reader.get(b"b", &mut buffer).unwrap().unwrap().value, b"bbbbbbbbb");
    });
}

#[test]
fn equal_even_versions_mean_records_that_belong_together() {
    check(|| {
        let (mut writer, reader) = allocated(2, 2);
        let mut put = move |byte: u8| {
            writer.put(b"a", &[byte]);
            writer.put(b"b", &[byte]);
            writer.settle();
        };
        put(1);
        let writing = thread::spawn(move || put(2));
        let mut buffer = Vec::new();
        let before = reader.version();
        let mut value =
            |key: &[u8]| reader.get(key, &mut buffer).ok().flatten().map(|record| record.value.to_vec());
        let (first, second) = (value(b"a"), value(b"b"));
        let after = reader.version();
        if before == after && before % 2 == 0 {
            assert!(first.is_some() && first == second, "{first:?} {second:?}");
        }
        writing.join().unwrap();
    });
}
