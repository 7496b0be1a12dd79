//! Zones from start to end: their processes, what ends together with them, and what can be granted to them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use zone::cgroup::NodeGroups;
use zone::sandbox::Enforce;
use zone::{Confinement, Limits, launch};

use crate::{APP_USER, End, close, ended_by, is_running, nothing_granted, program, run};

const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGTERM: i32 = 15;

pub(crate) fn hold() {
    the_zone_has_nothing_of_the_machine();
    a_program_is_executed_once_and_no_other_after_it();
    the_end_of_the_app_is_what_the_monitor_sees();
    whom_an_app_leaves_behind_ends_with_it();
    a_signal_to_the_launcher_reaches_the_app();
    a_signal_that_comes_early_is_not_lost();
    nobody_outlives_the_launcher();
    what_is_granted_is_there_and_no_more();
    a_grant_of_nothing_is_an_error_that_names_it();
    a_link_that_another_could_make_is_not_followed();
    strict_means_that_nothing_is_left_out();
    pinned_cores_stay();
    the_processes_of_a_whole_zone_are_counted();
    connections_go_where_they_are_granted_and_nowhere_else();
    what_is_refused_is_said_to_the_operator();
}

/// Another app may write `theirs`, and makes links in it to what is nobody's; the operator granted what lies there.
fn a_link_that_another_could_make_is_not_followed() {
    let folder = std::env::temp_dir().join(format!("burnet-links-{}", std::process::id()));
    for name in ["theirs/plain", "secret", "own"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("secret/file"), "secret").unwrap();
    fs::write(folder.join("theirs/plain/file"), "plain").unwrap();
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(folder.join(to), folder.join(at)).unwrap();
    link("secret", "theirs/link");
    link("secret", "own/link");
    link("theirs/link", "own/further");
    if geteuid().is_root() {
        link("secret", "own/of-another");
        std::os::unix::fs::lchown(folder.join("own/of-another"), Some(APP_USER + 1), None).unwrap();
    }
    let end = |which: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["live", "follow a link"])
            .env("BURNET_TEST_FOLDER", &folder)
            .env("BURNET_TEST_GRANT", folder.join(which))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let planted = |which: &str| {
        let said = end(which);
        let why = format!(
            "{} is a symbolic link, which lies in {}, which another app may change",
            folder.join("theirs/link").display(),
            folder.join("theirs").display()
        );
        assert!(said.contains(&why), "{which}: {said}");
    };
    planted("theirs/link");
    planted("theirs/link/file");
    planted("own/further/file");
    assert_eq!(end("theirs/plain/file"), "plain\n");
    assert_eq!(end("own/link/file"), "secret\n");
    if geteuid().is_root() {
        let said = end("own/of-another/file");
        assert!(said.contains(&format!("was created by the user {} of an app", APP_USER + 1)), "{said}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

fn follow_a_link() {
    let path = |name: &str| std::path::PathBuf::from(std::env::var_os(name).unwrap());
    let granted = path("BURNET_TEST_GRANT");
    let mut confinement = nothing_granted();
    confinement.others_write = vec![path("BURNET_TEST_FOLDER").join("theirs")];
    confinement.sandbox.fs.read = vec![granted.clone()];
    match launch::confine(&confinement) {
        Ok(_) => println!("{}", fs::read_to_string(granted).unwrap()),
        Err(error) => println!("{error}"),
    }
}

fn said(name: &str) -> String {
    let End { status, said, .. } = run("live", name);
    assert_eq!(ended_by(status), (Some(0), None), "{name}: {said}");
    said
}

fn the_zone_has_nothing_of_the_machine() {
    let user = if geteuid().is_root() { APP_USER } else { geteuid().as_raw() };
    let expected = format!(
        "user {user}\nprocesses 2\nhost zone\ninterfaces lo\n\
         CapInh 0 CapPrm 0 CapEff 0 CapAmb 0 Seccomp 2 NoNewPrivs 1\ndescriptors 0 1 2\n"
    );
    assert_eq!(said("describe"), expected);
}

fn describe() {
    close(&nothing_granted());
    println!("user {}", geteuid().as_raw());
    println!("processes {}", numbers("/proc"));
    println!("host {}", rustix::system::uname().nodename().to_str().unwrap());
    let devices = fs::read_to_string("/proc/self/net/dev").unwrap();
    let names = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    println!("interfaces {}", names.collect::<Vec<_>>().join(" "));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        format!("{name} {:x}", u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap())
    };
    let fields = ["CapInh", "CapPrm", "CapEff", "CapAmb", "Seccomp", "NoNewPrivs"].map(field);
    println!("{}", fields.join(" "));
    let open = numbers("/proc/self/fd");
    // The last is the listing's own.
    println!("descriptors {}", open.rsplit_once(' ').unwrap().0);
}

fn numbers(folder: &str) -> String {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut numbers: Vec<u32> = names.filter_map(|name| name.to_str().unwrap().parse().ok()).collect();
    numbers.sort_unstable();
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn a_program_is_executed_once_and_no_other_after_it() {
    assert_eq!(said("become the probe"), "executed\n");
    assert_eq!(said("become the probe, and more"), "refused 1\n");
    // A shell's exit status when it can neither fork nor execute.
    for (name, code) in [("a shell that forks", 2), ("a shell that executes", 126)] {
        let End { status, said, .. } = run("live", name);
        assert_eq!((ended_by(status), said.as_str()), ((Some(code), None), "it runs\n"), "{name}");
    }
}

/// By the descriptor that the launcher executed, which does not count beside an absolute path; the loader executes what it is told.
pub(crate) fn execute_again() {
    let loaders = [c"/lib64/ld-linux-x86-64.so.2", c"/lib/ld-linux-aarch64.so.1"];
    let is_there = |loader: &&&std::ffi::CStr| fs::exists(loader.to_str().unwrap()).unwrap();
    let loader = loaders.iter().find(is_there).expect("the loader that loaded this");
    let number = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap();
    let error = crate::attempts::execute_at(i32::try_from(number).unwrap(), loader).unwrap_err();
    println!("refused {}", error.raw_os_error().unwrap());
}

fn the_end_of_the_app_is_what_the_monitor_sees() {
    for (name, expected) in [
        ("exit with 7", (Some(7), None)),
        ("a segmentation fault", (None, Some(SIGSEGV))),
        ("kill itself", (None, Some(SIGKILL))),
    ] {
        assert_eq!(ended_by(run("live", name).status), expected, "{name}");
    }
}

fn become_shell(script: &str) -> ! {
    let script = format!("exec 2> /dev/null; echo it runs; {script}");
    let code = program("/bin/sh", &["-c", &script]);
    panic!("{}", close(&Confinement { code, ..nothing_granted() }).r#become());
}

/// A number that nobody else sleeps for, as a word to find the sleeper by.
fn sleeper(parent: u32) -> String {
    format!("10000{parent}")
}

fn whom_an_app_leaves_behind_ends_with_it() {
    let end = run("live", "leave somebody behind");
    assert_eq!(ended_by(end.status), (Some(3), None), "{}", end.said);
    let sleeper = sleeper(end.said.trim().parse().unwrap());
    wait_until(|| !is_running(&sleeper));
}

fn a_signal_to_the_launcher_reaches_the_app() {
    let mut zone = start("wait");
    signal(&zone, Signal::TERM);
    assert_eq!(ended_by(zone.wait().unwrap()), (None, Some(SIGTERM)));
}

/// At whichever stage of its start the zone is: for a moment its processes are of different users, who may not signal each other.
fn a_signal_that_comes_early_is_not_lost() {
    for after_us in (0..30_000).step_by(500) {
        let mut zone = spawn("wait");
        std::thread::sleep(std::time::Duration::from_micros(after_us));
        signal(&zone, Signal::TERM);
        wait_until(|| zone.try_wait().unwrap().is_some());
        assert_eq!(ended_by(zone.wait().unwrap()), (None, Some(SIGTERM)), "{after_us} us");
    }
}

fn nobody_outlives_the_launcher() {
    let mut zone = start("wait with others");
    signal(&zone, Signal::KILL);
    assert_eq!(ended_by(zone.wait().unwrap()), (None, Some(SIGKILL)));
    // The processes in the zone have the other end.
    let mut rest = Vec::new();
    zone.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    let sleeper = sleeper(zone.id());
    wait_until(|| !is_running(&sleeper));
}

fn what_is_granted_is_there_and_no_more() {
    let folder = std::env::temp_dir().join(format!("burnet-granted-{}", std::process::id()));
    for name in ["read", "write", "neither"] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("file"), name).unwrap();
        open_to_all(&folder.join(name));
        open_to_all(&folder.join(name).join("file"));
    }
    open_to_all(&folder);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["live", "use what is granted"])
        .env("BURNET_TEST_FOLDER", &folder)
        .output()
        .unwrap();
    let left = fs::read_to_string(folder.join("write").join("new"));
    fs::remove_dir_all(&folder).unwrap();
    let expected = "read read, no more\nwrite: writes, makes files\nneither: NotFound\nno code from there: PermissionDenied\n";
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(left.unwrap(), "made in the zone");
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

fn use_what_is_granted() {
    let folder = std::path::PathBuf::from(std::env::var_os("BURNET_TEST_FOLDER").unwrap());
    let mut confinement = nothing_granted();
    confinement.sandbox.fs.read.push(folder.join("read"));
    confinement.sandbox.fs.write.push(folder.join("write"));
    confinement.sandbox.spawn = true;
    close(&confinement);
    let file = |name: &str| folder.join(name).join("file");
    let refused = fs::write(file("read"), "x").unwrap_err().kind();
    assert!(matches!(refused, std::io::ErrorKind::ReadOnlyFilesystem), "{refused:?}");
    println!("read {}, no more", fs::read_to_string(file("read")).unwrap());
    fs::write(file("write"), "x").unwrap();
    fs::write(folder.join("write").join("new"), "made in the zone").unwrap();
    println!("write: writes, makes files");
    println!("neither: {:?}", fs::read(file("neither")).unwrap_err().kind());
    println!("no code from there: {:?}", Command::new(file("write")).status().unwrap_err().kind());
}

fn a_grant_of_nothing_is_an_error_that_names_it() {
    assert!(
        said("be granted nothing")
            .starts_with("the sandbox of the zone is not complete (fs.read): /nowhere: ")
    );
}

fn strict_means_that_nothing_is_left_out() {
    let answer = said("be strict");
    let refused = "own_user is not enforced: only a node that runs as root can give each app its own user";
    assert!(answer.contains(if geteuid().is_root() { "closed" } else { refused }), "{answer}");
}

fn pinned_cores_stay() {
    assert_eq!(said("be pinned"), "core 0 alone\n");
}

/// The limit, of which launcher and init take none, and the shell itself one.
const PROCESSES: u32 = 8;

fn the_processes_of_a_whole_zone_are_counted() {
    let read = |path: &str| fs::read_to_string(path).unwrap();
    let node =
        NodeGroups::find(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), std::process::id()).make();
    let limits = Limits { processes: Some(PROCESSES), ..Limits::default() };
    let (mut groups, gaps) = node.zone("counted.1", &limits);
    let folders: Vec<&str> = groups.folders().iter().map(|folder| folder.to_str().unwrap()).collect();
    if folders.is_empty() {
        let why: Vec<_> = gaps.iter().map(ToString::to_string).collect();
        return println!("left out: no control group can be made here ({})", why.join("; "));
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["live", "count to twenty"])
        .env("BURNET_TEST_GROUPS", folders.join(":"))
        .output()
        .unwrap();
    let expected: String = (1..PROCESSES).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    wait_until(|| groups.remove());
    node.remove();
}

