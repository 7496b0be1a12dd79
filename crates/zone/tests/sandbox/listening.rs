//! A zone that may listen: it accepts connections on the socket that it was given, and gets no further with it.
//!
//! The socket is the role's standard input, which is the only descriptor that a zone keeps besides its output.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use crate::{close, nothing_granted};

pub(crate) fn hold() {
    a_zone_serves_its_socket_and_does_nothing_else_with_it();
    without_the_grant_a_socket_is_of_no_use();
}

/// Runs a role with a listening socket as its standard input, and connects to it once.
fn with_socket(role: &str) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"hello").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["live", role]).stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())));
    let output = command.output().unwrap();
    // The command has the socket too, and a client whose connection nobody accepts waits while it is open.
    drop((listener, command));
    let mut answer = String::new();
    // Without the grant nobody accepts it, and its end is an error.
    let _ = client.read_to_string(&mut answer);
    let said = String::from_utf8(output.stdout).unwrap();
    (said + &String::from_utf8_lossy(&output.stderr), answer)
}

fn a_zone_serves_its_socket_and_does_nothing_else_with_it() {
    let (said, answer) = with_socket("listen");
    assert_eq!(answer, "hello", "{said}");
    let refused = said.lines().filter(|line| line.ends_with(": refused")).count();
    assert_eq!(refused, ATTEMPTS, "{said}");
    assert!(said.contains("no delay: done\n"), "{said}");
    let told = "{\"denied\":\"bind is not permitted: the node opens the sockets that net.listen grants\"";
    assert!(said.contains(told), "{said}");
}

fn without_the_grant_a_socket_is_of_no_use() {
    let (said, answer) = with_socket("listen without the grant");
    assert_eq!((said.contains("accept4: refused\n"), answer.as_str()), (true, ""), "{said}");
}

/// How many [`attempts`] there are.
const ATTEMPTS: usize = 12;

type Try = (&'static str, io::Result<()>);

fn call(number: i64, [a, b, c, d, e]: [i64; 5]) -> io::Result<()> {
    // SAFETY: each pointer among the arguments is null or points to a constant, and the calls only read it.
    let done = unsafe { libc::syscall(number, a, b, c, d, e) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What an attacker would do with a socket of the machine's network.
fn attempts(socket: i64) -> [Try; ATTEMPTS] {
    let set = |level: i32, option: i32, text: &'static [u8]| {
        let length = i64::try_from(text.len()).unwrap();
        call(libc::SYS_setsockopt, [socket, level.into(), option.into(), text.as_ptr() as i64, length])
    };
    // AF_UNSPEC: the connection is given up, and the socket could be connected again.
    let nowhere: &[u8; 16] = &[0; 16];
    let address = nowhere.as_ptr() as i64;
    [
        ("bind", call(libc::SYS_bind, [socket, address, 16, 0, 0])),
        ("listen", call(libc::SYS_listen, [socket, 4_096, 0, 0, 0])),
        ("connect to another", call(libc::SYS_connect, [socket, address, 16, 0, 0])),
        (
            "a socket of its own",
            call(libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0, 0, 0]),
        ),
        ("connect by sending", call(libc::SYS_sendto, [socket, 0, 0, libc::MSG_FASTOPEN.into(), 0])),
        ("connect by an option", set(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &[1, 0, 0, 0])),
        ("another protocol in Linux", set(libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")),
        ("another congestion control", set(libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"reno")),
        ("longer buffers", set(libc::SOL_SOCKET, libc::SO_RCVBUF, &[0, 0, 16, 0])),
        ("a program in Linux", set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &[])),
        ("another device", set(libc::SOL_SOCKET, libc::SO_BINDTODEVICE, b"lo")),
        ("other headers", set(libc::IPPROTO_IP, libc::IP_TOS, &[0, 0, 0, 0])),
    ]
}

fn say(what: &str, done: &io::Result<()>) {
    match done {
        Ok(()) => println!("{what}: done"),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => println!("{what}: refused"),
        Err(error) => println!("{what}: {error}"),
    }
}

pub(crate) fn listen() {
    let mut confinement = nothing_granted();
    confinement.sandbox.net.listen = vec!["127.0.0.1:8181".parse().unwrap()];
    close(&confinement);
    // SAFETY: nobody else in this process uses standard input.
    let listener = unsafe { TcpListener::from_raw_fd(0) };
    let (mut connection, _) = listener.accept().unwrap();
    let mut word = String::new();
    connection.read_to_string(&mut word).unwrap();
    for (what, done) in attempts(connection.as_raw_fd().into()) {
        say(what, &done);
    }
    say("no delay", &connection.set_nodelay(true));
    connection.write_all(word.as_bytes()).unwrap();
}

pub(crate) fn listen_without_the_grant() {
    close(&nothing_granted());
    say("accept4", &call(libc::SYS_accept4, [0; 5]));
}
