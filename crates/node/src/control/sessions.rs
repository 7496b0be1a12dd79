//! The settings of switch sessions, from the node's configuration.
//!
//! In: the configuration. Its TLS files are read here. Out: the configuration of southbound. It opens no socket.

use super::super::fatal::Fatal;
use config::binding::to_southbound;
use config::{Config, OpenFlowVersion, Role, Tls};
use southbound::tls::{TlsFiles, load};
use southbound::{Binding, Plain, RoleWanted, SouthboundConfig, Versions};
use std::sync::Arc;

pub(super) fn southbound_config(config: &Config) -> Result<SouthboundConfig, Fatal> {
    let given = &config.southbound;
    let tls = given.tls.as_ref().map(|tls| {
        load(&TlsFiles {
            certificate: tls.certificate.clone(),
            private_key: tls.private_key.clone(),
            client_ca: tls.ca_certificate.clone(),
        })
    });
    Ok(SouthboundConfig {
        versions: Versions {
            v1_0: given.versions.contains(&OpenFlowVersion::V1_0),
            v1_3: given.versions.contains(&OpenFlowVersion::V1_3),
        },
        role: role_wanted(given.role, given.role_generation_id),
        echo_interval_ms: given.echo_interval_ms,
        echo_timeout_ms: given.echo_timeout_ms,
        handshake_timeout_ms: given.handshake_timeout_ms,
        max_connections: given.max_connections,
        max_connections_per_address: given.max_connections_per_address,
        max_half_open_per_address: given.max_half_open_per_address,
        receive_buffer_bytes: given.receive_buffer_bytes,
        miss_send_len: given.miss_send_len,
        tls: tls.transpose().map_err(|error| Fatal(2, error.to_string()))?,
        plain: given.tls.as_ref().map_or(Plain::default(), plain),
        binding: given.tls.as_ref().map_or(Binding::default(), |tls| tls.binding.to_southbound()),
        datapaths: Arc::new(given.tls.as_ref().map(|tls| to_southbound(&tls.datapaths)).unwrap_or_default()),
        paces: config.switches.paces().map_err(|error| Fatal(2, error.to_string()))?,
        ..SouthboundConfig::default()
    })
}

fn plain(tls: &Tls) -> Plain {
    match tls {
        Tls { required: true, .. } => Plain::Nobody,
        Tls { allow_plain: true, .. } => Plain::Everybody,
        _ => Plain::Loopback,
    }
}

fn role_wanted(role: Role, generation_id: u64) -> RoleWanted {
    match role {
        Role::NoChange => RoleWanted::NoChange,
        Role::Equal => RoleWanted::Equal,
        Role::Master => RoleWanted::Master { generation_id },
        Role::Slave => RoleWanted::Slave { generation_id },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Datapaths, TlsBinding};

    #[test]
    fn who_may_speak_without_tls_is_what_the_operator_says() {
        let check = |allow_plain, required, expected| {
            let tls = Tls {
                certificate: "/c".into(),
                private_key: "/k".into(),
                ca_certificate: "/a".into(),
                allow_plain,
                required,
                binding: TlsBinding::default(),
                datapaths: Datapaths::default(),
            };
            assert_eq!(plain(&tls), expected);
        };
        check(false, false, Plain::Loopback);
        check(true, false, Plain::Everybody);
        check(false, true, Plain::Nobody);
    }
}
