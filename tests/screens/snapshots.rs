//! What everything looks like, kept as text. A changed screen is a changed file: look at it before it is kept.

use ratatui::buffer::Buffer;

use super::looks::{ENDED, OTHERS, PANES, Sight, Size, at_work};
use super::operator::{Operator, looks, text_of};
use nightloop::console::theme::Theme;

const USUAL: Size = (80, 24);
const WIDE: Size = (120, 40);
const SMALL: Size = (40, 12);

/// One sight at these sizes: coloured and in ASCII. Without colours the text is the same, to the letter.
fn sheet((name, show): Sight, sizes: &[(Size, &[&str])]) {
    let mut sheet = String::new();
    for (size, wanted) in sizes {
        let mut coloured = None;
        for (look, theme) in looks() {
            let text = show(theme, *size).text();
            match look {
                "dark" => coloured = Some(text.clone()),
                "mono" => assert_eq!(Some(&text), coloured.as_ref(), "{name} reads differently without colours"),
                _ => {
                    let foreign: String = text.chars().filter(|c| !c.is_ascii()).collect();
                    assert_eq!(foreign, "", "{name} in ASCII at {size:?}:\n{text}");
                }
            }
            if wanted.contains(&look) {
                sheet.push_str(&format!("=== {}x{} {look}\n{text}", size.0, size.1));
            }
        }
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, sheet);
    });
}

#[test]
fn panes_of_a_run_at_work() {
    for sight in PANES {
        sheet(sight, &[(USUAL, &["dark", "ascii"]), (WIDE, &["dark", "ascii"]), (SMALL, &["dark"])]);
    }
}

#[test]
fn screens_and_boxes() {
    for sight in OTHERS {
        sheet(sight, &[(USUAL, &["dark", "ascii"]), (WIDE, &["dark", "ascii"]), (SMALL, &["dark"])]);
    }
}

#[test]
fn panes_of_a_run_that_waits_or_is_over() {
    for sight in ENDED {
        sheet(sight, &[(USUAL, &["dark"]), (WIDE, &["dark"])]);
    }
}

/// Colours and weights, as runs of cells that look the same.
fn styles(cells: &Buffer) -> String {
    let mut out = String::new();
    for y in cells.area.top()..cells.area.bottom() {
        let mut x = cells.area.left();
        while x < cells.area.right() {
            let style = cells[(x, y)].style();
            let from = x;
            let mut text = String::new();
            while x < cells.area.right() && cells[(x, y)].style() == style {
                text.push_str(cells[(x, y)].symbol());
                x += 1;
            }
            if text.trim().is_empty() && style.bg.is_none_or(|bg| bg == ratatui::style::Color::Reset) {
                continue;
            }
            let part = |colour: Option<ratatui::style::Color>| colour.map_or("-".to_owned(), |c| c.to_string());
            out.push_str(&format!(
                "{y:>2} {from:>2}..{x:<3} {} on {} {:?} |{}|\n",
                part(style.fg),
                part(style.bg),
                style.add_modifier,
                text.trim_end()
            ));
        }
    }
    out
}

#[test]
fn the_overview_is_coloured_by_meaning() {
    let mut operator: Operator = at_work(Theme::dark(), USUAL, "1");
    let cells = operator.cells();
    assert!(text_of(&cells).contains("SPAWN_SUBAGENT"));
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("1-overview-styles", styles(&cells));
    });
}
