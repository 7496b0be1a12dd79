//! One request and its response.
//!
//! In: the head of a request and its body. Out: the response. It checks sender, role, method and body in this order, so that a wrong sender learns
//! nothing and costs nothing.

use super::body::{self, ResponseBody};
use super::events::Events;
use super::websocket;
use crate::access::Access;
use crate::api::{self, Answer, Call, First, SwitchQuestion};
use crate::app::{Changed, FEW_MAX, Northbound, Reply, Shared, now_ms};
use crate::feed::{CLIENTS_MAX, Interest, OPERATORS_MAX};
use crate::guard::{self, Sender};
use crate::http::{Method, Problem, Request, Response};
use crate::steps::{Question, Steps, Turn};
use crate::{access, files};
use burnet_sdk::{DatapathId, PortMod};
use burnet_sdk_tokio::Handle;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::sync::{Semaphore, SemaphorePermit};
use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use northbound_contract::{AppCommand, Role};
use std::sync::Arc;
use std::time::Duration;

/// How long another service may take to answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a switch may take to answer.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP address.
    Remote,
    /// The socket file that only the operator may open.
    Operator,
}

/// What answers requests.
#[derive(Clone)]
pub struct Exchange {
    /// The app.
    pub app: Handle<Northbound>,
    /// What requests share.
    pub shared: Arc<Shared>,
    /// Who may do what.
    pub access: Arc<Access>,
}

/// How long all calls for one request may take together: less than one call may, so that what is known by then is answered.
const STEPS_TIMEOUT: Duration = Duration::from_secs(9);

/// How long all calls of a chain may take together. An addition or a removal of many rules asks for
/// each rule, and a removal first for each page.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(30);

type HttpResponse = hyper::Response<ResponseBody>;

/// A response, or what follows its head.
enum Outcome {
    Whole(Response),
    ServerSent(Events),
    WebSocket(Response, Events),
}

impl Exchange {
    /// Answers a request.
    pub async fn answer(&self, request: hyper::Request<Incoming>, peer: Peer) -> HttpResponse {
        let path = request.uri().path().to_owned();
        let name = Method::named(request.method().as_str()).map_or("OTHER", Method::name);
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
        let outcome = self.outcome(&parts, body, peer).await;
        let outcome = outcome.unwrap_or_else(|problem| {
            let response = problem.to_response(&path);
            // What is left of the body is not read.
            let ends = matches!(problem.status, 408 | 413);
            Outcome::Whole(if ends { response.with("connection", "close") } else { response })
        });
        let response = match outcome {
            // Only a read can be refused after it was carried out.
            Outcome::Whole(response) if name == Method::Get.name() => {
                whole(self.bounded(response, &path, peer))
            }
            Outcome::Whole(response) => whole(response),
            Outcome::ServerSent(events) => {
                let head = Response::new(200, "text/event-stream", "").with("cache-control", "no-store");
                let (parts, _) = whole(head).into_parts();
                HttpResponse::from_parts(parts, ResponseBody::Events(Box::new(events)))
            }
            Outcome::WebSocket(head, events) => {
                upgrade.map(|upgrade| tokio::spawn(websocket::run(upgrade, events)));
                whole(head)
            }
        };
        let status = response.status().as_u16();
        *self.shared.state().requests.entry((name, status)).or_default() += 1;
        response
    }

    /// The response, with room for its body until the client has it. A refusal, if clients that read slowly have all the room.
    fn bounded(&self, response: Response, path: &str, peer: Peer) -> Response {
        let room = match peer {
            Peer::Operator => &self.shared.operator_answers,
            Peer::Remote => &self.shared.answers,
        };
        match body::held(response.body.clone(), room) {
            Ok(body) => Response { body, ..response },
            Err(problem) => problem.to_response(path),
        }
    }

