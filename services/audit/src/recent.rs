//! Reads the newest records of the log, backwards.
//!
//! In: a folder, and which records are wanted. Out: a page of them. One call reads a bounded part of the log, so that records which arrive
//! meanwhile do not wait long. It changes nothing, and does not verify the chain: `burnet audit verify` does.

use std::io;
use std::path::Path;

use audit_contract::{Entry, Filter, PAGE_DEFAULT, PAGE_MAX, Page};

use crate::files;
use crate::line::{self, Line};

/// The most bytes of files that one call reads, beyond the file in which it passes this bound. A file has about 4 MiB.
const SCAN_BYTES_MAX: usize = 4 << 20;

/// The most bytes of records in one page, beyond the record with which it passes this bound.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// The newest records of lines before `before` that fit the filter.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn records(
    folder: &Path,
    filter: &Filter,
    before: Option<u64>,
    limit: Option<usize>,
) -> io::Result<Page> {
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let before = before.unwrap_or(u64::MAX);
    let (mut page, mut page_bytes, mut scanned) = (Page::default(), 0, 0);
    let mut files = files::of(folder)?;
    files.retain(|file| file.first < before);
    for file in files.iter().rev() {
        if scanned >= SCAN_BYTES_MAX {
            // This file is the next one to read: its lines end where the file behind it begins.
            page.next = files.iter().find(|other| other.first > file.first).map(|other| other.first);
            return Ok(page);
        }
        let bytes = match files::read(&file.path) {
            // The file was deleted because of the size limit.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            read => read?,
        };
        scanned += bytes.len();
        for text in whole_lines(&bytes).rev() {
            let Ok(Line { number, record, .. }) = line::read(&String::from_utf8_lossy(text)) else {
                page.damaged += 1;
                continue;
            };
            if number >= before {
                // The damaged lines so far are newer than `before`: an earlier page has counted them.
                page.damaged = 0;
                continue;
            }
            if !filter.fits(&record) {
                continue;
            }
            if page.records.len() >= limit || page_bytes > PAGE_BYTES_MAX {
                page.next = page.records.last().map(|last| last.line);
                return Ok(page);
            }
            page_bytes += text.len();
            page.records.push(Entry { line: number, record });
        }
    }
    Ok(page)
}

/// The lines that end with a line break. The rest is being written.
fn whole_lines(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Hash;
    use audit_contract::Record;
    use std::fs;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        /// A folder with files of so many lines each, and this text behind them.
        fn new(name: &str, files: &[u64], behind: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("burnet-recent-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            let mut first = 1;
            for lines in files {
                let mut text = String::new();
                for number in first..first + lines {
                    let app = if number % 2 == 0 { "even" } else { "odd" };
                    let record = Record::new(number, "asked", "operator", "x").of_app(app);
                    line::write(&mut text, number, None, record, &Hash::default());
                }
                let file = files::LogFile::beginning_with(&path, first);
                fs::write(file.path, text + behind).unwrap();
                first += lines;
            }
            Folder(path)
        }

        fn lines(
            &self,
            app: Option<&str>,
            before: Option<u64>,
            limit: usize,
        ) -> (Vec<u64>, Option<u64>, u64) {
            let filter = Filter { app: app.map(str::to_owned), ..Filter::default() };
            let page = records(&self.0, &filter, before, Some(limit)).unwrap();
            (page.records.iter().map(|it| it.line).collect(), page.next, page.damaged)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_damaged_or_half_written_is_left_out() {
        let folder = Folder::new("damaged", &[2], "{}\n{\"line\":4");
        assert_eq!(folder.lines(None, None, 10), (vec![2, 1], None, 1));
        let empty = Folder::new("empty", &[], "");
        assert_eq!(empty.lines(None, None, 10), (vec![], None, 0));
        let missing = records(Path::new("/nowhere/at/all"), &Filter::default(), None, None);
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pages_in_a_row_are_all_records_whatever_their_size() {
        let folder = Folder::new("pages", &[3, 4, 2], "");
        for limit in 1..=10 {
            for (app, expected) in [(None, vec![9, 8, 7, 6, 5, 4, 3, 2, 1]), (Some("even"), vec![8, 6, 4, 2])]
            {
                let (mut found, mut before) = (Vec::new(), None);
                loop {
                    let (lines, next, _) = folder.lines(app, before, limit);
                    assert!(lines.len() <= limit);
                    found.extend(lines);
                    before = next;
                    if next.is_none() {
                        break;
                    }
                }
                assert_eq!(found, expected, "{limit} {app:?}");
            }
        }
    }
}
