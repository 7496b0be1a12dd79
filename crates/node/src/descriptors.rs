//! The limit of file descriptors of this process. Each switch needs one, and the default of a shell is 1,024.
//!
//! It never raises the hard limit, which the owner of the machine sets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to the hard limit, once at the start. The processes of apps are not children of this process and
/// keep their limits. If the system refuses, the limit stays unchanged.
pub fn take_what_is_allowed() {
    let limit = getrlimit(Resource::Nofile);
    if let Some(raised) = raised(limit)
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!("this process keeps its limit of {:?} file descriptors: {error}", limit.current);
    }
}

fn raised(limit: Rlimit) -> Option<Rlimit> {
    (limit.current != limit.maximum).then_some(Rlimit { current: limit.maximum, maximum: limit.maximum })
}

/// How many this process may have; `None`: no limit.
pub fn allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(current: Option<u64>, maximum: Option<u64>, expected: Option<Option<u64>>) {
        let found = raised(Rlimit { current, maximum });
        assert_eq!(found.map(|limit| limit.current), expected, "{current:?} of {maximum:?}");
        assert!(found.is_none_or(|limit| limit.maximum == maximum));
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        check(Some(1024), Some(4096), Some(Some(4096)));
        check(Some(1024), None, Some(None));
        check(Some(4096), Some(4096), None);
        check(None, None, None);
    }
}
