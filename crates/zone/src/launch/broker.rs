//! The launcher's broker: it answers the system calls that an app may not make by itself, and reports refusals to the
//! operator.
//! ```text
//!   app ──connect(address)──▶ Linux ──it waits──▶ launcher: is the address granted?
//!       ◀─a connected socket in place of its own─────┘   then it connects, outside of the zone
//!   app ──open(path)────────▶ Linux ──it waits──▶ launcher: is the file visible? it reports if not
//!       ◀─what root and Landlock allow──continue──┘
//! ```
//!
//! In: calls that the filter does not allow by itself. Out: answers. For each refusal, and for each file that the
//! root or Landlock hides, it writes a line on standard error. The monitor logs and records the line with the app's
//! name.
//! The broker copies the address once, checks that copy and uses it. So an app cannot change it in between. The
//! connecting socket is the launcher's own, so an app cannot prepare it. The broker never waits for a peer: it polls
//! pending connections.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::arguments::{NAMESPACES, SOCKET_TYPE_BITS};
use super::notify::{self, Answer, Call, Listener};
use super::opening::{Opening, PathLocation};
use super::{names, opening};
use crate::sandbox::{Denied, Files, Sandbox};

/// Pending connections of one zone. One more is refused with EAGAIN, as Linux does when it has no free port.
const UNDER_WAY_MAX: usize = 32;

/// Lines about refusals in one second. Further refusals are counted, and the next line has their number.
const LINES_PER_S_MAX: u32 = 5;

/// After this many lines the limit applies to a minute instead of a second. An app that repeats its attempts must not
/// push older records out of the audit log.
const LINES_BY_SECOND_MAX: u32 = 100;

/// Kinds of refusals that are counted separately until they are reported. Further kinds are counted as one.
const UNSAID_MAX: usize = 16;

/// PATH_MAX (limits.h): Linux accepts no longer path.
const PATH_BYTES_MAX: usize = 4096;

/// Size of struct sockaddr_storage (socket.h).
const ADDRESS_BYTES_MAX: u64 = 128;

/// Answers the calls of one zone.
pub(super) struct Broker {
    grants: Vec<SocketAddr>,
    files: Files,
    /// Where the listener arrives, after the app's process has made it.
    handover: Option<OwnedFd>,
    /// The app's program is not executed yet. The process that confined the zone executes it, before any code of the
    /// app runs.
    awaits_program: bool,
    listener: Option<Listener>,
    pending_calls: Vec<PendingCall>,
    refusals: RefusalLog,
}

struct PendingCall {
    call: Call,
    socket: OwnedFd,
    fd: u64,
    close_on_exec: bool,
}

impl Broker {
    pub(super) fn new(sandbox: &Sandbox, handover: OwnedFd, awaits_program: bool) -> Broker {
        let refusals = RefusalLog::new(Instant::now());
        Broker {
            grants: sandbox.net.connect.clone(),
            files: sandbox.fs.clone(),
            handover: Some(handover),
            awaits_program,
            listener: None,
            pending_calls: Vec::new(),
            refusals,
        }
    }

