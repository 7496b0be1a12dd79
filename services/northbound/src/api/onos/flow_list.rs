//! Lists of flow rules in the interface of ONOS: the rules that are wanted, with the counters that switches report.
//!
//! ```text
//!   filters ──pages of rules──> rules ──counters of each switch──> {"flows": […]}
//! ```
//!
//! In: filters, and answers of the service `flows`. Out: its next question, and in the end the response. It asks for no more pages than
//! [`PAGES_MAX`], and keeps only the counters of rules that it shows.

use super::{criteria, instructions};
use crate::api::refusal::refusal;
use crate::api::writes::{OF_FLOWS, read_json};
use crate::http::{Problem, Response};
use crate::steps::{self, Steps, Turn};
use burnet_sdk::DatapathId;
use burnet_sdk::view::rule::EntryState;
use burnet_sdk::view::{Key, Kind, Object, Record, Rule, RuleId};
use flows_contract::{Counters, EntryPage, Filter, PAGE_MAX, Question, status};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How the names of sets of this interface begin.
pub const FLOWS: &str = "onos/";

/// The most pages of rules that one request reads. If there are more, it is refused.
const PAGES_MAX: usize = 10;

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Which {
    /// Rules that fit one of the filters, and of those only the ones of this app, if one is named.
    Fitting(VecDeque<Filter>, Option<String>),
    /// One rule.
    One(RuleId),
}

/// How the response names the rules.
#[derive(Clone, Debug)]
pub enum Shown {
    /// `{"flows": […]}`
    Flows,
    /// Those of an intent: of an app, with this key.
    OfIntent(String, String),
}

/// A request that is under way.
#[derive(Debug)]
pub struct FlowList {
    which: Which,
    shown: Shown,
    after: Option<Key>,
    pages: usize,
    rules: Vec<Rule>,
    ids: BTreeSet<RuleId>,
    /// The switches whose counters are still to be asked for. `None`: not all rules are known.
    switches: Option<VecDeque<DatapathId>>,
    counters: BTreeMap<RuleId, Counters>,
    problem: Option<Problem>,
    now_ms: u64,
}

impl FlowList {
    /// Begins.
    pub fn new(which: Which, shown: Shown, now_ms: u64) -> FlowList {
        FlowList {
            which,
            shown,
            after: None,
            pages: 0,
            rules: Vec::new(),
            ids: BTreeSet::new(),
            switches: None,
            counters: BTreeMap::new(),
            problem: None,
            now_ms,
        }
    }

    /// What the service is asked next.
    fn next(&mut self) -> Option<Question> {
        if let Some(switches) = &self.switches {
            // The rule of a request for a single one is in one table.
            let table_id =
                if self.rules.len() == 1 { self.rules.first().map(|it| it.table_id) } else { None };
            return switches.front().map(|switch| Question::Counters { switch: *switch, table_id });
        }
        match &self.which {
            Which::One(id) => Some(Question::Get { key: Key::Rule(*id) }),
            Which::Fitting(filters, _) => filters.front().map(|filter| Question::List {
                kind: Kind::Rule,
                filter: filter.clone(),
                after: self.after,
                limit: Some(PAGE_MAX),
            }),
        }
    }

    fn on_answer(&mut self, answer: u16, payload: &[u8]) -> Result<(), Problem> {
        if let Some(switches) = &mut self.switches {
            switches.pop_front();
            // A switch that does not answer has no counters.
            if answer == status::DONE {
                let found: Vec<Counters> = read_json(&OF_FLOWS, payload)?;
                let shown = found.into_iter().filter(|it| self.ids.contains(&it.id));
                self.counters.extend(shown.map(|it| (it.id, it)));
            }
            return Ok(());
        }
        if answer != status::DONE {
            return Err(refusal(&OF_FLOWS, answer, payload));
        }
        match &mut self.which {
            Which::One(_) => {
                let damaged = |why: String| Problem::no_service(flows_contract::SERVICE, &why);
                self.rules.extend(rule(Record::from_bytes(payload).map_err(damaged)?));
                self.listed();
            }
            Which::Fitting(filters, app) => {
                let page: EntryPage = read_json(&OF_FLOWS, payload)?;
                let found = page.entries.into_iter().filter_map(rule);
                self.rules.extend(found.filter(|rule| app.as_deref().is_none_or(|app| app_of(rule) == app)));
                self.after = page.next;
                self.pages += 1;
                if self.after.is_none() {
                    filters.pop_front();
                }
                if filters.is_empty() {
                    self.listed();
                } else if self.pages >= PAGES_MAX {
                    return Err(too_many());
                }
            }
        }
        Ok(())
    }

