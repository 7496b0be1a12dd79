//! What an app asks for, in plain words, and what one version asks for beyond another.
//!
//! In: the tables of two manifests, walked side by side. Out: [`Ask`]s. Never decides whether something is granted.

use super::Amount;

/// One thing that an app asks for. An operator grants it whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its name, as `burnet app grant` and `revoke` take it.
    pub name: &'static str,
    /// What it lets the app do, bounds included.
    pub words: String,
    /// Why the operator should think twice, if so.
    pub danger: Option<&'static str>,
}

/// Something that can be asked for.
pub(super) trait Asked: PartialEq {
    /// What it lets the app do. Types that stand under several names are told which.
    fn words(&self, name: &str) -> String;
    /// Whether it lets the app do nothing that the other does not.
    fn lies_within(&self, wider: &Self) -> bool;
    /// Why the operator should think twice before granting it, if so.
    fn danger(&self, _name: &str) -> Option<&'static str> {
        None
    }
    /// What an app may do that asks for this no more, where it is a limit and no right: the node's own limit may be wider. `None`: nothing.
    fn without(&self) -> Option<String> {
        None
    }
}

/// Is shown everything that can be asked for: what is asked for now, and what was before.
pub(super) trait Visit {
    /// One thing.
    fn visit<T: Asked>(&mut self, name: &'static str, now: &Option<T>, before: &Option<T>);
}

fn ask<T: Asked>(name: &'static str, asked: &T, words: String) -> Ask {
    Ask { name, words, danger: asked.danger(name) }
}

/// Collects all that is asked for now.
#[derive(Default)]
pub(super) struct All(pub Vec<Ask>);

impl Visit for All {
    fn visit<T: Asked>(&mut self, name: &'static str, now: &Option<T>, _: &Option<T>) {
        self.0.extend(now.as_ref().map(|asked| ask(name, asked, asked.words(name))));
    }
}

/// Collects what is asked for now and was not, or not so widely, before.
#[derive(Default)]
pub(super) struct Beyond(pub Vec<Ask>);

impl Visit for Beyond {
    fn visit<T: Asked>(&mut self, name: &'static str, now: &Option<T>, before: &Option<T>) {
        let was = |before: &T| format!(" (before: {})", before.words(name));
        self.0.extend(match (now, before) {
            (None, None) => None,
            (None, Some(before)) => {
                before.without().map(|words| Ask { name, words: words + &was(before), danger: None })
            }
            (Some(now), Some(before)) if now.lies_within(before) => None,
            (Some(now), Some(before)) => Some(ask(name, now, now.words(name) + &was(before))),
            (Some(now), None) => Some(ask(name, now, now.words(name))),
        });
    }
}

impl Asked for Amount {
    fn words(&self, name: &str) -> String {
        let what = match name {
            "limits.cpu_percent" => "hundredths of a processor",
            "limits.memory_bytes" => "bytes of memory",
            "limits.open_files" => "open descriptors",
            "limits.threads" => "threads and processes",
            "limits.file_bytes" => "bytes in a file that it writes",
            "quotas.commands_per_s" => "commands a second",
            "quotas.packet_outs_per_s" => "packets that its packet-outs become, a second",
            "quotas.packet_out_bytes_per_s" => "bytes of these packets a second",
            "quotas.copies_per_switch_per_s" => "copies a second that its packet-outs become at one switch",
            "quotas.packet_ins_caused_per_s" => "packet-ins that its rules and packet-outs cause, a second",
            "quotas.stats_per_s" => "statistics a second",
            "quotas.store_bytes" => "bytes in the store",
            other => other,
        };
        let told = self.soft.map(|soft| format!(", and you are told at {soft}")).unwrap_or_default();
        format!("have up to {} {what}{told}", self.hard)
    }

    /// Only the hard limit is enforced.
    fn lies_within(&self, wider: &Amount) -> bool {
        self.hard <= wider.hard
    }

    fn without(&self) -> Option<String> {
        Some("have as much as the node gives every app".to_owned())
    }
}
