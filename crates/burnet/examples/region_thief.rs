//! An app that attacks the shared memory of the services: it speaks with the monitor itself, and tries to write what it may only
//! read.
//!
//! In: the messages of the monitor. Out: lines `tried WHAT: denied: WHY` or `tried WHAT: it worked` on standard output. Without the
//! capability it gets no message, and looks for memory that it should not have. What it writes is what is there already.

use monitor_channel::channel::Channel;
use monitor_channel::protocol::ToZone;
use ring::region::{RegionReader, RegionWriter};
use ring::{AppEnd, PortFault, PortFds};
use rustix::fs::{FallocateFlags, Mode, SealFlags};
use std::fmt::Display;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

fn report<T, E: Display>(what: &str, tried: Result<T, E>) {
    match tried {
        Ok(_) => println!("tried {what}: it worked"),
        Err(why) => println!("tried {what}: denied: {why}"),
    }
}

fn main() -> std::io::Result<()> {
    let channel = Channel::from_stdin().map_err(std::io::Error::other)?;
    let welcome = channel.receive::<ToZone>().map_err(std::io::Error::other)?;
    look_around();
    loop {
        let received = channel.receive::<ToZone>().map_err(std::io::Error::other)?;
        if let (ToZone::Region { service, is_written: true }, [fd]) =
            (&received.message, received.fds.as_slice())
        {
            println!("got the region of {service}");
            attack(fd, &welcome.fds);
            println!("done with {service}");
        }
    }
}

/// Memory of a region that this process has without a message.
fn look_around() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let fds = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let links: Vec<_> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    let found = maps.contains("burnet-region")
        || links.iter().any(|to| to.to_string_lossy().contains("burnet-region"));
    println!("before any message it has {}", if found { "a region" } else { "no region" });
}

/// `port` is the app's own port: its memory, and what wakes app and kernel.
fn attack(fd: &OwnedFd, port: &[OwnedFd]) {
    report("to map it writable", map_writable(fd, port));
    report("to become its writer", RegionWriter::attach(fd));
    report("to cut it", rustix::fs::ftruncate(fd, 0));
    report("to write to it", rustix::io::pwrite(fd, b"burnview", 0));
    report("to seal it for its writer", rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE));
    // It may own the memory, and its descriptor leads to it.
    let _ = rustix::fs::fchmod(fd, Mode::from_bits_retain(0o666));
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    match File::options().read(true).write(true).open(path).map(OwnedFd::from) {
        Err(why) => println!("tried to open it again: denied: {why}"),
        Ok(again) => {
            println!("it is open again");
            report("to map it writable again", map_writable(&again, port));
            report("to become its writer again", RegionWriter::attach(&again));
            report("to cut it again", rustix::fs::ftruncate(&again, 0));
            report("to write to it again", rustix::io::pwrite(&again, b"burnview", 0));
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            report("to empty it again", rustix::fs::fallocate(&again, hole, 1 << 15, 1 << 12));
        }
    }
    write_mapped(fd);
}

/// A port is mapped writable, and has the seals that a region has too.
fn map_writable(fd: &OwnedFd, port: &[OwnedFd]) -> Result<(), String> {
    let [_, wake_app, wake_kernel, ..] = port else { return Err("it has no port to try it with".to_owned()) };
    let clone = |fd: &OwnedFd| fd.try_clone().map_err(|why| why.to_string());
    match AppEnd::attach(PortFds::from_array([clone(fd)?, clone(wake_app)?, clone(wake_kernel)?])) {
        Err(PortFault::System(why)) => Err(why.to_string()),
        Err(why) => Err(format!("IT IS MAPPED, and no port: {why}")),
        Ok(_) => Ok(()),
    }
}

/// Writes through the process's own memory file, which ignores the protection of ordinary pages.
fn write_mapped(fd: &OwnedFd) {
    let reader = match RegionReader::attach(fd) {
        Ok(reader) => reader,
        Err(why) => return println!("tried to read it: denied: {why}"),
    };
    println!("it can be read: {} places", reader.places());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let line = maps.lines().find(|line| line.contains("burnet-region"));
    let start = line.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    let memory = File::options().read(true).write(true).open("/proc/self/mem");
    let written = memory.and_then(|memory| memory.write_at(b"burnview", start.unwrap_or(0)));
    report("to write through its memory file", written);
    drop(reader);
}
