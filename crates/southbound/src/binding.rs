//! Which certificate may authenticate which datapath id.
//!
//! ```text
//!   the operator's table  ── if it lists the id: only the certificates listed for it
//!   the certificate       ── if it names ids: only those ids
//!   the pins              ── the first certificate that was used for the id, and no other
//! ```
//!
//! The rules apply in this order, the most explicit first. In: claims. Out: whether they are valid, and pins. Pure:
//! it keeps no file, and does not verify certificates.

use crate::certificate::{Certificate, Fingerprint};
use flow::DatapathId;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Ids that can be pinned: four times the default number of sessions. At the bound, an id is accepted only if its
/// certificate names it or the table lists it.
pub const PINS_MAX: usize = 16_384;

/// Ids that can be pinned to one certificate, so that the owner of one certificate cannot take all. Open vSwitch
/// shows the same certificate for all its bridges. At the bound, further ids are refused.
pub const PINS_OF_ONE_MAX: usize = 1_024;

/// How datapath ids are bound to certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// By the table, then by the names in the certificate, then by the first certificate that is used for the id.
    #[default]
    Pin,
    /// By the table or by the names in the certificate. A certificate that is in neither is valid for no id.
    Named,
    /// No id is bound.
    None,
}

/// The operator's table: the certificates that may be used for an id.
pub type Table = Arc<BTreeMap<DatapathId, Vec<Fingerprint>>>;

/// Why a claim is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing binds the id.
    Free,
    /// The operator's table lists the certificate for the id.
    ByTable,
    /// The certificate names the id.
    ByName,
    /// The id is pinned to this certificate.
    ByPin,
    /// The certificate is the first that is used for the id, and is pinned now.
    Pinned,
}

/// Why a claim is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotBound {
    /// The switch showed no certificate, but the id is bound to one or more.
    Plain(DatapathId, Fingerprint),
    /// The table lists other certificates for the id.
    OtherInTable(DatapathId, Fingerprint, Fingerprint),
    /// The id is pinned to another certificate.
    OtherPinned(DatapathId, Fingerprint, Fingerprint),
    /// The certificate names other ids. The last field is the first of them.
    NamesOther(DatapathId, Fingerprint, DatapathId),
    /// The certificate names no id and is not in the table, but the configuration requires one of the two.
    Unnamed(DatapathId, Fingerprint),
    /// The maximum number of ids is pinned.
    TooMany(DatapathId, Fingerprint, usize),
    /// The maximum number of ids is pinned to this certificate.
    TooManyOfOne(DatapathId, Fingerprint, usize),
}

/// The binding rules, the operator's table and the pins.
#[derive(Debug, Default)]
pub struct Bindings {
    binding: Binding,
    table: Table,
    /// At most [`PINS_MAX`].
    pins: BTreeMap<DatapathId, Fingerprint>,
    /// How many ids are pinned to each certificate.
    of: HashMap<Fingerprint, usize>,
}

impl Bindings {
    /// Sets how ids are bound from now on. Pins stay.
    pub fn set(&mut self, binding: Binding, table: Table) {
        (self.binding, self.table) = (binding, table);
    }

    /// Whether a switch that showed this certificate may use the id.
    ///
    /// # Errors
    /// The reason why not.
    pub fn judge(&self, id: DatapathId, shown: Option<&Certificate>) -> Result<Bound, NotBound> {
        if self.binding == Binding::None {
            return Ok(Bound::Free);
        }
        let in_table = self.table.get(&id).filter(|allowed| !allowed.is_empty());
        let pin = self.pins.get(&id).copied();
        let Some(shown) = shown else {
            let bound_to = in_table.map(|allowed| allowed[0]).or(pin);
            return bound_to.map_or(Ok(Bound::Free), |print| Err(NotBound::Plain(id, print)));
        };
        let print = shown.fingerprint;
        if let Some(allowed) = in_table {
            let has = allowed.contains(&print);
            return if has { Ok(Bound::ByTable) } else { Err(NotBound::OtherInTable(id, print, allowed[0])) };
        }
        if let Some(first) = shown.names.first() {
            let names = shown.names.contains(&id);
            return if names { Ok(Bound::ByName) } else { Err(NotBound::NamesOther(id, print, *first)) };
        }
        match pin {
            _ if self.binding == Binding::Named => Err(NotBound::Unnamed(id, print)),
            Some(pin) if pin == print => Ok(Bound::ByPin),
            Some(pin) => Err(NotBound::OtherPinned(id, print, pin)),
            None => self.room_for(id, print).map(|()| Bound::Pinned),
        }
    }

