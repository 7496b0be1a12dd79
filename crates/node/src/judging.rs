//! What services say that judge, as the monitor is told it. Pure.
//!
//! In: their words as text. Out: a message for the monitor: the words, or that the service is at fault, as an app would be. It judges nothing.

use monitor_channel::protocol::FromKernel;

/// What the service says that judges what zones use.
pub fn rulings(app: String, generation: u64, rulings: &str) -> FromKernel {
    match serde_json::from_str(rulings) {
        Ok(rulings) => FromKernel::Rulings { rulings },
        Err(error) => fault(app, generation, "rulings", &error),
    }
}

/// What the service says that judges packages.
pub fn vouched(app: String, generation: u64, round: u64, words: &str) -> FromKernel {
    match serde_json::from_str(words) {
        Ok(words) => FromKernel::Vouched { generation, round, words },
        Err(error) => fault(app, generation, "words", &error),
    }
}

fn fault(app: String, generation: u64, what: &str, error: &serde_json::Error) -> FromKernel {
    FromKernel::ZoneFault { app, generation, reason: format!("its {what} cannot be read: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_the_services_fault() {
        let is_fault = |said: FromKernel, part: &str| {
            let FromKernel::ZoneFault { generation: 4, reason, .. } = said else { panic!("{said:?}") };
            assert!(reason.contains(part), "{reason}");
        };
        let app = || "x".to_owned();
        is_fault(rulings(app(), 4, "[{}]"), "its rulings cannot be read: missing field");
        is_fault(vouched(app(), 4, 1, ""), "its words cannot be read: EOF");
        is_fault(vouched(app(), 4, 1, r#"[{"zone":1,"check":2,"says":"maybe"}]"#), "unknown variant `maybe`");
        is_fault(vouched(app(), 4, 1, r#"[{"zone":-1,"check":2,"says":"good"}]"#), "invalid value");
    }
}
