//! The loop of a process zone, around an app in Python.
//!
//! In: events from the rings. Out: commands into them; exceptions of a handler go to Python unchanged. The interpreter's lock is held while
//! there are events, and released for each wait, so that the app's other threads can run.

use crate::dispatch::Instance;
use burnet_sdk::{ProcessError, serve_guest};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::time::Duration;
use zone::guest::Guest;

/// Runs the app that `make` gives for its settings (a JSON object, as text) until its zone ends. Gives the exit code, and a sentence where
/// something is wrong with the zone; what the app raises is raised here.
#[pyfunction]
#[pyo3(signature = (make, /))]
pub(crate) fn run(make: &Bound<'_, PyAny>) -> PyResult<(u8, Option<String>)> {
    let py = make.py();
    let raised = RefCell::new(None);
    let start = |settings: &[u8], commands: &mut Vec<u8>| {
        let settings = String::from_utf8_lossy(settings);
        let instance = Instance::start(make, &settings, commands);
        instance.map(|instance| App { py, instance, raised: &raised }).map_err(|error| keep(&raised, error))
    };
    let ended = serve_guest(start, &mut |wait| py.detach(wait));
    if let Some(error) = raised.take() {
        return Err(error);
    }
    Ok(match ended {
        Ok(()) => (0, None),
        Err(ProcessError { exit_code, reason }) => (exit_code, Some(reason)),
    })
}

/// The app as what the loop serves.
struct App<'a> {
    /// The lock is held whenever the app is called, so nothing asks for it anew.
    py: Python<'a>,
    instance: Instance,
    raised: &'a RefCell<Option<PyErr>>,
}

/// Keeps an exception for when the loop has ended, and gives the words that end it.
fn keep(raised: &RefCell<Option<PyErr>>, error: PyErr) -> String {
    raised.replace(Some(error));
    RAISED.to_owned()
}

/// Nobody reads it: the exception is raised instead.
const RAISED: &str = "the app raised an exception";

impl Guest for App<'_> {
    fn start(_: &[u8], _: &mut Vec<u8>) -> Result<Self, String> {
        Err("start an app in Python with `run`".to_owned())
    }

    fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed> {
        self.instance.on_events(self.py, events, commands).map_err(|error| {
            keep(self.raised, error);
            abi::Malformed { offset: 0, reason: RAISED }
        })
    }

    fn take_wake(&mut self) -> Option<Duration> {
        self.instance.take_wake(self.py)
    }

    fn on_wake(&mut self, commands: &mut Vec<u8>) -> Result<(), String> {
        self.instance.on_wake(self.py, commands).map_err(|error| keep(self.raised, error))
    }
}