    /// All rules are known.
    fn listed(&mut self) {
        self.ids = self.rules.iter().map(|rule| rule.id).collect();
        let switches: BTreeSet<DatapathId> = self.rules.iter().map(|rule| rule.id.switch).collect();
        self.switches = Some(switches.into_iter().collect());
    }
}

/// More rules would have to be read than one request may.
pub fn too_many() -> Problem {
    let why = format!("more than {} rules would have to be read", PAGES_MAX * PAGE_MAX);
    Problem::new(507, "no-room", "The node cannot keep it", why)
}

fn rule(record: Record) -> Option<Rule> {
    match record.object {
        Object::Rule(rule) => Some(rule),
        _ => None,
    }
}

impl Steps for FlowList {
    fn question(&mut self) -> Option<steps::Question> {
        let question = if self.problem.is_some() { None } else { self.next() };
        question.map(|it| steps::Question { service: flows_contract::SERVICE, payload: it.to_bytes() })
    }

    fn take(&mut self, answer: u16, payload: &[u8]) {
        if let Err(problem) = self.on_answer(answer, payload) {
            self.problem = Some(problem);
        }
    }

    /// A list holds up to ten thousand rules, and asks switches. A single rule is little.
    fn turn(&self) -> Turn {
        match self.which {
            Which::One(_) => Turn::Any,
            Which::Fitting(..) => Turn::Few,
        }
    }

    fn stop(&mut self) {
        // Counters that are not known by then are zero, as those of a switch that does not answer.
        if self.switches.is_none() {
            self.problem = Some(Problem::no_service(flows_contract::SERVICE, "it did not answer in time"));
        }
    }

    fn response(self: Box<Self>) -> Result<Response, Problem> {
        let FlowList { shown, rules, counters, problem, now_ms, .. } = *self;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let flows: Vec<Value> =
            rules.iter().map(|rule| one(rule, counters.get(&rule.id).copied(), now_ms)).collect();
        Ok(Response::value(&match shown {
            Shown::Flows => json!({ "flows": flows }),
            Shown::OfIntent(app, key) => json!({ "appId": app, "id": key, "paths": [flows] }),
        }))
    }
}

/// The app of a rule: the one that ONOS's client has named, or the owner in the node.
pub fn app_of(rule: &Rule) -> &str {
    let named = rule.set.strip_prefix(FLOWS).filter(|_| rule.owner == northbound_contract::SERVICE);
    let named = named.and_then(|name| {
        let mut parts = name.split('/');
        let app = parts.next()?;
        // A set without an app has four parts: see `set_of`.
        (parts.count() == 1).then_some(app)
    });
    named.unwrap_or(&rule.owner)
}

fn one(rule: &Rule, counters: Option<Counters>, now_ms: u64) -> Value {
    let timeout = rule.idle_timeout_s.max(rule.hard_timeout_s);
    json!({
        "groupId": 0,
        "state": word(rule.state),
        "life": counters.map_or(0, |it| it.duration_s),
        "liveType": "UNKNOWN",
        "lastSeen": now_ms,
        "packets": counters.map_or(0, |it| it.packets),
        "bytes": counters.map_or(0, |it| it.bytes),
        "id": rule.id.number.to_string(),
        "appId": app_of(rule),
        "priority": rule.priority,
        "timeout": timeout,
        "isPermanent": timeout == 0,
        "deviceId": rule.id.switch.to_string(),
        "tableId": rule.table_id,
        "tableName": rule.table_id.to_string(),
        "treatment": instructions::shown(&rule.instructions),
        "selector": criteria::shown(&rule.matching),
    })
}

/// The states that ONOS calls pending.
pub const PENDING: [EntryState; 3] = [EntryState::Pending, EntryState::Waiting, EntryState::Removing];

