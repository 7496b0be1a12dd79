//! The shared memory of two ends: a sealed memfd, mapped once, accessed as atomic words. All `unsafe` of the crate is
//! here.
//!
//! In: sizes, or a descriptor that could be anything. Out: a slice of words. Never hands out a reference to plain
//! bytes, because the peer writes them at any time.

use crate::atomic::AtomicU64;

/// Words shared by two ends.
pub(crate) enum Memory {
    /// A mapping of a memfd.
    #[cfg(not(loom))]
    Mapped(mapping::Mapping),
    /// An ordinary allocation, for tests where nothing can be mapped (loom, Miri).
    #[cfg(any(test, loom))]
    Allocated(Box<[AtomicU64]>),
}

impl Memory {
    /// All words, the header's first.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        match self {
            #[cfg(not(loom))]
            Memory::Mapped(mapping) => mapping.words(),
            #[cfg(any(test, loom))]
            Memory::Allocated(words) => words,
        }
    }

    /// Memory of `words` zeros, for tests.
    #[cfg(any(test, loom))]
    pub(crate) fn allocated(words: usize) -> Memory {
        Memory::Allocated((0..words).map(|_| AtomicU64::new(0)).collect())
    }
}

#[cfg(not(loom))]
pub(crate) mod mapping {
    //! Making, sealing, checking and mapping a memfd.

    use std::ffi::CStr;
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::ptr::NonNull;

    use rustix::fs::{
        MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
    };
    use rustix::io::Errno;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use crate::atomic::{AtomicU64, Ordering};
    use crate::fault::PortFault;
    use crate::layout::{Opening, Sizes, WORD_BYTES};

    /// Without these a peer could shrink the memory, and the next access here would be a SIGBUS.
    const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

    /// What the memory of a region has from its maker.
    const FIXED_SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

    /// What its writer adds: no mapping after its own can be writable, and no seal can be added.
    const ONE_WRITER: SealFlags = SealFlags::FUTURE_WRITE.union(SealFlags::SEAL);

    /// Makes the memory of a new port: sized, sealed, with its header, otherwise zero.
    pub(crate) fn create(sizes: Sizes) -> io::Result<OwnedFd> {
        let fd = sealed(c"burnet-port", sizes.memory_bytes())?;
        let mapping = Mapping::new(fd.as_fd(), sizes.memory_bytes())?;
        for (word, value) in mapping.words().iter().zip(sizes.opening()) {
            word.store(value, Ordering::Relaxed);
        }
        Ok(fd)
    }

    /// Makes sealed memory of zeros that cannot be executed.
    pub(crate) fn sealed(name: &CStr, bytes: usize) -> io::Result<OwnedFd> {
        made_with(name, bytes, SEALS)
    }

    /// Makes memory of zeros with a fixed size, to which its writer adds the other seals.
    pub(crate) fn unshrinkable(name: &CStr, bytes: usize) -> io::Result<OwnedFd> {
        made_with(name, bytes, FIXED_SIZE)
    }