/// A listener that sends back what it is sent, once for each connection.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut word = [0; 5];
            // A peer that was killed meanwhile is the test's own to notice.
            let _ = connection.read_exact(&mut word).and_then(|()| connection.write_all(&word));
        }
    });
    address
}

/// An address at which nobody listens.
fn deserted() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// An address that accepts no connection, so that a client waits. It stays so while the sockets exist.
fn crowded() -> (SocketAddr, Vec<OwnedFd>) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket =
        || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
    let listener = socket();
    rustix::net::bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
    let mut sockets = vec![listener];
    for _ in 0..4 {
        sockets.push(socket());
        // The first are connected at once, those behind them wait.
        let _ = rustix::net::connect(sockets.last().unwrap(), &address);
    }
    (address, sockets)
}

fn connections_go_where_they_are_granted_and_nowhere_else() {
    let (granted, other, deserted) = (echo(), echo(), deserted());
    let (crowded, _crowd) = crowded();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["live", "connect"])
        .env("BURNET_TEST_PLACES", format!("{granted} {other} {deserted} {crowded}"))
        .output()
        .unwrap();
    let expected = "granted: hello\nwithout waiting: hello\nfrom a thread: hello\nother: PermissionDenied\nother, by sending: Err(PermissionDenied)\n\
                    deserted: ConnectionRefused\ndatagrams: PermissionDenied\nlistening: PermissionDenied\n";
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{complaints}");
    assert!(
        complaints.contains(&format!(
            "zone: {{\"denied\":\"connecting to {other} is not granted by net.connect\",\"count\":1}}\n"
        )),
        "{complaints}"
    );
}

