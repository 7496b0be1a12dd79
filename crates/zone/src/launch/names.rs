//! Names of the system calls that an app may try and that are refused, for messages to the operator.
//!
//! In: a number. Out: its name, or the number. It decides nothing. A call that has no name here is denied like the
//! others.

/// The name in the manual, or the number.
pub(super) fn name(number: i64) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("number {number}"), |(_, name)| (*name).to_owned())
}

macro_rules! names {
    ($($call:ident $name:literal,)*) => { [$((libc::$call, $name),)*] };
}

/// The calls that are judged by their arguments, and others that apps are known to try.
const NAMES: [(i64, &str); 57] = names![
    SYS_accept "accept",
    SYS_accept4 "accept4",
    SYS_bind "bind",
    SYS_capset "capset",
    SYS_chroot "chroot",
    SYS_clock_adjtime "clock_adjtime",
    SYS_clone "clone",
    SYS_connect "connect",
    SYS_fanotify_init "fanotify_init",
    SYS_fchmod "fchmod",
    SYS_fchmodat "fchmodat",
    SYS_fchmodat2 "fchmodat2",
    SYS_fchown "fchown",
    SYS_fchownat "fchownat",
    SYS_fcntl "fcntl",
    SYS_fsetxattr "fsetxattr",
    SYS_inotify_add_watch "inotify_add_watch",
    SYS_inotify_init1 "inotify_init1",
    SYS_ioctl "ioctl",
    SYS_kill "kill",
    SYS_landlock_create_ruleset "landlock_create_ruleset",
    SYS_listen "listen",
    SYS_memfd_create "memfd_create",
    SYS_mknodat "mknodat",
    SYS_mlockall "mlockall",
    SYS_mmap "mmap",
    SYS_mprotect "mprotect",
    SYS_msgget "msgget",
    SYS_perf_event_open "perf_event_open",
    SYS_personality "personality",
    SYS_pidfd_open "pidfd_open",
    SYS_pidfd_send_signal "pidfd_send_signal",
    SYS_prctl "prctl",
    SYS_prlimit64 "prlimit64",
    SYS_quotactl "quotactl",
    SYS_rt_sigqueueinfo "rt_sigqueueinfo",
    SYS_sched_setaffinity "sched_setaffinity",
    SYS_sched_setscheduler "sched_setscheduler",
    SYS_seccomp "seccomp",
    SYS_semget "semget",
    SYS_sendmmsg "sendmmsg",
    SYS_sendmsg "sendmsg",
    SYS_sendto "sendto",
    SYS_setgid "setgid",
    SYS_setgroups "setgroups",
    SYS_setpgid "setpgid",
    SYS_setpriority "setpriority",
    SYS_setrlimit "setrlimit",
    SYS_setsockopt "setsockopt",
    SYS_setuid "setuid",
    SYS_setxattr "setxattr",
    SYS_shmget "shmget",
    SYS_socketpair "socketpair",
    SYS_tgkill "tgkill",
    SYS_tkill "tkill",
    SYS_userfaultfd "userfaultfd",
    SYS_vhangup "vhangup",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_name_has_its_number() {
        assert_eq!(name(100_000), "number 100000");
        assert_eq!(name(libc::SYS_kill), "kill");
    }
}