    async fn outcome(
        &self,
        parts: &hyper::http::request::Parts,
        body: Incoming,
        peer: Peer,
    ) -> Result<Outcome, Problem> {
        let headers = &parts.headers;
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let is_remote = peer == Peer::Remote;
        let is_read = matches!(Method::named(parts.method.as_str()), Some(Method::Get));
        if is_remote {
            let sender = Sender {
                host: text("host"),
                origin: text("origin"),
                fetch_site: text("sec-fetch-site"),
                // A link reads. A form of another site also navigates, and must change nothing.
                fetch_mode: text("sec-fetch-mode").filter(|_| is_read),
            };
            guard::check(&sender, &self.shared.settings.names)?;
        }
        let path = parts.uri.path();
        // The page itself is no secret; what it shows needs a token.
        if let Some(file) = files::file(path).filter(|_| is_read) {
            return Ok(Outcome::Whole(file.unless_known(text(IF_NONE_MATCH.as_str()))));
        }
        let is_websocket = path.starts_with("/api/v1/") && path.ends_with("/ws");
        let sender = match is_remote {
            false => access::Sender::operator(),
            true => {
                let protocol = if is_websocket { websocket::authorization(headers) } else { None };
                let header = headers.get(AUTHORIZATION).map(|it| it.to_str().unwrap_or_default().to_owned());
                self.access.sender(header.or(protocol).as_deref())?
            }
        };
        let bodies = if is_remote { &self.shared.bodies } else { &self.shared.operator_bodies };
        let (mut request, _room) = read(parts, body, sender.role, bodies).await?;
        (request.sender, request.slice) = (sender.name, sender.slice);
        let answer = {
            let mut state = self.shared.state();
            state.now_ms = now_ms();
            api::answer(&state, &request, sender.role)?
        };
        self.carry_out(answer, &request, (headers, peer)).await
    }

    async fn carry_out(
        &self,
        mut answer: Answer,
        request: &Request,
        (headers, peer): (&HeaderMap, Peer),
    ) -> Result<Outcome, Problem> {
        if let Answer::Stream(Interest { slice: Some(slice), .. }) = &answer {
            let slice = slice.clone();
            let ended = |_| Problem::no_service("northbound", "the node ends");
            self.app.act(move |app, out| app.follow_labels(&slice, out)).await.map_err(ended)?;
        }
        let streams_max = CLIENTS_MAX + if peer == Peer::Operator { OPERATORS_MAX } else { 0 };
        let until = tokio::time::Instant::now() + CHAIN_TIMEOUT;
        loop {
            return match answer {
                Answer::Then(First { service, payload, next }) => {
                    let late = |_| {
                        Problem::no_service(service, "all calls for the request took longer than 30 seconds")
                    };
                    let asked = tokio::time::timeout_at(until, self.ask(service, payload)).await;
                    let (status, payload) = asked.map_err(late)??;
                    answer = next(status, &payload)?;
                    continue;
                }
                Answer::Ready(response) => Ok(Outcome::Whole(response)),
                Answer::Call(call) => {
                    let response = self.call(call).await?;
                    let is_read = request.method == Method::Get;
                    let known = request.if_none_match.as_deref().filter(|_| is_read);
                    Ok(Outcome::Whole(response.unless_known(known)))
                }
                Answer::Ask(question) => self.ask_switch(question).await.map(Outcome::Whole),
                Answer::Port(switch, change) => self.change_port(switch, change).await.map(Outcome::Whole),
                Answer::Steps(steps) => self.steps(steps).await.map(Outcome::Whole),
                Answer::Order(command) => self.order(command).await.map(Outcome::Whole),
                Answer::Evidence(number) => self.evidence(number).await.map(Outcome::Whole),
                Answer::Stream(interest) if request.path.ends_with("/ws") => {
                    let head = websocket::accept(headers)?;
                    Ok(Outcome::WebSocket(head, Events::join(&self.shared, interest, streams_max)?))
                }
                Answer::Stream(interest) => {
                    Events::join(&self.shared, interest, streams_max).map(Outcome::ServerSent)
                }
            };
        }
    }