    fn room_for(&self, id: DatapathId, print: Fingerprint) -> Result<(), NotBound> {
        if self.pins.len() >= PINS_MAX {
            return Err(NotBound::TooMany(id, print, PINS_MAX));
        }
        if self.of.get(&print).is_some_and(|count| *count >= PINS_OF_ONE_MAX) {
            return Err(NotBound::TooManyOfOne(id, print, PINS_OF_ONE_MAX));
        }
        Ok(())
    }

    /// Records that a switch uses the id with this certificate, as [`Bindings::judge`] allowed. Returns whether a pin
    /// changed.
    ///
    /// An id that the certificate names is pinned too. So while its switch is away, no switch without a certificate,
    /// and none whose certificate names no id, can take the id.
    pub fn note(&mut self, id: DatapathId, shown: Option<&Certificate>, bound: Bound) -> bool {
        let (Bound::ByName | Bound::Pinned, Some(shown)) = (bound, shown) else { return false };
        let print = shown.fingerprint;
        if self.pins.get(&id) == Some(&print) || !self.pins.contains_key(&id) && self.pins.len() >= PINS_MAX {
            return false;
        }
        self.forget(id);
        self.pin(id, print);
        true
    }

    /// Restores a pin from an earlier run of the node. Pins beyond the bound are left out.
    pub fn pin(&mut self, id: DatapathId, print: Fingerprint) {
        if self.pins.len() < PINS_MAX && self.pins.insert(id, print).is_none() {
            *self.of.entry(print).or_default() += 1;
        }
    }

    /// Deletes the pin of an id, and returns it. The next certificate that is used for the id is pinned.
    pub fn forget(&mut self, id: DatapathId) -> Option<Fingerprint> {
        let print = self.pins.remove(&id)?;
        if let Some(count) = self.of.get_mut(&print) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&print);
            }
        }
        Some(print)
    }

    /// All pins, sorted by id.
    pub fn pins(&self) -> Vec<(DatapathId, Fingerprint)> {
        self.pins.iter().map(|(id, print)| (*id, *print)).collect()
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::Free => "no",
            Bound::ByTable => "by southbound.tls.datapaths",
            Bound::ByName => "by the name in its certificate",
            Bound::ByPin => "by its pin",
            Bound::Pinned => "pinned now",
        })
    }
}

impl fmt::Display for NotBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotBound::Plain(id, print) => write!(
                f,
                "datapath id {id} is bound to the certificate {print}, and was claimed without TLS; if the switch has no certificate \
                 any more, type `burnet tls forget {id}`, or take it out of southbound.tls.datapaths"
            ),
            NotBound::OtherInTable(id, shown, print) => write!(
                f,
                "southbound.tls.datapaths binds datapath id {id} to the certificate {print}, and {shown} was shown; if that is the \
                 switch's, write it there and type `burnet reload`"
            ),
            NotBound::OtherPinned(id, shown, print) => write!(
                f,
                "datapath id {id} is pinned to the certificate {print}, which claimed it first, but the switch presented {shown}; if that is its new certificate, type `burnet tls forget {id}`"
            ),
            NotBound::NamesOther(id, shown, first) => write!(
                f,
                "the certificate {shown} names {first}, and {id} was claimed; give the switch a certificate with the subject \
                 alternative name URI:{id}, or write `\"{id}\" = \"{shown}\"` into southbound.tls.datapaths"
            ),
            NotBound::Unnamed(id, shown) => write!(
                f,
                "the certificate {shown} names no datapath id, which southbound.tls.binding demands; give the switch one with the \
                 subject alternative name URI:{id}, or write `\"{id}\" = \"{shown}\"` into southbound.tls.datapaths"
            ),
            NotBound::TooMany(id, shown, cap) => write!(
                f,
                "{cap} datapath ids are pinned, and no more can be: {id} cannot be pinned to {shown}; forget some \
                 (`burnet tls pins` lists them), or write `\"{id}\" = \"{shown}\"` into southbound.tls.datapaths"
            ),
            NotBound::TooManyOfOne(id, shown, cap) => write!(
                f,
                "{cap} datapath ids are pinned to the certificate {shown}, and no more can be: {id} cannot; give its switches \
                 certificates of their own, or write `\"{id}\" = \"{shown}\"` into southbound.tls.datapaths"
            ),
        }
    }
}

