//! The system call filter: which system calls an app may make (seccomp(2)).
//!
//! In: what is granted ([`Calls`]). Out: filters in force for the calling process and everything it executes.
//! It checks numbers and arguments, and never follows a pointer.
//!
//! Every call is one of five kinds:
//!
//! | kind | what happens | which |
//! |---|---|---|
//! | allowed | Linux executes it | what native programs and Python need |
//! | judged | allowed or treated as one of the others, by its arguments | `clone`, `mmap`, `prctl`, `kill`, `socketpair`, `chmod`, `sendto` … |
//! | asked | the launcher answers ([`broker`]) | `socket`, `connect`, `open`, `openat`; `execve`, `execveat` and `clone` of a process where none is granted |
//! | absent | `ENOSYS`, so that libraries use the older call, which the filter can judge | `clone3`, `openat2`, io_uring, calls newer than this list |
//! | hostile | the process is killed | calls that no app needs for an honest purpose: `ptrace`, `mount`, `bpf`, `init_module` … |
//!
//! All other calls get `EPERM`. The launcher answers them, so that it can report them to the operator. If no launcher
//! can be asked, the filter answers.

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
    /// Whether the app may start processes and programs.
    pub(super) spawn: bool,
    /// Whether something is granted that only the launcher can do.
    pub(super) must_ask: bool,
    /// The process id of the app. If the app has no other processes, it may signal only this one.
    pub(super) own_pid: i32,
    /// The descriptor that is executed. Its number is above those that the app can have. The filter checks it only if
    /// no launcher can be asked.
    pub(super) execute_fd: Option<i32>,
}

/// Allowed with all arguments, on every processor architecture.
const ALLOWED: &[i64] = &[
    // Memory. Not memfd_create and shmget: no process limit counts their memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munmap,
    // Files and descriptors: the root, its mounts and Landlock decide which.
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
    // Sockets that the app was given, or made as a pair. A new socket is judged.
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    // Threads, and the process itself.
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

/// Older forms of some of these calls. Newer architectures do not have them.
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

/// Allowed in addition for an app that may spawn.
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

/// No app needs these calls for an honest purpose. Linux kills the process that makes one, and the operator sees
/// SIGSYS.
const HOSTILE: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The view of the file system, and namespaces.
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

/// Answered as absent, so that libraries use the older call: their arguments are behind a pointer, where no filter
/// can look.
const ABSENT: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The first number that was assigned after this list was made, and how many of the next ones are answered as absent.
/// From 424 on, numbers are the same on all architectures.
const NEWER: std::ops::Range<i64> = 453..512;

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

/// From Linux's resource.h: the same on all architectures that a node supports.
const RLIMIT_CORE: i32 = 4;

// From Linux's fcntl.h: libc does not have them on all architectures.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

const CLONE_NEW: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// `MSG_FASTOPEN`: send to an address, and connect to it at the same time (tcp(7)).
const FAST_OPEN: u64 = word(libc::MSG_FASTOPEN);

/// The lower four bits of the type in socket(2). The bits above are flags.
const SOCKET_TYPE_BITS: u64 = 0xf;

/// The flags of clone(2) that put a process into other namespaces.
pub(super) const NAMESPACES: u64 = word(CLONE_NEW);

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts the filters for an app into force. The calling process must not be able to gain privileges any more.
///
/// The listener for the calls that the launcher answers is sent over the socket. This process does not keep it.
/// Returns whether a listener exists.
pub(super) fn install(calls: &Calls, to_launcher: Option<OwnedFd>) -> Result<bool, seccompiler::Error> {
    let hostile = HOSTILE.iter().map(|number| (*number, Vec::new())).collect();
    install_one(hostile, SeccompAction::Allow, SeccompAction::KillProcess)?;
    let absent = absent().map(|number| (number, Vec::new())).collect();
    install_one(absent, SeccompAction::Allow, SeccompAction::Errno(errno(libc::ENOSYS)))?;
    // Last, because it does not allow the installation of filters. Of several filters the strictest answer counts
    // (seccomp(2)).
    match to_launcher.map(|socket| ask(calls, &socket)) {
        Some(Ok(())) => return Ok(true),
        Some(Err(error)) if calls.must_ask => return Err(error),
        // Before Linux 5.5 a launcher cannot be asked. Then the calls that would be asked are denied.
        Some(Err(_)) | None => {}
    }
    install_one(allowed(calls, false)?, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)?;
    Ok(false)
}

/// Allows the calling process only what it needs to wait for children. All other calls fail.
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

/// From here on the launcher answers all calls that are not allowed.
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
    // The filter installed before this one answers the absent calls.
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

/// If the launcher can be asked, it is asked about these calls with all arguments.
const ASKED: &[i64] = &[
    libc::SYS_execveat,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
];

/// Calls that are allowed with some arguments. One matching rule of a call is enough.
fn judged(calls: &Calls) -> Result<Rules, seccompiler::Error> {
    let (execute, write) = (word(libc::PROT_EXEC), word(libc::PROT_WRITE));
    let own_pid = word(calls.own_pid);
    let thread = word(libc::CLONE_THREAD);
    let cloned = if calls.spawn { (word(CLONE_NEW), 0) } else { (word(CLONE_NEW) | thread, thread) };
    let mut rules = Rules::from([
        // A mapping is writable or executable, never both, and never first one and then the other. A process cannot
        // execute what another process writes to.
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
        // No file may get a set-user-id or set-group-id bit: others see what is written to `fs.write`, without the
        // mount option that disables the bit here.
        (libc::SYS_fchmod, vec![all([without(1, SET_ID)?])?]),
        (libc::SYS_fchmodat, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_fchmodat2, vec![all([without(2, SET_ID)?])?]),
        (libc::SYS_openat, opening(2)?),
        // Threads, and processes if they are granted. Never a namespace.
        (libc::SYS_clone, vec![all([masked(0, cloned.0, cloned.1)?])?]),
        (libc::SYS_kill, vec![all([is(0, own_pid)?])?]),
        (libc::SYS_tgkill, vec![all([is(0, own_pid)?])?]),
        // Only its own limits, and they cannot be raised. The core dump limit cannot be lowered either: 0 would allow
        // more than 1 (`NO_CORE`).
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
                // A pipe holds Linux's memory, which no process limit counts.
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
    // An app may request to die with its parent, but not withdraw that.
    let tied = all([is(0, word(libc::PR_SET_PDEATHSIG))?, is(1, word(libc::SIGKILL))?])?;
    rules.entry(libc::SYS_prctl).or_default().push(tied);
    if let Some(fd) = calls.execute_fd {
        rules.insert(libc::SYS_execveat, vec![all([is(0, word(fd))?, is(4, word(libc::AT_EMPTY_PATH))?])?]);
    }
    Ok(rules)
}

/// If no connection is granted, the app's sockets are pairs. Their number limits the memory that they hold.
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

/// The mode is the argument after the flags. It has a meaning only if the call creates a file.
fn opening(flags: u8) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    Ok(vec![all([without(flags, MAKES_A_FILE)?])?, all([without(flags + 1, SET_ID)?])?])
}

/// A pair of connected sockets, of a type that cannot send to another address.
fn unix_pair(kind: i32) -> Result<SeccompRule, seccompiler::Error> {
    all([is(0, word(libc::AF_UNIX))?, masked(1, SOCKET_TYPE_BITS, word(kind))?])
}

fn all(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    // All of these are `int` for Linux, which ignores the upper half.
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
