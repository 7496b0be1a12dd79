//! Shared memory of services, as the monitor passes it to this process.
//!
//! ```text
//!   monitor ──descriptor──> [ checked, mapped ] ──> zone::region::Region ──> the app, or the service that writes
//! ```
//!
//! In: descriptors that could be anything. Out: ends of regions, or a sentence for the log. The descriptor is closed when it is
//! mapped. It decides nothing about records.

use monitor_channel::protocol::ToZone;
use ring::region::{self, RegionReader, RegionWriter};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use zone::region::{ReadRegion, Region, Unread, WriteRegion};

/// The region that this service writes.
///
/// # Errors
/// A sentence: the descriptor is no region, or another process wrote it before.
pub fn written(fd: &OwnedFd) -> Result<Region, String> {
    let writer = RegionWriter::attach(fd).map_err(|why| why.to_string())?;
    Ok(Region::Writes(Box::new(Writing(writer))))
}

/// A region that the monitor tells of. `None`: the message is about something else.
///
/// # Errors
/// A sentence: the descriptor is not what the message says.
pub fn told(message: ToZone, mut fds: Vec<OwnedFd>) -> Result<Option<Region>, String> {
    let ToZone::Region { service, is_written } = message else { return Ok(None) };
    if !is_written {
        return Ok(Some(Region::Ended { service }));
    }
    let fd = fds.pop().ok_or_else(|| format!("the region of {service} came without a descriptor"))?;
    let reader = RegionReader::attach(&fd).map_err(|why| format!("the region of {service}: {why}"))?;
    Ok(Some(Region::Reads { service, table: Arc::new(Reading(reader)) }))
}

#[derive(Debug)]
struct Writing(RegionWriter);

impl WriteRegion for Writing {
    fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.0.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) {
        self.0.remove(key);
    }

    fn settle(&mut self) {
        self.0.settle();
    }
}

#[derive(Debug)]
struct Reading(RegionReader);

impl ReadRegion for Reading {
    fn version(&self) -> u64 {
        self.0.version()
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Unread> {
        let found = self.0.get(key, value).map_err(unread)?.map(|record| record.key.len());
        // The copy begins with the key.
        value.drain(..found.unwrap_or(0));
        Ok(found.is_some())
    }

    fn places(&self) -> usize {
        self.0.places()
    }

    fn at(&self, place: usize, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Unread> {
        let found = self.0.at(place, value).map_err(unread)?.map(|record| record.key.len());
        key.clear();
        key.extend(value.drain(..found.unwrap_or(0)));
        Ok(found.is_some())
    }
}

fn unread(why: region::Unread) -> Unread {
    match why {
        region::Unread::Changing => Unread::Changing,
        region::Unread::Damaged => Unread::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::region::{create_region, reading_end};
    use std::os::fd::AsFd;

    fn message(is_written: bool) -> ToZone {
        ToZone::Region { service: "discovery".to_owned(), is_written }
    }

    #[test]
    fn what_the_service_writes_is_what_the_app_reads() {
        let fd = create_region(1 << 20).unwrap();
        let reading = reading_end(fd.as_fd()).unwrap();
        let refused = told(message(true), vec![reading.try_clone().unwrap()]).unwrap_err();
        assert!(
            refused.contains("not sealed"),
            "before its writer has it, somebody could still map it writable"
        );
        let Region::Writes(mut writer) = written(&fd).unwrap() else { panic!("it is not written") };
        assert!(writer.put(b"switch/1", b"up"));
        writer.settle();
        let told = told(message(true), vec![reading]).unwrap();
        let Some(Region::Reads { service, table }) = told else { panic!("{told:?}") };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        assert_eq!((service.as_str(), table.version()), ("discovery", 2));
        assert_eq!(table.get(b"switch/1", &mut value), Ok(true));
        assert_eq!(value, b"up");
        assert_eq!(table.get(b"switch/2", &mut value), Ok(false));
        let found = (0..table.places()).filter(|place| table.at(*place, &mut key, &mut value) == Ok(true));
        assert_eq!(found.count(), 1);
    }

    #[test]
    fn a_message_without_its_descriptor_or_with_another_is_refused() {
        assert!(told(message(true), Vec::new()).unwrap_err().contains("without a descriptor"));
        let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert!(told(message(true), vec![null]).is_err());
        assert!(matches!(told(message(false), Vec::new()), Ok(Some(Region::Ended { .. }))));
    }
}
