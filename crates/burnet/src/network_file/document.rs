//! What a network file says, checked by the rules of the services that will get it.
//!
//! ```text
//!   {"name", "protected", "host": [...], "intent": [...], "rules": [...]} ──read──> Document, or the first wrong entry with its field
//! ```
//!
//! In: a value, from a file or from the node. Out: typed objects, whose names begin with the name of the file. It asks nobody whether a host or a
//! switch exists.

use burnet_sdk::view::{Annotations, ConnectPoint, HostId, Wanted};
use flows_contract::WantedSet;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The longest name of a file. The node has the same bound.
const NAME_BYTES_MAX: usize = 24;

/// The most objects of a file. A file with more is refused: divide it.
pub const OBJECTS_MAX: usize = 10_000;

/// A host that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedHost {
    /// Its Ethernet address and VLAN.
    pub id: HostId,
    /// Where it is.
    pub at: ConnectPoint,
    /// Its addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// Notes.
    pub annotations: Annotations,
}

/// An intent that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedIntent {
    /// Its name in the network: the name of the file, a slash, and the name in the file.
    pub name: String,
    /// What is wanted.
    pub wanted: Wanted,
    /// Notes.
    pub annotations: Annotations,
}

/// A network file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its name. The names of its objects begin with it.
    pub name: String,
    /// Ports that carry the connections of switches to the node. A plan that touches them is refused.
    pub protected: Vec<ConnectPoint>,
    /// Its hosts.
    pub hosts: Vec<WantedHost>,
    /// Its intents.
    pub intents: Vec<WantedIntent>,
    /// Its sets of rules.
    pub rules: Vec<WantedSet>,
    /// The whole, as the node keeps it.
    pub value: Value,
}

/// What is wrong with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// The table, such as `intent`, and its number, from 0. `None`: a key at the top.
    pub entry: Option<(&'static str, usize)>,
    /// The key.
    pub field: Option<String>,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl Document {
    /// The document of a file that wants nothing.
    pub fn empty(name: &str) -> Document {
        let value = json!({ "name": name });
        Document { name: name.to_owned(), value, ..Document::default() }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(value: Value) -> Result<Document, Wrong> {
        let Value::Object(members) = &value else {
            return Err(at_top(None, "it is no table"));
        };
        let name = members.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        check_file_name(&name)?;
        if let Some(unknown) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(at_top(Some(unknown), format!("unknown key: write one of {}", KEYS.join(", "))));
        }
        let mut document = Document { name, ..Document::default() };
        document.protected = protected(members.get("protected"))?;
        let mut names = Names::default();
        for (number, host) in entries(members, "host")? {
            document.hosts.push(read_host(host, number, &mut names)?);
        }
        for (number, intent) in entries(members, "intent")? {
            document.intents.push(read_intent(intent, number, &document.name, &mut names)?);
        }
        for (number, rules) in entries(members, "rules")? {
            document.rules.push(read_rules(rules, number, &document.name, &mut names)?);
        }
        if document.objects() > OBJECTS_MAX {
            let why = format!(
                "{} objects are more than the limit of {OBJECTS_MAX}: divide the file",
                document.objects()
            );
            return Err(at_top(None, why));
        }
        document.value = value;
        Ok(document)
    }

    /// How many objects it has.
    pub fn objects(&self) -> usize {
        self.hosts.len() + self.intents.len() + self.rules.len()
    }

    /// Whether an object with this name is one of the file's, now or earlier.
    pub fn owns(&self, name: &str) -> bool {
        name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('/'))
    }
}

const KEYS: [&str; 5] = ["name", "protected", "host", "intent", "rules"];

/// The ids and names that a file has used already.
#[derive(Default)]
struct Names(BTreeSet<(&'static str, String)>);

impl Names {
    fn add(&mut self, table: &'static str, number: usize, field: &str, name: String) -> Result<(), Wrong> {
        if self.0.insert((table, name.clone())) {
            return Ok(());
        }
        Err(at(table, number, Some(field), format!("{name:?} is there twice: leave one of them out")))
    }
}

fn at_top(field: Option<&str>, reason: impl Into<String>) -> Wrong {
    Wrong { entry: None, field: field.map(str::to_owned), reason: reason.into() }
}

fn at(table: &'static str, number: usize, field: Option<&str>, reason: impl Into<String>) -> Wrong {
    Wrong { entry: Some((table, number)), field: field.map(str::to_owned), reason: reason.into() }
}

/// A refusal of a contract: most begin with the field.
fn of_sentence(table: &'static str, number: usize, sentence: &str, members: &Map<String, Value>) -> Wrong {
    let sentence = sentence.strip_prefix("the question is wrong: ").unwrap_or(sentence);
    let sentence = sentence.strip_prefix("intent.").unwrap_or(sentence);
    let is_field = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte))
    };
    if let Some((field, reason)) = sentence.split_once(": ").filter(|(name, _)| is_field(name)) {
        return at(table, number, Some(field), reason);
    }
    let field = sentence.split('`').nth(1).filter(|_| sentence.contains("field `"));
    // Others name only the wrong value.
    let with_value =
        || members.iter().find(|(_, value)| is_named(value, sentence)).map(|(key, _)| key.as_str());
    at(table, number, field.or_else(with_value), sentence)
}

/// Whether a sentence has this value between quotes.
fn is_named(value: &Value, sentence: &str) -> bool {
    match value {
        Value::String(text) => {
            sentence.contains(&format!("{text:?}")) || sentence.contains(&format!("'{text}'"))
        }
        Value::Array(values) => values.iter().any(|value| is_named(value, sentence)),
        Value::Object(members) => members.values().any(|value| is_named(value, sentence)),
        _ => false,
    }
}

