//! Reads a batch in place.
//!
//! In: the payload of a query. Out: its changes, and the items of each set. It checks the form of everything before the first change
//! is used: a damaged batch changes nothing. It does not check what matches and instructions say.

use crate::batch::{GROUP, HEAD, METER, PATH, PUT, REMOVE, RULE, SetOptions};
use crate::bytes::Reader;
use crate::item::{Group, HOP_BYTES, Hops, Item, Meter, Path, Rule};
use crate::{BATCH_BYTES_MAX, SET_NAME_BYTES_MAX};
use flow::DatapathId;

/// A change of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Put this set.
    Put {
        /// Its name.
        name: &'a str,
        /// Its version. A later version replaces an earlier one; an earlier one is refused.
        version: u64,
        /// How it is kept.
        options: SetOptions,
        /// Its items: [`items`] reads them.
        items: &'a [u8],
    },
    /// Remove this set, if it has at most this version.
    Remove {
        /// Its name.
        name: &'a str,
        /// The version.
        version: u64,
    },
}

/// Whether the payload is a batch. Otherwise it is a [`crate::Question`].
pub fn is_batch(payload: &[u8]) -> bool {
    payload.starts_with(&HEAD)
}

/// Reads a batch.
///
/// # Errors
/// A sentence that says what is wrong, and at which byte. The caller has made a mistake.
pub fn read_batch(payload: &[u8]) -> Result<Vec<Change<'_>>, String> {
    if payload.len() > BATCH_BYTES_MAX {
        return Err(format!("the batch has {} bytes, and at most {BATCH_BYTES_MAX} are read", payload.len()));
    }
    let mut reader = Reader::new(payload);
    if reader.array::<2>("its head")? != HEAD {
        return Err("the question begins with neither the head of a batch nor a brace".to_owned());
    }
    let mut changes = Vec::new();
    while !reader.is_empty() {
        changes.push(change(&mut reader)?);
    }
    Ok(changes)
}

fn change<'a>(reader: &mut Reader<'a>) -> Result<Change<'a>, String> {
    let at = reader.at();
    let [op, flags, name_len] = reader.array("a change")?;
    let name = reader.text(name_len.into(), "the name of a set")?;
    check_name(name)?;
    let version = reader.u64("the version of a set")?;
    match op {
        PUT => {
            let length = reader.u32("the items of a set")? as usize;
            let items_at = reader.at();
            let bytes = reader.bytes(length, "the items of a set")?;
            check_items(bytes)
                .map_err(|why| format!("set {name:?}, whose items begin at byte {items_at}: {why}"))?;
            Ok(Change::Put { name, version, options: SetOptions::from_bits(flags)?, items: bytes })
        }
        REMOVE => Ok(Change::Remove { name, version }),
        _ => Err(format!("the change at byte {at} has the unknown operation {op}")),
    }
}

/// Whether a set can have this name.
///
/// # Errors
/// A sentence.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    match name.len() {
        0 => Err("name: a set needs a name".to_owned()),
        1..=SET_NAME_BYTES_MAX if !name.chars().any(char::is_control) => Ok(()),
        1..=SET_NAME_BYTES_MAX => Err(format!("name: {name:?} has a control character")),
        length => Err(format!("name: it has {length} bytes, and at most {SET_NAME_BYTES_MAX} are kept")),
    }
}

fn check_items(bytes: &[u8]) -> Result<(), String> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let at = reader.at();
        if let Item::Path(path) = item(&mut reader)?
            && path.hops.is_empty()
        {
            return Err(format!("the path at byte {at} has no hops"));
        }
    }
    Ok(())
}

/// The items of a set, each with the number of its first byte.
pub fn items(bytes: &[u8]) -> ItemIter<'_> {
    ItemIter(Reader::new(bytes))
}

/// The items of a set. It ends at damaged bytes, which [`read_batch`] does not let pass.
#[derive(Clone, Debug)]
pub struct ItemIter<'a>(Reader<'a>);

impl<'a> Iterator for ItemIter<'a> {
    type Item = (usize, Item<'a>);

    fn next(&mut self) -> Option<(usize, Item<'a>)> {
        let at = self.0.at();
        item(&mut self.0).ok().map(|item| (at, item))
    }
}

fn item<'a>(reader: &mut Reader<'a>) -> Result<Item<'a>, String> {
    let at = reader.at();
    match reader.u8("an item")? {
        RULE => rule(reader).map(Item::Rule),
        PATH => path(reader).map(Item::Path),
        GROUP => Ok(Item::Group(Group {
            switch: DatapathId(reader.u64("a group")?),
            group_id: reader.u32("a group")?,
            group_type: reader.u8("a group")?,
            buckets: string(reader, "the buckets of a group")?,
        })),
        METER => Ok(Item::Meter(Meter {
            switch: DatapathId(reader.u64("a meter")?),
            meter_id: reader.u32("a meter")?,
            flags: reader.u16("a meter")?,
            bands: string(reader, "the bands of a meter")?,
        })),
        kind => Err(format!("the item at byte {at} has the unknown kind {kind}")),
    }
}

fn rule<'a>(reader: &mut Reader<'a>) -> Result<Rule<'a>, String> {
    const WHAT: &str = "a rule";
    let switch = DatapathId(reader.u64(WHAT)?);
    let [table_id, stage] = reader.array(WHAT)?;
    Ok(Rule {
        switch,
        table_id,
        stage,
        priority: reader.u16(WHAT)?,
        idle_timeout_s: reader.u16(WHAT)?,
        hard_timeout_s: reader.u16(WHAT)?,
        matching: string(reader, "the match of a rule")?,
        instructions: string(reader, "the instructions of a rule")?,
    })
}

