//! The language in JSON: `Serialize` and `Deserialize` for matches, actions and instructions.
//!
//! * A match is an object whose keys are fields, in the match's order:
//!   `{"in_port":1,"eth_type":"0x0800","ipv4_src":"10.0.0.0/8"}`. A mask follows a slash, also a mask of all ones. A
//!   field of another class is `"oxm:0xHHHHHHHH":"hex"`, its header and its payload.
//! * An action is an object with its `type`: `{"type":"output","port":2,"max_len":65535}`,
//!   `{"type":"set_field","field":"eth_dst","value":"00:00:00:00:00:01"}`.
//! * An instruction likewise: `{"type":"apply_actions","actions":[…]}`.
//!
//! Reading returns exactly what was written. Numbers are accepted as numbers and as decimal or hexadecimal strings.
//! Never guesses: unknown keys, wrong forms, values that are too wide and bits outside a mask are errors. The error
//! names the key and what was expected.

mod action_json;
mod instruction_json;
mod match_json;
mod object;

pub(crate) use match_json::read_unknown;
