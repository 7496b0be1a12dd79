//! Keys and certificates for one scenario: those of an authority, the controller and the switches.
//!
//! In: a sandbox's folder. Out: PEM files in it. They are deleted with the sandbox.

use crate::Result;
use crate::sandbox::Sandbox;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for `openssl`. A P-256 key takes milliseconds.
const LIMIT: Duration = Duration::from_secs(30);

/// The PEM files in a sandbox's folder.
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes an authority. With its signature, makes a certificate for the controller at 127.0.0.1 and one for
    /// switches.
    pub fn make(sandbox: &Sandbox) -> Result<Certificates> {
        Certificates::make_as(sandbox, "tls")
    }

    /// Like [`Certificates::make`], but in another folder: an independent authority.
    pub fn make_as(sandbox: &Sandbox, name: &str) -> Result<Certificates> {
        let folder = sandbox.folder().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        request(sandbox, &folder, "ca", &["-addext", "basicConstraints=critical,CA:TRUE"])?;
        let certificates = Certificates { folder };
        certificates.sign(sandbox, "controller", "IP:127.0.0.1")?;
        certificates.sign(sandbox, "switch", "DNS:switch.example")?;
        Ok(certificates)
    }

    /// Makes one more certificate, with this subject alternative name. Returns the paths of its key, the certificate
    /// and the authority.
    pub fn sign(&self, sandbox: &Sandbox, name: &str, alternative: &str) -> Result<[String; 3]> {
        let [key, certificate, ca, ca_key] =
            [format!("{name}.key"), format!("{name}.pem"), "ca.pem".to_owned(), "ca.key".to_owned()]
                .map(|file| self.folder.join(file).display().to_string());
        let alternative = format!("subjectAltName={alternative}");
        let of_no_authority = "basicConstraints=critical,CA:FALSE";
        let signed = ["-CA", &ca, "-CAkey", &ca_key, "-addext", of_no_authority, "-addext", &alternative];
        request(sandbox, &self.folder, name, &signed)?;
        Ok([key, certificate, ca])
    }

    /// The paths of the controller's key, its certificate and the authority that it trusts.
    pub fn of_controller(&self) -> [String; 3] {
        ["controller.key", "controller.pem", "ca.pem"]
            .map(|name| self.folder.join(name).display().to_string())
    }

    /// The same for a switch.
    pub fn of_switch(&self) -> [String; 3] {
        ["switch.key", "switch.pem", "ca.pem"].map(|name| self.folder.join(name).display().to_string())
    }
}

/// Makes `name.key` and `name.pem`. The certificate is self-signed unless `more` names an authority.
fn request(sandbox: &Sandbox, folder: &Path, name: &str, more: &[&str]) -> Result<()> {
    let file = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
    let (key, certificate, subject) = (file("key"), file("pem"), format!("/CN={name}"));
    let mut words = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];
    words.extend(["-days", "2", "-subj", &subject, "-keyout", &key, "-out", &certificate]);
    words.extend(more);
    sandbox.must(LIMIT, "openssl", &words).map(drop)
}
