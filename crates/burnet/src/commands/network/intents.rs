//! `burnet intents`: list, add and withdraw intents, and wait until it is done.
//!
//! In: parsed options. Out: text or JSON. With `--wait`, it follows the stream of intents and asks nothing repeatedly.

use super::client::Client;
use super::{Collection, client, failed, objects, rows};
use crate::cli::CommandError;
use crate::cli::network::{AddIntentArgs, IntentsArgs, IntentsCommand, WithdrawIntentArgs};
use crate::commands::json;
use serde_json::{Value, json};

/// Runs the subcommand, or lists the intents.
pub fn intents(args: &IntentsArgs) -> Result<String, CommandError> {
    match &args.command {
        None => objects(&args.list, Collection::Intents),
        Some(IntentsCommand::Add(add)) => {
            let client = client(&add.asking)?;
            let intent = self::add(&client, add).map_err(failed)?;
            show(&intent, add.asking.json)
        }
        Some(IntentsCommand::Withdraw(withdraw)) => {
            let client = client(&withdraw.asking)?;
            let intent = self::withdraw(&client, withdraw).map_err(failed)?;
            show(&intent, withdraw.asking.json)
        }
    }
}

fn show(intent: &Value, as_json: bool) -> Result<String, CommandError> {
    if as_json { json(intent) } else { Ok(rows::table("intents", std::slice::from_ref(intent))) }
}

fn add(client: &Client, args: &AddIntentArgs) -> Result<Value, String> {
    let added = client.ask("POST", "/api/v1/intents", Some(&wanted(args)))?;
    let Some(id) = added["id"].as_u64().filter(|_| args.wait) else { return Ok(added) };
    client.events("/api/v1/stream?kinds=intent", |event| settled(event, id))?
}

/// The body of the request.
fn wanted(args: &AddIntentArgs) -> Value {
    // A port has a slash, a host has none.
    let mut wanted = match args.from.contains('/') || args.to.contains('/') {
        true => json!({ "type": "point_to_point", "from": args.from, "to": args.to }),
        false => json!({ "type": "host_to_host", "one": args.from, "two": args.to }),
    };
    if let Some(members) = wanted.as_object_mut() {
        let mut add =
            |name: &str, value: Option<Value>| members.extend(value.map(|it| (name.to_owned(), it)));
        add("name", args.name.as_deref().map(Value::from));
        add("priority", args.priority.map(Value::from));
        add("constraints", args.bandwidth_kbps.map(|kbps| json!({ "bandwidth_kbps": kbps })));
        add("protection", args.protected.then(|| "protected".into()));
    }
    wanted
}

/// The intent once it is installed, or why it is not.
fn settled(event: &Value, id: u64) -> Option<Result<Value, String>> {
    let object = &event["object"];
    if object["id"].as_u64() != Some(id) || event["event"] == "remove" {
        return (event["key"] == format!("intent/{id}"))
            .then(|| Err("another operator withdrew it".to_owned()));
    }
    let reason = || object["reason"].as_str().unwrap_or("the node gives no reason").to_owned();
    match object["state"].as_str()? {
        "installed" => Some(Ok(object.clone())),
        "failed" => Some(Err(format!("the intent {id} cannot be served: {}", reason()))),
        "waiting" => Some(Err(format!("the intent {id} is kept, and waits: {}", reason()))),
        _ => None,
    }
}

fn withdraw(client: &Client, args: &WithdrawIntentArgs) -> Result<Value, String> {
    let id = args.id;
    let intent = client.ask("DELETE", &format!("/api/v1/intents/{id}"), None)?;
    if !args.wait {
        return Ok(intent);
    }
    let mut is_there = false;
    client.events("/api/v1/stream?kinds=intent", |event| match event["event"].as_str() {
        Some("remove") => (event["key"] == format!("intent/{id}")).then_some(()),
        Some("put") => {
            is_there |= event["object"]["id"].as_u64() == Some(id);
            None
        }
        // It was gone before the stream began.
        Some("complete") if !is_there => Some(()),
        _ => None,
    })?;
    Ok(intent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(from: &str, to: &str) -> AddIntentArgs {
        AddIntentArgs {
            from: from.to_owned(),
            to: to.to_owned(),
            name: None,
            priority: None,
            bandwidth_kbps: Some(5),
            protected: true,
            wait: false,
            asking: Default::default(),
        }
    }

    #[test]
    fn two_hosts_and_two_ports_are_connected() {
        let check = |from: &str, to: &str, ends: Value| {
            let mut expected = ends;
            expected["constraints"] = json!({"bandwidth_kbps": 5});
            expected["protection"] = "protected".into();
            assert_eq!(wanted(&args(from, to)), expected);
        };
        check("1/1", "2/1", json!({"type": "point_to_point", "from": "1/1", "to": "2/1"}));
        let (one, two) = ("00:00:00:00:00:01", "00:00:00:00:00:02");
        check(one, two, json!({"type": "host_to_host", "one": one, "two": two}));
    }

    #[test]
    fn it_waits_for_its_own_intent_only() {
        let check = |event: Value, expected: Option<Result<&str, &str>>| {
            let got = settled(&event, 7);
            let got = got.map(|it| it.map(|it| it["state"].as_str().unwrap_or_default().to_owned()));
            match (&got, expected) {
                (None, None) => {}
                (Some(Ok(state)), Some(Ok(expected))) => assert_eq!(state, expected),
                (Some(Err(why)), Some(Err(part))) => assert!(why.contains(part), "{why}"),
                _ => panic!("{event}: {got:?}"),
            }
        };
        let put = |id: u64, state: &str| json!({"event": "put", "key": format!("intent/{id}"), "object": {"id": id, "state": state, "reason": "to: unknown"}});
        check(json!({"event": "begin"}), None);
        check(put(8, "installed"), None);
        check(put(7, "installing"), None);
        check(put(7, "installed"), Some(Ok("installed")));
        check(put(7, "failed"), Some(Err("to: unknown")));
        check(put(7, "waiting"), Some(Err("waits: to: unknown")));
        check(json!({"event": "remove", "key": "intent/8"}), None);
        check(json!({"event": "remove", "key": "intent/7"}), Some(Err("withdrew")));
    }
}