fn connect() {
    let places = std::env::var("BURNET_TEST_PLACES").unwrap();
    let places: Vec<SocketAddr> = places.split(' ').map(|place| place.parse().unwrap()).collect();
    let [granted, other, deserted, crowded] = places[..] else { panic!("{places:?}") };
    let mut confinement = nothing_granted();
    confinement.sandbox.net.connect = vec![granted, deserted, crowded];
    close(&confinement);
    println!("granted: {}", hello(TcpStream::connect(granted).unwrap()));
    println!("without waiting: {}", hello(connect_without_waiting(granted)));
    let from_a_thread = std::thread::spawn(move || hello(TcpStream::connect(granted).unwrap()));
    println!("from a thread: {}", from_a_thread.join().unwrap());
    println!("other: {:?}", TcpStream::connect(other).unwrap_err().kind());
    println!("other, by sending: {:?}", connect_by_sending(crowded, other).map_err(|errno| errno.kind()));
    println!("deserted: {:?}", TcpStream::connect(deserted).unwrap_err().kind());
    println!("datagrams: {:?}", UdpSocket::bind("127.0.0.1:0").unwrap_err().kind());
    println!("listening: {:?}", TcpListener::bind("127.0.0.1:0").unwrap_err().kind());
}

fn hello(mut connection: TcpStream) -> String {
    connection.write_all(b"hello").unwrap();
    let mut word = String::new();
    connection.read_to_string(&mut word).unwrap();
    word
}

