//! What a resource is, what it is asked, and what it may answer.
//!
//! In and out: values. It decides nothing.

use super::filters;
use crate::feed::Interest;
use crate::http::response::{JSON, is_known};
use crate::http::{Method, Problem, Request, Response};
use crate::state::State;
use crate::steps::Steps;
use burnet_sdk::view::Kind;
use burnet_sdk::{DatapathId, PortMod};
use northbound_contract::{AppCommand, Role};
use std::fmt;

/// What to do with a request.
#[derive(Debug)]
pub enum Answer {
    /// Send this.
    Ready(Response),
    /// Call a service, and send what its answer becomes.
    Call(Call),
    /// Call services, one after the other.
    Steps(Box<dyn Steps>),
    /// Call a service. Its answer decides what is done next.
    Then(First),
    /// Ask a switch, and send what its answer becomes.
    Ask(SwitchQuestion),
    /// Change a port of a switch, and send an empty response when the switch has confirmed it.
    Port(DatapathId, PortMod),
    /// Send the monitor a command for an app, and send what [`super::answered`] makes of its answer.
    Order(AppCommand),
    /// Ask the monitor for the evidence of the incident with this number, and send what [`super::evidence_shown`] makes of it.
    Evidence(u64),
    /// Send events until the client leaves.
    Stream(Interest),
}

/// What the answer of a service becomes: its status and payload go in.
pub type Reading = Box<dyn FnOnce(u16, &[u8]) -> Result<Response, Problem> + Send>;

/// A call of another service.
pub struct Call {
    /// The service.
    pub service: &'static str,
    /// The question.
    pub payload: Vec<u8>,
    /// What its answer becomes.
    pub read: Reading,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, {})", self.service, String::from_utf8_lossy(&self.payload))
    }
}

/// What is done after the answer of a service: its status and payload go in.
pub type Next = Box<dyn FnOnce(u16, &[u8]) -> Answered + Send>;

/// A call of another service whose answer decides what is done next.
pub struct First {
    /// The service.
    pub service: &'static str,
    /// The question.
    pub payload: Vec<u8>,
    /// What is done after the answer.
    pub next: Next,
}

impl fmt::Debug for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "First({}, {})", self.service, String::from_utf8_lossy(&self.payload))
    }
}

/// What the parts of a switch's answer become.
pub type Showing = Box<dyn FnOnce(&[Vec<u8>]) -> Result<Response, Problem> + Send>;

/// A statistics request to a switch.
pub struct SwitchQuestion {
    /// The switch.
    pub switch: DatapathId,
    /// `ofp_multipart_type`, or [`burnet_sdk::QUEUE_CONFIG`], or [`burnet_sdk::ROLE`].
    pub multipart: u16,
    /// The body of the request, in the form of OpenFlow 1.3.
    pub body: Vec<u8>,
    /// What its answer becomes.
    pub read: Showing,
}

impl fmt::Debug for SwitchQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SwitchQuestion({}, {}, {:02x?})", self.switch, self.multipart, self.body)
    }
}

/// A request to one resource.
pub struct Context<'a> {
    /// What is known.
    pub state: &'a State,
    /// The request.
    pub request: &'a Request,
    /// The part of the path that stands for `{id}`.
    pub id: &'a str,
    /// The role of its sender.
    pub role: Role,
    /// All resources.
    pub routes: &'static [Route],
}

/// What a resource answers.
pub type Answered = Result<Answer, Problem>;

impl Context<'_> {
    /// The value of a parameter, if it was sent.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.request.parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// A number among the parameters, within bounds.
    pub fn number(&self, name: &str, (low, high): (usize, usize)) -> Result<Option<usize>, Problem> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|it| (low..=high).contains(it));
        let wrong =
            || Problem::parameter(name, format!("{text:?} is wrong: write a number from {low} to {high}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// The tag of what these kinds show now.
    pub fn tag(&self, kinds: &[Kind]) -> String {
        format!("\"{}-{}\"", self.state.run, self.state.version_of(kinds))
    }

    /// A body that shows the state with this tag, or 304 if the client has it. The body is made only if it is sent.
    pub fn tagged(&self, tag: String, body: impl FnOnce() -> Vec<u8>) -> Answered {
        if is_known(&tag, self.request.if_none_match.as_deref()) {
            return Ok(Answer::Ready(Response::new(304, JSON, "").tagged(tag)));
        }
        Ok(Answer::Ready(Response::json(body()).tagged(tag)))
    }

    /// The same, and the body is kept: as long as the tag is the same, the next client gets it without making it again.
    pub fn kept(&self, tag: String, body: impl FnOnce() -> Vec<u8>) -> Answered {
        if is_known(&tag, self.request.if_none_match.as_deref()) {
            return self.tagged(tag, Vec::new);
        }
        let body = self.state.bodies.get_or_make(self.request, &tag, body);
        Ok(Answer::Ready(Response::json(body).tagged(tag)))
    }

    /// The response, or 304 if the client has it.
    pub fn ready(&self, response: Response) -> Answered {
        Ok(Answer::Ready(response.unless_known(self.request.if_none_match.as_deref())))
    }
}

/// What stands for one part of a path, or, at the end, for the rest of it.
pub const ID: &str = "{id}";

/// Which parameters a resource takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// These.
    Only(&'static [&'static str]),
    /// Those of a page, and the filters of this kind.
    Page(Kind),
    /// Those of a page, and these.
    PageWith(&'static [&'static str]),
}

impl Takes {
    /// Whether it is one of them.
    pub fn has(self, name: &str) -> bool {
        match self {
            Takes::Only(names) => names.contains(&name),
            Takes::Page(kind) => PAGE.contains(&name) || filters::names(kind).contains(&name),
            Takes::PageWith(names) => PAGE.contains(&name) || names.contains(&name),
        }
    }
}

/// The parameters of every page.
pub const PAGE: [&str; 2] = ["limit", "after"];

/// One method of one resource.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path. `{id}` stands for one part, or for the rest at the end.
    pub path: &'static str,
    /// What it does, as a sentence for the description.
    pub about: &'static str,
    /// The schema of its answer, in `schemas.json`. Empty: any JSON.
    pub schema: &'static str,
    /// The schema of its body. Empty: it has none.
    pub body: &'static str,
    /// The role that it needs.
    pub needs: Role,
    /// Whether its answer has a tag, so that a client can ask whether it has changed.
    pub has_tag: bool,
    /// The parameters.
    pub takes: Takes,
    /// What it does.
    pub act: fn(&Context<'_>) -> Answered,
}
