//! System calls that are allowed with some arguments only.
//!
//! In: what is granted ([`Calls`]). Out: the rules for each such call. It never follows a pointer, and installs nothing.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::arguments::{CLONE_NEW, MAKES_A_FILE, SET_ID, SOCKET_TYPE_BITS, word};

/// The rules of some calls, by number. A call without rules is allowed with all arguments.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

type Result<T> = std::result::Result<T, seccompiler::Error>;

/// What the operator and the launcher decide about system calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// Whether the app may start processes and programs.
    pub(super) spawn: bool,
    /// Whether the app may accept connections, on sockets that the monitor has opened.
    pub(super) listens: bool,
    /// Whether something is granted that only the launcher can do.
    pub(super) must_ask: bool,
    /// The process id of the app. If the app has no other processes, it may signal only this one.
    pub(super) own_pid: i32,
    /// The descriptor that is executed. Its number is above those that the app can have. The filter checks it only if
    /// no launcher can be asked.
    pub(super) execute_fd: Option<i32>,
}

/// prctl(2) operations that affect only the caller.
const PRCTL: &[i32] = &[
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_NAME,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_SECCOMP,
    libc::PR_GET_TIMERSLACK,
    libc::PR_CAPBSET_READ,
    libc::PR_SET_NAME,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_SET_TIMERSLACK,
    libc::PR_SET_VMA,
];

/// ioctl(2) operations on a descriptor itself. TIOCSTI is not among them: it types into another user's terminal.
const IOCTL: &[u64] =
    &[libc::FIOCLEX, libc::FIONBIO, libc::FIONCLEX, libc::FIONREAD, libc::TCGETS, libc::TIOCGWINSZ];

/// fcntl(2) operations that make Linux send signals to a process that the app names.
const FCNTL_SIGNALS: [i32; 3] = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX];

/// setsockopt(2) options that let a pair of sockets hold more of Linux's memory. No process limit counts that memory.
const BUFFERS: [i32; 4] = [libc::SO_SNDBUF, libc::SO_RCVBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE];

/// setsockopt(2) options for apps that accept connections, with their levels: when a connection counts as dead, and when a small
/// packet is sent. None changes where packets go, how much memory Linux keeps, or what code of Linux handles them.
const LISTENER_OPTIONS: [(i32, i32); 9] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
];

/// From Linux's resource.h: the same on all architectures that a node supports.
const RLIMIT_CORE: i32 = 4;

// From Linux's fcntl.h: libc does not have them on all architectures.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// `MSG_FASTOPEN`: send to an address, and connect to it at the same time (tcp(7)).
const FAST_OPEN: u64 = word(libc::MSG_FASTOPEN);

/// Calls that are allowed with some arguments. One matching rule of a call is enough.
pub(super) fn judged(calls: &Calls) -> Result<Rules> {
    let groups = [memory()?, files()?, sockets(calls)?, processes(calls)?, descriptors()?];
    let mut rules: Rules = groups.into_iter().flatten().collect();
    if let Some(fd) = calls.execute_fd {
        rules.insert(libc::SYS_execveat, vec![all([is(0, word(fd))?, is(4, word(libc::AT_EMPTY_PATH))?])?]);
    }
    Ok(rules)
}

type Group = Vec<(i64, Vec<SeccompRule>)>;

/// A mapping is writable or executable, never both, and never first one and then the other. A process cannot execute
/// what another process writes to.
fn memory() -> Result<Group> {
    let (execute, write) = (word(libc::PROT_EXEC), word(libc::PROT_WRITE));
    let executable = all([without(2, write)?, without(3, word(libc::MAP_SHARED))?])?;
    Ok(vec![
        (libc::SYS_mmap, vec![all([without(2, execute)?])?, executable]),
        (libc::SYS_mprotect, vec![all([without(2, execute)?])?]),
    ])
}

/// No file may get a set-user-id or set-group-id bit: others see what is written to `fs.write`, without the mount
/// option that disables the bit here.
fn files() -> Result<Group> {
    Ok(vec![
        (libc::SYS_fchmod, vec![all([without(1, SET_ID)?])?]),
        (libc::SYS_fchmodat, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_fchmodat2, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_openat, opening(2)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, vec![all([without(1, SET_ID)?])?]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, vec![all([without(1, SET_ID)?])?]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, opening(1)?),
    ])
}

