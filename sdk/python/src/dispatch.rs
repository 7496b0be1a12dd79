//! Calls the handler for each event.
//!
//! In: event frames. Out: calls of the app's handlers, and their commands. It never catches an exception of a handler.

use crate::commands::Commands;
use crate::events::{
    Experimenter, FlowRemoved, Labels, PortStatus, Query, QueryReply, Receipt, SoftLimit, StatsReply, StreamUpdate, SwitchError,
    SwitchUp, Topic,
};
use crate::interests::{Interests, is_within};
use crate::packet::PacketIn;
use crate::view;
use abi::event::{self, kind};
use abi::{Event, Frame, Malformed};
use burnet_sdk::calls::{Calls, Heard};
use burnet_sdk::view::{Batch, Change};
use flow::Match;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::time::Duration;

/// An app in Python, with its commands.
pub(crate) struct Instance {
    app: Py<PyAny>,
    /// Bound once: nearly every event is one.
    on_packet_in: Py<PyAny>,
    /// The matches that limit its packet-ins, if there are several.
    either: Vec<Match>,
    out: Py<Commands>,
    /// Whether the time is for the SDK alone, because the app follows the view and has not asked for the time.
    hides_ticks: bool,
}

impl Instance {
    /// Creates the app with `make` from its settings, a JSON object. Its subscription and first commands go to `commands`.
    pub(crate) fn start(make: &Bound<'_, PyAny>, settings: &str, commands: &mut Vec<u8>) -> PyResult<Self> {
        let py = make.py();
        let app = make.call1((settings,))?;
        let interests: Interests = app.call_method0("interests")?.extract()?;
        let either = interests.either()?;
        let out = Bound::new(py, Commands::default())?;
        out.try_borrow_mut()?.subscribe(interests.subscribe())?;
        out.try_borrow_mut()?.follow_view(interests.kinds())?;
        app.call_method1("on_start", (&out,))?;
        out.try_borrow_mut()?.drain_into(commands);
        Ok(Instance {
            on_packet_in: app.getattr("on_packet_in")?.unbind(),
            either,
            app: app.unbind(),
            out: out.unbind(),
            hides_ticks: interests.hides_ticks(),
        })
    }

    /// Passes whole event frames to the app, and appends its commands.
    pub(crate) fn on_events(
        &self,
        py: Python<'_>,
        mut events: &[u8],
        commands: &mut Vec<u8>,
    ) -> PyResult<()> {
        while !events.is_empty() {
            let (frame, rest) = Frame::split(events).map_err(no_event)?;
            events = rest;
            self.on_frame(py, &frame)?;
        }
        self.out.bind(py).try_borrow_mut()?.drain_into(commands);
        Ok(())
    }

    /// After how much time to wake the app, if it has requested that since the last call.
    pub(crate) fn take_wake(&self, py: Python<'_>) -> Option<Duration> {
        self.out.bind(py).try_borrow_mut().ok()?.take_wake()
    }

    /// The requested time has passed. Appends the app's commands.
    pub(crate) fn on_wake(&self, py: Python<'_>, commands: &mut Vec<u8>) -> PyResult<()> {
        self.app.bind(py).call_method1("on_wake", (self.out.bind(py),))?;
        self.out.bind(py).try_borrow_mut()?.drain_into(commands);
        Ok(())
    }

