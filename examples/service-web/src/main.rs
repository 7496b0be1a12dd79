//! The service `service-web`: it answers HTTP requests with axum, inside the sandbox of a process zone.
//!
//! ```text
//!   node ──switches──> Web ──Handle::act──> handlers of axum ──HTTP──> browser
//!                                              └─ on the socket that the node has opened
//! ```
//!
//! In: switches that connect and disconnect, and requests. Out: text. It changes no switch and stores nothing. The number of open
//! connections is bounded by the limit `open_files` of its zone.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use burnet_sdk::{App, Commands, DatapathId, Interests, Settings, SwitchUp};
use burnet_sdk_tokio::{Handle, Listener};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// The connected switches with their numbers of ports: at most as many as the node lets connect.
#[derive(Default)]
struct Web {
    switches: BTreeMap<u64, usize>,
}

impl App for Web {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Web::default())
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, _: &mut Commands) {
        self.switches.insert(up.datapath.0, up.ports.len());
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.switches.remove(&datapath.0);
    }
}

impl Web {
    fn list(&self) -> String {
        let line =
            |(datapath, ports): (&u64, &usize)| format!("{} with {ports} ports\n", DatapathId(*datapath));
        self.switches.iter().map(line).collect()
    }
}

async fn switches(State(web): State<Handle<Web>>) -> Result<String, StatusCode> {
    web.act(|web, _| web.list()).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn serve(web: Handle<Web>, listeners: Vec<Listener>) -> Result<(), String> {
    let Some(listener) = listeners.into_iter().next() else {
        return Err("net.listen grants no address: see app.toml".to_owned());
    };
    let routes = Router::new()
        .route("/", get(async || "Burnet's connected switches: /switches\n"))
        .route("/switches", get(switches))
        .with_state(web);
    let ended = match listener {
        Listener::Tcp(tcp) => axum::serve(tcp, routes).await,
        Listener::Unix(unix) => axum::serve(unix, routes).await,
    };
    ended.map_err(|error| format!("it cannot serve: {error}"))
}

fn main() -> ExitCode {
    burnet_sdk_tokio::run(serve)
}