    fn made_with(name: &CStr, bytes: usize, seals: SealFlags) -> io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Linux before 6.3 has no flag for memory that cannot be executed.
        let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create(name, flags)?,
            made => made?,
        };
        ftruncate(&fd, bytes as u64)?;
        fcntl_add_seals(&fd, seals)?;
        Ok(fd)
    }

    /// The length of sealed memory, which cannot change.
    fn expect_sealed(fd: BorrowedFd<'_>) -> Result<u64, PortFault> {
        // Only a memfd or a file of tmpfs has seals. Other descriptors return an error.
        let seals = fcntl_get_seals(fd).map_err(|_| PortFault::NotSealed)?;
        if !seals.contains(SEALS) {
            return Err(PortFault::NotSealed);
        }
        let found = fstat(fd).map_err(io::Error::from)?.st_size;
        Ok(u64::try_from(found).unwrap_or(0))
    }

    /// Maps sealed memory of exactly this size.
    pub(crate) fn open_plain(fd: BorrowedFd<'_>, bytes: usize) -> Result<Mapping, PortFault> {
        if expect_sealed(fd)? != bytes as u64 {
            return Err(PortFault::NotAPort);
        }
        Ok(Mapping::new(fd, bytes)?)
    }

    /// Checks the header of a port's memory, maps it, and returns its sizes.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> Result<(Mapping, Sizes), PortFault> {
        let found_bytes = expect_sealed(fd)?;
        let length = usize::try_from(found_bytes).map_err(|_| PortFault::NotAPort)?;
        if length < size_of::<Opening>() {
            return Err(PortFault::NotAPort);
        }
        let mapping = Mapping::new(fd, length)?;
        let sizes = Sizes::parse(mapping.opening(), found_bytes)?;
        Ok((mapping, sizes))
    }

    /// Maps a region for its writer, and makes that the last writable mapping. `None`: it is no memory of a fixed size, or it had
    /// a writer already.
    pub(crate) fn open_for_writing(fd: BorrowedFd<'_>) -> io::Result<Option<Mapping>> {
        let seals = fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
        if !seals.contains(FIXED_SIZE) || seals.intersects(ONE_WRITER) {
            return Ok(None);
        }
        let mapping = Mapping::new(fd, length(fd)?)?;
        fcntl_add_seals(fd, ONE_WRITER)?;
        Ok(Some(mapping))
    }

    /// Maps a region for a reader. `None`: it could shrink, or somebody could still map it writable.
    pub(crate) fn open_for_reading(fd: BorrowedFd<'_>) -> io::Result<Option<Mapping>> {
        match is_sealed_for_readers(fd) {
            true => Mapping::with(fd, length(fd)?, ProtFlags::READ).map(Some),
            false => Ok(None),
        }
    }

    /// Whether the memory keeps its size, and nobody can map it writable any more.
    pub(crate) fn is_sealed_for_readers(fd: BorrowedFd<'_>) -> bool {
        fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(FIXED_SIZE.union(ONE_WRITER)))
    }

    fn length(fd: BorrowedFd<'_>) -> io::Result<usize> {
        usize::try_from(fstat(fd)?.st_size).map_err(io::Error::other)
    }

    /// A shared mapping of a sealed memfd: It is writable, except for the reader of a region. That reader uses
    /// only relaxed loads.
    pub(crate) struct Mapping {
        start: NonNull<AtomicU64>,
        length_bytes: usize,
    }

    // SAFETY: the mapping belongs to the process, not to a thread, and is reached only through atomics.
    unsafe impl Send for Mapping {}
    // SAFETY: as above; all access through a shared reference is atomic.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        /// Maps the first `length_bytes` of `fd`. The caller has checked that they are sealed, so they stay.
        pub(crate) fn new(fd: BorrowedFd<'_>, length_bytes: usize) -> io::Result<Mapping> {
            Mapping::with(fd, length_bytes, ProtFlags::READ | ProtFlags::WRITE)
        }

        fn with(fd: BorrowedFd<'_>, length_bytes: usize, access: ProtFlags) -> io::Result<Mapping> {
            // SAFETY: the kernel chooses an address that nothing else uses, so no memory of this process is replaced.
            let start = unsafe { mmap(std::ptr::null_mut(), length_bytes, access, MapFlags::SHARED, fd, 0) }?;
            let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Mapping { start, length_bytes })
        }

        pub(crate) fn words(&self) -> &[AtomicU64] {
            // SAFETY: the mapping is page-aligned, `length_bytes` long, lives as long as `self`, and its seals keep the
            // file as long as that. Any bits are a valid `AtomicU64`, and the peer's concurrent writes meet only atomics.
            // Of a read-only mapping, `RegionReader` alone sees the words. It uses only relaxed loads, which the standard
            // library permits on memory that cannot be written.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length_bytes / WORD_BYTES) }
        }

        fn opening(&self) -> Opening {
            let mut opening = Opening::default();
            for (value, word) in opening.iter_mut().zip(self.words()) {
                *value = word.load(Ordering::Relaxed);
            }
            opening
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: this is exactly what `new` mapped, and no reference into it outlives `self`. A failure would
            // leave the mapping in place, which is harmless.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length_bytes) };
        }
    }
}