/// TCP can connect without connect(2), which the launcher answers: by sending, and by an option.
fn sockets(calls: &Calls) -> Result<Group> {
    let pairs = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(unix_pair);
    let mut rules = vec![
        (libc::SYS_sendto, vec![all([without(3, FAST_OPEN)?])?]),
        (libc::SYS_sendmsg, vec![all([without(2, FAST_OPEN)?])?]),
        (libc::SYS_sendmmsg, vec![all([without(3, FAST_OPEN)?])?]),
        (libc::SYS_setsockopt, options(calls)?),
        (libc::SYS_socketpair, pairs.into_iter().collect::<Result<_>>()?),
    ];
    if calls.listens {
        rules.push((libc::SYS_accept4, Vec::new()));
    }
    Ok(rules)
}

/// Threads, and processes if they are granted, but never a namespace. The app may change only its own limits, and
/// cannot raise them. It cannot lower the core dump limit either: 0 would allow more than 1 (`NO_CORE`).
fn processes(calls: &Calls) -> Result<Group> {
    let (own_pid, thread) = (word(calls.own_pid), word(libc::CLONE_THREAD));
    let cloned = if calls.spawn { (word(CLONE_NEW), 0) } else { (word(CLONE_NEW) | thread, thread) };
    let only_reads = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    let limits = vec![all([is(0, 0)?, is_not(1, word(RLIMIT_CORE))?])?, all([is(0, 0)?, only_reads])?];
    let operations = PRCTL.iter().map(|operation| all([is(0, word(*operation))?]));
    // An app may request to die with its parent, but not withdraw that.
    let tied = all([is(0, word(libc::PR_SET_PDEATHSIG))?, is(1, word(libc::SIGKILL))?]);
    Ok(vec![
        (libc::SYS_clone, vec![all([masked(0, cloned.0, cloned.1)?])?]),
        (libc::SYS_kill, vec![all([is(0, own_pid)?])?]),
        (libc::SYS_tgkill, vec![all([is(0, own_pid)?])?]),
        (libc::SYS_prlimit64, limits),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_setrlimit, vec![all([is_not(0, word(RLIMIT_CORE))?])?]),
        (libc::SYS_prctl, operations.chain([tied]).collect::<Result<_>>()?),
    ])
}

/// A pipe holds Linux's memory, which no process limit counts. So its size stays.
fn descriptors() -> Result<Group> {
    let refused = FCNTL_SIGNALS.iter().chain(&[libc::F_SETPIPE_SZ]);
    let others = refused.map(|operation| is_not(1, word(*operation))).collect::<Result<Vec<_>>>()?;
    let of_itself = IOCTL.iter().map(|operation| all([is(1, *operation)?])).collect::<Result<_>>()?;
    Ok(vec![(libc::SYS_fcntl, vec![all(others)?]), (libc::SYS_ioctl, of_itself)])
}

/// If no connection is granted, the app's sockets are pairs. Their number limits the memory that they hold.
///
/// Sockets that an app accepts, and the ones on which it listens, belong to the machine's network and not to the zone's. So only
/// options of the list are set on them. The monitor hands a listening socket to the next run of the app too.
fn options(calls: &Calls) -> Result<Vec<SeccompRule>> {
    if calls.listens {
        return LISTENER_OPTIONS
            .iter()
            .map(|(level, option)| all([is(1, word(*level))?, is(2, word(*option))?]))
            .collect();
    }
    let (of_tcp, of_sockets) = (word(libc::IPPROTO_TCP), word(libc::SOL_SOCKET));
    let buffers = BUFFERS.iter().filter(|_| !calls.must_ask).map(|option| is_not(2, word(*option)));
    let sockets = std::iter::once(is(1, of_sockets)).chain(buffers).collect::<Result<Vec<_>>>()?;
    Ok(vec![
        all([is_not(1, of_tcp)?, is_not(1, of_sockets)?])?,
        all([is(1, of_tcp)?, is_not(2, word(libc::TCP_FASTOPEN_CONNECT))?])?,
        all(sockets)?,
    ])
}

/// The mode is the argument after the flags. It has a meaning only if the call creates a file.
fn opening(flags: u8) -> Result<Vec<SeccompRule>> {
    Ok(vec![all([without(flags, MAKES_A_FILE)?])?, all([without(flags + 1, SET_ID)?])?])
}

/// A pair of connected sockets, of a type that cannot send to another address.
fn unix_pair(kind: i32) -> Result<SeccompRule> {
    all([is(0, word(libc::AF_UNIX))?, masked(1, SOCKET_TYPE_BITS, word(kind))?])
}

fn all(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition> {
    // All of these are `int` for Linux, which ignores the upper half.
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)?)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)?)
}

fn without(argument: u8, bits: u64) -> Result<SeccompCondition> {
    masked(argument, bits, 0)
}
