//! Real child processes in a zone: each limit stops its own process and nothing else.
//!
//! The test starts itself again in a role (`launch ROLE`). The role confines its process, exceeds a limit, and writes
//! its result to standard output. There is no libtest harness, because a role must be alone in its process.

// Without the harness nothing here is `cfg(test)`, which allows unwrap in other tests.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use zone::launch::{self, Code};
use zone::{Confinement, Limits, Sandbox};

const SIGABRT: i32 = 6;
const SIGXFSZ: i32 = 25;

struct End {
    status: ExitStatus,
    said: String,
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    if let Some(role) = args.next().filter(|role| role.starts_with("role-")) {
        return play(&role);
    }
    memory_beyond_the_limit_ends_the_process_alone();
    memory_within_the_limit_is_there();
    one_descriptor_too_many_is_refused_with_emfile();
    a_file_beyond_the_limit_ends_the_process();
    the_limits_stay_when_the_process_becomes_another_program();
    a_program_that_is_not_there_is_an_error_and_not_an_exit();
    the_zone_has_no_terminal_no_privileges_to_gain_and_no_readable_files();
    a_limit_of_processes_holds_or_the_operator_is_told_why_not();
    println!("launch: all zones held");
}

fn run(role: &str) -> End {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this).arg(role).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    End { status: output.status, said: String::from_utf8(output.stdout).unwrap() }
}

fn memory_beyond_the_limit_ends_the_process_alone() {
    let end = run("role-allocate-too-much");
    assert_eq!(end.status.signal(), Some(SIGABRT), "{:?} {}", end.status, end.said);
    assert_eq!(end.said, "closed\n", "it came further than its memory goes");
}

fn memory_within_the_limit_is_there() {
    let end = run("role-allocate-enough");
    assert!(end.status.success(), "{:?}", end.status);
    assert_eq!(end.said, "closed\nallocated\n");
}

fn one_descriptor_too_many_is_refused_with_emfile() {
    let end = run("role-open-files");
    assert!(end.status.success(), "{:?}", end.status);
    assert_eq!(end.said, "closed\nhighest Some(19), then Some(24)\n");
}

fn a_file_beyond_the_limit_ends_the_process() {
    let end = run("role-write-a-file");
    assert_eq!(end.status.signal(), Some(SIGXFSZ), "{:?}", end.status);
    assert_eq!(end.said, "closed\n4096 written\n");
}

fn the_limits_stay_when_the_process_becomes_another_program() {
    let end = run("role-become-a-shell");
    assert!(end.status.success(), "{:?}", end.status);
    assert_eq!(end.said, "closed\n20 0\n");
}

fn a_program_that_is_not_there_is_an_error_and_not_an_exit() {
    let end = run("role-become-nothing");
    assert!(end.status.success(), "{:?}", end.status);
    let sentence = "the sandbox of the zone is not complete (the app's code): /nowhere: ";
    assert!(end.said.starts_with(sentence) && end.said.contains("the app is not started"), "{}", end.said);
}

fn the_zone_has_no_terminal_no_privileges_to_gain_and_no_readable_files() {
    let end = run("role-describe");
    assert!(end.status.success(), "{:?}", end.status);
    assert_eq!(end.said, "closed\nsession own, NoNewPrivs 1, umask 0077\n");
}

fn a_limit_of_processes_holds_or_the_operator_is_told_why_not() {
    let end = run("role-limit-processes");
    assert!(end.status.success(), "{:?}", end.status);
    // EAGAIN, for a thread as for a process.
    let refused = "a second thread: Some(11)\n";
    let told = "processes is not enforced: the app has neither its own user nor its own control group, and Linux counts per user or group\n";
    assert!([refused, told].contains(&end.said.as_str()), "{}", end.said);
}

/// The zone of a role; it writes files where the test's user does.
fn confinement(limits: Limits, code: Code) -> Confinement {
    let mut sandbox = Sandbox { own_user: false, ..Sandbox::default() };
    sandbox.fs.write.push(std::env::temp_dir());
    Confinement {
        limits,
        sandbox,
        code,
        user: None,
        cgroups: Vec::new(),
        others_write: Vec::new(),
        known_gaps: Vec::new(),
    }
}

fn play(role: &str) {
    if role == "role-limit-processes" {
        return limit_processes();
    }
    let limits = Limits { memory_bytes: 64 << 20, open_files: 20, file_bytes: 4096, ..Limits::default() };
    let shell = || {
        let args = ["-c", "echo $(ulimit -n) $(ulimit -c)"].map(OsString::from);
        Code::Program { path: "/bin/sh".into(), args: args.into() }
    };
    let code = match role {
        "role-become-a-shell" => shell(),
        "role-become-nothing" => Code::Program { path: "/nowhere".into(), args: Vec::new() },
        _ => Code::Here,
    };
    let mut confinement = confinement(limits, code);
    // The shell's substitution is a process.
    confinement.sandbox.spawn = role == "role-become-a-shell";
    let confined = match launch::confine(&confinement) {
        Ok(confined) => confined,
        Err(error) => return println!("{error}"),
    };
    println!("closed");
    match role {
        "role-allocate-too-much" => allocate(65 << 20),
        "role-allocate-enough" => allocate(32 << 20),
        "role-open-files" => open_files(),
        "role-write-a-file" => write_a_file(),
        "role-become-a-shell" => panic!("{}", confined.r#become()),
        "role-describe" => describe(),
        other => panic!("no role {other}"),
    }
}

fn limit_processes() {
    // Its own launcher and init count where the user is theirs too.
    let limits = Limits { processes: Some(1), ..Limits::default() };
    let confined = launch::confine(&confinement(limits, Code::Here)).unwrap();
    match confined.not_enforced().iter().find(|gap| gap.limit == "processes") {
        Some(gap) => println!("{gap}"),
        None => {
            let refused =
                std::thread::Builder::new().spawn(|| ()).err().and_then(|error| error.raw_os_error());
            println!("a second thread: {refused:?}");
        }
    }
}

fn allocate(bytes: usize) {
    let memory = vec![1u8; bytes];
    assert!(std::hint::black_box(&memory).iter().all(|byte| *byte == 1));
    println!("allocated");
}

fn open_files() {
    let mut open = Vec::new();
    let error = loop {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
    };
    // The limit applies to the highest descriptor number. Some descriptors may have been open when the test started.
    let highest = open.iter().map(AsRawFd::as_raw_fd).max();
    println!("highest {highest:?}, then {:?}", error.raw_os_error());
}

fn write_a_file() {
    let path = std::env::temp_dir().join(format!("burnet-launch-{}", std::process::id()));
    let mut file = File::create(&path).unwrap();
    // It has a descriptor, so its name can go before the signal comes.
    std::fs::remove_file(&path).unwrap();
    file.write_all(&[0; 4096]).unwrap();
    println!("4096 written");
    file.write_all(&[0; 1]).unwrap();
}

fn describe() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let own = rustix::process::getsid(None).unwrap() == rustix::process::getpid();
    println!(
        "session {}, NoNewPrivs {}, umask {}",
        if own { "own" } else { "the parent's" },
        field("NoNewPrivs:"),
        field("Umask:")
    );
}
