//! Attempts with single system calls and small actions, and their results in a zone where nothing is granted.

use std::fs::{self, File};
use std::io;
use std::process::Command;

use crate::{End, close, ended_by, nothing_granted, run};

const SIGSYS: i32 = 31;

/// What an attempt must come to.
#[derive(Clone, Copy)]
enum Comes {
    /// It fails with this error.
    To(i32),
    /// Its process is killed for it.
    ToItsDeath,
    /// It works.
    Through,
}

use Comes::{Through, To, ToItsDeath};

type Attempt = (&'static str, fn() -> io::Result<()>, Comes);

/// Not every machine has it as a file.
const MEMORY: &str = "the memory of the machine";

/// What no app may do.
const DENIED: &[Attempt] = &[
    // The network.
    ("an internet socket", || socket(libc::AF_INET, libc::SOCK_STREAM), To(libc::EPERM)),
    ("a datagram socket", || socket(libc::AF_INET6, libc::SOCK_DGRAM), To(libc::EPERM)),
    ("a raw socket", || socket(libc::AF_INET, libc::SOCK_RAW), To(libc::EPERM)),
    ("a packet socket", || socket(libc::AF_PACKET, libc::SOCK_RAW), To(libc::EPERM)),
    ("a netlink socket", || socket(libc::AF_NETLINK, libc::SOCK_RAW), To(libc::EPERM)),
    ("a Unix socket", || socket(libc::AF_UNIX, libc::SOCK_STREAM), To(libc::EPERM)),
    ("a pair that addresses others", || pair(libc::SOCK_DGRAM), To(libc::EPERM)),
    ("connecting by sending", || send(libc::SYS_sendto, 4), To(libc::EPERM)),
    ("connecting by sending a message", || send(libc::SYS_sendmsg, 3), To(libc::EPERM)),
    ("connecting by sending messages", || send(libc::SYS_sendmmsg, 4), To(libc::EPERM)),
    (
        "connecting by an option",
        || {
            let option = [libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT].map(i64::from);
            call(libc::SYS_setsockopt, [0, option[0], option[1], 0, 0])
        },
        To(libc::EPERM),
    ),
    // Processes.
    ("a fork", || call(libc::SYS_clone, [i64::from(libc::SIGCHLD), 0, 0, 0, 0]), To(libc::EPERM)),
    ("a shell", || Command::new("/bin/sh").status().map(drop), To(libc::EPERM)),
    ("becoming a shell", || execute(c"/bin/sh"), To(libc::EPERM)),
    ("becoming a shell by execveat", || execute_at(libc::AT_FDCWD, c"/bin/sh"), To(libc::EPERM)),
    (
        "a thread in another namespace",
        || call(libc::SYS_clone, [namespace_thread(), 0, 0, 0, 0]),
        To(libc::EPERM),
    ),
    ("the newest clone", || call(libc::SYS_clone3, [0; 5]), To(libc::ENOSYS)),
    ("a signal to init", || call(libc::SYS_kill, [1, 9, 0, 0, 0]), To(libc::EPERM)),
    ("a signal to everybody", || call(libc::SYS_kill, [-1, 9, 0, 0, 0]), To(libc::EPERM)),
    ("a signal to its group", || call(libc::SYS_kill, [0, 9, 0, 0, 0]), To(libc::EPERM)),
    ("signals sent by Linux", || call(libc::SYS_fcntl, [0, 8, 1, 0, 0]), To(libc::EPERM)),
    ("outliving its parent", || call(libc::SYS_prctl, [1, 0, 0, 0, 0]), To(libc::EPERM)),
    ("tracing", || call(libc::SYS_ptrace, [16, 1, 0, 0, 0]), ToItsDeath),
    ("another's memory", || call(libc::SYS_process_vm_readv, [1, 0, 0, 0, 0]), ToItsDeath),
    ("init's memory as a file", || read("/proc/1/mem"), To(libc::ENOENT)),
    ("init's environment", || read("/proc/1/environ"), To(libc::ENOENT)),
    // Files.
    ("the users' passwords", || read("/etc/shadow"), To(libc::ENOENT)),
    ("the users' names", || read("/etc/passwd"), To(libc::ENOENT)),
    ("root's home", || read("/root/.bashrc"), To(libc::ENOENT)),
    (MEMORY, || read("/dev/mem"), To(libc::ENOENT)),
    ("the machine's settings", || read("/proc/sys/kernel/hostname"), To(libc::ENOENT)),
    ("control groups", || read("/sys/fs/cgroup"), To(libc::ENOENT)),
    ("a file in the root", || File::create("/x").map(drop), To(libc::EROFS)),
    ("a file in a home", || File::create("/home/x").map(drop), To(libc::ENOENT)),
    ("a file of the system's", || File::create("/usr/x").map(drop), To(libc::EROFS)),
    (
        "a device",
        || call(libc::SYS_mknodat, [-100, c"/usr/x".as_ptr() as i64, 0o20666, 0x101, 0]),
        To(libc::EPERM),
    ),
    ("a file for others to be its user by", || chmod(0o4755), To(libc::EPERM)),
    ("a file for others to be its group by", || chmod(0o2755), To(libc::EPERM)),
    ("the same by its descriptor", || call(libc::SYS_fchmod, [-1, 0o4755, 0, 0, 0]), To(libc::EPERM)),
    ("the same when it is made", || open(libc::O_CREAT | libc::O_WRONLY, 0o4755), To(libc::EPERM)),
    ("the same without a name", || open(libc::O_TMPFILE | libc::O_WRONLY, 0o2755), To(libc::EPERM)),
    (
        "the newest way to open a file",
        || call(libc::SYS_openat2, [-100, c"/usr".as_ptr() as i64, 0, 0, 0]),
        To(libc::ENOSYS),
    ),
    ("another owner", || call(libc::SYS_fchownat, [-100, c"/".as_ptr() as i64, 0, 0, 0]), To(libc::EPERM)),
    ("another root", || call(libc::SYS_chroot, [c"/usr".as_ptr() as i64, 0, 0, 0, 0]), To(libc::EPERM)),
    ("a mount", || call(libc::SYS_mount, [0; 5]), ToItsDeath),
    ("taking a mount away", || call(libc::SYS_umount2, [c"/usr".as_ptr() as i64, 2, 0, 0, 0]), ToItsDeath),
    ("a namespace", || call(libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0, 0, 0]), ToItsDeath),
    ("a file by its handle", || call(libc::SYS_open_by_handle_at, [-100, 0, 0, 0, 0]), ToItsDeath),
    // Memory.
    (
        "memory to write and execute",
        || map(libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE),
        To(libc::EPERM),
    ),
    (
        "executing what another mapping writes to",
        || map(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_SHARED),
        To(libc::EPERM),
    ),
    ("executing what was written", made_executable, To(libc::EPERM)),
    (
        "memory that no limit counts",
        || call(libc::SYS_memfd_create, [c"x".as_ptr() as i64, 0, 0, 0, 0]),
        To(libc::EPERM),
    ),
    // The machine.
    ("a kernel module", || call(libc::SYS_init_module, [0; 5]), ToItsDeath),
    ("a kernel module by its file", || call(libc::SYS_finit_module, [0; 5]), ToItsDeath),
    ("another kernel", || call(libc::SYS_kexec_load, [0; 5]), ToItsDeath),
    ("a program in the kernel", || call(libc::SYS_bpf, [0; 5]), ToItsDeath),
    ("a restart", || call(libc::SYS_reboot, [0; 5]), ToItsDeath),
    ("the time of day", || call(libc::SYS_settimeofday, [0; 5]), ToItsDeath),
    ("a clock", || call(libc::SYS_clock_settime, [0; 5]), ToItsDeath),
    ("a key", || call(libc::SYS_keyctl, [0; 5]), ToItsDeath),
    ("the kernel's log", || call(libc::SYS_syslog, [3, 0, 0, 0, 0]), ToItsDeath),
    ("counters of the machine", || call(libc::SYS_perf_event_open, [0; 5]), To(libc::EPERM)),
    ("calls in the background", || call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]), To(libc::ENOSYS)),
    ("faults handled by hand", || call(libc::SYS_userfaultfd, [0; 5]), To(libc::EPERM)),
    // Itself.
    ("being root", || call(libc::SYS_setuid, [0; 5]), To(libc::EPERM)),
    ("capabilities", || call(libc::SYS_capset, [0; 5]), To(libc::EPERM)),
    (
        "other cores",
        || call(libc::SYS_sched_setaffinity, [0, 8, c"\xff".as_ptr() as i64, 0, 0]),
        To(libc::EPERM),
    ),
    ("first place", || call(libc::SYS_setpriority, [0, 0, -20, 0, 0]), To(libc::EPERM)),
    ("more descriptors", more_descriptors, To(libc::EPERM)),
    (
        "a core dump after all",
        || {
            let less = rustix::process::Rlimit { current: Some(0), maximum: Some(1) };
            Ok(rustix::process::setrlimit(rustix::process::Resource::Core, less)?)
        },
        To(libc::EPERM),
    ),
    (
        "a larger pipe",
        || call(libc::SYS_fcntl, [0, libc::F_SETPIPE_SZ.into(), 1 << 20, 0, 0]),
        To(libc::EPERM),
    ),
    (
        "larger buffers of sockets",
        || {
            let option = [libc::SOL_SOCKET, libc::SO_SNDBUF].map(i64::from);
            call(libc::SYS_setsockopt, [0, option[0], option[1], 0, 0])
        },
        To(libc::EPERM),
    ),
    ("another filter", || call(libc::SYS_seccomp, [0; 5]), To(libc::EPERM)),
];

