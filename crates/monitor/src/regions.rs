//! The shared memory in which services have their tables, and which app has been told of which.
//!
//! ```text
//!   start of a service ──new region──> the service, which maps it and seals it
//!                            └──read-only, once it is sealed──> each app that reads the service
//!   end of a service ──> each app that was told of its region hears that nobody writes it now
//! ```
//!
//! In: starts and ends of services, and what each app reads. Out: descriptors and messages. It maps a region only while it
//! makes it, before the writer has it. It never hands out one that somebody could still map writable. Each run of a service
//! has a new region, so nothing that an earlier run left half-written has to be repaired.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ring::region::{create_region, is_sealed_region, reading_end};

use crate::protocol::ToZone;

/// Most regions of one service in the life of an app's process. An app that keeps all regions that it gets keeps their memory,
/// so a service that restarts more often is no longer shared with it: the app follows the stream.
const REGIONS_PER_SERVICE_MAX: u32 = 16;

/// The regions of all services.
#[derive(Debug, Default)]
pub(crate) struct Regions(Vec<ServiceRegion>);

#[derive(Debug)]
struct ServiceRegion {
    service: String,
    generation: u64,
    /// It can only be read. `None`: its writer has ended.
    fd: Option<OwnedFd>,
    /// Whether its writer has attached, so that it can be handed out.
    is_sealed: bool,
    bytes: u64,
}

/// What one app was told of one service.
#[derive(Debug)]
pub(crate) struct Told {
    service: String,
    /// The start of the service whose region it has, and whether the service still writes it.
    region: Option<(u64, bool)>,
    /// How many regions it got.
    regions: u32,
}

impl Told {
    /// An app that reads these services.
    pub(crate) fn of(services: &[String]) -> Vec<Told> {
        let told = |service: &String| Told { service: service.clone(), region: None, regions: 0 };
        services.iter().map(told).collect()
    }

    /// The app may read these services. One that it must not read any more is there until the app has restarted.
    pub(crate) fn add(all: &mut Vec<Told>, services: &[String]) {
        let new: Vec<_> = services
            .iter()
            .filter(|service| !all.iter().any(|it| it.service == **service))
            .cloned()
            .collect();
        all.extend(Told::of(&new));
    }
}

impl Regions {
    /// A new region for this start of a service. The descriptor is for its writer.
    ///
    /// # Errors
    /// The system has no memory or descriptors left.
    pub(crate) fn create(&mut self, service: &str, generation: u64, bytes: usize) -> io::Result<OwnedFd> {
        let writing = create_region(bytes)?;
        let fd = reading_end(writing.as_fd())?;
        self.0.retain(|it| it.service != service);
        let service = service.to_owned();
        let bytes = bytes as u64;
        self.0.push(ServiceRegion { service, generation, fd: Some(fd), is_sealed: false, bytes });
        Ok(writing)
    }

    /// The size of a service's region.
    pub(crate) fn bytes_of(&self, service: &str) -> u64 {
        self.0.iter().find(|it| it.service == service).map_or(0, |it| it.bytes)
    }

    /// This start of a service has ended.
    pub(crate) fn on_end(&mut self, service: &str, generation: u64) {
        let ended = self.0.iter_mut().find(|it| it.service == service && it.generation == generation);
        ended.into_iter().for_each(|it| it.fd = None);
    }

    /// Notices which regions have their writers.
    pub(crate) fn look(&mut self) {
        for region in self.0.iter_mut().filter(|it| !it.is_sealed) {
            region.is_sealed = region.fd.as_ref().is_some_and(is_sealed_region);
        }
    }