impl std::error::Error for NotBound {}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DatapathId = DatapathId(0xa);
    const B: DatapathId = DatapathId(0xb);

    fn print(number: u64) -> Fingerprint {
        Fingerprint::of(&number.to_be_bytes())
    }

    fn shown(number: u64, names: &[DatapathId]) -> Certificate {
        Certificate { fingerprint: print(number), names: names.to_vec() }
    }

    /// Like a switch that connects: checks the claim, and records it if it is valid.
    fn claim(
        bindings: &mut Bindings,
        id: DatapathId,
        shown: Option<&Certificate>,
    ) -> Result<Bound, NotBound> {
        let bound = bindings.judge(id, shown)?;
        bindings.note(id, shown, bound);
        Ok(bound)
    }

    #[test]
    fn the_first_certificate_that_speaks_for_an_id_is_the_only_one() {
        let mut bindings = Bindings::default();
        let (first, other) = (shown(1, &[]), shown(2, &[]));
        assert_eq!(claim(&mut bindings, A, Some(&first)), Ok(Bound::Pinned));
        assert_eq!(claim(&mut bindings, A, Some(&first)), Ok(Bound::ByPin));
        assert_eq!(claim(&mut bindings, A, Some(&other)), Err(NotBound::OtherPinned(A, print(2), print(1))));
        assert_eq!(claim(&mut bindings, A, None), Err(NotBound::Plain(A, print(1))));
        assert_eq!(claim(&mut bindings, B, Some(&first)), Ok(Bound::Pinned), "it has two bridges");
        assert_eq!(bindings.forget(A), Some(print(1)));
        assert_eq!(claim(&mut bindings, A, Some(&other)), Ok(Bound::Pinned));
    }

    #[test]
    fn a_certificate_that_names_ids_speaks_for_these_alone_whatever_was_pinned() {
        let mut bindings = Bindings::default();
        assert_eq!(claim(&mut bindings, A, Some(&shown(1, &[]))), Ok(Bound::Pinned));
        let named = shown(2, &[A]);
        assert_eq!(claim(&mut bindings, B, Some(&named)), Err(NotBound::NamesOther(B, print(2), A)));
        assert_eq!(claim(&mut bindings, A, Some(&named)), Ok(Bound::ByName));
        // The authority has named the owner of the id. The earlier certificate was only the first by chance.
        assert_eq!(
            claim(&mut bindings, A, Some(&shown(1, &[]))),
            Err(NotBound::OtherPinned(A, print(1), print(2)))
        );
        assert_eq!(claim(&mut bindings, A, None), Err(NotBound::Plain(A, print(2))));
        assert_eq!(claim(&mut bindings, A, Some(&shown(3, &[A]))), Ok(Bound::ByName), "it was renewed");
        assert_eq!(bindings.pins(), [(A, print(3))]);
    }

    #[test]
    fn the_table_goes_before_names_and_pins() {
        let mut bindings = Bindings::default();
        assert_eq!(claim(&mut bindings, A, Some(&shown(1, &[]))), Ok(Bound::Pinned));
        bindings.set(Binding::Pin, Arc::new([(A, vec![print(5), print(6)]), (B, Vec::new())].into()));
        assert_eq!(
            claim(&mut bindings, A, Some(&shown(1, &[]))),
            Err(NotBound::OtherInTable(A, print(1), print(5)))
        );
        assert_eq!(
            claim(&mut bindings, A, Some(&shown(2, &[A]))),
            Err(NotBound::OtherInTable(A, print(2), print(5)))
        );
        assert_eq!(claim(&mut bindings, A, Some(&shown(6, &[B]))), Ok(Bound::ByTable));
        assert_eq!(claim(&mut bindings, A, None), Err(NotBound::Plain(A, print(5))));
        assert_eq!(claim(&mut bindings, B, Some(&shown(9, &[]))), Ok(Bound::Pinned));
    }

    #[test]
    fn where_names_are_demanded_nothing_is_pinned_at_first_use() {
        let mut bindings = Bindings::default();
        bindings.set(Binding::Named, Table::default());
        assert_eq!(claim(&mut bindings, A, Some(&shown(1, &[]))), Err(NotBound::Unnamed(A, print(1))));
        assert_eq!(claim(&mut bindings, A, None), Ok(Bound::Free), "allow_plain has let it in");
        assert_eq!(claim(&mut bindings, A, Some(&shown(2, &[A]))), Ok(Bound::ByName));
        assert_eq!(claim(&mut bindings, A, None), Err(NotBound::Plain(A, print(2))));
    }

    #[test]
    fn where_nothing_is_bound_everybody_speaks_for_every_id() {
        let mut bindings = Bindings::default();
        assert_eq!(claim(&mut bindings, A, Some(&shown(1, &[]))), Ok(Bound::Pinned));
        bindings.set(Binding::None, Table::default());
        assert_eq!(claim(&mut bindings, A, Some(&shown(2, &[B]))), Ok(Bound::Free));
        assert_eq!(claim(&mut bindings, A, None), Ok(Bound::Free));
        bindings.set(Binding::Pin, Table::default());
        assert_eq!(claim(&mut bindings, A, None), Err(NotBound::Plain(A, print(1))), "pins stay");
    }

    #[test]
    fn pins_are_bounded_in_all_and_for_each_certificate() {
        let mut bindings = Bindings::default();
        for id in 0..PINS_OF_ONE_MAX as u64 {
            assert_eq!(claim(&mut bindings, DatapathId(id), Some(&shown(1, &[]))), Ok(Bound::Pinned));
        }
        let id = DatapathId(1 << 32);
        assert_eq!(
            claim(&mut bindings, id, Some(&shown(1, &[]))),
            Err(NotBound::TooManyOfOne(id, print(1), PINS_OF_ONE_MAX))
        );
        for other in PINS_OF_ONE_MAX as u64..PINS_MAX as u64 {
            bindings.pin(DatapathId(other), print(other));
        }
        assert_eq!(
            claim(&mut bindings, id, Some(&shown(2, &[]))),
            Err(NotBound::TooMany(id, print(2), PINS_MAX))
        );
        assert_eq!(claim(&mut bindings, id, Some(&shown(2, &[id]))), Ok(Bound::ByName));
        assert_eq!(bindings.pins().len(), PINS_MAX);
        for id in 0..PINS_MAX as u64 {
            bindings.forget(DatapathId(id));
        }
        assert!(bindings.pins.is_empty() && bindings.of.is_empty());
    }

    #[test]
    fn a_refusal_names_the_id_both_certificates_and_what_to_type() {
        let check = |refused: NotBound, expected: &[&str]| {
            let text = refused.to_string();
            assert!(expected.iter().all(|part| text.contains(part)) && !text.contains('\n'), "{text}");
        };
        let (one, two) = (print(1).to_string(), print(2).to_string());
        let id = "of:000000000000000a";
        check(
            NotBound::OtherPinned(A, print(1), print(2)),
            &[id, &one, &two, "burnet tls forget of:000000000000000a"],
        );
        check(NotBound::OtherInTable(A, print(1), print(2)), &[id, &one, &two, "burnet reload"]);
        check(NotBound::Plain(A, print(1)), &[id, &one, "burnet tls forget of:000000000000000a"]);
        check(
            NotBound::NamesOther(A, print(1), B),
            &[id, &one, "of:000000000000000b", "URI:of:000000000000000a"],
        );
    }
}
