//! One long-lived `tc -batch -`, which makes changes without a process for each.
//!
//! In: lines. Out: which of them failed, after all were tried. One batch is on its way at a time.
//!
//! tc prints nothing about a line that succeeds, and the number of a line that fails. So each batch ends with a question that always has an
//! answer, and that answer means that the lines before it are done. It never waits for tc: [`Tc::on_readable`] takes what there is.

use super::program::{Trouble, io_trouble, not_started};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

/// A question that changes nothing. The loopback interface is always there.
const QUESTION: &str = "qdisc show dev lo invisible\n";

/// How its answer begins.
const ANSWER: &str = "qdisc";

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// The most output that is kept before a line ends. tc never writes such lines.
const LINE_MAX: usize = 65_536;

/// The process.
#[derive(Debug)]
pub(super) struct Tc {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
    said: Said,
}

impl Tc {
    pub(super) fn start() -> Result<Self, Trouble> {
        let mut child = Command::new("tc")
            // It goes on behind a line that failed.
            .args(["-force", "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started("tc", error))?;
        let stdin = child.stdin.take();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Trouble::Failed {
                what: "starting tc".to_owned(),
                said: "it has no output".to_owned(),
            });
        };
        not_blocking(stdout.as_fd())?;
        not_blocking(stderr.as_fd())?;
        Ok(Tc { child, stdin, stdout, stderr, said: Said::default() })
    }

    /// What becomes readable when a batch is done.
    pub(super) fn output(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    /// Gives tc a batch. The last one must be done.
    pub(super) fn send(&mut self, lines: &[String]) -> Result<(), Trouble> {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).chain([QUESTION]).collect();
        self.said.begin(lines.len());
        // It fits into the pipe: the shaper's bound sees to this, and tc has read the last batch.
        let stdin = self.stdin.as_mut().ok_or_else(|| Trouble::Failed {
            what: "tc -batch".to_owned(),
            said: "it has ended".to_owned(),
        })?;
        stdin.write_all(text.as_bytes()).map_err(io_trouble("writing to tc"))
    }

    /// Takes what tc said. Returns the lines that failed, by their places in the batch with the complaint, when the batch is done.
    ///
    /// # Errors
    ///
    /// tc has ended.
    pub(super) fn on_readable(&mut self) -> Result<Option<BTreeMap<usize, String>>, Trouble> {
        let is_open = drain(&mut self.stdout, &mut self.said.output)?;
        // What it said about lines before the answer is there by now: it writes complaints at once.
        drain(&mut self.stderr, &mut self.said.complaints)?;
        if let Some(failed) = self.said.take() {
            return Ok(Some(failed));
        }
        if is_open {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&self.said.complaints).into_owned();
        Err(Trouble::Failed { what: "tc -batch".to_owned(), said: format!("it has ended: {said}") })
    }
}

impl Drop for Tc {
    fn drop(&mut self) {
        // It ends at the end of its input.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Whether a removal failed because there is nothing to remove, as after an addition of which a part failed.
pub(super) fn is_gone(complaint: &str) -> bool {
    ["not found", "No such file or directory"].iter().any(|part| complaint.contains(part))
}

fn not_blocking(fd: BorrowedFd<'_>) -> Result<(), Trouble> {
    fcntl_getfl(fd)
        .and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK))
        .map_err(io_trouble("preparing the output of tc"))
}

/// Reads what there is. Returns whether there may be more later.
fn drain(from: &mut impl Read, into: &mut Vec<u8>) -> Result<bool, Trouble> {
    let mut buffer = [0; READ_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => {
                into.extend_from_slice(buffer.get(..read).unwrap_or_default());
                if into.len() > LINE_MAX {
                    into.clear();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Trouble::Io { what: "reading from tc", error }),
        }
    }
}

/// What tc has said about a batch.
#[derive(Debug, Default)]
struct Said {
    output: Vec<u8>,
    complaints: Vec<u8>,
    /// The number of the batch's first line, and how many it has. Lines are numbered from 1, the questions too.
    first: usize,
    count: usize,
}

impl Said {
    fn begin(&mut self, count: usize) {
        let is_first = self.first == 0;
        self.first = if is_first { 1 } else { self.first + self.count + 1 };
        self.count = count;
        self.output.clear();
        self.complaints.clear();
    }

    /// The failed lines, if the answer to the question is there.
    fn take(&mut self) -> Option<BTreeMap<usize, String>> {
        let output = String::from_utf8_lossy(&self.output);
        let is_whole = |line: &str| line.starts_with(ANSWER) && line.ends_with('\n');
        output.split_inclusive('\n').find(|line| is_whole(line))?;
        let complaints = String::from_utf8_lossy(&self.complaints);
        let (mut failed, mut reasons) = (BTreeMap::new(), Vec::new());
        for line in complaints.lines() {
            let number = line.strip_prefix("Command failed -:").and_then(|number| number.trim().parse().ok());
            match number.and_then(|number: usize| number.checked_sub(self.first)) {
                Some(place) if place < self.count => {
                    failed.insert(place, std::mem::take(&mut reasons).join("; "));
                }
                _ => reasons.push(line.trim()),
            }
        }
        self.output.clear();
        self.complaints.clear();
        Some(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_gone_and_what_is_in_use_is_not() {
        // As iproute2 6.1 says it.
        for gone in
            ["RTNETLINK answers: No such file or directory", "Error: Specified filter handle not found."]
        {
            assert!(is_gone(gone));
        }
        assert!(is_gone("Error: Filter with specified priority/protocol not found."));
        assert!(!is_gone("Error: HTB class in use.") && !is_gone("Cannot find device \"eth0\""));
    }

    #[test]
    fn a_batch_is_done_when_the_question_is_answered() {
        let mut said = Said::default();
        said.begin(3);
        said.complaints.extend(b"RTNETLINK answers: File exists\nCommand failed -:2\n");
        assert_eq!(said.take(), None);
        said.output.extend(b"qdisc noop");
        assert_eq!(said.take(), None);
        said.output.extend(b" 0: root refcnt 2 \n");
        let failed = said.take().unwrap();
        assert_eq!(failed, BTreeMap::from([(1, "RTNETLINK answers: File exists".to_owned())]));
        // The question was line 4.
        said.begin(2);
        said.complaints.extend(b"Error: HTB class in use.\nCommand failed -:5\nCommand failed -:99\n");
        said.output.extend(b"qdisc noop 0: root refcnt 2 \n");
        assert_eq!(said.take().unwrap().into_keys().collect::<Vec<_>>(), [0]);
    }
}