    /// Tells an app what it does not know yet, with a function that says whether the message was sent.
    pub(crate) fn tell(
        &self,
        told: &mut [Told],
        mut send: impl FnMut(&ToZone, Option<BorrowedFd<'_>>) -> bool,
    ) {
        for told in told {
            let Some(region) = self.0.iter().find(|it| it.service == told.service) else { continue };
            let is_written = region.fd.is_some();
            let known = told.region.filter(|(generation, _)| *generation == region.generation);
            let has_room = told.regions < REGIONS_PER_SERVICE_MAX;
            // A region that ended before the app knew of it is not worth a look.
            let news = match (known, told.region) {
                (None, _) if has_room && region.is_sealed && is_written => true,
                (Some((_, true)), _) => !is_written,
                (None, Some((generation, true))) => {
                    // Its region is of an earlier start, of whose end it has not heard.
                    say(told, (generation, false), None, &mut send);
                    continue;
                }
                _ => false,
            };
            if news {
                let fd = region.fd.as_ref().map(AsFd::as_fd);
                say(told, (region.generation, is_written), fd, &mut send);
            }
        }
    }
}

/// Sends one message, and notes it if it was sent.
fn say(
    told: &mut Told,
    now: (u64, bool),
    fd: Option<BorrowedFd<'_>>,
    send: &mut impl FnMut(&ToZone, Option<BorrowedFd<'_>>) -> bool,
) {
    let message = ToZone::Region { service: told.service.clone(), is_written: fd.is_some() };
    if send(&message, fd) {
        told.region = Some(now);
        told.regions += u32::from(fd.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::region::{REGION_BYTES_MIN, RegionReader, RegionWriter};

    /// What an app hears now: `reads`, `ended`, or nothing. Each region that it gets can be read.
    fn hear(regions: &mut Regions, told: &mut [Told]) -> Vec<&'static str> {
        let mut heard = Vec::new();
        regions.look();
        regions.tell(told, |message, fd| {
            let ToZone::Region { service, is_written } = message else { panic!("{message:?}") };
            assert_eq!((service.as_str(), *is_written), ("discovery", fd.is_some()));
            if let Some(fd) = fd {
                RegionReader::attach(&fd.try_clone_to_owned().unwrap()).unwrap();
            }
            heard.push(if *is_written { "reads" } else { "ended" });
            true
        });
        heard
    }

    fn told() -> Vec<Told> {
        Told::of(&["discovery".to_owned()])
    }

    #[test]
    fn an_app_gets_a_region_when_its_writer_has_sealed_it_and_hears_of_the_end() {
        let (mut regions, mut told) = (Regions::default(), told());
        assert!(hear(&mut regions, &mut told).is_empty(), "there is no service");
        let fd = regions.create("discovery", 1, REGION_BYTES_MIN).unwrap();
        regions.create("hosts", 2, REGION_BYTES_MIN).unwrap();
        assert!(hear(&mut regions, &mut told).is_empty(), "it could still be mapped writable");
        let _writer = RegionWriter::attach(&fd).unwrap();
        assert_eq!(hear(&mut regions, &mut told), ["reads"]);
        assert!(hear(&mut regions, &mut told).is_empty(), "it is told once");
        regions.on_end("discovery", 7);
        assert!(hear(&mut regions, &mut told).is_empty(), "another start has ended");
        regions.on_end("discovery", 1);
        assert_eq!(hear(&mut regions, &mut told), ["ended"]);
        let next = regions.create("discovery", 3, REGION_BYTES_MIN).unwrap();
        assert!(hear(&mut regions, &mut told).is_empty());
        let _writer = RegionWriter::attach(&next).unwrap();
        assert_eq!(hear(&mut regions, &mut told), ["reads"]);
    }

    #[test]
    fn an_end_that_was_not_told_is_told_before_the_next_region() {
        let (mut regions, mut told) = (Regions::default(), told());
        let fd = regions.create("discovery", 1, REGION_BYTES_MIN).unwrap();
        let _writer = RegionWriter::attach(&fd).unwrap();
        assert_eq!(hear(&mut regions, &mut told), ["reads"]);
        regions.on_end("discovery", 1);
        let next = regions.create("discovery", 2, REGION_BYTES_MIN).unwrap();
        assert_eq!(hear(&mut regions, &mut told), ["ended"], "the next writer has not attached");
        let _writer = RegionWriter::attach(&next).unwrap();
        assert_eq!(hear(&mut regions, &mut told), ["reads"]);
    }

    #[test]
    fn what_could_not_be_sent_is_sent_later_and_a_restless_service_is_shared_a_bounded_number_of_times() {
        let (mut regions, mut told) = (Regions::default(), told());
        let mut sent = 0;
        for generation in 1..100 {
            let fd = regions.create("discovery", generation, REGION_BYTES_MIN).unwrap();
            let _writer = RegionWriter::attach(&fd).unwrap();
            regions.look();
            regions.tell(&mut told, |_, _| false);
            sent += hear(&mut regions, &mut told).len();
            regions.on_end("discovery", generation);
            sent += hear(&mut regions, &mut told).len();
        }
        assert_eq!(sent, 2 * REGIONS_PER_SERVICE_MAX as usize, "each of them begins and ends");
    }
}