/// What every app needs.
const ALLOWED: &[Attempt] = &[
    (
        "a thread",
        || std::thread::spawn(|| ()).join().map_err(|_| io::Error::other("it did not end")),
        Through,
    ),
    ("memory", || map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE), Through),
    ("opening with a mode that means nothing", || open(libc::O_RDONLY, 0o7777), Through),
    ("a mode without another's rights", || chmod(0o1755), To(libc::EROFS)),
    ("memory to share", || map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED), Through),
    ("a pair of sockets", || pair(libc::SOCK_STREAM), Through),
    ("a library", || read("/usr/lib"), Through),
    ("random numbers", || read("/dev/urandom"), Through),
    ("nothing", || fs::write("/dev/null", "x"), Through),
    ("its own binary", || fs::metadata("/proc/self/exe").map(drop), Through),
    ("what it is itself", || read("/proc/self/status"), Through),
    ("its own thread", || read("/proc/thread-self/stat"), Through),
    ("its limit of core dumps", no_core, Through),
    ("the time", || call(libc::SYS_clock_gettime, [0, 0, 0, 0, 0]), To(libc::EFAULT)),
    ("a signal to itself", || call(libc::SYS_kill, [i64::from(std::process::id()), 0, 0, 0, 0]), Through),
];

/// What the operator is not told of: what libraries look for at every start, and what Linux refuses without asking.
const UNTOLD: [&str; 2] = ["control groups", "more descriptors"];

