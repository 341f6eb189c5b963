//! Colours: reading them, weighing them, and finding the nearest one a terminal has.

use ratatui::style::{Color, Style};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use termprofile::TermProfile;

use super::Depth;

/// A colour of a theme file: `"#rrggbb"`, a name such as `light-blue`, or a number up to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(pub Color);

impl<'de> Deserialize<'de> for Paint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PaintVisitor)
    }
}

struct PaintVisitor;

impl Visitor<'_> for PaintVisitor {
    type Value = Paint;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a colour: \"#rrggbb\" in quotes, a name such as light-blue, or a number up to 255")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Paint, E> {
        let index = u8::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
        Ok(Paint(Color::Indexed(index)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Paint, E> {
        text.parse().map(Paint).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The nearest colour that can be shown; `None` where there are none.
pub fn nearest(colour: Color, depth: Depth) -> Option<Color> {
    let profile = match depth {
        Depth::True => TermProfile::TrueColor,
        Depth::Indexed => TermProfile::Ansi256,
        Depth::Sixteen => TermProfile::Ansi16,
        Depth::Mono => TermProfile::NoColor,
    };
    match (colour, depth) {
        (_, Depth::Mono) => None,
        (Color::Reset, _) => Some(Color::Reset),
        (colour, _) => profile.adapt_color(colour),
    }
}

/// A style with colours that can be shown.
pub fn adapt(style: Style, depth: Depth) -> Style {
    let near = |colour: Option<Color>| colour.and_then(|colour| nearest(colour, depth));
    Style { fg: near(style.fg), bg: near(style.bg), underline_color: near(style.underline_color), ..style }
}

#[cfg(test)]
pub mod measure {
    //! Contrast as WCAG 2 defines it.

    use ratatui::style::Color;

    /// 0 (black) to 1 (white); of full RGB colours only.
    pub fn luminance(colour: Color) -> f64 {
        let Color::Rgb(red, green, blue) = colour else { panic!("{colour:?} has no fixed luminance") };
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    /// 1 (the same) to 21 (black on white).
    pub fn contrast(one: Color, other: Color) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        if one > other { one / other } else { other / one }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Color, String> {
        serde_yaml::from_str::<Paint>(text).map(|paint| paint.0).map_err(|error| error.to_string())
    }

    #[test]
    fn colours_are_read_in_three_ways() {
        assert_eq!(read("\"#1a2B3c\""), Ok(Color::Rgb(0x1a, 0x2b, 0x3c)));
        assert_eq!(read("light-blue"), Ok(Color::LightBlue));
        assert_eq!(read("208"), Ok(Color::Indexed(208)));
        assert_eq!(read("reset"), Ok(Color::Reset));
        for wrong in ["256", "-1", "bleu", "\"#12345\"", "true", "[1]"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("a colour"), "{wrong}: {error}");
        }
    }

    #[test]
    fn fewer_colours_find_near_ones() {
        let red = Color::Rgb(255, 0, 0);
        assert_eq!(nearest(red, Depth::True), Some(red));
        assert!(
            matches!(nearest(red, Depth::Indexed), Some(Color::Indexed(9 | 196))),
            "{:?}",
            nearest(red, Depth::Indexed)
        );
        assert!(
            matches!(nearest(red, Depth::Sixteen), Some(Color::LightRed | Color::Red)),
            "{:?}",
            nearest(red, Depth::Sixteen)
        );
        assert_eq!(nearest(red, Depth::Mono), None);
        assert_eq!(nearest(Color::Reset, Depth::Sixteen), Some(Color::Reset));
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        let (black, white) = (Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255));
        assert!((measure::contrast(black, white) - 21.0).abs() < 0.01);
        assert!((measure::contrast(Color::Rgb(0x77, 0x77, 0x77), white) - 4.48).abs() < 0.01);
    }
}
