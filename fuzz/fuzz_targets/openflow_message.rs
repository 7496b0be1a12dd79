//! OpenFlow's messages of both versions. What is read is written, and what was written reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::Message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(first) = Message::decode(bytes) else { return };
    let mut written = Vec::new();
    if first.encode(&mut written).is_ok() {
        let second = Message::decode(&written).expect("what was written can be read");
        assert_eq!(first, second);
    }
});