/// TCP's fast open, on the launcher's socket when its connection was given up.
fn connect_by_sending(given_up: SocketAddr, to: SocketAddr) -> rustix::io::Result<usize> {
    use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    assert_eq!(rustix::net::connect(&socket, &given_up), Err(rustix::io::Errno::INPROGRESS));
    rustix::net::shutdown(&socket, Shutdown::Both)?;
    rustix::io::ioctl_fionbio(&socket, false)?;
    let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN.unsigned_abs());
    rustix::net::sendto(&socket, b"hello", flags, &to)
}

fn connect_without_waiting(to: SocketAddr) -> TcpStream {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    match rustix::net::connect(&socket, &to) {
        Ok(()) => {}
        Err(errno) => assert_eq!(errno, rustix::io::Errno::INPROGRESS),
    }
    poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None).unwrap();
    let connection = TcpStream::from(socket);
    assert_eq!(connection.take_error().unwrap().map(|error| error.kind()), None);
    connection.set_nonblocking(false).unwrap();
    connection
}

fn what_is_refused_is_said_to_the_operator() {
    for (attempt, expected) in [
        (
            "an internet socket",
            "zone: {\"denied\":\"a socket of family 2, type 1 is not granted: net.connect grants nothing\",\"count\":1}\n",
        ),
        (
            "becoming a shell",
            "zone: {\"denied\":\"starting a program is not granted: spawn is false\",\"count\":1}\n",
        ),
        ("a fork", "zone: {\"denied\":\"starting a process is not granted: spawn is false\",\"count\":1}\n"),
    ] {
        let output =
            Command::new(std::env::current_exe().unwrap()).args(["attempt", attempt]).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected, "{attempt}");
    }
}

