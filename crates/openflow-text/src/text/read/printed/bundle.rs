//! Parses printed messages of bundles.

use flow::text::BadText;

use super::super::super::bundle::{CONTROL_TYPES, FLAGS};
use super::super::words::{fault, number, split};
use openflow::message::*;

/// The words of a message about a bundle.
struct Words {
    bundle_id: u32,
    control: Option<u16>,
    flags: u16,
}

/// `bundle_id=0x1 type=OPEN_REQUEST flags=atomic ordered`
pub(super) fn control(text: &str) -> Result<BundleControl, BadText> {
    let Words { bundle_id, control, flags } = words(text)?;
    let control = control.ok_or_else(|| fault(0, text, "expected type=…"))?;
    Ok(BundleControl { bundle_id, control, flags, properties: Vec::new() })
}

/// `bundle_id=0x1 flags=atomic ordered`, and the message below it.
pub(super) fn add(text: &str, message: Message) -> Result<BundleAdd, BadText> {
    let Words { bundle_id, flags, .. } = words(text)?;
    Ok(BundleAdd { bundle_id, flags, message: Box::new(message), properties: Vec::new() })
}

fn words(text: &str) -> Result<Words, BadText> {
    let (mut bundle_id, mut control, mut flags) = (None, None, None);
    for word in split(text) {
        match word.key {
            "bundle_id" => bundle_id = Some(word.number("a number of 32 bits")?),
            "type" => {
                control = Some(word.named(&CONTROL_TYPES, "OPEN_REQUEST, OPEN_REPLY, CLOSE_REQUEST …")?)
            }
            "flags" => {
                flags = Some(
                    flag(word.needed("atomic, ordered or a number")?).ok_or_else(|| word.fault(NO_FLAG))?,
                )
            }
            // Further flags stand behind the first.
            name if word.value.is_none() && flags.is_some() => {
                let more = flag(name).ok_or_else(|| word.fault(NO_FLAG))?;
                flags = flags.map(|flags| flags | more);
            }
            _ => return Err(word.unknown("bundle_id, type, flags")),
        }
    }
    let missing = |key: &str| fault(0, text, format!("expected {key}=…"));
    Ok(Words {
        bundle_id: bundle_id.ok_or_else(|| missing("bundle_id"))?,
        control,
        flags: flags.ok_or_else(|| missing("flags"))?,
    })
}

const NO_FLAG: &str = "expected atomic, ordered or a number";

fn flag(word: &str) -> Option<u16> {
    let named = FLAGS.iter().find(|(_, name)| *name == word).and_then(|(bit, _)| u16::try_from(*bit).ok());
    named.or_else(|| number(word))
}
