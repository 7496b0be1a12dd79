//! The canonical bytes of matches, actions and instructions. What is read is written back to what reads as the same.
#![no_main]

use flow::canonical::{
    read_actions, read_instructions, read_match, write_actions, write_instructions, write_match,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut written = Vec::new();
    if let Ok(rule) = read_match(bytes) {
        write_match(&rule, &mut written);
        assert_eq!(read_match(&written), Ok(rule));
    }
    written.clear();
    if let Ok(actions) = read_actions(bytes) {
        write_actions(&actions, &mut written).expect("what was read can be written");
        assert_eq!(read_actions(&written), Ok(actions));
    }
    written.clear();
    if let Ok(instructions) = read_instructions(bytes) {
        write_instructions(&instructions, &mut written).expect("what was read can be written");
        assert_eq!(read_instructions(&written), Ok(instructions));
    }
});