fn count_to_twenty() {
    let groups = std::env::var("BURNET_TEST_GROUPS").unwrap();
    let script = "exec 2> /dev/null; for i in $(seq 20); do sleep 1000 > /dev/null & echo $i; done";
    let mut confinement = nothing_granted();
    confinement.limits.processes = None;
    confinement.sandbox.spawn = true;
    confinement.cgroups = groups.split(':').map(Into::into).collect();
    confinement.code = program("/bin/sh", &["-c", script]);
    panic!("{}", close(&confinement).r#become());
}

pub(crate) fn play(name: &str) {
    match name {
        "describe" => describe(),
        "become the probe" => become_probe(&["probe"]),
        "become the probe, and more" => become_probe(&["probe", "again"]),
        "a shell that forks" => become_shell("(echo a child)"),
        "a shell that executes" => become_shell("exec /bin/true"),
        "exit with 7" | "a segmentation fault" | "kill itself" => end_as(name),
        "leave somebody behind" => {
            println!("{}", std::process::id());
            let word = sleeper(std::process::id());
            become_shell_that_spawns(&format!("setsid sleep {word} > /dev/null & exit 3"));
        }
        "wait" => {
            close(&nothing_granted());
            println!("ready");
            std::thread::park();
        }
        "wait with others" => {
            let word = sleeper(std::process::id());
            become_shell_that_spawns(&format!("sleep {word} & echo ready; sleep 1000"));
        }
        "use what is granted" => use_what_is_granted(),
        "follow a link" => follow_a_link(),
        "be granted nothing" => {
            let mut confinement = nothing_granted();
            confinement.sandbox.fs.read.push("/nowhere".into());
            println!("{}", launch::confine(&confinement).unwrap_err());
        }
        "be strict" => be_strict(),
        "connect" => connect(),
        "listen" => crate::listening::listen(),
        "listen without the grant" => crate::listening::listen_without_the_grant(),
        "count to twenty" => count_to_twenty(),
        "be pinned" => be_pinned(),
        other => panic!("no life {other}"),
    }
}

fn become_probe(args: &[&str]) -> ! {
    let code = program(std::env::current_exe().unwrap(), args);
    panic!("{}", close(&Confinement { code, ..nothing_granted() }).r#become());
}

fn become_shell_that_spawns(script: &str) -> ! {
    let mut confinement = nothing_granted();
    confinement.sandbox.spawn = true;
    confinement.code = program("/bin/sh", &["-c", script]);
    panic!("{}", close(&confinement).r#become());
}

fn end_as(name: &str) {
    close(&nothing_granted());
    match name {
        "exit with 7" => std::process::exit(7),
        // SAFETY: none: a process that reads there is to be killed for it.
        "a segmentation fault" => drop(unsafe { std::ptr::null::<u8>().add(1).read_volatile() }),
        _ => kill_process(rustix::process::getpid(), Signal::KILL).unwrap(),
    }
}

fn be_strict() {
    let mut confinement = nothing_granted();
    confinement.sandbox.enforce = Enforce::Strict;
    confinement.sandbox.own_user = true;
    match launch::confine(&confinement) {
        Ok(_) => println!("closed"),
        Err(error) => println!("{error}"),
    }
}

fn be_pinned() {
    let mut confinement = nothing_granted();
    confinement.limits.cores = Some("0".parse().unwrap());
    close(&confinement);
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    assert!(cores.is_set(0));
    println!("core 0 {}", if cores.count() == 1 { "alone" } else { "and others" });
}

/// Starts a zone and waits until its app says that it is ready.
fn start(name: &str) -> Child {
    let mut zone = spawn(name);
    let mut line = String::new();
    BufReader::with_capacity(1, zone.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    zone
}

fn spawn(name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["live", name]).stdout(Stdio::piped()).spawn().unwrap()
}

fn signal(zone: &Child, signal: Signal) {
    kill_process(Pid::from_child(zone), signal).unwrap();
}

/// The bound only ends a hang. Linux ends the processes left in a zone at once, but not in the same instant.
fn wait_until(mut done: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("somebody of the zone lives on");
}