    /// Calls services, one after the other, as long as there is time.
    async fn steps(&self, mut steps: Box<dyn Steps>) -> Result<Response, Problem> {
        let until = tokio::time::Instant::now() + STEPS_TIMEOUT;
        let turn = steps.turn();
        let _alone = if turn == Turn::Alone {
            let alone = tokio::time::timeout_at(until, self.shared.alone.lock()).await;
            Some(alone.map_err(|_| Problem::too_many("another change of a network file is under way"))?)
        } else {
            None
        };
        let few = (turn == Turn::Few).then(|| self.shared.few.try_acquire());
        let why = || format!("{FEW_MAX} such requests run already: ask again when one has ended");
        let _few = few.transpose().map_err(|_| Problem::too_many(why()))?;
        while let Some(Question { service, payload }) = steps.question() {
            match tokio::time::timeout_at(until, self.ask(service, payload)).await {
                Ok(reply) => reply.map(|(status, payload)| steps.take(status, &payload))?,
                Err(_) => {
                    steps.stop();
                    break;
                }
            }
        }
        steps.response()
    }

    async fn call(&self, call: Call) -> Result<Response, Problem> {
        let Call { service, payload, read } = call;
        let (status, payload) = self.ask(service, payload).await?;
        read(status, &payload)
    }

    /// Asks a service, and waits for its answer.
    async fn ask(&self, service: &'static str, payload: Vec<u8>) -> Result<Reply, Problem> {
        let ended = |_| Problem::no_service(service, "the node ends");
        let waiting = self.app.act(move |app, out| app.call(service, &payload, out)).await.map_err(ended)?;
        let waiting =
            waiting.ok_or_else(|| Problem::too_many("too many requests wait for services of the node"))?;
        let late = |_| Problem::no_service(service, "it did not answer within 10 seconds");
        let reply = tokio::time::timeout(CALL_TIMEOUT, waiting).await.map_err(late)?;
        reply.map_err(|_| Problem::no_service(service, "it ended"))
    }

    /// Asks a switch.
    async fn ask_switch(&self, question: SwitchQuestion) -> Result<Response, Problem> {
        let SwitchQuestion { switch, multipart, body, read } = question;
        let no_answer = |why: &str| {
            let detail = format!("the switch {switch} did not answer: {why}");
            Problem::new(504, "no-answer", "The switch did not answer", detail)
        };
        let asked = self.app.act(move |app, out| app.ask_switch(switch, (multipart, &body), out)).await;
        let waiting = asked.map_err(|_| no_answer("the node ends"))?;
        let waiting = waiting.ok_or_else(|| Problem::too_many("too many requests wait for switches"))?;
        let late = |_| no_answer("it took longer than 5 seconds");
        let parts = tokio::time::timeout(SWITCH_TIMEOUT, waiting).await.map_err(late)?;
        let parts = parts.map_err(|_| no_answer("the node ends"))?;
        read(&parts.map_err(|why| no_answer(&why))?)
    }

    /// Changes a port, and waits until the switch has confirmed it.
    async fn change_port(&self, switch: DatapathId, change: PortMod) -> Result<Response, Problem> {
        let no_answer = |why: &str| {
            let detail = format!("the switch {switch} did not confirm the change: {why}");
            Problem::new(504, "no-answer", "The switch did not answer", detail)
        };
        let asked = self.app.act(move |app, out| app.change_port(switch, change, out)).await;
        let waiting = asked.map_err(|_| no_answer("the node ends"))?;
        let waiting = waiting.ok_or_else(|| Problem::too_many("too many requests wait for switches"))?;
        let late = |_| no_answer("it took longer than 5 seconds");
        let changed = tokio::time::timeout(SWITCH_TIMEOUT, waiting).await.map_err(late)?;
        match changed.map_err(|_| no_answer("the node ends"))? {
            Changed::Done => Ok(Response::new(200, "", "")),
            Changed::Refused(why) => Err(Problem::conflict(format!("the port is as it was: {why}"))),
            Changed::Unknown(why) => Err(no_answer(&why)),
        }
    }

