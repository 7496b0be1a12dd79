//! Whether the files that a configuration names can be used.
//!
//! In: a configuration. Out: nothing, or a sentence about the first file that is missing, or that this user may not read or execute. It asks the file
//! system about files, and reads only profiles.

use crate::slices::SliceTls;
use crate::{Config, ConfigError, contradiction};
use monitor_channel::AppSource;
use rustix::fs::Access;
use std::path::Path;

impl Config {
    /// Checks that the named files can be used, so that the node does not start and then fail.
    ///
    /// # Errors
    /// The first file that is missing, or that this user may not read or execute.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        if let Some(tls) = &self.southbound.tls {
            usable("the certificate", &tls.certificate, Access::READ_OK)?;
            usable("the private key", &tls.private_key, Access::READ_OK)?;
            usable("the CA certificate", &tls.ca_certificate, Access::READ_OK)?;
        }
        for slice in &self.slices {
            for (what, path) in slice.tls.iter().flat_map(SliceTls::files) {
                usable(&format!("{what} of slice {}", slice.name), path, Access::READ_OK)?;
            }
        }
        // The result is for the kernel process, which reads them again.
        drop(self.switches.paces()?);
        if let Some(interpreter) = &self.python.interpreter {
            usable("the interpreter", interpreter, Access::EXEC_OK)?;
        }
        for app in &self.apps {
            match &app.source {
                AppSource::BuiltIn(_) => {}
                AppSource::Executable(path) => {
                    usable(&format!("the program of the app {}", app.name), path, Access::EXEC_OK)?;
                }
                AppSource::Python(path) => {
                    usable(&format!("the program of the app {}", app.name), path, Access::READ_OK)?;
                }
                AppSource::SharedObject(path) => {
                    usable(&format!("the shared object of the app {}", app.name), path, Access::READ_OK)?;
                }
            }
        }
        Ok(())
    }
}

fn usable(what: &str, path: &Path, access: Access) -> Result<(), ConfigError> {
    let shown = path.display();
    if path.to_str().is_none() {
        return contradiction(format!("{what} {shown} has a name that is not UTF-8: give it another"));
    }
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            return contradiction(format!("{what} {shown} cannot be used ({error}): check its path"));
        }
    };
    if !metadata.is_file() {
        return contradiction(format!("{what} {shown} is not a file: check its path"));
    }
    if rustix::fs::access(path, access).is_err() {
        let verb = if access == Access::EXEC_OK { "executed" } else { "read" };
        return contradiction(format!(
            "{what} {shown} may not be {verb} by this user: change its mode (chmod)"
        ));
    }
    Ok(())
}
