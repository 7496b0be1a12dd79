//! Bodies of answers that can be given again: pages of collections and the map, as long as what they show is the same.
//!
//! ```text
//!   request, tag ──get_or_make──> the body that is kept with this tag, or a new one
//! ```
//!
//! In: a request, the tag of the present state, and what makes the body. Out: the body. It decides nothing about tags: the resource names one
//! that is another after each change.

use crate::http::Request;
use hyper::body::Bytes;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The most bodies. The one that was made first is dropped for another.
const BODIES_MAX: usize = 64;

/// The most bytes of all of them. A body that is longer than this by itself is not kept.
const BYTES_MAX: usize = 16 << 20;

/// A body that is kept.
#[derive(Debug)]
struct Kept {
    path: String,
    parameters: Vec<(String, String)>,
    tag: String,
    body: Bytes,
}

/// The bodies, the oldest first.
#[derive(Debug, Default)]
pub struct Bodies(RefCell<VecDeque<Kept>>);

impl Bodies {
    /// The body for a request.
    pub fn get_or_make(&self, request: &Request, tag: &str, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let is_same = |kept: &Kept| kept.path == request.path && kept.parameters == request.parameters;
        let mut all = self.0.borrow_mut();
        match all.iter().position(is_same) {
            Some(at) if all[at].tag == tag => return all[at].body.clone(),
            // It shows an earlier state.
            Some(at) => drop(all.remove(at)),
            None => {}
        }
        let body = Bytes::from(make());
        // It would only push out all others.
        if body.len() > BYTES_MAX {
            return body;
        }
        all.push_back(Kept {
            path: request.path.clone(),
            parameters: request.parameters.clone(),
            tag: tag.to_owned(),
            body: body.clone(),
        });
        let mut bytes: usize = all.iter().map(|kept| kept.body.len()).sum();
        while all.len() > BODIES_MAX || bytes > BYTES_MAX {
            bytes -= all.pop_front().map_or(bytes, |kept| kept.body.len());
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Method;

    fn get(bodies: &Bodies, target: &str, tag: &str, bytes: usize) -> bool {
        let mut is_made = false;
        let request = Request::new(Method::Get, target).unwrap();
        let body = bodies.get_or_make(&request, tag, || {
            is_made = true;
            vec![b'x'; bytes]
        });
        assert_eq!(body.len(), bytes);
        is_made
    }

    #[test]
    fn a_body_is_made_again_for_another_state_or_another_question() {
        let bodies = Bodies::default();
        let check = |target: &str, tag: &str, made: bool| {
            assert_eq!(get(&bodies, target, tag, 3), made, "{target} {tag}");
        };
        check("/a?x=1", "1", true);
        check("/a?x=1", "1", false);
        check("/a?x=2", "1", true);
        check("/a", "1", true);
        check("/a?x=1", "2", true);
        check("/a?x=1", "1", true);
        assert_eq!(bodies.0.borrow().len(), 3, "an earlier state is dropped");
    }

    #[test]
    fn there_are_not_more_than_the_bounds_say() {
        let bodies = Bodies::default();
        (0..2 * BODIES_MAX).for_each(|number| assert!(get(&bodies, &format!("/{number}"), "1", 1)));
        assert_eq!(bodies.0.borrow().len(), BODIES_MAX);
        assert!(!get(&bodies, &format!("/{}", 2 * BODIES_MAX - 1), "1", 1));
        assert!(get(&bodies, "/0", "1", 1), "the oldest is dropped");
        assert!(get(&bodies, "/long", "1", BYTES_MAX + 1));
        assert!(get(&bodies, "/long", "1", BYTES_MAX + 1), "it is not kept");
        let all: usize = bodies.0.borrow().iter().map(|kept| kept.body.len()).sum();
        assert!(all <= BYTES_MAX, "{all}");
    }
}