pub(crate) fn what_an_app_must_not_do_is_denied() {
    for attempt @ (name, _, comes) in DENIED {
        let told = check(attempt);
        // What is absent and what ends the app needs no line: libraries try the one, and of the other the end is told.
        let is_told = !matches!(comes, To(libc::ENOSYS) | ToItsDeath) && !UNTOLD.contains(name);
        // Nobody is kept from what the machine does not have.
        let is_told = is_told && (*name != MEMORY || fs::exists("/dev/mem").unwrap());
        assert_eq!(told.matches("\"denied\":").count(), usize::from(is_told), "{name}: {told}");
    }
}

pub(crate) fn what_an_app_lives_on_is_there() {
    for attempt in ALLOWED {
        assert_eq!(check(attempt), "", "{}", attempt.0);
    }
}

/// What the operator was told.
fn check((name, _, comes): &Attempt) -> String {
    let End { status, said, told } = run("attempt", name);
    let (expected_end, expected_words) = match comes {
        To(number) => ((Some(0), None), format!("{}\n", io::Error::from_raw_os_error(*number))),
        Through => ((Some(0), None), "done\n".to_owned()),
        ToItsDeath => ((None, Some(SIGSYS)), String::new()),
    };
    assert_eq!(said, expected_words, "{name}: {status:?}");
    assert_eq!(ended_by(status), expected_end, "{name}");
    told
}