    /// Sends the monitor a command.
    async fn order(&self, command: AppCommand) -> Result<Response, Problem> {
        let ended = |_| Problem::no_service("monitor", "the node ends");
        let name = command.app.clone();
        let waiting = self.app.act(move |app, out| app.order(command, out)).await.map_err(ended)?;
        let waiting = waiting.ok_or_else(|| Problem::too_many("too many commands wait for the monitor"))?;
        let late = |_| Problem::no_service("monitor", "it did not answer within 10 seconds");
        let answer = tokio::time::timeout(CALL_TIMEOUT, waiting).await.map_err(late)?;
        api::answered(&name, answer.map_err(|_| Problem::no_service("monitor", "the node ends"))?)
    }

    /// Asks the monitor for the evidence of an incident.
    async fn evidence(&self, number: u64) -> Result<Response, Problem> {
        let ended = |_| Problem::no_service("monitor", "the node ends");
        let waiting = self.app.act(move |app, out| app.read_evidence(number, out)).await.map_err(ended)?;
        let waiting = waiting.ok_or_else(|| Problem::too_many("too many requests wait for evidence"))?;
        let late = |_| Problem::no_service("monitor", "it did not answer within 10 seconds");
        let evidence = tokio::time::timeout(CALL_TIMEOUT, waiting).await.map_err(late)?;
        api::evidence_shown(number, evidence.map_err(|_| Problem::no_service("monitor", "the node ends"))?)
    }
}

/// The request as a value, and the room that its body has until it is answered. A body is read only if the role may change something.
async fn read<'r>(
    parts: &hyper::http::request::Parts,
    body: Incoming,
    role: Role,
    bodies: &'r Semaphore,
) -> Result<(Request, Option<SemaphorePermit<'r>>), Problem> {
    let Some(method) = Method::named(parts.method.as_str()) else {
        return Err(Problem::bad_method(&api::methods(parts.uri.path())?));
    };
    let target = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    let mut request = Request::new(method, target)?;
    let text = |name: &HeaderName| parts.headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
    request.if_none_match = text(&IF_NONE_MATCH);
    request.if_match = text(&IF_MATCH);
    if method == Method::Get {
        return Ok((request, None));
    }
    access::permits(role, Role::Operator)?;
    let room = body::room(&body, bodies).await?;
    request.body = body::read(body).await?;
    let is_json = |it: &str| it.split(';').next().is_some_and(|it| it.trim().ends_with("json"));
    // Programs for Ryu declare nothing, or a form. Pages of other sites are refused by their origin.
    let is_ryus = request.path.starts_with("/stats/");
    if !request.body.is_empty() && !is_ryus && !text(&CONTENT_TYPE).as_deref().is_some_and(is_json) {
        let detail = "send the body as JSON, with the header Content-Type: application/json";
        return Err(Problem::new(415, "not-json", "The body is not declared as JSON", detail));
    }
    Ok((request, room))
}

/// Headers of every response: what a browser must not do with it.
const ALWAYS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    (
        "content-security-policy",
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; \
         form-action 'none'",
    ),
];

fn whole(response: Response) -> HttpResponse {
    let Response { status, content_type, body, etag, headers } = response;
    let mut out = HttpResponse::new(ResponseBody::Whole(Some(body).filter(|body| !body.is_empty())));
    *out.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let own = headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value));
    for (name, value) in own.chain(etag.map(|etag| (ETAG, etag))) {
        if let Ok(value) = HeaderValue::try_from(value) {
            out.headers_mut().insert(name, value);
        }
    }
    if !content_type.is_empty() && status != 304 {
        out.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in ALWAYS {
        out.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    out
}
