//! Questions to the zones of slices, on the socket file that each has for operators.
//!
//! ```text
//!   Question ──node.listen/slice.NAME──> zone of the slice ──> Answer, or a sentence that says why there is none
//! ```
//!
//! In: questions. Out: answers. Many slices are asked at the same time, and all have one time limit together.

use super::CommandError;
use crate::cli::NodeArgs;
use crate::slices::socket_name;
use config::Environment;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use slice::state::{Answer, Question};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for the slices, together. They answer without asking anybody, except for a withdrawal.
pub const PATIENCE: Duration = Duration::from_secs(6);
/// What a slice has after that: its answer may be there already.
const LAST_MOMENT: Duration = Duration::from_millis(10);
/// Slices that are asked at the same time. Each takes a descriptor.
const ASKED_MAX: usize = 256;
/// The longest answer that is read, in bytes: the state of 256 switches with eight controllers each.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What a slice answers.
///
/// # Errors
/// A sentence for the operator.
pub fn ask(asking: &NodeArgs, slice: &str, question: &Question) -> Result<Answer, CommandError> {
    let mut answers = ask_all(asking, [slice], question)?;
    let answer = answers.pop().unwrap_or_else(|| Err(String::new())).map_err(CommandError::DidNotWork)?;
    match answer {
        Answer::Refused(why) => Err(CommandError::DidNotWork(format!("slice {slice}: {why}"))),
        answer => Ok(answer),
    }
}

/// What these slices answer, or why one does not.
///
/// # Errors
/// This user has no socket, and the options name none.
pub fn ask_all<'a>(
    asking: &NodeArgs,
    slices: impl IntoIterator<Item = &'a str>,
    question: &Question,
) -> Result<Vec<Result<Answer, String>>, CommandError> {
    let operator = Environment::of_this_process()?.socket(asking.socket.as_deref(), None)?;
    let folder = folder(&operator);
    let slices: Vec<(&str, PathBuf)> =
        slices.into_iter().map(|slice| (slice, folder.join(socket_name(slice)))).collect();
    let until = Instant::now() + PATIENCE;
    let mut answers = Vec::new();
    for some in slices.chunks(ASKED_MAX) {
        let asked: Vec<_> = some.iter().map(|(_, socket)| begin(socket, question)).collect();
        for ((slice, socket), stream) in some.iter().zip(asked) {
            let is_full = stream.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            let stream = if is_full { begin_until(socket, question, until) } else { stream };
            answers.push(answer(slice, socket, stream, until, PATIENCE));
        }
    }
    Ok(answers)
}

/// The folder with the sockets of the slices of a node, by its socket for operators.
pub fn folder(operator: &Path) -> PathBuf {
    operator.with_extension("listen")
}

/// What one slice answers within this time, or why it does not.
///
/// # Errors
/// A sentence for the operator.
pub fn ask_one(
    folder: &Path,
    slice: &str,
    question: &Question,
    patience: Duration,
) -> Result<Answer, String> {
    let (socket, until) = (folder.join(socket_name(slice)), Instant::now() + patience);
    answer(slice, &socket, begin(&socket, question), until, patience)
}

/// Connects, or says [`ErrorKind::WouldBlock`] if too many wait for the slice already. The system would wait without a limit.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let ours = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&ours, &SocketAddrUnix::new(socket)?)?;
    let stream = UnixStream::from(ours);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn begin(socket: &Path, question: &Question) -> std::io::Result<UnixStream> {
    let mut stream = connect(socket)?;
    // A slice that does not read must not hold up the others.
    stream.set_write_timeout(Some(LAST_MOMENT))?;
    serde_json::to_writer(&mut stream, question)?;
    stream.write_all(b"\n")?;
    stream.shutdown(Shutdown::Write)?;
    Ok(stream)
}

/// The same once more, until the slice accepts somebody or the time is over.
fn begin_until(socket: &Path, question: &Question, until: Instant) -> std::io::Result<UnixStream> {
    loop {
        match begin(socket, question) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => return other,
        }
        if Instant::now() >= until {
            return Err(std::io::Error::new(ErrorKind::TimedOut, "it accepts nobody: its process may hang"));
        }
        std::thread::sleep(LAST_MOMENT);
    }
}

fn answer(
    slice: &str,
    socket: &Path,
    stream: std::io::Result<UnixStream>,
    until: Instant,
    patience: Duration,
) -> Result<Answer, String> {
    let text = stream.and_then(|stream| text_until(stream, until, patience)).map_err(|error| {
        format!(
            "slice {slice} does not answer at {}: {error}; see `burnet slice list` and `burnet app logs slice.{slice}`",
            socket.display()
        )
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("slice {slice} sent an answer that cannot be read: {error}"))
}

/// All that comes until the end, or until the time is over.
fn text_until(mut stream: UnixStream, until: Instant, patience: Duration) -> std::io::Result<Vec<u8>> {
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while text.len() < ANSWER_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(LAST_MOMENT)))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let why = format!("it took longer than {} s", patience.as_secs());
                return Err(std::io::Error::new(ErrorKind::TimedOut, why));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_that_accepts_nobody_is_given_up_when_the_time_is_over() {
        let folder = std::env::temp_dir().join(format!("burnet-hung-slice-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("slice.blue");
        let hung = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&hung, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&hung, 0).unwrap();
        let waiting: Vec<UnixStream> = std::iter::from_fn(|| connect(&path).ok()).collect();
        assert!(!waiting.is_empty());
        let over = Instant::now();
        let why = begin_until(&path, &Question::State, over).unwrap_err();
        assert!(why.to_string().contains("it accepts nobody"), "{why}");
        // As soon as there is room, the question is asked.
        drop(waiting);
        drop(rustix::net::accept(&hung).unwrap());
        let later = over + PATIENCE;
        begin_until(&path, &Question::State, later).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn slices_that_do_not_answer_share_one_time_limit_and_the_others_are_heard() {
        let (_silent, one) = UnixStream::pair().unwrap();
        let (_silent_too, two) = UnixStream::pair().unwrap();
        let (mut theirs, three) = UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut theirs, br#"{"state": {"slice": "blue", "switches": []}}"#).unwrap();
        drop(theirs);
        let over = Instant::now();
        let check = |stream, expected: &str| {
            let text = match answer("blue", Path::new("s"), Ok(stream), over, PATIENCE) {
                Ok(Answer::State(state)) => state.slice,
                Ok(other) => panic!("{other:?}"),
                Err(why) => why,
            };
            assert!(text.contains(expected), "{text}");
        };
        check(one, "slice blue does not answer at s: it took longer than 6 s");
        check(two, "it took longer than 6 s");
        check(three, "blue");
    }
}
