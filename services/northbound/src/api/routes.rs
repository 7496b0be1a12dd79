//! The table of all resources, and the way from a request to one of them.
//!
//! In: a request, the role of its sender, and the state. Out: an answer. The description for code generators is made from the same table.

#[cfg(test)]
use super::context::Answer;
use super::context::{Answered, Context, ID, Route, Takes};
use super::ofctl::entries::{self, Means};
use super::{
    annotations, apps, explain, incidents, index, metrics, network_files, ofctl, onos, openapi, page, ryu,
    slice_vnics, slices, streams, topology, writes,
};
use crate::access::permits;
use crate::http::{Method, Problem, Request};
use crate::state::State;
use burnet_sdk::view::Kind;
use northbound_contract::{Role, Verb};
use std::sync::LazyLock;

const fn get(
    path: &'static str,
    schema: &'static str,
    about: &'static str,
    takes: Takes,
    act: fn(&Context<'_>) -> Answered,
) -> Route {
    Route {
        method: Method::Get,
        path,
        about,
        schema,
        body: "",
        needs: Role::Viewer,
        has_tag: true,
        takes,
        act,
    }
}

/// A resource about one slice, or about those that the sender may see.
const fn of_slice(
    path: &'static str,
    schema: &'static str,
    about: &'static str,
    act: fn(&Context<'_>) -> Answered,
) -> Route {
    Route { needs: Role::Tenant, has_tag: false, ..get(path, schema, about, NONE, act) }
}

/// A resource whose answer has no tag: it is different each time, or it has nothing by which a change could be noticed.
const fn untagged(route: Route) -> Route {
    Route { has_tag: false, ..route }
}

const fn change(
    method: Method,
    path: &'static str,
    (body, schema): (&'static str, &'static str),
    about: &'static str,
    act: fn(&Context<'_>) -> Answered,
) -> Route {
    Route { method, path, about, schema, body, needs: Role::Operator, has_tag: false, takes: NONE, act }
}

/// A command for an app.
const fn command(path: &'static str, about: &'static str, act: fn(&Context<'_>) -> Answered) -> Route {
    Route { needs: Role::Admin, ..change(Method::Post, path, ("AppCommand", ""), about, act) }
}

/// A change of an entry with Ryu's JSON.
const fn entry(path: &'static str, about: &'static str, act: fn(&Context<'_>) -> Answered) -> Route {
    change(Method::Post, path, ("", ""), about, act)
}

/// An addition with ONOS's JSON. Its clients may name an app: the names of rule sets have it, and other additions ignore it.
const fn add(path: &'static str, about: &'static str, act: fn(&Context<'_>) -> Answered) -> Route {
    Route { takes: Takes::Only(&["appId"]), ..change(Method::Post, path, ("", ""), about, act) }
}

/// A removal without a schema.
const fn remove(path: &'static str, about: &'static str, act: fn(&Context<'_>) -> Answered) -> Route {
    change(Method::Delete, path, ("", ""), about, act)
}

/// A request that only reads, and has a body that says what.
const fn choosing(path: &'static str, about: &'static str, act: fn(&Context<'_>) -> Answered) -> Route {
    change(Method::Post, path, ("", ""), about, act)
}

const NONE: Takes = Takes::Only(&[]);

/// All resources.
pub static ROUTES: &[Route] = &[
    untagged(get("/api/v1", "Index", "The addresses of the collections.", NONE, index::index)),
    untagged(get("/api/v1/node", "Node", "The node.", NONE, index::node)),
    get("/api/v1/openapi.json", "", "This description.", NONE, openapi::answer),
    untagged(get(
        "/api/v1/apps",
        "Apps",
        "Apps and services of the node.",
        Takes::Only(&["role", "state", "limit"]),
        apps::list,
    )),
    untagged(get("/api/v1/apps/{id}", "App", "One app.", NONE, apps::one)),
    command("/api/v1/apps/{id}/start", "Starts an app if it does not run.", |it| {
        apps::command(it, Verb::Start)
    }),
    command("/api/v1/apps/{id}/stop", "Stops an app.", |it| apps::command(it, Verb::Stop)),
    command("/api/v1/apps/{id}/restart", "Restarts an app.", |it| apps::command(it, Verb::Restart)),
    command("/api/v1/apps/{id}/quarantine", "Stops an app until an operator restarts it.", |it| {
        apps::command(it, Verb::Quarantine)
    }),
    get(
        "/api/v1/incidents",
        "Incidents",
        "What went wrong, the newest first.",
        Takes::PageWith(incidents::FILTERS),
        incidents::list,
    ),
    get("/api/v1/incidents/{id}", "Incident", "One incident.", NONE, incidents::one),
    Route {
        needs: Role::Operator,
        has_tag: false,
        ..get(
            "/api/v1/incidents/{id}/evidence",
            "IncidentEvidence",
            "What the node kept of an incident: output, log lines, resource use.",
            NONE,
            incidents::evidence,
        )
    },
    Route {
        needs: Role::Operator,
        has_tag: false,
        ..get(
            "/api/v1/audit",
            "AuditRecords",
            "Who did what, the newest first.",
            Takes::PageWith(incidents::AUDIT_FILTERS),
            incidents::audit,
        )
    },
    of_slice("/api/v1/slices", "Slices", "The slices of tenants.", slices::list),
    of_slice("/api/v1/slices/{id}", "Slice", "One slice.", slices::one),
    of_slice(
        "/api/v1/slices/{id}/network",
        "SliceNetwork",
        "The network that the tenant of a slice sees.",
        slices::network,
    ),
    of_slice(
        "/api/v1/slices/{id}/labels",
        "SliceLabels",
        "What others leave of the links of a slice.",
        slices::labels,
    ),
    Route {
        takes: Takes::Only(&["since_s"]),
        ..of_slice(
            "/api/v1/slices/{id}/vnics",
            "SliceVnics",
            "What the VNICs of a slice are promised, and what they get, now or since a time ago.",
            slice_vnics::vnics,
        )
    },
    of_slice("/api/v1/slices/{id}/flows", "SliceFlows", "The flows of a slice.", slices::flows),
    Route {
        takes: Takes::Only(CHANGES_ONLY),
        ..of_slice(
            "/api/v1/slices/{id}/stream",
            "",
            "A slice and its labels as server-sent events.",
            streams::of_slice,
        )
    },
    Route {
        takes: Takes::Only(CHANGES_ONLY),
        ..of_slice(
            "/api/v1/slices/{id}/ws",
            "",
            "A slice and its labels over a WebSocket.",
            streams::of_slice,
        )
    },
    get("/api/v1/topology", "Topology", "The network in one piece.", NONE, topology::topology),
    get("/api/v1/switches", "Switches", "Known switches.", Takes::Page(Kind::Switch), |it| {
        page::list(it, Kind::Switch)
    }),
    get("/api/v1/switches/{id}", "Switch", "One switch.", NONE, |it| page::one(it, Kind::Switch)),
    get("/api/v1/switches/{id}/ports", "Ports", "The ports of a switch.", Takes::Page(Kind::Port), |it| {
        page::of_switch(it, Kind::Port)
    }),
    get(
        "/api/v1/switches/{id}/links",
        "Links",
        "The links that leave or reach a switch.",
        Takes::Page(Kind::Link),
        |it| page::of_switch(it, Kind::Link),
    ),
    get("/api/v1/switches/{id}/hosts", "Hosts", "The hosts at a switch.", Takes::Page(Kind::Host), |it| {
        page::of_switch(it, Kind::Host)
    }),
    get("/api/v1/ports", "Ports", "Ports.", Takes::Page(Kind::Port), |it| page::list(it, Kind::Port)),
    get("/api/v1/ports/{id}", "Port", "One port.", NONE, |it| page::one(it, Kind::Port)),
    get("/api/v1/links", "Links", "Links, each direction by itself.", Takes::Page(Kind::Link), |it| {
        page::list(it, Kind::Link)
    }),
    get("/api/v1/links/{id}", "Link", "One direction of a link.", NONE, |it| page::one(it, Kind::Link)),
    get("/api/v1/hosts", "Hosts", "Hosts.", Takes::Page(Kind::Host), |it| page::list(it, Kind::Host)),
    get("/api/v1/hosts/{id}", "Host", "One host.", NONE, |it| page::one(it, Kind::Host)),
    get(
        "/api/v1/port-counters",
        "PortCounters",
        "The counters of ports.",
        Takes::Only(&["switch"]),
        index::port_counters,
    ),
    get("/api/v1/stream", "", "Changes as server-sent events.", Takes::Only(STREAM), streams::stream),
    get("/api/v1/ws", "", "Changes over a WebSocket.", Takes::Only(STREAM), streams::stream),
    change(Method::Patch, "/api/v1/switches/{id}", ("Annotations", "Switch"), "Annotates a switch.", |it| {
        annotations::annotate(it, Kind::Switch)
    }),
    change(Method::Patch, "/api/v1/ports/{id}", ("Annotations", "Port"), "Annotates a port.", |it| {
        annotations::annotate(it, Kind::Port)
    }),
    change(Method::Patch, "/api/v1/links/{id}", ("Annotations", "Link"), "Annotates a link.", |it| {
        annotations::annotate(it, Kind::Link)
    }),
    change(Method::Delete, "/api/v1/switches/{id}", ("", ""), "Forgets a switch that is down.", |it| {
        annotations::remove(it, Kind::Switch)
    }),
    change(Method::Delete, "/api/v1/links/{id}", ("", ""), "Forgets a link that is down.", |it| {
        annotations::remove(it, Kind::Link)
    }),
    get("/metrics", "", "Metrics for Prometheus.", NONE, metrics::metrics),
    change(Method::Post, "/api/v1/hosts", ("NewHost", "Host"), "Configures a host.", writes::add_host),
    change(
        Method::Patch,
        "/api/v1/hosts/{id}",
        ("HostChange", "Host"),
        "Changes a host.",
        writes::change_host,
    ),
    change(Method::Delete, "/api/v1/hosts/{id}", ("", ""), "Removes a host.", writes::remove_host),
    get("/api/v1/intents", "Intents", "Intents.", Takes::Page(Kind::Intent), |it| {
        page::list(it, Kind::Intent)
    }),
    get("/api/v1/intents/{id}", "Intent", "One intent.", NONE, |it| page::one(it, Kind::Intent)),
    change(Method::Post, "/api/v1/intents", ("NewIntent", "Intent"), "Adds an intent.", writes::add_intent),
    change(
        Method::Put,
        "/api/v1/intents/{id}",
        ("IntentChange", "Intent"),
        "Replaces an intent.",
        writes::change_intent,
    ),
    change(
        Method::Delete,
        "/api/v1/intents/{id}",
        ("", "Intent"),
        "Withdraws an intent.",
        writes::withdraw_intent,
    ),
    get("/api/v1/paths", "Paths", "The paths of intents.", Takes::Page(Kind::Path), |it| {
        page::list(it, Kind::Path)
    }),
    get("/api/v1/paths/{id}", "Path", "One path.", NONE, |it| page::one(it, Kind::Path)),
    untagged(get(
        "/api/v1/routes",
        "Routes",
        "Ways between two ends, without an intent.",
        Takes::Only(&["from", "to", "k", "choice", "bandwidth_kbps", "latency_us_max"]),
        writes::routes,
    )),
    change(
        Method::Post,
        "/api/v1/routes",
        ("RoutePairs", "RoutesOfPairs"),
        "One way between the switches of each pair, without an intent.",
        writes::many_routes,
    ),
    untagged(get(
        "/api/v1/explain",
        "Explanation",
        "The way of a packet through the switches.",
        Takes::Only(&["from", "at", "to", "packet"]),
        explain::explain,
    )),
    untagged(get("/api/v1/flows", "Flows", "Wanted rules.", ENTRIES, |it| writes::entries(it, Kind::Rule))),
    get("/api/v1/flows/{id}", "Flow", "One wanted rule.", NONE, |it| writes::entry(it, Kind::Rule)),
    untagged(get("/api/v1/groups", "Groups", "Wanted groups.", ENTRIES, |it| {
        writes::entries(it, Kind::Group)
    })),
    get("/api/v1/groups/{id}", "Group", "One wanted group.", NONE, |it| writes::entry(it, Kind::Group)),
    untagged(get("/api/v1/meters", "Meters", "Wanted meters.", ENTRIES, |it| {
        writes::entries(it, Kind::Meter)
    })),
    get("/api/v1/meters/{id}", "Meter", "One wanted meter.", NONE, |it| writes::entry(it, Kind::Meter)),
    untagged(get("/api/v1/switches/{id}/flows", "Flows", "The wanted rules of a switch.", OF_SWITCH, |it| {
        writes::entries_of(it, Kind::Rule)
    })),
    untagged(get(
        "/api/v1/switches/{id}/groups",
        "Groups",
        "The wanted groups of a switch.",
        OF_SWITCH,
        |it| writes::entries_of(it, Kind::Group),
    )),
    untagged(get(
        "/api/v1/switches/{id}/meters",
        "Meters",
        "The wanted meters of a switch.",
        OF_SWITCH,
        |it| writes::entries_of(it, Kind::Meter),
    )),
    change(Method::Put, "/api/v1/rule-sets/{id}", ("RuleSet", ""), "Puts a set of rules.", writes::put_rules),
    change(
        Method::Delete,
        "/api/v1/rule-sets/{id}",
        ("", ""),
        "Removes a set of rules.",
        writes::remove_rules,
    ),
    get(
        "/api/v1/network-files/{id}",
        "NetworkFile",
        "The versions of a file that was applied, or NAME/VERSION: its document.",
        NONE,
        network_files::get,
    ),
    change(
        Method::Put,
        "/api/v1/network-files/{id}",
        ("NewVersion", "NetworkFile"),
        "Keeps a document as the next version of a file.",
        network_files::put,
    ),
    change(
        Method::Patch,
        "/api/v1/network-files/{id}",
        ("VersionNote", "NetworkFile"),
        "Notes that all steps of a version are taken, or how long the switches took.",
        network_files::note,
    ),
    get("/stats/switches", "", "Ryu: the datapath ids.", NONE, ryu::switches),
    get("/stats/desc/{id}", "", "Ryu: the description of a switch.", NONE, ryu::description),
    get("/stats/flow/{id}", "", "Ryu: the flow entries of a switch.", NONE, ofctl::flows),
    choosing("/stats/flow/{id}", "Ryu: chosen flow entries of a switch.", ofctl::flows),
    get("/stats/aggregateflow/{id}", "", "Ryu: sums over flow entries.", NONE, ofctl::aggregate),
    choosing("/stats/aggregateflow/{id}", "Ryu: sums over chosen flow entries.", ofctl::aggregate),
    get("/stats/flowdesc/{id}", "", "Ryu: not in OpenFlow 1.3.", NONE, ofctl::of_later_versions),
    choosing("/stats/flowdesc/{id}", "Ryu: not in OpenFlow 1.3.", ofctl::of_later_versions),
    get("/stats/table/{id}", "", "Ryu: the counters of tables.", NONE, ofctl::tables),
    get("/stats/tablefeatures/{id}", "", "Ryu: what tables can do.", NONE, ofctl::features_of_tables),
    get("/stats/queueconfig/{id}", "", "Ryu: the queues of ports.", NONE, ofctl::queue_configurations),
    get("/stats/queuedesc/{id}", "", "Ryu: not in OpenFlow 1.3.", NONE, ofctl::of_later_versions),
    get("/stats/meterdesc/{id}", "", "Ryu: not in OpenFlow 1.3.", NONE, ofctl::of_later_versions),
    entry("/stats/portdesc/modify", "Ryu: changes a port.", ofctl::change_port),
    entry("/stats/role", "Ryu: not offered.", ofctl::not_offered),
    entry("/stats/experimenter/{id}", "Ryu: not offered.", ofctl::not_offered),
    get("/stats/port/{id}", "", "Ryu: the counters of ports.", NONE, ofctl::ports),
    get("/stats/portdesc/{id}", "", "Ryu: the ports of a switch.", NONE, ofctl::port_descriptions),
    get("/stats/queue/{id}", "", "Ryu: the counters of queues.", NONE, ofctl::queues),
    get("/stats/group/{id}", "", "Ryu: the counters of groups.", NONE, ofctl::groups),
    get("/stats/groupdesc/{id}", "", "Ryu: the groups of a switch.", NONE, ofctl::group_descriptions),
    get("/stats/groupfeatures/{id}", "", "Ryu: what groups a switch can have.", NONE, ofctl::group_features),
    get("/stats/meter/{id}", "", "Ryu: the counters of meters.", NONE, ofctl::meters),
    get("/stats/meterconfig/{id}", "", "Ryu: the meters of a switch.", NONE, ofctl::meter_configurations),
    get("/stats/meterfeatures/{id}", "", "Ryu: what meters a switch can have.", NONE, ofctl::meter_features),
    get("/stats/role/{id}", "", "Ryu: the role of the node at a switch.", NONE, ofctl::role),
    entry("/stats/flowentry/add", "Ryu: adds a flow entry.", entries::add),
    entry("/stats/flowentry/modify", "Ryu: changes flow entries.", |it| entries::modify(it, Means::Within)),
    entry("/stats/flowentry/modify_strict", "Ryu: changes a flow entry.", |it| {
        entries::modify(it, Means::Strictly)
    }),
    entry("/stats/flowentry/delete", "Ryu: removes flow entries.", |it| entries::delete(it, Means::Within)),
    entry("/stats/flowentry/delete_strict", "Ryu: removes a flow entry.", |it| {
        entries::delete(it, Means::Strictly)
    }),
    change(
        Method::Delete,
        "/stats/flowentry/clear/{id}",
        ("", ""),
        "Ryu: removes all flow entries that were added here.",
        entries::clear,
    ),
    entry("/stats/groupentry/add", "Ryu: adds a group.", entries::put_group),
    entry("/stats/groupentry/modify", "Ryu: changes a group.", entries::put_group),
    entry("/stats/groupentry/delete", "Ryu: removes a group.", entries::delete_group),
    entry("/stats/meterentry/add", "Ryu: adds a meter.", entries::put_meter),
    entry("/stats/meterentry/modify", "Ryu: changes a meter.", entries::put_meter),
    entry("/stats/meterentry/delete", "Ryu: removes a meter.", entries::delete_meter),
    get("/v1.0/topology/switches", "", "Ryu: switches.", NONE, ryu::topology_switches),
    get("/v1.0/topology/switches/{id}", "", "Ryu: one switch.", NONE, ryu::topology_switch),
    get("/v1.0/topology/links", "", "Ryu: links.", NONE, ryu::topology_links),
    get("/v1.0/topology/links/{id}", "", "Ryu: the links from a switch.", NONE, ryu::topology_links_of),
    get("/v1.0/topology/hosts", "", "Ryu: hosts.", NONE, ryu::topology_hosts),
    get("/v1.0/topology/hosts/{id}", "", "Ryu: the hosts at a switch.", NONE, ryu::topology_hosts_of),
    get("/onos/v1/devices", "", "ONOS: switches.", NONE, onos::devices),
    get("/onos/v1/devices/ports", "", "ONOS: the ports of all switches.", NONE, onos::all_ports),
    get("/onos/v1/devices/{id}", "", "ONOS: one switch.", NONE, onos::one_device),
    entry("/onos/v1/devices/{id}", "ONOS: enables or disables a port.", onos::change_port),
    remove("/onos/v1/devices/{id}", "ONOS: forgets a switch that is down.", onos::remove_device),
    get("/onos/v1/devices/{id}/ports", "", "ONOS: the ports of a switch.", NONE, onos::device_ports),
    get("/onos/v1/links", "", "ONOS: links.", Takes::Only(&["device", "port", "direction"]), onos::links),
    get("/onos/v1/hosts", "", "ONOS: hosts.", NONE, onos::hosts::all),
    get("/onos/v1/hosts/{id}", "", "ONOS: one host.", NONE, onos::hosts::one),
    add("/onos/v1/hosts", "ONOS: configures a host.", onos::hosts::add),
    remove("/onos/v1/hosts/{id}", "ONOS: removes a host.", onos::hosts::remove),
    get("/onos/v1/flows", "", "ONOS: the wanted rules.", NONE, onos::flows::all),
    get(
        "/onos/v1/flows/pending",
        "",
        "ONOS: rules that no switch has confirmed.",
        NONE,
        onos::flows::pending,
    ),
    get("/onos/v1/flows/table/{id}", "", "ONOS: the wanted rules of a table.", NONE, onos::flows::of_table),
    get("/onos/v1/flows/application/{id}", "", "ONOS: the rules of an app.", NONE, onos::flows::of_app),
    get("/onos/v1/flows/{id}", "", "ONOS: the wanted rules of a switch.", NONE, onos::flows::of_device),
    add("/onos/v1/flows", "ONOS: adds rules.", onos::flows::add_all),
    add("/onos/v1/flows/{id}", "ONOS: adds a rule.", onos::flows::add_one),
    remove("/onos/v1/flows", "ONOS: removes rules.", onos::flows::remove_all),
    remove(
        "/onos/v1/flows/application/{id}",
        "ONOS: removes the rules of an app.",
        onos::flows::remove_of_app,
    ),
    remove("/onos/v1/flows/{id}", "ONOS: removes a rule.", onos::flows::remove_one),
    get("/onos/v1/intents", "", "ONOS: intents.", DETAIL, onos::intents::all),
    get(
        "/onos/v1/intents/application/{id}",
        "",
        "ONOS: the intents of an app.",
        DETAIL,
        onos::intents::of_app,
    ),
    get(
        "/onos/v1/intents/relatedflows/{id}",
        "",
        "ONOS: the rules of an intent.",
        NONE,
        onos::intents::related_flows,
    ),
    get("/onos/v1/intents/{id}", "", "ONOS: one intent.", DETAIL, onos::intents::one),
    add("/onos/v1/intents", "ONOS: adds an intent.", onos::intents::add),
    remove(
        "/onos/v1/intents/application/{id}",
        "ONOS: withdraws the intents of an app.",
        onos::intents::withdraw_of_app,
    ),
    remove("/onos/v1/intents/{id}", "ONOS: withdraws an intent.", onos::intents::withdraw),
    get(
        "/onos/v1/paths/{id}",
        "",
        "ONOS: the shortest paths between two elements.",
        NONE,
        onos::intents::paths,
    ),
    get("/onos/v1/topology", "", "ONOS: the size of the network.", NONE, onos::topology::size),
    get("/onos/v1/topology/clusters", "", "ONOS: the parts.", NONE, onos::topology::all_clusters),
    get("/onos/v1/topology/clusters/{id}", "", "ONOS: one part.", NONE, onos::topology::one_cluster),
    get(
        "/onos/v1/topology/broadcast/{id}",
        "",
        "ONOS: whether a port floods.",
        NONE,
        onos::topology::broadcast,
    ),
    get(
        "/onos/v1/topology/infrastructure/{id}",
        "",
        "ONOS: whether a link is at a port.",
        NONE,
        onos::topology::infrastructure,
    ),
];

/// The filters of rules, groups and meters.
const ENTRIES: Takes = Takes::PageWith(&["switch", "owner", "state", "table_id"]);

/// The same for those of one switch.
const OF_SWITCH: Takes = Takes::PageWith(&["owner", "state", "table_id"]);

/// Whether ONOS shows all of an intent.
const DETAIL: Takes = Takes::Only(&["detail"]);

const STREAM: &[&str] = &["kinds", "changes_only"];

const CHANGES_ONLY: &[&str] = &["changes_only"];

/// A path of the table in its parts, so that no request splits it again.
struct Pattern {
    route: &'static Route,
    parts: Vec<&'static str>,
    /// Where `{id}` is.
    at: Option<usize>,
    /// Whether `{id}` stands for all parts to the end.
    is_rest: bool,
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| ROUTES.iter().map(Pattern::of).collect());

impl Pattern {
    fn of(route: &'static Route) -> Pattern {
        let parts: Vec<&str> = route.path.trim_start_matches('/').split('/').collect();
        let at = parts.iter().position(|part| *part == ID);
        let is_rest = at.is_some_and(|at| at + 1 == parts.len());
        Pattern { route, parts, at, is_rest }
    }

    fn matches(&self, segments: &[String]) -> bool {
        let fits = segments.len() == self.parts.len() || self.is_rest && segments.len() > self.parts.len();
        fits && self.parts.iter().zip(segments).all(|(part, segment)| *part == ID || part == segment)
    }

    /// A path without a placeholder, or a longer one, is meant rather than the rest of a shorter one.
    fn rank(&self) -> (usize, bool) {
        (self.parts.len(), self.at.is_none())
    }

    /// What stands for `{id}`; empty if the path has none.
    fn id(&self, segments: &[String]) -> String {
        match self.at {
            None => String::new(),
            Some(at) if self.is_rest => segments[at..].join("/"),
            Some(at) => segments[at].clone(),
        }
    }
}

/// The methods of the resource with this path, for a request with another one.
///
/// # Errors
/// There is no such resource.
pub fn methods(path: &str) -> Result<Vec<&'static str>, Problem> {
    let segments = Request::new(Method::Get, path)?.segments()?;
    let found = meant(&segments);
    match found.is_empty() {
        true => Err(no_resource()),
        false => Ok(names(&found)),
    }
}

fn names(found: &[&Pattern]) -> Vec<&'static str> {
    found.iter().map(|pattern| pattern.route.method.name()).collect()
}

/// The resources with this path: one for each method.
fn meant(segments: &[String]) -> Vec<&'static Pattern> {
    let mut found: Vec<&Pattern> = PATTERNS.iter().filter(|pattern| pattern.matches(segments)).collect();
    let longest = found.iter().map(|pattern| pattern.rank()).max();
    found.retain(|pattern| Some(pattern.rank()) == longest);
    found
}

fn no_resource() -> Problem {
    Problem::not_found("no resource has this address: /api/v1 lists them")
}

/// Answers a request.
///
/// # Errors
/// There is no such resource, or the request is wrong, or the role too low.
pub fn answer(state: &State, request: &Request, role: Role) -> Answered {
    let segments = request.segments()?;
    let found = meant(&segments);
    if found.is_empty() {
        return Err(no_resource());
    }
    let Some(pattern) = found.iter().find(|pattern| pattern.route.method == request.method) else {
        return Err(Problem::bad_method(&names(&found)));
    };
    let route = pattern.route;
    permits(role, route.needs)?;
    if let Some((name, _)) = request.parameters.iter().find(|(name, _)| !route.takes.has(name)) {
        return Err(Problem::parameter(name, "this resource has no such parameter"));
    }
    (route.act)(&Context { state, request, id: &pattern.id(&segments), role, routes: ROUTES })
}

/// For tests: what a resource answers at once.
#[cfg(test)]
pub fn ready(state: &State, target: &str) -> crate::http::Response {
    let request = Request::new(Method::Get, target);
    let answered = request.and_then(|request| answer(state, &request, Role::Viewer));
    match answered {
        Ok(Answer::Ready(response)) => response,
        Ok(other) => panic!("{target}: {other:?}"),
        Err(problem) => problem.to_response(target),
    }
}
