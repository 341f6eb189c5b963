//! Running text in rows. Not here: styles. Invariant: no row is wider than asked for, and nothing is lost.

use unicode_segmentation::UnicodeSegmentation;

use super::widget::width;

/// Breaks a text at blanks; a word longer than a row is broken where the row ends.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut rows: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if width(row) + 1 + width(word) <= columns => {
                row.push(' ');
                row.push_str(word);
            }
            _ if width(word) <= columns => rows.push(word.to_owned()),
            _ => broken(word, columns, &mut rows),
        }
    }
    rows
}

fn broken(word: &str, columns: usize, rows: &mut Vec<String>) {
    let mut row = String::new();
    for cluster in word.graphemes(true) {
        if width(&row) + width(cluster) > columns && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
        }
        row.push_str(cluster);
    }
    rows.push(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_and_nothing_is_lost() {
        for text in ["", "one", "a few words that need rows", "averyveryverylongword and 日本語の長いテキスト here"]
        {
            for columns in 2..30 {
                let rows = wrap(text, columns);
                assert!(rows.iter().all(|row| width(row) <= columns), "{rows:?} at {columns}");
                let joined: String = rows.concat().split_whitespace().collect();
                assert_eq!(joined, text.split_whitespace().collect::<String>(), "at {columns}");
            }
        }
    }
}
