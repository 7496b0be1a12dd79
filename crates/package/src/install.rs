//! Decides whether a package may be installed, what is granted to it, and whether it may run trusted. Pure.
//!
//! ```text
//!   package, what is installed, this node ──> plan ──> new, an update that asks for more, or one that does not
//!   record.toml <──> Record
//! ```
//!
//! In: an intact package, the record of the installed one, properties of this node. Out: a [`Plan`], or a sentence with
//! the reason why not. It writes nothing.

use std::collections::BTreeSet;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::key::KeyId;
use crate::manifest::{Ask, Kind, Manifest};
use crate::moment::Moment;
use crate::toml_text::{self, Fault};

/// The maximum size of a record in bytes.
pub const RECORD_BYTES_MAX: usize = 16 << 10;

/// The maximum length of a stored reason, in bytes. A longer one is cut.
pub const REASON_BYTES_MAX: usize = 200;

/// The properties of a node that matter for a package.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Its architecture, as in [`std::env::consts::ARCH`].
    pub architecture: &'a str,
    /// The version of the app boundary that it supports.
    pub abi: u32,
    /// The names of its built-in apps.
    pub built_in: &'a [&'a str],
}

/// The install record of an app: `record.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its version.
    pub version: Version,
    /// The digest of its package, and the name of its folder.
    pub digest: Digest,
    /// The names of the granted requests.
    #[serde(default)]
    pub granted: BTreeSet<String>,
    /// The operator's decision to trust it: it may run inside the kernel process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<TrustDecision>,
    /// How it lost the operator's trust while it ran inside the kernel process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<TrustLoss>,
}

/// The operator's decision to trust one digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustDecision {
    /// The trusted digest.
    pub digest: Digest,
    /// The time of the decision. Earlier failures of the app do not revoke it.
    pub time: Moment,
}

/// How a trusted app lost its trust: it ended the kernel process, failed there, or exceeded its processor limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustLoss {
    /// The time.
    pub time: Moment,
    /// The reason.
    pub reason: String,
}

impl Record {
    /// Reads a `record.toml`.
    ///
    /// # Errors
    /// The faulty line.
    pub fn parse(text: &str) -> Result<Record, Fault> {
        toml_text::parse(text)
    }

    /// The text of a `record.toml`.
    pub fn to_text(&self) -> String {
        // Strings, a list of them and a table: TOML can express all of it.
        toml::to_string(self).unwrap_or_default()
    }

    /// Records that the operator trusts what is installed to run inside the kernel process.
    ///
    /// # Errors
    /// The app is not a shared object.
    pub fn trust(&mut self, manifest: &Manifest, time: Moment) -> Result<(), String> {
        if manifest.kind != Kind::SharedObject {
            return Err(format!(
                "{} is a separate program and cannot run inside the kernel process: only kind = \"shared-object\" can",
                manifest.name
            ));
        }
        self.trusted = Some(TrustDecision { digest: self.digest, time });
        self.fall = None;
        Ok(())
    }

    /// Removes the operator's trust.
    pub fn untrust(&mut self) {
        self.trusted = None;
    }

    /// Records that it lost its trust. Returns whether it was trusted.
    pub fn fell(&mut self, time: Moment, reason: &str) -> bool {
        if self.trusted.is_none_or(|word| word.time > time) {
            return false;
        }
        let mut reason = reason.to_owned();
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        self.trusted = None;
        self.fall = Some(TrustLoss { time, reason });
        true
    }

    /// Checks whether it may run inside the kernel process.
    ///
    /// # Errors
    /// The reason why not, and what to do: a phrase to follow the app's name.
    pub fn may_run_trusted(&self) -> Result<(), String> {
        match (&self.trusted, &self.fall) {
            (Some(word), _) if word.digest == self.digest => Ok(()),
            (Some(_), _) => Err("may not run trusted: you trusted another version of it".to_owned()),
            (None, Some(fall)) => {
                Err(format!("may not run trusted: it lost your trust at {} ({})", fall.time, fall.reason))
            }
            (None, None) => Err("may not run trusted: you have not trusted it".to_owned()),
        }
    }
}

/// The effect of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The app is new: all its requests must be granted.
    New(Vec<Ask>),
    /// An app of this name is installed, but no signer of it signed the new one. All requests must be granted again.
    OtherSigner(Vec<Ask>),
    /// The new version requests no more: the grants stay.
    Update,
    /// The new version requests more: these requests must be granted.
    More(Vec<Ask>),
    /// The same package is installed.
    Same,
}

