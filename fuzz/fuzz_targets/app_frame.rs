//! What crosses the app boundary: any bytes read as a frame, an event, a command. A command that is read is written
//! back to bytes that read and write as themselves.
#![no_main]

use abi::command::{self, Command};
use abi::event::Event;
use abi::frame::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((frame, _)) = Frame::split(bytes) else { return };
    let _ = Event::read(&frame);
    let Ok(first) = Command::read(&frame) else { return };
    let mut written = Vec::new();
    if command::write::command(&mut written, &first) {
        let again = Frame::read(&written).expect("what was written is a frame");
        let second = Command::read(&again).expect("what was written is a command");
        let mut written_again = Vec::new();
        assert!(command::write::command(&mut written_again, &second));
        assert_eq!(written, written_again);
    }
});
