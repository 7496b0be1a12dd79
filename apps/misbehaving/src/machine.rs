//! Attacks on the machine's resources, and forbidden system calls.
//!
//! Each attack is bounded, and harmless if no barrier stops it: see the head of the crate. It never retries.

use super::{Attack, MisbehavingSettings, report};
use burnet_sdk::Commands;
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// The size of one allocation of a leak, and the most allocations: 2 GiB in all, more than any limit of the trials.
const LEAK_BYTES: usize = 1 << 20;
const LEAKS_MAX: usize = 2048;

/// The most descriptors, threads and processes that it tries to get.
const DESCRIPTORS_MAX: usize = 4096;
const THREADS_MAX: usize = 1024;
const PROCESSES_MAX: usize = 64;

/// The most bytes that it writes to a file.
const FILE_BYTES_MAX: usize = 256 << 20;

/// The number of lines in a flood of lines.
const LINES: u32 = 200_000;

/// Folders in which an app without any grant might be able to write a file.
const WRITABLE: [&str; 7] = ["", "/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/root"];

pub(crate) fn attack(attack: Attack, settings: &MisbehavingSettings, out: &mut Commands) {
    match attack {
        Attack::ForkBomb => report(out, "to fork without end", fork_bomb()),
        Attack::MemoryLeak => leak(settings.leak_pause_ms),
        Attack::DescriptorLeak => report(out, "to open without end", descriptor_leak()),
        Attack::ThreadBomb => report(out, "to start threads without end", thread_bomb()),
        Attack::DiskFill => {
            WRITABLE.iter().for_each(|folder| report(out, &format!("to fill {folder}/"), fill(folder)))
        }
        Attack::LogFlood => flood_log(out),
        Attack::ReadFiles => read_files(settings, out),
        Attack::ReadMemory => read_memory(settings, out),
        Attack::Ptrace => ptrace(settings, out),
        Attack::Signals => signals(settings, out),
        Attack::RawSocket => raw_sockets(out),
        Attack::ConnectOut => connect_out(settings, out),
        Attack::ServiceListens => listen(out),
        Attack::RunShell => {
            report(out, "to run a shell", Command::new("/bin/sh").args(["-c", "true"]).status().map(drop))
        }
        Attack::Mount => mount(out),
        Attack::LoadModule => load_module(out),
        Attack::SetTime => set_time(out),
        Attack::PlantedLink | Attack::PlantedFileLink => plant_link(settings, out),
        _ => {}
    }
}

fn fork_bomb() -> io::Result<()> {
    let mut children = Vec::new();
    for _ in 0..PROCESSES_MAX {
        children.push(Command::new("/bin/sleep").arg("60").spawn()?);
    }
    children.iter_mut().try_for_each(|child| child.kill())
}

/// This ends in one of two ways: an allocation fails and the process aborts, or the kernel kills it at the machine's
/// limit.
fn leak(pause_ms: u64) {
    let mut taken = Vec::new();
    for _ in 0..LEAKS_MAX {
        // Written to, so that the memory is really allocated and not only reserved.
        taken.push(vec![0xa5u8; LEAK_BYTES]);
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
    std::mem::forget(taken);
}

fn descriptor_leak() -> io::Result<()> {
    let open: io::Result<Vec<File>> = (0..DESCRIPTORS_MAX).map(|_| File::open("/dev/null")).collect();
    open.map(drop)
}

fn thread_bomb() -> io::Result<()> {
    for _ in 0..THREADS_MAX {
        let builder = std::thread::Builder::new().stack_size(64 << 10);
        builder.spawn(|| std::thread::sleep(Duration::from_secs(60)))?;
    }
    Ok(())
}

fn fill(folder: &str) -> io::Result<()> {
    let path = format!("{folder}/misbehaving-{}", std::process::id());
    let mut file = File::create(&path)?;
    let chunk = vec![0u8; LEAK_BYTES];
    let written = (0..FILE_BYTES_MAX / LEAK_BYTES).try_for_each(|_| file.write_all(&chunk));
    drop(std::fs::remove_file(&path));
    written
}

fn flood_log(out: &mut Commands) {
    for number in 0..LINES {
        eprintln!("line {number} of a flood, and some more words so that it is as long as lines are");
    }
    (0..LINES / 10)
        .for_each(|number| out.log(burnet_sdk::Level::Error, &format!("line {number} of a flood")));
}

fn read_files(settings: &MisbehavingSettings, out: &mut Commands) {
    for path in &settings.files {
        report(out, &format!("to read {}", path.display()), std::fs::read(path).map(drop));
    }
}

fn read_memory(settings: &MisbehavingSettings, out: &mut Commands) {
    for process in &settings.processes {
        for file in ["mem", "environ", "maps"] {
            let path = format!("/proc/{process}/{file}");
            report(out, &format!("to read {path}"), File::open(&path).map(drop));
        }
    }
    report(out, "to read /proc/1/environ", std::fs::read("/proc/1/environ").map(drop));
}

fn ptrace(settings: &MisbehavingSettings, out: &mut Commands) {
    for process in &settings.processes {
        let pid = nix::unistd::Pid::from_raw(*process);
        let attached = nix::sys::ptrace::attach(pid);
        report(out, &format!("to trace process {process}"), attached);
        if attached.is_ok() {
            // If it cannot be released now, it is released when this process ends.
            let _ = nix::sys::ptrace::detach(pid, None);
        }
    }
}

/// SIGCONT has no effect on a process that runs. A process that may send it may send any signal.
fn signals(settings: &MisbehavingSettings, out: &mut Commands) {
    for process in &settings.processes {
        let Some(pid) = Pid::from_raw(*process) else { continue };
        report(
            out,
            &format!("to signal process {process}"),
            rustix::process::kill_process(pid, Signal::CONT),
        );
    }
}

fn raw_sockets(out: &mut Commands) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
    let tries = [
        ("a packet socket", AddressFamily::Packet, SockType::Raw, Some(SockProtocol::EthAll)),
        ("a raw IP socket", AddressFamily::Inet, SockType::Raw, Some(SockProtocol::Icmp)),
        ("a netlink socket", AddressFamily::Netlink, SockType::Raw, Some(SockProtocol::NetlinkRoute)),
        ("a UDP socket", AddressFamily::Inet, SockType::Datagram, None),
    ];
    for (what, family, kind, protocol) in tries {
        report(out, &format!("to open {what}"), socket(family, kind, SockFlag::empty(), protocol).map(drop));
    }
}

