//! The shipped pictures are what the console draws today.

#[path = "../../examples/pictures/scenes.rs"]
mod scenes;
#[path = "../../examples/pictures/svg.rs"]
mod svg;

use std::path::Path;

use super::operator;

#[test]
fn the_shipped_pictures_are_the_made_ones() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/pictures");
    for (name, made) in scenes::all() {
        if std::env::var_os("NIGHTLOOP_WRITE_PICTURES").is_some() {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(name), &made).unwrap();
        }
        let shipped = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        assert!(shipped == made, "run `assets/pictures.sh`, look at {name}, and commit the change");
    }
}