fn check_file_name(name: &str) -> Result<(), Wrong> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        let why = format!(
            "write a name of 1 to {NAME_BYTES_MAX} lower-case letters, digits and hyphens, such as name = \"campus\""
        );
        return Err(at_top(Some("name"), why));
    }
    Ok(())
}

fn protected(value: Option<&Value>) -> Result<Vec<ConnectPoint>, Wrong> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let wrong = |why: String| at_top(Some("protected"), why);
    let list =
        value.as_array().ok_or_else(|| wrong("write a list of ports, such as [\"of:1/4\"]".to_owned()))?;
    list.iter()
        .map(|port| port.as_str().unwrap_or_default().parse().map_err(|why| wrong(format!("{why}"))))
        .collect()
}

type Entries<'v> = Vec<(usize, &'v Map<String, Value>)>;

fn entries<'v>(members: &'v Map<String, Value>, table: &'static str) -> Result<Entries<'v>, Wrong> {
    let Some(value) = members.get(table) else { return Ok(Vec::new()) };
    let no_tables = || at_top(Some(table), format!("write tables: [[{table}]]"));
    let list = value.as_array().ok_or_else(no_tables)?;
    list.iter()
        .enumerate()
        .map(|(number, entry)| Ok((number, entry.as_object().ok_or_else(no_tables)?)))
        .collect()
}

fn question(members: &Map<String, Value>, more: &[(&str, Value)]) -> Vec<u8> {
    let mut question = members.clone();
    question.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Object(question).to_string().into_bytes()
}

fn read_host(host: &Map<String, Value>, number: usize, names: &mut Names) -> Result<WantedHost, Wrong> {
    if host.contains_key("op") {
        return Err(at("host", number, Some("op"), "unknown key"));
    }
    let read = hosts_contract::Question::from_bytes(&question(host, &[("op", "add".into())]));
    match read.map_err(|why| of_sentence("host", number, &why, host))? {
        hosts_contract::Question::Add { id, at, mut addresses, annotations } => {
            names.add("host", number, "id", id.to_string())?;
            addresses.sort();
            addresses.dedup();
            Ok(WantedHost { id, at, addresses, annotations })
        }
        _ => Err(at("host", number, None, "it is no host")),
    }
}

fn read_intent(
    intent: &Map<String, Value>,
    number: usize,
    file: &str,
    names: &mut Names,
) -> Result<WantedIntent, Wrong> {
    let name = object_name("intent", intent, number, file)?;
    names.add("intent", number, "name", name.clone())?;
    let mut wanted = intent.clone();
    wanted.remove("name");
    let annotations = wanted.remove("annotations").unwrap_or_else(|| json!({}));
    let whole = json!({ "op": "add", "name": name, "annotations": annotations, "intent": wanted });
    let read = paths_contract::Question::from_bytes(whole.to_string().as_bytes());
    match read.map_err(|why| of_sentence("intent", number, &why, intent))? {
        paths_contract::Question::Add { name, intent, annotations } => {
            Ok(WantedIntent { name, wanted: intent, annotations })
        }
        _ => Err(at("intent", number, None, "it is no intent")),
    }
}

fn read_rules(
    rules: &Map<String, Value>,
    number: usize,
    file: &str,
    names: &mut Names,
) -> Result<WantedSet, Wrong> {
    let name = object_name("rules", rules, number, file)?;
    names.add("rules", number, "name", name.clone())?;
    if let Some(unknown) = ["op", "version", "permanent"].iter().find(|key| rules.contains_key(**key)) {
        return Err(at(
            "rules",
            number,
            Some(unknown),
            "unknown key: sets of a file are kept until the file changes them",
        ));
    }
    let more = [("op", "put".into()), ("name", name.into()), ("permanent", true.into())];
    let read = flows_contract::Question::from_bytes(&question(rules, &more));
    match read.map_err(|why| of_sentence("rules", number, &why, rules))? {
        flows_contract::Question::Put(set) => check_rules(set, number),
        _ => Err(at("rules", number, None, "it is no set of rules")),
    }
}

/// What the service would refuse only when the set arrives there.
fn check_rules(set: WantedSet, number: usize) -> Result<WantedSet, Wrong> {
    for (rule, one) in set.rules.iter().enumerate() {
        let field = |name: &str| format!("rules[{rule}].{name}");
        if (one.idle_timeout_s, one.hard_timeout_s) != (0, 0) {
            let why = "a rule of a file has no time-outs: the file would no longer say what is there";
            return Err(at("rules", number, Some(&field("idle_timeout_s")), why));
        }
        if let Err(why) = flow::canonical::check_prerequisites(&one.matching.clone().sorted()) {
            return Err(at("rules", number, Some(&field("match")), why.message.to_string()));
        }
        if let Err(why) = flow::canonical::write_instructions(&one.instructions, &mut Vec::new()) {
            return Err(at("rules", number, Some(&field("instructions")), why.to_string()));
        }
    }
    Ok(set)
}

/// The name of an object in the network.
fn object_name(
    table: &'static str,
    members: &Map<String, Value>,
    number: usize,
    file: &str,
) -> Result<String, Wrong> {
    let name = members.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || name.contains('/') {
        return Err(at(table, number, Some("name"), "write a name without a slash, such as name = \"web\""));
    }
    let name = format!("{file}/{name}");
    if name.len() > flows_contract::SET_NAME_BYTES_MAX {
        let why = format!(
            "{name:?} has {} bytes, and at most {} are possible",
            name.len(),
            flows_contract::SET_NAME_BYTES_MAX
        );
        return Err(at(table, number, Some("name"), why));
    }
    Ok(name)
}
