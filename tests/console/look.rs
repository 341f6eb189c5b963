//! What a terminal cannot show is not sent to it.

use crate::screen::PANES;
use crate::sequences::{frames, spoken};
use crate::stage::{Stage, WIDE, asking, question};

/// A whole run, through every pane and some boxes, with these variables: all that was written.
fn written(environment: &[(&str, &str)]) -> Vec<u8> {
    let stage = Stage::of(asking(question()));
    let mut screen = stage.open(&["run"], WIDE, environment);
    screen.sees("Nothing has been spent.");
    screen.press("enter");
    screen.sees("1 waiting");
    for (pane, _) in PANES {
        screen.show_pane(pane);
    }
    screen.press("?");
    screen.sees("esc");
    screen.press("esc i");
    screen.sees("Which colour?");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("CONVERGED");
    screen.press("esc");
    for (pane, _) in PANES {
        screen.show_pane(pane);
    }
    screen.press("q");
    let end = screen.ends_with(0);
    assert!(end.restored(), "{}", end.text);
    stage.verify(0);
    screen.raw()
}

#[test]
fn a_plain_locale_gets_plain_signs() {
    let raw = written(&[("LANG", "C")]);
    let inside = frames(&raw);
    assert!(inside.len() > 5_000, "there were hardly any frames");
    let odd: Vec<u8> = inside.into_iter().filter(|byte| !byte.is_ascii()).collect();
    assert!(odd.is_empty(), "{:?}", String::from_utf8_lossy(&odd));
    // The same with signs, so that this test can tell the difference.
    assert!(frames(&written(&[])).iter().any(|byte| !byte.is_ascii()));
}

/// The first number of a colour: foreground, background, bright ones, the line below.
fn is_colour(parameter: &str) -> bool {
    parameter.parse::<u16>().is_ok_and(|number| matches!(number, 30..=49 | 58 | 59 | 90..=107))
}

#[test]
fn who_wants_no_colours_gets_none() {
    let said = spoken(&written(&[("NO_COLOR", "1")]));
    let coloured: Vec<&String> = said.colours.iter().filter(|sgr| sgr.split(';').any(is_colour)).collect();
    assert!(coloured.is_empty(), "{coloured:?}");
    assert!(said.foreign.is_empty(), "{:?}", said.foreign);
}

#[test]
fn sixteen_colours_are_sixteen() {
    let said = spoken(&written(&[("TERM", "xterm-16color")]));
    let finer: Vec<&String> =
        said.colours.iter().filter(|sgr| sgr.split(';').any(|n| n == "38" || n == "48")).collect();
    assert!(finer.is_empty(), "{finer:?}");
    assert!(said.colours.iter().any(|sgr| sgr.split(';').any(is_colour)), "{:?}", said.colours);
    // More colours where there are more, so that this test can tell the difference.
    let more = spoken(&written(&[("COLORTERM", "truecolor")]));
    assert!(more.colours.iter().any(|sgr| sgr.contains("38;2")), "{:?}", more.colours);
}