    fn on_frame(&self, py: Python<'_>, frame: &Frame<'_>) -> PyResult<()> {
        if frame.header.kind.get() == kind::PACKET_IN {
            // Nearly every event is one, and is read without asking what else it might be.
            let packet = event::PacketIn::read(frame).map_err(no_event)?;
            if !is_within(&packet, &self.either) {
                return Ok(());
            }
            let packet = PacketIn::new(py, &packet);
            self.on_packet_in.bind(py).call1((packet, self.out.bind(py)))?;
            return Ok(());
        }
        let app = self.app.bind(py);
        let out = self.out.bind(py);
        match Event::read(frame).map_err(no_event)? {
            Event::SwitchUp(up) => app.call_method1("on_switch_up", (SwitchUp::from(&up), out)),
            Event::SwitchDown(datapath) => app.call_method1("on_switch_down", (datapath.0, out)),
            Event::PacketIn(packet) => app.call_method1("on_packet_in", (PacketIn::new(py, &packet), out)),
            Event::PortStatus(status) => app.call_method1("on_port_status", (PortStatus::from(&status), out)),
            Event::FlowRemoved(it) => app.call_method1("on_flow_removed", (FlowRemoved::from(&it), out)),
            Event::SwitchError(error) => {
                app.call_method1("on_switch_error", (SwitchError::from(&error), out))
            }
            Event::StatsReply(it) => app.call_method1("on_stats_reply", (StatsReply::new(py, &it), out)),
            Event::Experimenter(it) => match burnet_sdk::Labels::read(&it) {
                Some(labels) => app.call_method1("on_labels", (Labels::from(&labels), out)),
                None => app.call_method1("on_experimenter", (Experimenter::new(py, &it), out)),
            },
            Event::Receipt(datapath, it) => return hear_receipt(app, out, datapath, &it),
            Event::Dropped(count) => app.call_method1("on_dropped", (count, out)),
            Event::SoftLimit(limit) => app.call_method1("on_soft_limit", (SoftLimit::from(&limit), out)),
            Event::Topic(topic) => app.call_method1("on_topic", (Topic::new(py, &topic), out)),
            Event::Query(query) => {
                out.borrow_mut().calls().0.on_query(&query);
                app.call_method1("on_query", (Query::new(py, &query), out))
            }
            Event::QueryReply(it) if Calls::is_of_stream(it.ticket) => return hear_stream(py, app, out, &it),
            Event::QueryReply(it) => {
                let heard = {
                    let mut commands = out.borrow_mut();
                    let (calls, frames) = commands.calls();
                    calls.on_reply(frames, &it)
                };
                let Heard::Answer(status, payload) = heard else { return Ok(()) };
                let whole = event::QueryReply { status, more: false, payload: &payload, ..it };
                app.call_method1("on_query_reply", (QueryReply::new(py, &whole), out))
            }
            Event::QueryCredit(credit) => {
                {
                    let mut commands = out.borrow_mut();
                    let (calls, frames) = commands.calls();
                    calls.on_credit(frames, credit);
                }
                app.call_method1("on_credit", (credit.ticket, out))
            }
            Event::QueryOver(over) => {
                out.borrow_mut().calls().0.on_over(over);
                app.call_method1("on_query_over", (over.ticket, over.status, out))
            }
            Event::Tick { now_ms } => {
                out.borrow_mut().open_view(now_ms)?;
                if self.hides_ticks {
                    return Ok(());
                }
                app.call_method1("on_tick", (now_ms, out))
            }
            Event::Shutdown => app.call_method1("on_shutdown", (out,)),
            // A newer kernel may send events that this app's version does not know.
            Event::Newer(_) => return Ok(()),
        }
        .map(drop)
    }

    /// Changes the app's view without a service, for tests. Appends the app's commands.
    pub(crate) fn change_view(
        &self,
        py: Python<'_>,
        changes: Vec<Change>,
        commands: &mut Vec<u8>,
    ) -> PyResult<()> {
        let out = self.out.bind(py);
        let changed = out.borrow_mut().view_follower().apply(changes);
        tell_view(self.app.bind(py), out, &changed)?;
        out.try_borrow_mut()?.drain_into(commands);
        Ok(())
    }

    /// The app itself, for tests.
    pub(crate) fn app(&self, py: Python<'_>) -> Py<PyAny> {
        self.app.clone_ref(py)
    }
}

fn hear_receipt(
    app: &Bound<'_, PyAny>,
    out: &Bound<'_, Commands>,
    datapath: flow::DatapathId,
    receipt: &abi::Receipt<'_>,
) -> PyResult<()> {
    let of_view = {
        let mut commands = out.borrow_mut();
        // A stream that is refused never begins.
        commands.calls().0.unfollow(receipt.ticket);
        commands.view_follower().refuse(receipt.ticket, receipt.reason)
    };
    match of_view {
        Some(why) => out.borrow_mut().warn(&why),
        None => app.call_method1("on_receipt", (Receipt::new(datapath, receipt), out)).map(drop),
    }
}

/// Passes one part of a stream to the app, or to its view. The commands are borrowed only briefly, because a handler uses them too.
fn hear_stream(
    py: Python<'_>,
    app: &Bound<'_, PyAny>,
    out: &Bound<'_, Commands>,
    reply: &event::QueryReply<'_>,
) -> PyResult<()> {
    let Some(mut part) = out.borrow_mut().calls().0.begin_part(reply) else { return Ok(()) };
    let is_of_view = out.borrow_mut().view_follower().has(reply.ticket);
    loop {
        let next = {
            let mut commands = out.borrow_mut();
            let (calls, frames) = commands.calls();
            calls.next_update(frames, &mut part)
        };
        let Some(update) = next else { break };
        if !is_of_view {
            app.call_method1("on_stream", (StreamUpdate::new(py, reply.ticket, &update), out))?;
            continue;
        }
        let mut commands = out.borrow_mut();
        if let Some(why) = commands.view_follower().hear(reply.ticket, &update) {
            commands.warn(&why)?;
        }
    }
    let changes = out.borrow_mut().view_follower().end_part(reply.ticket);
    tell_view(app, out, &changes)
}

fn tell_view(app: &Bound<'_, PyAny>, out: &Bound<'_, Commands>, batch: &Batch) -> PyResult<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let changes = view::changes(app.py(), batch)?;
    app.call_method1("on_view", (changes, out.getattr("view")?, out)).map(drop)
}

/// The kernel's fault. The app does not handle it.
fn no_event(malformed: Malformed) -> PyErr {
    PyRuntimeError::new_err(format!("the kernel sent a malformed event: {malformed}"))
}
