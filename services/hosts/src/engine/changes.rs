//! The operator's changes: configured hosts, notes, removals.
//!
//! ```text
//!   Question ──plan──> Plan { id, what is to be kept } ──the store has it──> apply ──> effects
//! ```
//!
//! In: questions that change something. Out: what must be in the store for each, and then effects. It changes nothing before the store
//! has it, and calls no store.

use super::{Effect, Engine};
use crate::bounds::KEPT_MAX;
use crate::claims::Subject;
use crate::kept::Kept;
use crate::table::{Address, Entry};
use hosts_contract::question::check_annotations;
use hosts_contract::{Question, status};
use std::net::IpAddr;
use view::{Annotations, ConnectPoint, HostId};

/// A change that is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The host.
    pub id: HostId,
    /// What the store keeps of it from now on. `None`: nothing.
    pub kept: Option<Kept>,
    /// Whether the store has to be asked: it keeps something now, or will.
    pub is_stored: bool,
    /// Whether the host itself is removed.
    pub removes: bool,
}

/// Why a change is not possible: a status of the contract, and a sentence.
pub type Refused = (u16, String);

impl Engine {
    /// What a question would change.
    ///
    /// # Errors
    /// It is not possible, with the field that is in the way.
    pub fn plan(&self, question: &Question) -> Result<Plan, Refused> {
        match question {
            Question::Add { id, at, addresses, annotations } => {
                if self.kept.get(id).is_some_and(|kept| kept.at.is_some()) {
                    return conflict(format!("id: {id} is configured already; change it"));
                }
                let kept =
                    Kept { at: Some(*at), addresses: addresses.clone(), annotations: annotations.clone() };
                self.plan_kept(*id, kept)
            }
            Question::Change { id, at, addresses, annotations } => {
                let kept = self.changed(*id, *at, addresses.as_ref(), annotations.iter())?;
                self.plan_kept(*id, kept)
            }
            Question::Remove { id } if self.table.get(*id).is_none() && !self.kept.contains_key(id) => {
                Err(not_found(*id))
            }
            Question::Remove { id } => {
                let is_stored = self.kept.contains_key(id);
                Ok(Plan { id: *id, kept: None, is_stored, removes: true })
            }
            _ => Err((status::BAD_QUESTION, "the question changes nothing".to_owned())),
        }
    }

    fn changed<'q>(
        &self,
        id: HostId,
        at: Option<ConnectPoint>,
        addresses: Option<&Vec<IpAddr>>,
        annotations: impl Iterator<Item = (&'q String, &'q Option<String>)>,
    ) -> Result<Kept, Refused> {
        let kept = self.kept.get(&id);
        if kept.is_none() && self.table.get(id).is_none() {
            return Err(not_found(id));
        }
        let mut kept = kept.cloned().unwrap_or_default();
        if kept.at.is_none() && (at.is_some() || addresses.is_some()) {
            let field = if at.is_some() { "at" } else { "addresses" };
            return conflict(format!("{field}: {id} is not configured; add it first"));
        }
        kept.at = at.or(kept.at);
        kept.addresses = addresses.cloned().unwrap_or(kept.addresses);
        for (name, value) in annotations {
            match value {
                Some(value) => drop(kept.annotations.insert(name.clone(), value.clone())),
                None => drop(kept.annotations.remove(name)),
            }
        }
        check_annotations(&kept.annotations).map_err(|why| (status::CONFLICT, why))?;
        Ok(kept)
    }

    fn plan_kept(&self, id: HostId, mut kept: Kept) -> Result<Plan, Refused> {
        kept.addresses.sort_unstable();
        kept.addresses.dedup();
        if let Some(at) = kept.at.filter(|at| self.edges.has_link(*at)) {
            return conflict(format!("at: {at} has a link to another switch"));
        }
        for address in &kept.addresses {
            let holder = self.table.holder(*address, id.vlan).filter(|holder| *holder != id);
            let is_configured =
                |holder: &HostId| self.table.get(*holder).is_some_and(|it| it.has_fixed_addresses);
            if let Some(holder) = holder.filter(is_configured) {
                return conflict(format!(
                    "addresses: {address} is an address of the configured host {holder}"
                ));
            }
        }
        let was_there = self.kept.contains_key(&id);
        if !was_there && self.kept.len() >= KEPT_MAX && !kept.is_nothing() {
            return Err((
                status::FULL,
                format!("{KEPT_MAX} hosts are configured or annotated, which is the most"),
            ));
        }
        let kept = Some(kept).filter(|kept| !kept.is_nothing());
        Ok(Plan { id, is_stored: was_there || kept.is_some(), kept, removes: false })
    }

    /// Makes a change that the store has.
    pub fn apply(&mut self, plan: Plan, now_ms: u64, out: &mut Vec<Effect>) {
        let Plan { id, kept, removes, .. } = plan;
        if removes {
            self.kept.remove(&id);
            return self.forget(id, out);
        }
        let annotations = kept.as_ref().map(|kept| kept.annotations.clone()).unwrap_or_default();
        let configured = kept.as_ref().and_then(|kept| Some((kept.at?, kept.addresses.clone())));
        match kept {
            Some(kept) => drop(self.kept.insert(id, kept)),
            None => drop(self.kept.remove(&id)),
        }
        match configured {
            Some((at, addresses)) => self.configure(id, at, &addresses, annotations, now_ms, out),
            None => self.annotate(id, annotations, out),
        }
    }

    fn annotate(&mut self, id: HostId, annotations: Annotations, out: &mut Vec<Effect>) {
        let Some(entry) = self.table.get_mut(id) else { return };
        entry.annotations = annotations;
        self.tell(id, out);
    }

    fn configure(
        &mut self,
        id: HostId,
        at: ConnectPoint,
        addresses: &[IpAddr],
        annotations: Annotations,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let before = self.table.remove(id);
        self.claims.take(Subject::Place(id));
        let same = before.filter(|entry| {
            entry.at == at && entry.addresses.iter().map(|it| it.address).eq(addresses.iter().copied())
        });
        let since_ms = same.map_or(now_ms, |entry| entry.since_ms);
        let has_fixed_addresses = !addresses.is_empty();
        let entry = Entry {
            configured: true,
            has_fixed_addresses,
            annotations,
            since_ms,
            ..Entry::seen(id, at, now_ms)
        };
        self.table.insert(entry);
        for address in addresses {
            if let Some(holder) = self.table.holder(*address, id.vlan) {
                self.table.remove_address(holder, *address);
                self.tell(holder, out);
            }
            self.table.add_address(id, Address::seen(*address, now_ms));
        }
        self.tell(id, out);
    }
}

fn conflict<T>(why: String) -> Result<T, Refused> {
    Err((status::CONFLICT, why))
}

fn not_found(id: HostId) -> Refused {
    (status::NOT_FOUND, format!("id: there is no host {id}"))
}
