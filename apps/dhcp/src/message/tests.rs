//! Requests, damaged ones first, and answers as a client reads them.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// A request with these options, of the host 7.
pub(crate) fn request(ciaddr: &str, options: &str) -> Vec<u8> {
    let fixed = format!("01010600 aabbccdd 00000000 {ciaddr} 00000000 00000000 00000000 000000000007");
    let message = format!("{fixed} {} {} 63825363 {options}", "00".repeat(10), "00".repeat(192));
    let length = bytes(&message).len();
    let ip = format!("4500{:04x} 00000000 40110000 00000000 ffffffff", length + 28);
    bytes(&format!("ffffffffffff 000000000007 0800 {ip} 0044 0043 {:04x} 0000 {message}", length + 8))
}

const NONE: &str = "00000000";

fn settings() -> DhcpSettings {
    let json = br#"{"server": "10.0.0.1", "mac": "02:00:00:00:00:01", "pools": [{"network": "10.0.0.0/24",
        "first": "10.0.0.100", "last": "10.0.0.199", "gateway": "10.0.0.254", "dns": ["1.1.1.1", "9.9.9.9"], "domain": "lab"}]}"#;
    DhcpSettings::read(&burnet_sdk::Settings::from_json(json).unwrap()).unwrap()
}

#[test]
fn a_damaged_request_or_one_for_another_host_is_none() {
    let check = |frame: &[u8]| assert_eq!(read(frame), None, "{frame:02x?}");
    let good = request(NONE, "350101 ff");
    assert!(read(&good).is_some());
    check(&[]);
    check(&good[..good.len() - 1]);
    check(&request(NONE, ""));
    check(&request(NONE, "ff 350101"));
    check(&request(NONE, "35"));
    check(&request(NONE, "35020101"));
    check(&request(NONE, "0c40 61 350101"));
    check(&request(NONE, "350102"));
    let with = |place: usize, value: u8| {
        let mut frame = good.clone();
        frame[place] = value;
        frame
    };
    check(&with(42, 2));
    check(&with(42 + 1, 6));
    check(&with(42 + 236, 98));
    check(&with(42 + 33, 8));
    check(&with(42 + 27, 1));
    check(&with(35, 67));
    check(&with(23, 6));
}

#[test]
fn a_request_is_read_with_what_it_wants() {
    let read = read(&request("0a000005", "350103 3204 0a000064 3604 0a000001 ff")).unwrap();
    let address = |last| Some(Ipv4Addr::new(10, 0, 0, last));
    assert_eq!(
        (read.asks, read.has, read.wants, read.server),
        (Asks::Request, address(5), address(100), address(1))
    );
    assert_eq!(
        (read.xid, read.mac.0[5], read.vlan, read.wants_broadcast),
        ([0xaa, 0xbb, 0xcc, 0xdd], 7, None, false)
    );
}

/// Reads an answer: its type, its address, and the options.
fn answer(request: &Request, answer: Answer) -> (Vec<u8>, [u8; 4], Vec<u8>) {
    let settings = settings();
    let frame = write(request, answer, &settings.pools[&None], &settings);
    let packet = SlicedPacket::from_ethernet(&frame).unwrap();
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!() };
    assert_eq!((udp.source_port(), udp.destination_port()), (67, 68));
    let payload = udp.payload();
    assert!(payload.len() >= 300 && payload[4..8] == request.xid && payload[28..34] == request.mac.0);
    (frame[..6].to_vec(), payload[16..20].try_into().unwrap(), payload[240..].to_vec())
}

#[test]
fn an_answer_tells_the_client_all_that_it_needs() {
    let discover = read(&request(NONE, "350101")).unwrap();
    let (to, given, options) = answer(&discover, Answer::Offer(Ipv4Addr::new(10, 0, 0, 100)));
    assert_eq!((to[5], given), (7, [10, 0, 0, 100]));
    let check = |kind, expected: &[u8]| assert_eq!(option(&options, kind), Some(expected), "{kind}");
    check(53, &[2]);
    check(54, &[10, 0, 0, 1]);
    check(51, &3_600_u32.to_be_bytes());
    check(1, &[255, 255, 255, 0]);
    check(3, &[10, 0, 0, 254]);
    check(6, &[1, 1, 1, 1, 9, 9, 9, 9]);
    check(15, b"lab");
    let (to, given, options) = answer(&discover, Answer::Nak);
    assert_eq!((to, given, option(&options, 53)), (vec![0xff; 6], [0; 4], Some(&[6][..])));
    assert_eq!(option(&options, 51), None);
    let broadcast = Request { wants_broadcast: true, ..discover };
    let (to, _, _) = answer(&broadcast, Answer::Ack(Some(Ipv4Addr::new(10, 0, 0, 100))));
    assert_eq!(to, vec![0xff; 6]);
}

#[test]
fn a_request_in_a_vlan_is_answered_in_it() {
    let mut frame = request(NONE, "350101");
    frame.splice(12..12, [0x81, 0, 0, 100]);
    let asked = read(&frame).unwrap();
    let settings = settings();
    let answer = write(&asked, Answer::Nak, &settings.pools[&None], &settings);
    assert_eq!((asked.vlan, &answer[12..16]), (Some(100), &[0x81, 0, 0, 100][..]));
}

#[test]
fn arp_for_the_server_is_answered_and_no_other() {
    let ask = |target: &str| {
        bytes(&format!(
            "ffffffffffff 000000000007 0806 0001 0800 06 04 0001 000000000007 0a000007 000000000000 {target}"
        ))
    };
    let reply = answer_arp(&ask("0a000001"), &settings()).unwrap();
    assert_eq!(
        reply,
        bytes(
            "000000000007 020000000001 0806 0001 0800 06 04 0002 020000000001 0a000001 000000000007 0a000007"
        )
    );
    assert_eq!(answer_arp(&ask("0a000002"), &settings()), None);
    assert_eq!(answer_arp(&reply, &settings()), None);
    let mut tagged = ask("0a000001");
    tagged.splice(12..12, [0x81, 0, 0, 100]);
    assert_eq!(answer_arp(&tagged, &settings()).unwrap()[12..18], [0x81, 0, 0, 100, 8, 6]);
}

proptest! {
    #[test]
    fn whatever_bytes_come_reading_ends(mut frame in vec(any::<u8>(), 0..400), options in vec(any::<u8>(), 0..100)) {
        let _ = answer_arp(&frame, &settings());
        let _ = read(&frame);
        frame = request(NONE, "");
        frame.extend(&options);
        let length = (frame.len() - 34) as u16;
        frame[38..40].copy_from_slice(&length.to_be_bytes());
        frame[16..18].copy_from_slice(&(length + 20).to_be_bytes());
        let _ = read(&frame);
    }
}
