//! Prints rows as columns on a terminal.
//!
//! It never cuts a cell: a long cell makes a wide column.

/// The rows below their headings, with two spaces between columns.
pub fn columns<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = headings.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = line(&headings.map(str::to_owned), &widths);
    rows.iter().for_each(|row| text += &line(row, &widths));
    text
}

/// Rows of any number of cells, without headings of their own.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// One row, its cells padded to these widths.
pub fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
    padded.join("  ").trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["hub".to_owned(), "running".to_owned()], ["é".to_owned(), String::new()]];
        assert_eq!(columns(["APP", "STATE"], &rows), "APP  STATE\nhub  running\né\n");
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned()], vec![]];
        assert_eq!(aligned(&rows), "a     b\nlong\n\n");
    }
}
