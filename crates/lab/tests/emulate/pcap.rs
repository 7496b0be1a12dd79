//! Files of captured frames, opened with tshark. Left out by name where it is not installed.

use super::node::{Node, burnet, complained, said};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file's name that nobody else has; gone when the test is.
struct Pcap(PathBuf);

impl Pcap {
    fn new(name: &str) -> Pcap {
        Pcap(std::env::temp_dir().join(format!("burnet-{name}-{}.pcap", std::process::id())))
    }

    fn wish(&self, what: &str) -> String {
        format!("{what}={}", self.0.display())
    }
}

impl Drop for Pcap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What tshark prints of a file; `None` where it is not installed.
fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark").arg("-r").arg(file).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn control_channel_and_ports_open_in_wireshark() {
    let node = Node::start();
    let (control, of_one, host) = (Pcap::new("control"), Pcap::new("s2"), Pcap::new("h1"));
    let (port, wishes) =
        (Pcap::new("s1-eth1"), [control.wish("control"), of_one.wish("s2"), host.wish("h1")]);
    let mut arguments = vec!["--topo", "linear,2", "--version", "1.3", "--ping-all"];
    wishes.iter().for_each(|wish| arguments.extend(["--pcap", wish]));
    let port_wish = port.wish("s1-eth1");
    arguments.extend(["--pcap", &port_wish]);
    let output = node.emulate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", said(&output), complained(&output));
    assert_eq!(said(&output).matches("frames, 0 dropped").count(), 4, "{}", said(&output));
    let listens_on = node.address.rsplit_once(':').unwrap().1;
    let decode = format!("tcp.port=={listens_on},openflow");
    let Some(messages) = tshark(&control.0, &["-d", &decode, "-T", "fields", "-e", "openflow_v4.type"])
    else {
        return eprintln!("left out: control_channel_and_ports_open_in_wireshark: tshark is not installed");
    };
    // Hello, features request and reply, packet-in, packet-out, flow mod.
    for kind in ["0", "5", "6", "10", "13", "14"] {
        let is_there = messages.split([',', '\n', '\t']).any(|found| found == kind);
        assert!(is_there, "no message of type {kind}: {messages}");
    }
    let wrong = ["-d", &decode, "-Y", "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0"];
    assert_eq!(tshark(&control.0, &[&["-o", "tcp.check_checksum:TRUE"], &wrong[..]].concat()).unwrap(), "");
    let streams = |file: &Pcap| {
        let lines = tshark(&file.0, &["-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0"]).unwrap();
        lines.lines().count()
    };
    assert_eq!((streams(&control), streams(&of_one)), (2, 1));
    for file in [&host, &port] {
        let replies = tshark(&file.0, &["-Y", "icmp.type == 0"]).unwrap();
        assert_eq!(replies.lines().count(), 2, "{replies}");
    }
}

#[test]
fn a_port_that_is_not_there_is_refused() {
    for (wish, words) in [
        ("s9-eth1=x", "there is no port s9-eth1 in this network"),
        ("s1-eth9=x", "there is no port s1-eth9 in this network"),
        ("h1=/nowhere/x.pcap", "/nowhere/x.pcap cannot be written"),
    ] {
        let output = burnet().args(["emulate", "--topo", "single,2", "--pcap", wish]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(complained(&output).contains(words), "{}", complained(&output));
    }
}