fn connect_out(settings: &MisbehavingSettings, out: &mut Commands) {
    let Some(address) = settings.address else { return };
    report(
        out,
        &format!("to connect to {address}"),
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(drop),
    );
}

/// Listens on sockets of its own, and on one that cannot listen, to reach the calls themselves.
fn listen(out: &mut Commands) {
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, listen, socketpair,
    };
    use std::os::fd::AsRawFd;
    for address in ["127.0.0.1:0", "[::]:0"] {
        report(out, &format!("to listen on {address}"), std::net::TcpListener::bind(address).map(drop));
    }
    let path = std::os::unix::net::UnixListener::bind("/tmp/misbehaving");
    report(out, "to listen on a socket file", path.map(drop));
    let Ok((socket, _other)) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty())
    else {
        return;
    };
    let bound = UnixAddr::new_abstract(b"misbehaving").and_then(|name| bind(socket.as_raw_fd(), &name));
    report(out, "to bind a socket that it has", bound);
    let listens = Backlog::new(1).and_then(|backlog| listen(&socket, backlog));
    report(out, "to listen on a socket that it has", listens);
    let accepted = accept4(socket.as_raw_fd(), SockFlag::empty());
    report(out, "to accept connections on a socket that it has", accepted.map(drop));
}

/// Makes the mounts of the root private. Where this is allowed, it mounts nothing and changes no file.
fn mount(out: &mut Commands) {
    use rustix::mount::{MountPropagationFlags, mount_change};
    report(out, "to change mounts", mount_change("/", MountPropagationFlags::PRIVATE));
}

/// Loads a kernel module of no bytes. A kernel that would load modules answers that this is not one (ENOEXEC).
fn load_module(out: &mut Commands) {
    let loaded = match rustix::system::init_module(&[], c"") {
        Err(rustix::io::Errno::NOEXEC) => Ok(()),
        other => other,
    };
    report(out, "to load a module", loaded);
}

/// Replaces a file or folder by a symbolic link. The original stays beside it under another name.
fn plant_link(settings: &MisbehavingSettings, out: &mut Commands) {
    let Some([place, target]) = &settings.plant else { return };
    let planted = std::fs::rename(place, place.with_extension("was"))
        .and_then(|()| std::os::unix::fs::symlink(target, place));
    let text = match planted {
        Ok(()) => "planted a link".to_owned(),
        Err(error) => format!("not planted: {error}"),
    };
    out.log(burnet_sdk::Level::Warning, &text);
}

/// Sets the clock to its present time.
fn set_time(out: &mut Commands) {
    use rustix::time::{ClockId, clock_gettime, clock_settime};
    let now = clock_gettime(ClockId::Realtime);
    report(out, "to set the time", clock_settime(ClockId::Realtime, now));
}
