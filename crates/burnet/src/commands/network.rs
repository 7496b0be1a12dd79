//! The commands about the network view: they ask the REST interface over the socket file that only the operator may open.
//!
//! ```text
//!   burnet links ──GET /api/v1/links──> service northbound ──> table, JSON, or a line for each change
//! ```
//!
//! In: parsed options. Out: text or JSON. The commands keep nothing.

mod annotate;
mod client;
mod explain;
mod files;
mod intents;
mod rows;
mod settle;
mod watch;

pub use annotate::annotate;
pub use explain::explain;
pub use files::{apply_file, plan_file, rollback};
pub use intents::intents;
pub use watch::follow;

use super::json;
use crate::cli::network::{EventsArgs, MetricsArgs, ObjectsArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::network_file::current::objects as objects_of;
use crate::slice_plan::substrate::Description;
use burnet_sdk::view::{Link, Path, Port};
pub use client::Client;
pub use client::encoded;
use config::Environment;
use serde_json::Value;

/// The collections that a command lists, with the kind of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Ports.
    Ports,
    /// Links.
    Links,
    /// Hosts.
    Hosts,
    /// Wanted groups.
    Groups,
    /// Wanted meters.
    Meters,
    /// The paths of intents.
    Paths,
    /// Intents.
    Intents,
}

impl Collection {
    fn name(self) -> &'static str {
        match self {
            Collection::Ports => "ports",
            Collection::Links => "links",
            Collection::Hosts => "hosts",
            Collection::Groups => "groups",
            Collection::Meters => "meters",
            Collection::Paths => "paths",
            Collection::Intents => "intents",
        }
    }

    fn kind(self) -> &'static str {
        self.name().trim_end_matches('s')
    }
}

/// The way to the node that these options name.
///
/// # Errors
/// This user has no socket, and the options name none.
pub fn client(asking: &NodeArgs) -> Result<Client, CommandError> {
    let socket = Environment::of_this_process()?.socket(asking.socket.as_deref(), None)?;
    Ok(Client::beside(&socket))
}

fn failed(why: String) -> CommandError {
    CommandError::DidNotWork(why)
}

/// Lists the objects of a collection, or watches them.
pub fn objects(args: &ObjectsArgs, collection: Collection) -> Result<String, CommandError> {
    let client = client(&args.asking)?;
    if args.watch {
        if let Some(filter) = args.filters.first() {
            return Err(failed(format!("--watch shows all objects of a kind: leave --where {filter} out")));
        }
        return watch::watch(&client, collection.kind(), false, args.asking.json).map_err(failed);
    }
    let items = all(&client, collection, &args.filters)?;
    if args.asking.json { json(&items) } else { Ok(rows::table(collection.name(), &items)) }
}

/// The network below slices, from the running node's view.
///
/// # Errors
/// The node cannot be asked.
pub fn description(asking: &NodeArgs) -> Result<Description, CommandError> {
    described(&client(asking)?)
}

/// The same over this way to a node.
///
/// # Errors
/// The node cannot be asked.
pub fn described(client: &Client) -> Result<Description, CommandError> {
    let all = |collection| all(client, collection, &[]);
    let links: Vec<Link> = objects_of(all(Collection::Links)?).map_err(failed)?;
    let ports: Vec<Port> = objects_of(all(Collection::Ports)?).map_err(failed)?;
    let paths: Vec<Path> = objects_of(all(Collection::Paths)?).map_err(failed)?;
    Ok(Description::of_view(links, &ports, &paths))
}

/// All objects, page by page.
fn all(client: &Client, collection: Collection, filters: &[String]) -> Result<Vec<Value>, CommandError> {
    let mut target = format!("/api/v1/{}?limit=1000", collection.name());
    for filter in filters {
        let (name, value) = filter.split_once('=').ok_or_else(|| {
            failed(format!("--where {filter}: write NAME=VALUE, for example --where switch=1"))
        })?;
        target += &format!("&{}={}", encoded(name), encoded(value));
    }
    paged(client, &target).map_err(failed)
}

/// The items of a collection, page by page.
fn paged(client: &Client, first: &str) -> Result<Vec<Value>, String> {
    let (mut items, mut target) = (Vec::new(), first.to_owned());
    loop {
        let page = client.ask("GET", &target, None)?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => target = next.to_owned(),
            None => return Ok(items),
        }
    }
}

/// `burnet events`: each change, until Ctrl-C.
pub fn events(args: &EventsArgs) -> Result<String, CommandError> {
    let kinds = args.kinds.as_deref().unwrap_or("switch,port,link,host,path,intent");
    watch::watch(&client(&args.asking)?, kinds, true, args.asking.json).map_err(failed)
}

/// `burnet metrics`: what Prometheus reads, or, as JSON, the samples by name.
pub fn metrics(args: &MetricsArgs) -> Result<String, CommandError> {
    let text = client(&args.asking)?.text("/metrics").map_err(failed)?;
    if !args.asking.json {
        return Ok(text);
    }
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        Some((name.to_owned(), serde_json::from_str(value).ok()?))
    };
    json(&text.lines().filter_map(sample).collect::<serde_json::Map<String, Value>>())
}