fn path<'a>(reader: &mut Reader<'a>) -> Result<Path<'a>, String> {
    let [table_id, hops] = reader.array("a path")?;
    Ok(Path {
        table_id,
        priority: reader.u16("a path")?,
        selector: string(reader, "the selector of a path")?,
        treatment: string(reader, "the treatment of a path")?,
        hops: Hops::of(reader.bytes(usize::from(hops) * HOP_BYTES, "the hops of a path")?),
    })
}

fn string<'a>(reader: &mut Reader<'a>, what: &str) -> Result<&'a [u8], String> {
    let length = reader.u16(what)?;
    reader.bytes(length.into(), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::item::{Hop, hop_bytes};
    use flow::PortNo;

    fn hops() -> Vec<u8> {
        let hop = |switch, in_port, out_port| Hop {
            switch: DatapathId(switch),
            in_port: PortNo(in_port),
            out_port: PortNo(out_port),
        };
        hop_bytes(&[hop(1, 3, 1), hop(0xff00_0000_0000_0002, 0, 0xffff_fffb)])
    }

    fn batch() -> Batch {
        let hops = hops();
        let rule = Rule {
            switch: DatapathId(7),
            table_id: 2,
            stage: 1,
            priority: 0xfffe,
            idle_timeout_s: 3,
            hard_timeout_s: 4,
            matching: b"match",
            instructions: b"",
        };
        let path =
            Path { table_id: 1, priority: 9, selector: b"sel", treatment: b"t", hops: Hops::of(&hops) };
        let mut batch = Batch::new();
        assert!(batch.put("intent/1", 5, SetOptions { in_order: true, permanent: false }, |items| {
            items.rule(&rule).path(&path);
            items.group(&Group { switch: DatapathId(7), group_id: 1, group_type: 3, buckets: b"bb" });
            items.meter(&Meter { switch: DatapathId(7), meter_id: 1, flags: 1, bands: b"" });
        }));
        assert!(batch.remove("ä", u64::MAX));
        batch
    }

    #[test]
    fn a_damaged_batch_is_refused() {
        let check = |bytes: &[u8], part: &str| {
            let why = read_batch(bytes).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        let sound = batch();
        let cuts = (0..sound.as_bytes().len()).filter(|end| read_batch(&sound.as_bytes()[..*end]).is_ok());
        // Only a cut between two changes leaves a sound batch.
        assert_eq!(cuts.count(), 2);
        check(b"", "the question ends at byte 0, within its head");
        check(b"{}", "neither");
        check(&[b'F', 1, 3, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0], "unknown operation 3");
        check(&[b'F', 1, 2, 0, 0], "name: a set needs a name");
        check(&[b'F', 1, 2, 0, 1, b'\n'], "control character");
        check(&[b'F', 1, 2, 0, 1, 0xff], "is not UTF-8");
        check(&[b'F', 1, 1, 4, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "unknown bits 0x04");
        check(&[b'F', 1, 1, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9], "unknown kind 9");
        check(&vec![b'F'; BATCH_BYTES_MAX + 1], "at most");
        let mut no_hops = Batch::new();
        let path = Path { table_id: 1, priority: 9, selector: b"", treatment: b"", hops: Hops::of(&[]) };
        assert!(no_hops.put("a", 1, SetOptions::default(), |items| {
            items.path(&path);
        }));
        check(no_hops.as_bytes(), "the path at byte 0 has no hops");
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let batch = batch();
        let changes = read_batch(batch.as_bytes()).unwrap();
        assert_eq!((changes.len(), batch.len()), (2, 2));
        assert_eq!(changes[1], Change::Remove { name: "ä", version: u64::MAX });
        let Change::Put { name: "intent/1", version: 5, options, items: bytes } = changes[0] else {
            panic!("{changes:?}")
        };
        assert_eq!(options, SetOptions { in_order: true, permanent: false });
        let mut copy = Vec::new();
        let mut kinds = Vec::new();
        for (at, item) in items(bytes) {
            assert_eq!(at, copy.len());
            crate::Items::new(&mut copy).item(&item);
            kinds.push(std::mem::discriminant(&item));
        }
        assert_eq!((copy.as_slice(), kinds.len()), (bytes, 4));
        let Some((_, Item::Path(path))) = items(bytes).nth(1) else { panic!() };
        assert_eq!(hop_bytes(&path.hops.iter().collect::<Vec<_>>()), hops());
        assert_eq!(path.hops.get(1), path.hops.iter().last());
        assert_eq!(path.hops.get(2), None);
    }

    #[test]
    fn a_set_that_is_too_long_is_not_written() {
        let mut batch = Batch::new();
        let long = vec![0; BATCH_BYTES_MAX / 2];
        let rule = Rule {
            switch: DatapathId(7),
            table_id: 0,
            stage: 0,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: &long,
            instructions: &[],
        };
        let mut put = |name: &str, matching: &[u8]| {
            batch.put(name, 1, SetOptions::default(), |items| {
                items.rule(&Rule { matching, ..rule });
            })
        };
        assert!(put("a", &long));
        assert!(!put("b", &long));
        assert!(!put("c", &vec![0; 0x1_0000]));
        assert!(!put(&"n".repeat(256), b""));
        assert!(put("d", b""));
        assert_eq!(read_batch(batch.as_bytes()).unwrap().len(), 2);
        batch.clear();
        assert!(batch.is_empty() && read_batch(batch.as_bytes()).unwrap().is_empty());
    }
}
