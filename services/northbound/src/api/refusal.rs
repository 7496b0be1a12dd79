//! Refusals of services, as problems for the client.
//!
//! In: the status and the sentence of a service's answer. Out: a problem with the status of HTTP and, if the sentence begins with a field, that field.

use crate::http::Problem;
use burnet_sdk::query_status as status;

/// The statuses of a service, and those of HTTP for them.
pub struct Statuses {
    /// The service.
    pub service: &'static str,
    /// Its own statuses.
    pub http: &'static [(u16, u16)],
}

/// What a refusal becomes.
pub fn refusal(of: &Statuses, answer: u16, payload: &[u8]) -> Problem {
    let sentence = String::from_utf8_lossy(payload).into_owned();
    let own = of.http.iter().find(|(status, _)| *status == answer).map(|(_, http)| *http);
    let named = Problem { detail: sentence.clone(), ..of_sentence(&sentence) };
    match own {
        Some(404) => Problem::not_found(&sentence),
        Some(422) => named,
        Some(409) => {
            Problem { status: 409, name: "conflict", title: "It contradicts another object", ..named }
        }
        Some(507) => Problem::new(507, "no-room", "The node cannot keep it", sentence),
        Some(504) => Problem::new(504, "no-answer", "The switch did not answer", sentence),
        Some(_) => Problem::no_service(of.service, &sentence),
        None => match answer {
            status::BAD_QUESTION => of_sentence(&sentence),
            status::NOT_GRANTED => {
                Problem::new(403, "not-granted", "The node does not permit this", sentence)
            }
            status::OVER_QUOTA | status::SERVICE_BUSY => Problem::too_many(sentence),
            status::NO_SUCH_SERVICE => Problem::no_service(of.service, &missing(&sentence)),
            // The monitor restarts it.
            status::SERVICE_GONE => Problem::no_service(of.service, "it ended meanwhile: try again"),
            other => Problem::no_service(of.service, &format!("{sentence} (status {other})")),
        },
    }
}

fn missing(sentence: &str) -> String {
    if sentence.is_empty() { "this node does not run it".to_owned() } else { sentence.to_owned() }
}

/// A sentence of a contract that begins with the field, if it does: `intent.two: it is the same host`.
pub fn of_sentence(sentence: &str) -> Problem {
    // What serde says comes behind this.
    let sentence = sentence.strip_prefix("the question is wrong: ").unwrap_or(sentence);
    let is_field = |name: &&str| {
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_.[]".contains(&it))
    };
    if let Some((field, _)) = sentence.split_once(": ").filter(|(name, _)| is_field(name)) {
        return Problem::field(field.strip_prefix("intent.").unwrap_or(field), sentence);
    }
    // serde names a field between backquotes.
    match sentence.split('`').nth(1).filter(|_| sentence.contains("field `")) {
        Some(field) => Problem::field(field, sentence),
        None => Problem::new(422, "bad-field", "A field is wrong", sentence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Statuses = Statuses { service: "paths", http: &[(1, 404), (2, 409), (6, 503)] };

    #[test]
    fn a_sentence_that_begins_with_a_field_names_it() {
        let check = |sentence: &str, field: Option<&str>| {
            assert_eq!(of_sentence(sentence).field.as_deref(), field, "{sentence}");
        };
        check("intent.two: it is the same host as intent.one", Some("two"));
        check("intent.links[3]: it is there twice", Some("links[3]"));
        check("name: it is too long", Some("name"));
        check("the question is wrong: missing field `to`", Some("to"));
        check("the question is wrong: unknown field `prio`, expected one of `a`", Some("prio"));
        check("the question is wrong: invalid type: integer `3`, expected a string", None);
        check("no such thing", None);
    }

    #[test]
    fn a_refusal_has_a_status_of_http() {
        let check =
            |answer: u16, expected: u16| assert_eq!(refusal(&OF, answer, b"x").status, expected, "{answer}");
        check(1, 404);
        check(2, 409);
        check(6, 503);
        check(7, 503);
        check(status::BAD_QUESTION, 422);
        check(status::NOT_GRANTED, 403);
        check(status::OVER_QUOTA, 429);
        check(status::NO_SUCH_SERVICE, 503);
        check(status::SERVICE_GONE, 503);
        let gone = refusal(&OF, status::SERVICE_GONE, b"").detail;
        assert_eq!(gone, "the service paths did not answer: it ended meanwhile: try again");
    }
}