    /// The descriptors to poll.
    pub(super) fn sources(&self) -> Vec<PollFd<'_>> {
        let of = |fd, flags| PollFd::from_borrowed_fd(fd, flags);
        let handover = self.handover.iter().map(|fd| of(fd.as_fd(), PollFlags::IN));
        let listener = self.listener.iter().map(|listener| of(listener.as_fd(), PollFlags::IN));
        let sockets = self.pending_calls.iter().map(|one| of(one.socket.as_fd(), PollFlags::OUT));
        handover.chain(listener).chain(sockets).collect()
    }

    /// Handles the sources that are ready. `ready` has the order of [`Broker::sources`].
    pub(super) fn on_ready(&mut self, ready: &[PollFlags]) {
        let mut ready = ready.iter().copied();
        let handed = self.handover.is_some() && ready.next().is_some_and(|flags| !flags.is_empty());
        let called = self.listener.as_ref().and_then(|_| ready.next()).unwrap_or(PollFlags::empty());
        let done: Vec<bool> = ready.map(|flags| !flags.is_empty()).collect();
        self.finish(&done);
        if called.contains(PollFlags::IN) {
            self.serve();
        } else if !called.is_empty() {
            // No process of the zone is left.
            self.listener = None;
        }
        if handed {
            self.take_listener();
        }
    }

    fn take_listener(&mut self) {
        let Some(handover) = self.handover.take() else { return };
        // No listener means that the app's process ended before it could make one.
        self.listener = notify::receive(handover.as_fd()).map(Listener::new);
    }

    fn serve(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        if let Ok(call) = listener.receive() {
            let answer = match call.number {
                libc::SYS_socket => Some(self.socket(&call)),
                libc::SYS_connect => self.connect(&listener, call),
                libc::SYS_execveat if self.awaits_program => {
                    // If a signal interrupted the call, it comes again.
                    self.awaits_program = !listener.answer(&call, Answer::Continue);
                    None
                }
                libc::SYS_execve | libc::SYS_execveat => {
                    Some(self.refuse("starting a program is not granted: spawn is false"))
                }
                number => Some(match Opening::of(&call) {
                    Some(opening) => self.open(&listener, &call, opening),
                    None => self.refuse(&not_let_through(number, call.arguments[0])),
                }),
            };
            if let Some(answer) = answer {
                listener.answer(&call, answer);
            }
        }
        self.listener = Some(listener);
    }

    /// The arguments are numbers, so the app cannot change them after the check.
    fn socket(&mut self, call: &Call) -> Answer {
        match judge_socket(call.arguments, !self.grants.is_empty()) {
            Ok(()) => Answer::Continue,
            Err(words) => self.refuse(&words),
        }
    }

    /// The root and Landlock stop what is not granted. Here it is only reported, except for what numbers alone
    /// decide.
    fn open(&mut self, listener: &Listener, call: &Call, opening: Opening) -> Answer {
        if opening.gives_identity {
            return self.refuse("making a file that others run as its owner is not granted");
        }
        let looked = look(listener, call, opening);
        let words =
            looked.and_then(|(path, location)| opening::judge(&path, opening.writes, location, &self.files));
        if let Some(words) = words {
            say(self.refusals.on_refusal(&words, Instant::now()));
        }
        Answer::Continue
    }

    /// Returns nothing while the connection is pending.
    fn connect(&mut self, listener: &Listener, call: Call) -> Option<Answer> {
        let address = match read_address(listener, &call) {
            Ok(address) => address,
            Err(number) => return Some(Answer::Refused(number)),
        };
        let Some(address) = address.filter(|address| self.grants.contains(address)) else {
            let where_to = address.map_or_else(|| "no internet address".to_owned(), |to| to.to_string());
            return Some(self.refuse(&format!("connecting to {where_to} is not granted by net.connect")));
        };
        match self.begin(listener, call, address) {
            Ok(answer) => answer,
            Err(errno) => Some(Answer::Refused(errno.raw_os_error())),
        }
    }

    fn begin(
        &mut self,
        listener: &Listener,
        call: Call,
        address: SocketAddr,
    ) -> Result<Option<Answer>, Errno> {
        if self.pending_calls.len() >= UNDER_WAY_MAX {
            return Err(Errno::AGAIN);
        }
        let fd = call.arguments[0];
        let flags = listener.flags(&call, fd).map_err(|_| Errno::BADF)?;
        let has = |flag: i32| flags & flag.unsigned_abs() != 0;
        let close_on_exec = has(libc::O_CLOEXEC);
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let ours = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, ours, None)?;
        let connected = match rustix::net::connect(&socket, &address) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(errno) => return Err(errno),
        };
        let pending = PendingCall { call, socket, fd, close_on_exec };
        if has(libc::O_NONBLOCK) {
            pending.hand_over(listener)?;
            return Ok(Some(if connected { Answer::Done } else { Answer::Refused(libc::EINPROGRESS) }));
        }
        // It is ready at once if it is already connected.
        self.pending_calls.push(pending);
        Ok(None)
    }

    /// Answers the calls whose connection succeeded or failed.
    fn finish(&mut self, done: &[bool]) {
        let Some(listener) = &self.listener else { return self.pending_calls.clear() };
        let mut done = done.iter().copied();
        self.pending_calls.retain(|pending| {
            if !done.next().unwrap_or(false) {
                return true;
            }
            let answer = match pending.outcome(listener) {
                Ok(()) => Answer::Done,
                Err(errno) => Answer::Refused(errno.raw_os_error()),
            };
            listener.answer(&pending.call, answer);
            false
        });
    }

    fn refuse(&mut self, words: &str) -> Answer {
        say(self.refusals.on_refusal(words, Instant::now()));
        Answer::Refused(libc::EPERM)
    }

    /// The app has ended: reports the refusals that were not reported yet.
    pub(super) fn say_the_rest(&mut self) {
        say(self.refusals.rest());
    }
}

