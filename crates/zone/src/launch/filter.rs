//! Which system calls an app may make (seccomp(2)).
//!
//! In: what is granted ([`Calls`]). Out: filters in force for the calling process and all that it becomes.
//! It looks at numbers and arguments, never behind a pointer.
//!
//! Every call is one of five kinds:
//!
//! | kind | what happens | which |
//! |---|---|---|
//! | allowed | it goes to Linux | what native programs and Python live on |
//! | judged | by its arguments: allowed or as the others | `clone`, `mmap`, `prctl`, `kill`, `socketpair`, `chmod`, `sendto` … |
//! | asked | the launcher answers ([`broker`]) | `socket`, `connect`, `open`, `openat`; `execve`, `execveat` and `clone` of a process where none is granted |
//! | absent | `ENOSYS`, so that libraries take the older call, which can be judged | `clone3`, `openat2`, io_uring, what is newer than this list |
//! | hostile | the process is killed | what no app has an innocent reason for: `ptrace`, `mount`, `bpf`, `init_module` … |
//!
//! Everything else is `EPERM`, by the launcher's answer, so that it can say so to the operator; by the filter, where no launcher can be asked.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::opening::{MAKES_A_FILE, SET_ID};
use super::{GOES_ON_WHEN_ASKED, broker, is_linux, notify};

/// What the operator and the launcher decide about system calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// It may start processes and programs.
    pub(super) spawn: bool,
    /// Something is granted that only the launcher can do.
    pub(super) must_ask: bool,
    /// The process id of the app, the only one that it may signal if it has no others.
    pub(super) own_pid: i32,
    /// The descriptor that is executed, a number beyond those that the app can ever have; it is looked at only where nobody can be asked.
    pub(super) execute_fd: Option<i32>,
}

/// Allowed whatever their arguments are, on every kind of machine.
const ALLOWED: &[i64] = &[
    // Memory. Not memfd_create, shmget: memory that no limit of the process counts.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munmap,
    // Files and descriptors: the root, its mounts and Landlock say which.
    libc::SYS_chdir,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_linkat,
    libc::SYS_lseek,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_sendfile,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_write,
    libc::SYS_writev,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    // Sockets that it was handed or made as a pair; a new one is judged.
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    // Threads and itself.
    libc::SYS_capget,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setsid,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Signals to itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Time, to read and to wait for.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getitimer,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
];

/// The older forms of some of these, which newer machines were never given.
#[cfg(target_arch = "x86_64")]
const ALLOWED_OF_OLD: &[i64] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OF_OLD: &[i64] = &[];

/// Whoever is allowed to spawn has these besides.
const TO_SPAWN: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setpgid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// There is no innocent reason for an app to make these; whoever does is killed, and the operator sees SIGSYS.
const HOSTILE: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The view of files, and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Linux itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // Keys of the machine's users.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // The machine's time and names.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Answered as absent, so that libraries take the older call: these have their arguments where no filter looks.
const ABSENT: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The first number that was given out after this list was made, and how many of the next are answered as absent. From 424 on
/// numbers are the same on every kind of machine.
const NEWER: std::ops::Range<i64> = 453..512;

/// prctl(2) operations about the caller alone.
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

/// ioctl(2) operations about a descriptor itself. TIOCSTI, which types for others, is not among them.
const IOCTL: &[u64] =
    &[libc::FIOCLEX, libc::FIONBIO, libc::FIONCLEX, libc::FIONREAD, libc::TCGETS, libc::TIOCGWINSZ];

/// fcntl(2) operations by which Linux would send signals to whom the app names.
const FCNTL_SIGNALS: [i32; 3] = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX];

/// setsockopt(2) options by which a pair of sockets holds more of Linux's memory, which no limit of the process counts.
const BUFFERS: [i32; 4] = [libc::SO_SNDBUF, libc::SO_RCVBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE];

/// resource.h of Linux: the same on all machines that a node runs on.
const RLIMIT_CORE: i32 = 4;