fn word(state: EntryState) -> &'static str {
    match state {
        EntryState::Installed => "ADDED",
        EntryState::Removing => "PENDING_REMOVE",
        EntryState::Failed => "FAILED",
        EntryState::Pending | EntryState::Waiting => "PENDING_ADD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(switch: u64, number: u64) -> String {
        format!("of:{switch:016x}/{number:016x}")
    }

    fn record(switch: u64, number: u64, owner: &str, set: &str) -> Value {
        json!({"stamp": {"term": 1, "sequence": 1, "origin": 0},
               "object": {"kind": "rule", "id": id(switch, number), "owner": owner, "set": set, "table_id": 3, "priority": 7,
                          "match": {}, "cookie": 1, "instructions": [], "state": "installed"}})
    }

    /// Plays the service: what it is asked, and what comes of its answers.
    fn play(which: Which, answers: &[(u16, Value)]) -> (Vec<Value>, Result<Value, u16>) {
        let mut list = Box::new(FlowList::new(which, Shown::Flows, 5));
        let mut asked = Vec::new();
        for (status, payload) in answers {
            let Some(question) = list.question() else { break };
            asked.push(serde_json::from_slice(&question.payload).unwrap());
            list.take(*status, payload.to_string().as_bytes());
        }
        assert!(list.question().is_none(), "it asks more");
        let response = list.response().map_err(|problem| problem.status);
        (asked, response.map(|it| serde_json::from_slice(&it.body).unwrap()))
    }

    fn all() -> Which {
        Which::Fitting(VecDeque::from([Filter::default()]), None)
    }

    #[test]
    fn rules_of_all_pages_have_the_counters_of_their_switches() {
        let page = |records: &[Value], next: Option<String>| {
            let mut page = json!({ "entries": records });
            if let Some(next) = next {
                page["next"] = next.into();
            }
            (0, page)
        };
        let counters = json!([{"id": id(2, 1), "wanted": true, "packets": 9, "bytes": 90, "duration_s": 4},
                              {"id": id(2, 5), "wanted": false, "packets": 1, "bytes": 1, "duration_s": 1}]);
        let answers = [
            page(&[record(1, 1, "paths", "intent/1")], Some(format!("rule/{}", id(1, 1)))),
            page(&[record(2, 1, "qos", "a")], None),
            (status::NO_ANSWER_OF_SWITCH, Value::Null),
            (0, counters),
        ];
        let (asked, shown) = play(all(), &answers);
        let ops: Vec<_> = asked.iter().map(|it| it["op"].as_str().unwrap()).collect();
        assert_eq!(ops, ["list", "list", "counters", "counters"]);
        let shown = shown.unwrap();
        let flows = shown["flows"].as_array().unwrap();
        let packets: Vec<_> = flows.iter().map(|it| it["packets"].as_u64().unwrap()).collect();
        assert_eq!(packets, [0, 9]);
    }

    #[test]
    fn one_rule_is_asked_for_by_its_number_and_counted_in_its_table() {
        let id = RuleId { switch: DatapathId(1), number: 7 };
        let (asked, shown) = play(
            Which::One(id),
            &[(0, record(1, 7, "qos", "a")), (status::NO_ANSWER_OF_SWITCH, Value::Null)],
        );
        assert_eq!((&asked[0]["op"], &asked[1]["table_id"]), (&json!("get"), &json!(3)));
        assert_eq!(shown.unwrap()["flows"][0]["id"], "7");
        let gone = play(Which::One(id), &[(status::NOT_FOUND, Value::Null)]).1;
        assert_eq!(gone, Err(404));
    }

    #[test]
    fn a_network_with_too_many_rules_is_not_read_to_its_end() {
        let endless =
            (0, json!({"entries": [record(1, 1, "qos", "a")], "next": format!("rule/{}", id(1, 1))}));
        let (asked, shown) = play(all(), &vec![endless; PAGES_MAX + 5]);
        assert_eq!((asked.len(), shown), (PAGES_MAX, Err(507)));
    }

    #[test]
    fn rules_are_those_of_an_app_of_onos_or_of_the_node() {
        let of = |owner: &str, set: &str| {
            let record: Record = serde_json::from_value(record(1, 1, owner, set)).unwrap();
            app_of(&rule(record).unwrap()).to_owned()
        };
        assert_eq!(of("northbound", "onos/org.example.fwd/00ff"), "org.example.fwd");
        assert_eq!(of("northbound", "onos/1/0/5/00ff"), "northbound");
        assert_eq!(of("northbound", "ryu/flow/1/0/5/00ff"), "northbound");
        assert_eq!(of("qos", "onos/org.example.fwd/00ff"), "qos");
    }
}