pub(crate) fn play(name: &str) {
    let (_, attempt, _) = DENIED.iter().chain(ALLOWED).find(|(known, ..)| *known == name).unwrap();
    close(&nothing_granted());
    match attempt() {
        Ok(()) => println!("done"),
        Err(error) => println!("{error}"),
    }
}

fn call(number: i64, arguments: [i64; 5]) -> io::Result<()> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: each call of the tables above is denied before it does anything, or has arguments that do no harm.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, 0_i64) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn socket(family: i32, kind: i32) -> io::Result<()> {
    call(libc::SYS_socket, [family.into(), kind.into(), 0, 0, 0])
}

fn pair(kind: i32) -> io::Result<()> {
    let mut fds = [0_i32; 2];
    call(libc::SYS_socketpair, [libc::AF_UNIX.into(), kind.into(), 0, fds.as_mut_ptr() as i64, 0])
}

/// Sends nothing to nobody by descriptor 0, with the flags as the last of so many arguments.
fn send(number: i64, arguments: usize) -> io::Result<()> {
    let mut all = [0; 5];
    all[arguments - 1] = libc::MSG_FASTOPEN.into();
    call(number, all)
}

fn execute(path: &std::ffi::CStr) -> io::Result<()> {
    call(libc::SYS_execve, [path.as_ptr() as i64, 0, 0, 0, 0])
}

pub(crate) fn execute_at(folder: i32, path: &std::ffi::CStr) -> io::Result<()> {
    let words = [c"loader".as_ptr(), c"/bin/echo".as_ptr(), c"executed again".as_ptr(), std::ptr::null()];
    let nothing: [*const libc::c_char; 1] = [std::ptr::null()];
    let (words, nothing) = (words.as_ptr() as i64, nothing.as_ptr() as i64);
    let flags = i64::from(libc::AT_EMPTY_PATH);
    call(libc::SYS_execveat, [folder.into(), path.as_ptr() as i64, words, nothing, flags])
}

fn chmod(mode: i64) -> io::Result<()> {
    call(libc::SYS_fchmodat, [-100, c"/".as_ptr() as i64, mode, 0, 0])
}

fn open(flags: i32, mode: i64) -> io::Result<()> {
    call(libc::SYS_openat, [-100, c"/usr".as_ptr() as i64, flags.into(), mode, 0])
}

fn namespace_thread() -> i64 {
    i64::from(libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_NEWNET)
}

fn read(path: &str) -> io::Result<()> {
    File::open(path).map(drop)
}

fn map(protection: i32, kind: i32) -> io::Result<()> {
    let flags = i64::from(kind | libc::MAP_ANONYMOUS);
    call(libc::SYS_mmap, [0, 4096, protection.into(), flags, -1])
}

fn made_executable() -> io::Result<()> {
    let page: i64 = 4096;
    let memory = vec![0_u8; 8192];
    let address = (memory.as_ptr() as i64 + page - 1) / page * page;
    call(libc::SYS_mprotect, [address, page, i64::from(libc::PROT_READ | libc::PROT_EXEC), 0, 0])
}

/// 1 and not 0, which would let Linux pipe the memory to a program.
fn no_core() -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
    let is_none = (limit.current, limit.maximum) == (Some(1), Some(1));
    if is_none { Ok(()) } else { Err(io::Error::other(format!("{limit:?}"))) }
}

fn more_descriptors() -> io::Result<()> {
    let resource = rustix::process::Resource::Nofile;
    let more = rustix::process::Rlimit { current: Some(100_000), maximum: Some(100_000) };
    Ok(rustix::process::setrlimit(resource, more)?)
}