// fcntl.h of Linux; libc has them not on every kind of machine.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

const CLONE_NEW: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// `MSG_FASTOPEN`: send to an address, and connect to it on the way (tcp(7)).
const FAST_OPEN: u64 = word(libc::MSG_FASTOPEN);

/// The lower four bits of socket(2)'s type; above them are flags.
const SOCKET_TYPE_BITS: u64 = 0xf;

/// The flags of clone(2) by which a process leaves the zone's namespaces.
pub(super) const NAMESPACES: u64 = word(CLONE_NEW);

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts the filters for an app into force. The calling process must not gain privileges any more.
///
/// The listener for the calls that the launcher answers goes over the socket to the launcher; nobody here keeps it. Out: whether there is one.
pub(super) fn install(calls: &Calls, to_launcher: Option<OwnedFd>) -> Result<bool, seccompiler::Error> {
    let hostile = HOSTILE.iter().map(|number| (*number, Vec::new())).collect();
    install_one(hostile, SeccompAction::Allow, SeccompAction::KillProcess)?;
    let absent = absent().map(|number| (number, Vec::new())).collect();
    install_one(absent, SeccompAction::Allow, SeccompAction::Errno(errno(libc::ENOSYS)))?;
    // Last, because it does not allow to install filters. Of several filters the strictest answer counts (seccomp(2)).
    match to_launcher.map(|socket| ask(calls, &socket)) {
        Some(Ok(())) => return Ok(true),
        Some(Err(error)) if calls.must_ask => return Err(error),
        // Before Linux 5.5 nobody can be asked; then what would be asked is denied.
        Some(Err(_)) | None => {}
    }
    install_one(allowed(calls, false)?, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)?;
    Ok(false)
}

/// Leaves to the calling process only what waiting for children takes; everything else fails.
pub(super) fn install_for_waiting() -> Result<(), seccompiler::Error> {
    install_only(&WAITING)
}

/// The same, and what the launcher needs to answer for an app.
pub(super) fn install_for_answering() -> Result<(), seccompiler::Error> {
    install_only(&[&WAITING[..], ANSWERING].concat())
}

fn install_only(numbers: &[i64]) -> Result<(), seccompiler::Error> {
    let rules = numbers.iter().map(|number| (*number, Vec::new())).collect();
    install_one(rules, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)
}

const ANSWERING: &[i64] = &[
    libc::SYS_clock_gettime,
    libc::SYS_connect,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_pread64,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_sigaltstack,
    libc::SYS_socket,
    libc::SYS_statx,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_ppoll,
];

const WAITING: [i64; 17] = [
    libc::SYS_brk,
    libc::SYS_close,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_kill,
    libc::SYS_munmap,
    libc::SYS_ppoll,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_tgkill,
    libc::SYS_wait4,
    libc::SYS_write,
];

fn install_one(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<(), seccompiler::Error> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: BpfProgram = SeccompFilter::new(rules, otherwise, matched, machine)?.try_into()?;
    seccompiler::apply_filter(&program)
}

fn absent() -> impl Iterator<Item = i64> {
    ABSENT.into_iter().chain(NEWER)
}

fn errno(number: i32) -> u32 {
    number.unsigned_abs()
}

/// The launcher answers from here on for all that is not allowed.
fn ask(calls: &Calls, to_launcher: &OwnedFd) -> Result<(), seccompiler::Error> {
    if !is_linux(GOES_ON_WHEN_ASKED) {
        return Err(seccompiler::Error::Seccomp(std::io::ErrorKind::Unsupported.into()));
    }
    let listener = notify::install(allowed(calls, true)?)?;
    let handed = broker::hand_over(&listener, to_launcher);
    handed.map_err(|errno| seccompiler::Error::Seccomp(errno.into()))
}

