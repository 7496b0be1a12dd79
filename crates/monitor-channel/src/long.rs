//! Messages that are longer than a datagram: the bytes lie in a sealed memory file, and its descriptor is sent.
//!
//! In: bytes to send, or the descriptor that came. Out: the descriptor, or the bytes. The receiver need not trust the sender: only a sealed memory file
//! is read, so a read neither waits nor finds a file that changes.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

/// The datagram that stands for a long message. No message begins like this, since it is no JSON.
pub(crate) const DATAGRAM: &[u8] = b"@";

const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK);

/// A memory file with these bytes, which nobody can change any more.
///
/// # Errors
/// The process is out of descriptors or memory.
pub(crate) fn put(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"burnet-message", flags)?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The bytes of the memory file that came with [`DATAGRAM`], up to the limit.
///
/// # Errors
/// Why it is no long message.
pub(crate) fn take(fd: Option<OwnedFd>, bytes_max: usize) -> Result<Vec<u8>, &'static str> {
    let fd = fd.ok_or("a long message without its memory file")?;
    // Only memory files and files of tmpfs have seals.
    let is_sealed = fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SEALS));
    let length = fstat(&fd).ok().and_then(|stat| usize::try_from(stat.st_size).ok());
    let Some(length) = length.filter(|_| is_sealed) else {
        return Err("a long message whose file is not a sealed memory file");
    };
    if length > bytes_max {
        return Err("it is too long");
    }
    let (mut file, mut bytes) = (File::from(fd), Vec::with_capacity(length));
    // The descriptor shares the place in the file with the sender's, which stands behind what was written.
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    read.map_err(|_| "a long message whose memory file cannot be read")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fd: Option<OwnedFd>, expected: Result<&[u8], &str>) {
        assert_eq!(take(fd, 100), expected.map(<[u8]>::to_vec));
    }

    #[test]
    fn only_a_sealed_memory_file_of_some_length_is_read() {
        let not_sealed = Err("a long message whose file is not a sealed memory file");
        check(None, Err("a long message without its memory file"));
        check(Some(File::open("/dev/zero").unwrap().into()), not_sealed);
        check(Some(std::io::pipe().unwrap().0.into()), not_sealed);
        check(Some(memfd_create(c"open", MemfdFlags::ALLOW_SEALING).unwrap()), not_sealed);
        check(Some(put(&[b' '; 101]).unwrap()), Err("it is too long"));
        check(Some(put(b"").unwrap()), Ok(b""));
        check(Some(put(b"[1]").unwrap()), Ok(b"[1]"));
    }
}
