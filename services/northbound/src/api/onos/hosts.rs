//! Hosts in the interface of ONOS.
//!
//! In: the view, and requests with ONOS's JSON. Out: JSON, or questions for the service `hosts`. It changes no host itself. A host
//! of the node has one place, where ONOS may know several.

use super::criteria::plain;
use super::ready;
use super::shapes::{host, host_name, read_host};
use crate::api::context::{Answer, Answered, Call, Context, Reading};
use crate::api::page::missing;
use crate::api::refusal::{of_sentence, refusal};
use crate::api::writes::{OF_HOSTS, done, object};
use crate::http::request::encoded;
use crate::http::{Problem, Response};
use burnet_sdk::view::{ConnectPoint, HostId, Key};
use hosts_contract::Question;
use serde_json::{Value, json};

/// `GET /onos/v1/hosts`
pub fn all(context: &Context<'_>) -> Answered {
    let hosts: Vec<_> = context.state.view.hosts().map(host).collect();
    ready(&json!({ "hosts": hosts }))
}

/// `GET /onos/v1/hosts/{id}`: the Ethernet address, a slash, and the VLAN or `None`.
pub fn one(context: &Context<'_>) -> Answered {
    let id = named(context)?;
    ready(&host(context.state.view.host(id).ok_or_else(|| missing(Key::Host(id)))?))
}

fn named(context: &Context<'_>) -> Result<HostId, Problem> {
    let wrong = || Problem::not_found(&format!("{:?} is no host: write MAC/VLAN or MAC/None", context.id));
    read_host(context.id).ok_or_else(wrong)
}

/// `POST /onos/v1/hosts`: configures a host.
pub fn add(context: &Context<'_>) -> Answered {
    let body = object(context)?;
    let text = |name: &str| body.get(name).and_then(plain);
    let mac = text("mac").ok_or_else(|| Problem::field("mac", "mac: it is missing"))?;
    let vlan = text("vlan").unwrap_or_else(|| "None".to_owned());
    let wrong = || Problem::field("mac", format!("{mac:?} with the VLAN {vlan:?} is no host"));
    let id = read_host(&format!("{mac}/{vlan}")).ok_or_else(wrong)?;
    let at = match (body.get("locations"), body.get("location")) {
        (Some(Value::Array(all)), _) if all.len() == 1 => place(&all[0])?,
        (Some(_), _) => return Err(Problem::field("locations", "locations: write a list with one location")),
        (None, Some(one)) => place(one)?,
        (None, None) => return Err(Problem::field("locations", "locations: they are missing")),
    };
    let addresses = match body.get("ipAddresses") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            let address = |it: &Value| it.as_str().and_then(|it| it.parse().ok());
            let wrong = || Problem::field("ipAddresses", "ipAddresses: an item is no IP address");
            list.iter().map(address).collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(Problem::field("ipAddresses", "ipAddresses: write a list")),
    };
    let payload = Question::Add { id, at, addresses, annotations: Default::default() }.to_bytes();
    Question::from_bytes(&payload).map_err(|why| of_sentence(&why))?;
    let read: Reading = Box::new(move |answer, payload| match answer {
        0 => {
            let location = format!("/onos/v1/hosts/{}", encoded(&host_name(id)));
            Ok(Response::new(201, "", "").with("location", location))
        }
        answer => Err(refusal(&OF_HOSTS, answer, payload)),
    });
    Ok(Answer::Call(Call { service: hosts_contract::SERVICE, payload, read }))
}

fn place(location: &Value) -> Result<ConnectPoint, Problem> {
    let at = || {
        let (switch, port) = (location["elementId"].as_str()?, plain(&location["port"])?);
        Some(ConnectPoint { switch: switch.parse().ok()?, port: port.parse().ok()? })
    };
    let why = "locations: write {\"elementId\": \"of:0000000000000001\", \"port\": \"1\"}";
    at().ok_or_else(|| Problem::field("locations", why))
}

/// `DELETE /onos/v1/hosts/{id}`
pub fn remove(context: &Context<'_>) -> Answered {
    done(&OF_HOSTS, Question::Remove { id: named(context)? }.to_bytes())
}