impl PendingCall {
    fn outcome(&self, listener: &Listener) -> Result<(), Errno> {
        rustix::net::sockopt::socket_error(&self.socket)??;
        // The app's own socket would block here, so this one blocks from now on too.
        let flags = rustix::fs::fcntl_getfl(&self.socket)?;
        rustix::fs::fcntl_setfl(&self.socket, flags - rustix::fs::OFlags::NONBLOCK)?;
        self.hand_over(listener)
    }

    fn hand_over(&self, listener: &Listener) -> Result<(), Errno> {
        let handed = listener.replace(&self.call, self.fd, self.socket.as_fd(), self.close_on_exec);
        handed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// The message for a call that no app may make, or not with these arguments.
fn not_let_through(number: i64, first: u64) -> String {
    let process = [
        libc::SYS_clone,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork,
    ];
    // Only for clone are these bits flags of clone(2).
    let namespace = number == libc::SYS_clone && first & NAMESPACES != 0;
    if [libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4].contains(&number) {
        let name = names::name(number);
        return format!("{name} is not permitted: the node opens the sockets that net.listen grants");
    }
    match process.contains(&number) && !namespace {
        true => "starting a process is not granted: spawn is false".to_owned(),
        false => format!("the system call {} is not permitted", names::name(number)),
    }
}

/// The file that the app opens, and where it is. Nothing if that cannot be determined, for example because the app
/// has ended.
fn look(listener: &Listener, call: &Call, opening: Opening) -> Option<(PathBuf, PathLocation)> {
    let path = listener.read_text(call, opening.path, PATH_BYTES_MAX).ok()?;
    let path = PathBuf::from(OsString::from_vec(path));
    let folder = match path.is_absolute() {
        true => PathBuf::new(),
        false => listener.folder(call, opening.folder).ok()?,
    };
    // Linux resolves the path itself: where `..` leads depends on links.
    let whole = folder.join(&path);
    let path = opening::absolute(&folder, &path);
    if OWN_PROCESS.iter().any(|own| path.starts_with(own)) {
        return Some((path, PathLocation::Visible));
    }
    let root = listener.root(call).ok()?;
    let location = location(&root, &whole);
    Some((path, location))
}

/// These exist only for the process that asks about itself. The launcher has no process in the zone.
const OWN_PROCESS: [&str; 2] = ["/proc/self", "/proc/thread-self"];

/// Asks Linux twice: below the app's root and below the launcher's root.
fn location(root: &OwnedFd, path: &Path) -> PathLocation {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // Linux's own links can lead out of the root. They are not followed, since no app may see what is there.
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, flags, Mode::empty(), within) {
        Ok(_) | Err(Errno::LOOP) => return PathLocation::Visible,
        Err(_) => {}
    }
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT) {
        Ok(_) | Err(Errno::ACCESS) => PathLocation::Hidden,
        Err(_) => PathLocation::Missing,
    }
}