fn allowed(calls: &Calls, asks: bool) -> Result<Rules, seccompiler::Error> {
    let numbers = ALLOWED.iter().chain(ALLOWED_OF_OLD).copied();
    // The filter before this one answers for what is absent.
    let mut rules: Rules = numbers.chain(absent()).map(|number| (number, Vec::new())).collect();
    rules.extend(judged(calls)?);
    if asks {
        ASKED.iter().for_each(|number| drop(rules.remove(number)));
    }
    if calls.spawn {
        rules.extend(TO_SPAWN.iter().map(|number| (*number, Vec::new())));
    }
    Ok(rules)
}

/// Where the launcher can be asked, it is asked about these whatever their arguments are.
const ASKED: &[i64] = &[
    libc::SYS_execveat,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
];

/// What is allowed with some arguments: any of the rules of a call.
fn judged(calls: &Calls) -> Result<Rules, seccompiler::Error> {
    let (execute, write) = (word(libc::PROT_EXEC), word(libc::PROT_WRITE));
    let own_pid = word(calls.own_pid);
    let thread = word(libc::CLONE_THREAD);
    let cloned = if calls.spawn { (word(CLONE_NEW), 0) } else { (word(CLONE_NEW) | thread, thread) };
    let mut rules = Rules::from([
        // A mapping is written or executed, never both, and never one after the other; nor does one execute what another writes to.
        (
            libc::SYS_mmap,
            vec![
                all([without(2, execute)?])?,
                all([without(2, write)?, without(3, word(libc::MAP_SHARED))?])?,
            ],
        ),
        (libc::SYS_mprotect, vec![all([without(2, execute)?])?]),
        // TCP can connect without connect(2), which the launcher answers: by sending, and by an option.
        (libc::SYS_sendto, vec![all([without(3, FAST_OPEN)?])?]),
        (libc::SYS_sendmsg, vec![all([without(2, FAST_OPEN)?])?]),
        (libc::SYS_sendmmsg, vec![all([without(3, FAST_OPEN)?])?]),
        (libc::SYS_setsockopt, options(calls)?),
        // No file runs as whoever made it: others see what is written to `fs.write`, without the mount that takes it away here.
        (libc::SYS_fchmod, vec![all([without(1, SET_ID)?])?]),
        (libc::SYS_fchmodat, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_fchmodat2, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_openat, opening(2)?),
        // Threads, and processes for whom it is granted; never a namespace.
        (libc::SYS_clone, vec![all([masked(0, cloned.0, cloned.1)?])?]),
        (libc::SYS_kill, vec![all([is(0, own_pid)?])?]),
        (libc::SYS_tgkill, vec![all([is(0, own_pid)?])?]),
        // Only its own limits; they cannot be raised. That of core dumps cannot be lowered either: less than this little is more (`NO_CORE`).
        (
            libc::SYS_prlimit64,
            vec![
                all([is(0, 0)?, is_not(1, word(RLIMIT_CORE))?])?,
                all([is(0, 0)?, SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?])?,
            ],
        ),
        (
            libc::SYS_socketpair,
            [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(unix_pair).into_iter().collect::<Result<_, _>>()?,
        ),
        (
            libc::SYS_fcntl,
            vec![all(FCNTL_SIGNALS
                .iter()
                // A pipe holds memory of Linux's, which no limit of the process counts.
                .chain(&[libc::F_SETPIPE_SZ])
                .map(|operation| is_not(1, word(*operation)))
                .collect::<Result<Vec<_>, _>>()?)?],
        ),
        (libc::SYS_ioctl, IOCTL.iter().map(|operation| all([is(1, *operation)?])).collect::<Result<_, _>>()?),
        (
            libc::SYS_prctl,
            PRCTL.iter().map(|operation| all([is(0, word(*operation))?])).collect::<Result<_, _>>()?,
        ),
    ]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_setrlimit, vec![all([is_not(0, word(RLIMIT_CORE))?])?]),
        (libc::SYS_chmod, vec![all([without(1, SET_ID)?])?]),
        (libc::SYS_creat, vec![all([without(1, SET_ID)?])?]),
        (libc::SYS_open, opening(1)?),
    ]);
    // An app may tie itself to its parent, and not untie itself.
    let tied = all([is(0, word(libc::PR_SET_PDEATHSIG))?, is(1, word(libc::SIGKILL))?])?;
    rules.entry(libc::SYS_prctl).or_default().push(tied);
    if let Some(fd) = calls.execute_fd {
        rules.insert(libc::SYS_execveat, vec![all([is(0, word(fd))?, is(4, word(libc::AT_EMPTY_PATH))?])?]);
    }
    Ok(rules)
}