/// The keys with valid signatures on a package.
pub type Signers = BTreeSet<KeyId>;

/// A package to install.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its digest.
    pub digest: Digest,
    /// The keys whose signatures count.
    pub signers: &'a Signers,
}

/// The installed app: its record, and its contents unless the files are damaged.
#[derive(Clone, Copy, Debug)]
pub struct Installed<'a> {
    /// Its record.
    pub record: &'a Record,
    /// Its manifest, and the keys with valid signatures, also if a key was revoked or expired since.
    pub contents: Option<(&'a Manifest, &'a Signers)>,
}

/// Unusual installations that the operator has confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confirmed {
    /// An older version may replace a newer one.
    pub downgrade: bool,
    /// Other contents may replace the same version.
    pub same_version: bool,
}

/// Decides whether a package may replace what is installed.
///
/// # Errors
/// The reason why not, and what to do: a sentence.
pub fn plan(
    new: Candidate<'_>,
    installed: Option<Installed<'_>>,
    node: Node<'_>,
    confirmed: Confirmed,
) -> Result<Plan, String> {
    let Candidate { manifest, digest, signers } = new;
    fits(manifest, node)?;
    let Some(Installed { record, contents }) = installed else { return Ok(Plan::New(manifest.asks())) };
    if let (true, Some(_)) = (record.digest == digest, contents) {
        return Ok(Plan::Same);
    }
    check_version(manifest, &digest, record, confirmed)?;
    // If the files are damaged, their requests and signers are unknown.
    let Some((before, signers_before)) = contents else { return Ok(Plan::New(manifest.asks())) };
    if (signers, signers_before) != (&Signers::new(), &Signers::new()) && signers.is_disjoint(signers_before)
    {
        return Ok(Plan::OtherSigner(manifest.asks()));
    }
    let more = manifest.asks_beyond(before);
    Ok(if more.is_empty() { Plan::Update } else { Plan::More(more) })
}

fn check_version(
    new: &Manifest,
    digest: &Digest,
    record: &Record,
    confirmed: Confirmed,
) -> Result<(), String> {
    let (name, version) = (&new.name, &new.version);
    let order = version.cmp_precedence(&record.version);
    if order.is_lt() && !confirmed.downgrade {
        return Err(format!(
            "{name} {version} is older than {}, which is installed, and may have faults that are fixed in the installed one: to install it anyway, use --allow-downgrade",
            record.version
        ));
    }
    if order.is_eq() && record.digest != *digest && !confirmed.same_version {
        return Err(format!(
            "{name} {version} is installed already with other contents (digest {}, and this is {}): build it with another version, \
             or use --force to replace the installed one",
            record.digest.prefix(),
            digest.prefix()
        ));
    }
    Ok(())
}

fn fits(new: &Manifest, node: Node<'_>) -> Result<(), String> {
    let name = &new.name;
    if node.built_in.contains(&name.as_str()) {
        return Err(format!("{name} is the name of a built-in app: the package needs another name"));
    }
    if new.abi != node.abi {
        return Err(format!(
            "{name} was built for version {} of the app boundary, and this node has {}: rebuild it for that version",
            new.abi, node.abi
        ));
    }
    if new.entry_for(node.architecture).is_none() {
        let there: Vec<String> = new.entry.keys().map(ToString::to_string).collect();
        return Err(format!(
            "{name} has programs for {}, and none for this machine ({})",
            there.join(", "),
            node.architecture
        ));
    }
    Ok(())
}