/// TCP if a connection is granted, otherwise nothing.
fn judge_socket([family, kind, protocol, ..]: [u64; 6], granted: bool) -> Result<(), String> {
    let is = |value: u64, constant: i32| value == u64::from(constant.unsigned_abs());
    let internet = is(family, libc::AF_INET) || is(family, libc::AF_INET6);
    let stream = is(kind & SOCKET_TYPE_BITS, libc::SOCK_STREAM);
    let tcp = is(protocol, 0) || is(protocol, libc::IPPROTO_TCP);
    if granted && internet && stream && tcp {
        return Ok(());
    }
    let why = if granted { "net.connect grants TCP alone" } else { "net.connect grants nothing" };
    Err(format!("a socket of family {family}, type {} is not granted: {why}", kind & SOCKET_TYPE_BITS))
}

/// The address. `None` if it is not an internet address, or an error for the app.
fn read_address(listener: &Listener, call: &Call) -> Result<Option<SocketAddr>, i32> {
    let [_, at, length, ..] = call.arguments;
    if length > ADDRESS_BYTES_MAX {
        return Err(libc::EINVAL);
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| libc::EINVAL)?];
    listener.read(call, at, &mut bytes).map_err(|_| libc::EFAULT)?;
    Ok(parse_address(&bytes))
}

/// struct sockaddr_in and sockaddr_in6 (ip(7), ipv6(7)). An IPv4 address within IPv6 counts as IPv4.
fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let host: IpAddr = match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(host, u16::from_be_bytes(*port)))
}

/// Refusals as lines, at a limited rate: the launcher must not wait for the reader.
struct RefusalLog {
    since: Instant,
    lines: u32,
    /// Lines so far, in total.
    said: u32,
    /// What was not reported yet, at most [`UNSAID_MAX`] and one more.
    unsaid: Vec<Denied>,
}

impl RefusalLog {
    fn new(now: Instant) -> RefusalLog {
        RefusalLog { since: now, lines: 0, said: 0, unsaid: Vec::new() }
    }

    /// The lines to write after one more refusal.
    fn on_refusal(&mut self, words: &str, now: Instant) -> Vec<Denied> {
        let mut lines = Vec::new();
        let window = Duration::from_secs(if self.said < LINES_BY_SECOND_MAX { 1 } else { 60 });
        if now.duration_since(self.since) >= window {
            (self.since, self.lines) = (now, 0);
            lines = std::mem::take(&mut self.unsaid);
        }
        if self.lines < LINES_PER_S_MAX {
            self.lines += 1;
            self.said = self.said.saturating_add(1);
            lines.push(Denied { denied: words.to_owned(), count: 1 });
        } else {
            self.count(words);
        }
        lines
    }

    fn count(&mut self, words: &str) {
        let place = self.unsaid.iter().position(|denied| denied.denied == words);
        match place.unwrap_or(UNSAID_MAX).min(self.unsaid.len()) {
            new if new == self.unsaid.len() => {
                let words = if new < UNSAID_MAX { words } else { "calls of more kinds are not granted" };
                self.unsaid.push(Denied { denied: words.to_owned(), count: 1 });
            }
            known => self.unsaid[known].count += 1,
        }
    }

    /// The lines to write when the app has ended.
    fn rest(&mut self) -> Vec<Denied> {
        std::mem::take(&mut self.unsaid)
    }
}

