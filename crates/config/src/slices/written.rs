//! `[slice.NAME]` as TOML, with the place of each value in the text.
//!
//! In: TOML. Out: texts and numbers with their places. It knows the keys, and nothing of what the values mean.

use super::slice::{FailMode, LabelForm};
use package::manifest::amounts::Amount;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// All sections, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct WrittenSlices(pub(super) BTreeMap<Spanned<String>, WrittenSlice>);

/// A section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section [slice.NAME]")]
pub(super) struct WrittenSlice {
    pub(super) controllers: Vec<Spanned<String>>,
    pub(super) tls: Option<Spanned<WrittenTls>>,
    pub(super) isolation: Option<Spanned<IsolationKind>>,
    pub(super) tag: Option<Spanned<i64>>,
    pub(super) matches: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) prefix: Option<Spanned<String>>,
    pub(super) addresses: Option<Spanned<String>>,
    pub(super) hosts: Option<Spanned<BTreeMap<Spanned<String>, Spanned<String>>>>,
    pub(super) read_only: bool,
    pub(super) labels: LabelForm,
    pub(super) step: Option<Spanned<String>>,
    pub(super) fail: FailMode,
    pub(super) admission: AdmissionKind,
    pub(super) switches: Option<Vec<Spanned<String>>>,
    pub(super) ports: Vec<Spanned<String>>,
    pub(super) own_ports: Vec<Spanned<String>>,
    pub(super) links: Option<Vec<Spanned<String>>>,
    pub(super) vnics: BTreeMap<Spanned<String>, WrittenVnic>,
    pub(super) groups: Option<Spanned<(i64, i64)>>,
    pub(super) meters: Option<Spanned<(i64, i64)>>,
    pub(super) limits: WrittenLimits,
}

/// `isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum IsolationKind {
    Flowspace,
    Vlan,
    Address,
}

/// `admission`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AdmissionKind {
    #[default]
    Links,
    Edge,
}

/// `[slice.NAME.tls]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenTls {
    pub(super) certificate: Option<PathBuf>,
    pub(super) private_key: Option<PathBuf>,
    pub(super) ca_certificate: Option<PathBuf>,
}

/// An entry of `vnics`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenVnic {
    pub(super) port: Spanned<String>,
    pub(super) rate: Spanned<String>,
    pub(super) number: Option<u32>,
    pub(super) mac: Option<String>,
    pub(super) agent: Option<u32>,
    #[serde(default)]
    pub(super) strict: bool,
    pub(super) meter: Option<bool>,
}

/// `[slice.NAME.limits]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenLimits {
    pub(super) packet_ins_per_s: Option<Amount>,
    pub(super) packet_outs_per_s: Option<Amount>,
    pub(super) flow_mods_per_s: Option<Amount>,
    pub(super) statistics_per_s: Option<Amount>,
    pub(super) rules: Option<Amount>,
}