/// The grants after an update: earlier grants that are still requested, and new grants.
pub fn granted_after(new: &Manifest, before: &BTreeSet<String>, just_granted: &[Ask]) -> BTreeSet<String> {
    let just = |name: &str| just_granted.iter().any(|ask| ask.name == name);
    let kept = |name: &str| before.contains(name) || just(name);
    new.asks().iter().filter(|ask| kept(&ask.name)).map(|ask| ask.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Node<'_> = Node { architecture: "x86_64", abi: 2, built_in: &["hub"] };

    fn manifest(name: &str, version: &str, rest: &str) -> Manifest {
        let text = format!("name = '{name}'\nversion = '{version}'\ndescription = 'It.'\n{rest}");
        Manifest::parse(&text).unwrap()
    }

    const PLAIN: &str = "kind = 'native'\nabi = 2\nentry.x86_64 = 'a'\n";

    fn record(version: &str) -> Record {
        Record {
            version: version.parse().unwrap(),
            digest: Digest::of(version.as_bytes()),
            granted: BTreeSet::new(),
            trusted: None,
            fall: None,
        }
    }

    fn refused(new: &Manifest, installed: Option<&str>, expected: &str) {
        let record = record(installed.unwrap_or("0.0.0"));
        // It makes no difference whether the installed package can be read.
        for manifest in [Some(new), None] {
            let installed = installed.map(|_| (&record, manifest));
            let why = planned_as(new, b"new", installed, Confirmed::default()).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    /// Plans for packages without signers.
    fn planned_as(
        new: &Manifest,
        digest: &[u8],
        installed: Option<(&Record, Option<&Manifest>)>,
        confirmed: Confirmed,
    ) -> Result<Plan, String> {
        let nobody = Signers::new();
        let installed = installed.map(|(record, manifest)| Installed {
            record,
            contents: manifest.map(|manifest| (manifest, &nobody)),
        });
        plan(
            Candidate { manifest: new, digest: Digest::of(digest), signers: &nobody },
            installed,
            NODE,
            confirmed,
        )
    }

    #[test]
    fn another_signer_of_an_installed_name_is_granted_nothing_by_what_was_granted_before() {
        let key = |byte: u8| KeyId::try_from(format!("{byte:02x}").repeat(8)).unwrap();
        let (old, new) = (manifest("a", "1.0.0", PLAIN), manifest("a", "1.0.1", PLAIN));
        let record = record("1.0.0");
        let check = |before: &[u8], now: &[u8], expected: Plan| {
            let (before, now) =
                (before.iter().map(|it| key(*it)).collect(), now.iter().map(|it| key(*it)).collect());
            let installed = Installed { record: &record, contents: Some((&old, &before)) };
            let offered = Candidate { manifest: &new, digest: Digest::of(b"new"), signers: &now };
            assert_eq!(
                plan(offered, Some(installed), NODE, Confirmed::default()),
                Ok(expected),
                "{before:?} {now:?}"
            );
        };
        check(&[1], &[1], Plan::Update);
        check(&[1, 2], &[2, 3], Plan::Update);
        check(&[], &[], Plan::Update);
        for (before, now) in [(&[1][..], &[2][..]), (&[1], &[]), (&[], &[1])] {
            check(before, now, Plan::OtherSigner(new.asks()));
        }
    }

    #[test]
    fn other_contents_of_the_same_version_have_to_be_meant() {
        let new = manifest("a", "1.0.0", PLAIN);
        let there = record("1.0.0");
        for contents in [Some(&new), None] {
            let why = planned_as(&new, b"new", Some((&there, contents)), Confirmed::default()).unwrap_err();
            assert!(
                why.contains("is installed already with other contents") && why.contains("--force"),
                "{why}"
            );
        }
        let confirmed = Confirmed { same_version: true, ..Confirmed::default() };
        assert_eq!(planned_as(&new, b"new", Some((&there, Some(&new))), confirmed), Ok(Plan::Update));
    }

    #[test]
    fn what_does_not_fit_the_node_or_is_older_is_refused() {
        refused(&manifest("hub", "1.0.0", PLAIN), None, "hub is the name of a built-in app");
        refused(
            &manifest("a", "1.0.0", &PLAIN.replace("abi = 2", "abi = 1")),
            None,
            "version 1 of the app boundary, and this node has 2",
        );
        refused(
            &manifest("a", "1.0.0", &PLAIN.replace("x86_64", "aarch64")),
            None,
            "has programs for aarch64",
        );
        refused(&manifest("a", "1.0.0", PLAIN), Some("1.0.1"), "1.0.0 is older than 1.0.1");
        refused(&manifest("a", "1.0.0-beta.2", PLAIN), Some("1.0.0"), "is older than 1.0.0");
        refused(&manifest("a", "1.0.0-beta.9", PLAIN), Some("1.0.0-beta.10"), "is older than");
    }

    fn planned(before: &str, now: &str, expected: impl Fn(&Plan) -> bool) {
        let (old, new) = (
            manifest("a", "1.0.0", &format!("{PLAIN}{before}")),
            manifest("a", "1.0.1", &format!("{PLAIN}{now}")),
        );
        let record = record("1.0.0");
        let plan = planned_as(&new, b"new", Some((&record, Some(&old))), Confirmed::default()).unwrap();
        assert!(expected(&plan), "{plan:?}");
    }

    #[test]
    fn an_update_is_granted_anew_only_for_what_it_asks_beyond() {
        let hears = "[capabilities]\n'packet.in' = true\n";
        planned(hears, hears, |plan| *plan == Plan::Update);
        planned(hears, "", |plan| *plan == Plan::Update);
        planned("", hears, |plan| matches!(plan, Plan::More(asks) if asks[0].name == "packet.in"));
        let new = manifest("a", "1.0.0", &format!("{PLAIN}{hears}"));
        let first = planned_as(&new, b"new", None, Confirmed::default()).unwrap();
        assert_eq!(first, Plan::New(new.asks()));
    }

    #[test]
    fn the_same_again_changes_nothing_and_an_older_one_can_be_meant() {
        let new = manifest("a", "1.0.0", PLAIN);
        let (same, later) = (record("1.0.0"), record("2.0.0"));
        // Its digest is the digest of its version as text.
        let again = |contents| planned_as(&new, b"1.0.0", Some((&same, contents)), Confirmed::default());
        assert_eq!(again(Some(&new)), Ok(Plan::Same));
        let confirmed = Confirmed { downgrade: true, ..Confirmed::default() };
        assert_eq!(planned_as(&new, b"new", Some((&later, Some(&new))), confirmed), Ok(Plan::Update));
        let damaged = again(None);
        assert_eq!(damaged, Ok(Plan::New(new.asks())));
    }

    #[test]
    fn what_was_taken_away_stays_away() {
        let new = manifest(
            "a",
            "1.0.1",
            &format!("{PLAIN}[capabilities]\n'packet.in' = true\n'packet.out' = true\n'stats.read' = true\n"),
        );
        let before = BTreeSet::from(["packet.in".to_owned(), "rule.read".to_owned()]);
        let just: Vec<Ask> = new.asks().into_iter().filter(|ask| ask.name == "stats.read").collect();
        let after = granted_after(&new, &before, &just);
        assert_eq!(after, BTreeSet::from(["packet.in".to_owned(), "stats.read".to_owned()]));
    }

    #[test]
    fn an_app_runs_trusted_only_at_a_word_for_this_digest_that_was_not_lost() {
        let (native, shared) = (
            manifest("a", "1.0.0", PLAIN),
            manifest("a", "1.0.0", &PLAIN.replace("native", "shared-object")),
        );
        let mut record = record("1.0.0");
        let refused = |record: &Record, expected: &str| {
            let why = record.may_run_trusted().unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        let at = Moment::from_unix_s;
        assert!(record.trust(&native, at(5)).unwrap_err().contains("separate program"));
        refused(&record, "you have not trusted it");
        record.trust(&shared, at(5)).unwrap();
        assert_eq!(record.may_run_trusted(), Ok(()));
        record.digest = Digest::of(b"another");
        refused(&record, "you trusted another version");
        record.trust(&shared, at(5)).unwrap();
        assert!(!record.fell(at(4), "a fall from before the word"));
        assert_eq!(record.may_run_trusted(), Ok(()));
        assert!(record.fell(at(5), &"ä".repeat(200)));
        refused(&record, "lost your trust at 1970-01-01T00:00:05Z (ää");
        assert_eq!(record.fall.as_ref().map(|fall| fall.reason.len()), Some(REASON_BYTES_MAX));
        record.trust(&shared, at(6)).unwrap();
        assert_eq!(record.may_run_trusted(), Ok(()));
        record.untrust();
        refused(&record, "you have not trusted it");
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let mut whole = record("1.0.0-rc.1+7");
        whole.granted.insert("packet.in".to_owned());
        whole.fall = Some(TrustLoss { time: Moment::from_unix_s(7), reason: "it said \"no\"".to_owned() });
        whole.trusted = Some(TrustDecision { digest: whole.digest, time: Moment::from_unix_s(8) });
        assert_eq!(Record::parse(&whole.to_text()), Ok(whole.clone()));
        assert!(Record::parse(&whole.to_text().replace("digest", "digits")).is_err());
    }
}