fn say(lines: Vec<Denied>) {
    for line in lines {
        eprintln!("zone: {}", serde_json::to_string(&line).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_address(bytes: &[u8], expected: Option<&str>) {
        assert_eq!(parse_address(bytes), expected.map(|text| text.parse().unwrap()), "{bytes:?}");
    }

    #[test]
    fn what_is_no_whole_internet_address_is_none() {
        let (v4, v6) = (libc::AF_INET as u16, libc::AF_INET6 as u16);
        let with = |family: u16, rest: &[u8]| [&family.to_ne_bytes(), rest].concat();
        check_address(&[], None);
        check_address(&[2], None);
        check_address(&with(v4, &[0, 80, 10, 0, 0]), None);
        check_address(&with(v6, &[0; 21]), None);
        check_address(&with(libc::AF_UNIX as u16, b"/run/x"), None);
        check_address(&with(v4, &[0, 80, 10, 0, 0, 1]), Some("10.0.0.1:80"));
        let mut mapped = vec![1, 187, 0, 0, 0, 0];
        mapped.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]);
        check_address(&with(v6, &mapped), Some("10.0.0.1:443"));
    }

    fn check_socket(arguments: [i32; 3], granted: bool, expected: bool) {
        let [family, kind, protocol] = arguments.map(|word| u64::from(word.unsigned_abs()));
        let judged = judge_socket([family, kind, protocol, 0, 0, 0], granted);
        assert_eq!(judged.is_ok(), expected, "{arguments:?}: {judged:?}");
    }

    #[test]
    fn only_tcp_is_a_socket_and_only_if_something_is_granted() {
        check_socket([libc::AF_INET, libc::SOCK_STREAM, 0], false, false);
        check_socket([libc::AF_INET, libc::SOCK_DGRAM, 0], true, false);
        check_socket([libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP], true, false);
        check_socket([libc::AF_PACKET, libc::SOCK_RAW, 0], true, false);
        check_socket([libc::AF_UNIX, libc::SOCK_STREAM, 0], true, false);
        check_socket([libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP], true, true);
    }

    #[test]
    fn refusals_are_said_five_times_a_second_and_then_counted() {
        let now = Instant::now();
        let mut refusals = RefusalLog::new(now);
        let denied = |denied: &str, count| Denied { denied: denied.to_owned(), count };
        let said: Vec<_> = (0..8).flat_map(|_| refusals.on_refusal("no", now)).collect();
        assert_eq!(said, vec![denied("no", 1); 5]);
        assert!(refusals.on_refusal("nor that", now).is_empty());
        let later = refusals.on_refusal("no", now + Duration::from_secs(1));
        assert_eq!(later, [denied("no", 3), denied("nor that", 1), denied("no", 1)]);
        for number in 0..1_000 {
            refusals.on_refusal(&number.to_string(), now + Duration::from_secs(1));
        }
        let rest = refusals.rest();
        assert_eq!(rest.len(), UNSAID_MAX + 1);
        assert_eq!(rest.iter().map(|denied| denied.count).sum::<u64>(), 1_000 - 4);
        assert!(refusals.rest().is_empty());
    }

    #[test]
    fn whoever_is_refused_on_and_on_is_said_five_times_a_minute() {
        let now = Instant::now();
        let mut refusals = RefusalLog::new(now);
        let mut said = |at_s| {
            let now = now + Duration::from_secs(at_s);
            (0..LINES_PER_S_MAX).map(|_| refusals.on_refusal("no", now).len()).sum::<usize>()
        };
        let first: usize = (0..20).map(&mut said).sum();
        assert_eq!(first, 100);
        assert_eq!((20..79).map(&mut said).sum::<usize>(), 0);
        assert_eq!(said(79), 6, "what was counted, and five more");
    }

    #[test]
    fn a_call_that_no_app_may_make_is_named() {
        let check = |number, first, expected: &str| assert_eq!(not_let_through(number, first), expected);
        let opens = "the node opens the sockets that net.listen grants";
        check(libc::SYS_bind, 1, &format!("bind is not permitted: {opens}"));
        check(libc::SYS_kill, 1, "the system call kill is not permitted");
        check(libc::SYS_clone, 17, "starting a process is not granted: spawn is false");
        let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        check(libc::SYS_clone, user, "the system call clone is not permitted");
    }
}
