//! Whether the monitor carries out a command that a service passes on from the operator. Pure.
//!
//! In: a command, the settings that the operator wrote for the service, and the states of the apps. Out: what to do, or why not. The
//! monitor checks this itself: the service reads input of the network, so it is not trusted with it.

use northbound_contract::{
    AppCommand, CommandRefused, SENDER_BYTES_MAX, SERVICE, Settings, Verb, WHY_BYTES_MAX,
};
use serde_json::{Map, Value};

use crate::app::{self, AppRole, AppStatus, legible};
use crate::audit::Record;
use crate::supervisor::SupervisorEvent;

/// Whether the operator lets the service with these settings change apps.
///
/// # Errors
/// A phrase for the log. The service asks only if it may, so it is at fault.
pub(crate) fn check_permitted(settings: &Map<String, Value>) -> Result<(), String> {
    let settings: Option<Settings> = serde_json::from_value(Value::Object(settings.clone())).ok();
    if settings.is_some_and(|settings| settings.may_change_apps) {
        return Ok(());
    }
    Err(format!("it sent a command for an app, and [network.{SERVICE}] does not have may_change_apps = true"))
}

/// What the command does, and its record for the audit log.
///
/// # Errors
/// The answer for the sender.
pub(crate) fn judge(
    command: &AppCommand,
    statuses: &[AppStatus],
    now_unix_ms: u64,
) -> Result<(SupervisorEvent, Record), CommandRefused> {
    let Some(status) = statuses.iter().find(|status| status.app == command.app) else {
        return Err(CommandRefused::NoSuchApp);
    };
    let verb = match command.verb {
        Verb::Start => app::Verb::Start,
        Verb::Stop => app::Verb::Stop,
        Verb::Restart => app::Verb::Restart,
        Verb::Quarantine => app::Verb::Quarantine,
    };
    let app = status.app.clone();
    if status.role == AppRole::Service && matches!(command.verb, Verb::Stop | Verb::Quarantine) {
        let why = "is a service of the node and cannot be stopped while the node runs; it can be restarted";
        return Err(CommandRefused::NotPossible(format!("{app} {why}")));
    }
    let why = command.why.as_deref().map(|why| legible(why, WHY_BYTES_MAX));
    let sender = legible(&command.sender, SENDER_BYTES_MAX);
    let text = format!("{} (over REST, {sender})", verb.as_str());
    let record = Record::new(now_unix_ms, "asked", "operator", text).of_app(&app);
    Ok((SupervisorEvent::Operator { app, verb, why }, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{AppState, ZoneKind};

    fn status(name: &str, role: AppRole) -> AppStatus {
        AppStatus {
            app: name.to_owned(),
            role,
            zone: 1,
            kind: ZoneKind::Process,
            demoted: None,
            state: AppState::Running,
            since_unix_ms: 0,
            restarts: 0,
            generation: 1,
            pid: None,
            last_end: None,
            not_enforced: Vec::new(),
            note: None,
            listens: Vec::new(),
        }
    }

    fn judged(app: &str, verb: Verb) -> Result<(SupervisorEvent, Record), CommandRefused> {
        let command = AppCommand {
            ticket: 1,
            app: app.to_owned(),
            verb,
            why: Some("it\u{1b} leaks".to_owned()),
            sender: "token ops\n".to_owned(),
        };
        judge(&command, &[status("hub", AppRole::App), status("flows", AppRole::Service)], 7)
    }

    #[test]
    fn only_what_the_operator_wrote_permits_it() {
        let check = |json: &str, expected: bool| {
            let settings = serde_json::from_str(json).unwrap();
            assert_eq!(check_permitted(&settings).is_ok(), expected, "{json}");
        };
        check("{}", false);
        check(r#"{"may_change_apps":false}"#, false);
        check(r#"{"may_change_apps":"yes"}"#, false);
        check(r#"{"may_change_apps":true,"unknown":1}"#, false);
        check(r#"{"may_change_apps":true}"#, true);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let check = |app: &str, verb, expected: Option<&str>| {
            let refused = judged(app, verb).err().map(|refused| match refused {
                CommandRefused::NoSuchApp => "no such app".to_owned(),
                CommandRefused::NotPossible(why) => why,
            });
            assert_eq!(refused.is_some(), expected.is_some(), "{app} {verb:?}");
            assert!(refused.unwrap_or_default().contains(expected.unwrap_or_default()), "{app} {verb:?}");
        };
        check("nobody", Verb::Start, Some("no such app"));
        check("flows", Verb::Stop, Some("flows is a service"));
        check("flows", Verb::Quarantine, Some("flows is a service"));
        check("flows", Verb::Restart, None);
        check("hub", Verb::Stop, None);
    }

    #[test]
    fn the_audit_log_has_the_sender_and_nothing_that_steers_a_terminal() {
        let (event, record) = judged("hub", Verb::Stop).unwrap();
        let SupervisorEvent::Operator { app, verb, why } = event else { panic!("{event:?}") };
        assert_eq!((app.as_str(), verb, why.as_deref()), ("hub", app::Verb::Stop, Some("it\\u{1b} leaks")));
        assert_eq!((record.what.as_str(), record.who.as_str()), ("asked", "operator"));
        assert_eq!(record.text, "stop (over REST, token ops\\n)");
    }
}