/// Where an app connects to nobody, its sockets are pairs, and what they hold is bounded by their number.
fn options(calls: &Calls) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let (of_tcp, of_sockets) = (word(libc::IPPROTO_TCP), word(libc::SOL_SOCKET));
    let buffers = BUFFERS.iter().filter(|_| !calls.must_ask).map(|option| is_not(2, word(*option)));
    let sockets = std::iter::once(is(1, of_sockets)).chain(buffers).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![
        all([is_not(1, of_tcp)?, is_not(1, of_sockets)?])?,
        all([is(1, of_tcp)?, is_not(2, word(libc::TCP_FASTOPEN_CONNECT))?])?,
        all(sockets)?,
    ])
}

/// The mode is the argument behind the flags, and means nothing unless a file is made.
fn opening(flags: u8) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    Ok(vec![all([without(flags, MAKES_A_FILE)?])?, all([without(flags + 1, SET_ID)?])?])
}

/// A pair of connected sockets of a type with which no other can be addressed.
fn unix_pair(kind: i32) -> Result<SeccompRule, seccompiler::Error> {
    all([is(0, word(libc::AF_UNIX))?, masked(1, SOCKET_TYPE_BITS, word(kind))?])
}

fn all(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    // All of these are `int` for Linux, which does not look at what is above.
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)?)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)?)
}

fn without(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::Error> {
    masked(argument, bits, 0)
}

/// A constant of Linux, none of which is negative, or a process id.
pub(super) const fn word(constant: i32) -> u64 {
    constant.unsigned_abs() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_both_allowed_and_hostile_or_listed_twice() {
        let calls = Calls { spawn: true, must_ask: true, own_pid: 2, execute_fd: Some(100) };
        let allowed = allowed(&calls, false).unwrap();
        for number in HOSTILE {
            assert!(!allowed.contains_key(number), "system call {number}");
        }
        let listed = ALLOWED.len() + ALLOWED_OF_OLD.len();
        let distinct: std::collections::BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_OF_OLD).collect();
        assert_eq!(distinct.len(), listed);
    }

    #[test]
    fn programs_and_other_processes_come_with_spawn_alone() {
        let calls = Calls { spawn: false, must_ask: false, own_pid: 2, execute_fd: None };
        let alone = allowed(&calls, false).unwrap();
        for number in [libc::SYS_execve, libc::SYS_execveat, libc::SYS_socket, libc::SYS_connect] {
            assert!(!alone.contains_key(&number), "system call {number}");
        }
        assert!(allowed(&Calls { spawn: true, ..calls }, false).unwrap().contains_key(&libc::SYS_execve));
    }

    #[test]
    fn what_is_asked_about_is_not_allowed_without_an_answer() {
        for spawn in [false, true] {
            let calls = Calls { spawn, must_ask: true, own_pid: 2, execute_fd: Some(100) };
            let (alone, asking) = (allowed(&calls, false).unwrap(), allowed(&calls, true).unwrap());
            assert!(asking.keys().all(|number| alone.contains_key(number)));
            let left: Vec<&i64> = alone.keys().filter(|number| !asking.contains_key(number)).collect();
            let programs = |number: &&&i64| ***number != libc::SYS_execveat || !spawn;
            assert!(ASKED.iter().filter(|number| programs(&number)).all(|number| left.contains(&number)));
            assert!(!asking.contains_key(&libc::SYS_socket) && !asking.contains_key(&libc::SYS_connect));
        }
    }
}
