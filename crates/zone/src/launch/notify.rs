//! System calls that wait until another process answers them (seccomp_unotify(2)).
//!
//! In: numbers of calls, a listener. Out: each call as it was made, and answers. The arguments are a copy that Linux
//! made. The memory that they point to is not a copy, so it is read once and never again ([`Listener::read`]).
//! It decides nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use seccompiler::{SeccompAction, SeccompFilter, SeccompRule, TargetArch};

/// A system call that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) id: u64,
    /// The thread that made it.
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Linux executes it unchanged. Only for calls without pointers, for calls that an app cannot have made, and for
    /// calls that root or Landlock stop.
    Continue,
    /// It returns zero.
    Done,
    /// It fails with this error.
    Refused(i32),
}

/// Receives the calls of one zone.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// The data of SECCOMP_RET_TRACE. It marks the instruction that is changed to one that notifies.
const MARK: u32 = 0x2a;

/// How many bytes of a text are read first. Most paths are shorter.
const TEXT_AT_ONCE: usize = 256;

/// `BPF_RET | BPF_K` (linux/bpf_common.h).
const RETURN: u16 = 0x06;

/// From here on all calls but these wait for the returned listener. It applies to the calling process and to
/// everything it executes.
pub(super) fn install(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<OwnedFd, seccompiler::Error> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Trace(MARK), SeccompAction::Allow, machine)?;
    let mut program: seccompiler::BpfProgram = filter.try_into()?;
    for instruction in &mut program {
        if instruction.code == RETURN && instruction.k == libc::SECCOMP_RET_TRACE | MARK {
            instruction.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    load(&program).map_err(seccompiler::Error::Seccomp)
}

fn load(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    // Both are Linux's struct sock_filter.
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the program has `len` instructions, which Linux copies during the call.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    match i32::try_from(listener) {
        // SAFETY: Linux has just made this descriptor for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Listener {
    pub(super) fn new(fd: OwnedFd) -> Listener {
        Listener(fd)
    }

    /// The next call. An error if the caller was interrupted meanwhile.
    pub(super) fn receive(&self) -> io::Result<Call> {
        // SAFETY: a structure of integers, for which zero is a value. Linux requires zeroes.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: Linux writes one structure of the type that this operation is defined with.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        checked(done)?;
        let (id, thread, number) = (call.id, call.pid, i64::from(call.data.nr));
        Ok(Call { id, thread, number, arguments: call.data.args })
    }

    /// Whether the caller still waits for the answer. If not, another process may have its thread id by now.
    pub(super) fn is_waiting(&self, call: &Call) -> bool {
        // SAFETY: Linux reads one number.
        let done = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id)
        };
        done == 0
    }

    /// Copies the caller's memory at an address.
    pub(super) fn read(&self, call: &Call, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory(call)?.read_exact_at(bytes, address)
    }

    fn memory(&self, call: &Call) -> io::Result<File> {
        let memory = File::open(format!("/proc/{}/mem", call.thread))?;
        // It is the caller's memory only if the caller still waits after the memory was opened.
        if self.is_waiting(call) { Ok(memory) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Copies the caller's text at an address, up to a zero byte, which is left out. An error if the first `most`
    /// bytes have no zero byte.
    pub(super) fn read_text(&self, call: &Call, address: u64, most: usize) -> io::Result<Vec<u8>> {
        let memory = self.memory(call)?;
        let (mut text, mut bytes) = (Vec::new(), [0; TEXT_AT_ONCE]);
        while text.len() < most {
            // The memory after the text may not be mapped. Then fewer bytes are read.
            let at = address.checked_add(text.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
            let some = match memory.read_at(&mut bytes, at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.get(..count).unwrap_or_default(),
            };
            if let Some(end) = some.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&some[..end]);
                return Ok(text);
            }
            text.extend_from_slice(some);
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// The folder at which the caller's relative paths start: its working folder, or the folder of this descriptor.
    pub(super) fn folder(&self, call: &Call, fd: Option<u64>) -> io::Result<PathBuf> {
        let process = format!("/proc/{}", call.thread);
        let link = fd.map_or_else(|| format!("{process}/cwd"), |fd| format!("{process}/fd/{fd}"));
        std::fs::read_link(link)
    }

    /// The root folder of the caller.
    pub(super) fn root(&self, call: &Call) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, format!("/proc/{}/root", call.thread), flags, Mode::empty())?;
        if self.is_waiting(call) { Ok(root) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// The flags of a caller's descriptor, in the form of open(2).
    pub(super) fn flags(&self, call: &Call, fd: u64) -> io::Result<u32> {
        let text = std::fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", call.thread))?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Replaces the caller's descriptor `fd` by `given`.
    pub(super) fn replace(
        &self,
        call: &Call,
        fd: u64,
        given: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> io::Result<()> {
        let number = |fd: i32| u32::try_from(fd).map_err(io::Error::other);
        let handed = libc::seccomp_notif_addfd {
            id: call.id,
            flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SETFD).map_err(io::Error::other)?,
            srcfd: number(given.as_raw_fd())?,
            newfd: u32::try_from(fd).map_err(io::Error::other)?,
            newfd_flags: if close_on_exec { number(libc::O_CLOEXEC)? } else { 0 },
        };
        // SAFETY: Linux reads one structure of the type that this operation is defined with.
        let done =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const handed) };
        checked(done)
    }

    /// Answers a call. Returns `false` if the caller has ended and needs no answer.
    pub(super) fn answer(&self, call: &Call, answer: Answer) -> bool {
        let (error, flags) = match answer {
            Answer::Continue => {
                (0, u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or_default())
            }
            Answer::Done => (0, 0),
            Answer::Refused(number) => (-number, 0),
        };
        let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        // SAFETY: Linux reads one structure of the type that this operation is defined with.
        let done =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
        done == 0
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn checked(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A pair of sockets that carries the listener from the app's process to the launcher.
pub(super) fn handover() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends the listener from the app's process.
pub(super) fn hand_over(listener: &OwnedFd, to: &OwnedFd) -> rustix::io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let listener = [listener.as_fd()];
    if !beside.push(SendAncillaryMessage::ScmRights(&listener)) {
        return Err(Errno::NOBUFS);
    }
    rustix::net::sendmsg(to, &[std::io::IoSlice::new(b"!")], &mut beside, SendFlags::empty()).map(drop)
}

/// Receives the listener in the launcher.
pub(super) fn receive(from: BorrowedFd<'_>) -> Option<OwnedFd> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [std::io::IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(from, &mut bytes, &mut beside, RecvFlags::CMSG_CLOEXEC).ok()?;
    beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}
