//! Attacks of a service on its callers, and of a caller on its service. In each case both ends learn how the call
//! ended. A service without the grant cannot listen.

use super::super::case::{CALLS, Case, Family, Must, On, VIEW};

pub(super) const CASES: &[Case] = &[
    refused("service-late", "a service answers after the deadline"),
    refused("service-twice", "a service answers a query twice"),
    refused("service-too-much", "a service sends more than its caller granted credit for"),
    refused("service-stranger", "a service answers 1,000 queries that it was never asked"),
    refused("service-never", "300 queries, of which a service answers none"),
    refused("call-unknown", "an app calls a service that does not exist"),
    refused("call-credit", "an app grants more credit than a call may have"),
    Case::app(
        Family::Services,
        "service-listens",
        "an app without net.listen binds, listens and accepts",
        VIEW,
        Must::BeDenied,
    )
    .on(On::Any),
    Case::app(
        Family::Services,
        "call-vanish",
        "an app follows 300 streams and ends in the middle of them",
        CALLS,
        Must::End(&["exit code 7"]),
    )
    .on(On::Any),
];

/// A case in which the node refuses everything.
const fn refused(name: &'static str, what: &'static str) -> Case {
    Case::app(Family::Services, name, what, CALLS, Must::BeRefused).on(On::Any)
}
