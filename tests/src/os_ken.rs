//! A controller of os-ken, the most used framework in Python.
//!
//! In: an app's text and a port. Out: a process that listens, or word that Python has no os-ken. It ends with its sandbox.

use crate::Result;
use crate::sandbox::Sandbox;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A learning switch by OpenFlow 1.0, as an os-ken user begins with.
pub const LEARNING_1_0: &str = include_str!("os_ken_1_0.py");

/// Python takes seconds to import os-ken on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The Python that has os-ken: the given one, or the system's.
pub fn python() -> Option<OsString> {
    let python = std::env::var_os("BURNET_OTHERS_PYTHON").unwrap_or_else(|| "python3".into());
    let mut import = Command::new(&python);
    import.args(["-c", "import os_ken"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success()).then_some(python)
}

/// Starts the app. It listens when this returns.
pub fn start(sandbox: &Sandbox, python: &OsString, app: &str, port: u16) -> Result<Child> {
    start_with(sandbox, python, app, port, &[])
}

/// Starts [`LEARNING_1_0`] or a like app with mutual TLS: its key, its certificate, and the authority of the switches.
pub fn start_tls(
    sandbox: &Sandbox,
    python: &OsString,
    app: &str,
    port: u16,
    [key, certificate, authority]: &[String; 3],
) -> Result<Child> {
    let listen = ["--ofp-ssl-listen-port", &port.to_string()];
    let tls = ["--ctl-privkey", key, "--ctl-cert", certificate, "--ca-certs", authority];
    start_with(sandbox, python, app, port, &[&listen[..], &tls].concat())
}

/// `options`: how it listens, if not by TCP. Not all apps take them.
fn start_with(sandbox: &Sandbox, python: &OsString, app: &str, port: u16, options: &[&str]) -> Result<Child> {
    // Inside, the checkout may be hidden.
    let file = sandbox.folder().join(format!("os-ken-{port}.py"));
    std::fs::write(&file, app).map_err(|error| format!("no app: {error}"))?;
    let mut controller = sandbox.command("env");
    controller.arg(python).arg("-B").arg(file).arg(port.to_string()).args(options);
    controller.stdin(Stdio::null());
    controller.stdout(sandbox.log("os-ken")?).stderr(sandbox.log("os-ken")?);
    let controller = controller.spawn().map_err(|error| format!("cannot run os-ken: {error}"))?;
    let began = Instant::now();
    while !sandbox.must(LIMIT, "ss", &["-ltn"])?.contains(&format!(":{port} ")) {
        if began.elapsed() > LIMIT {
            return Err("os-ken does not listen".to_owned());
        }
    }
    Ok(controller)
}
