//! Makes the pictures of the README from the console itself: a recorded run, real frames, no drawing by hand.
//!
//! `assets/pictures.sh` runs it; a test holds the shipped files against what it makes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../tests/support/operator.rs"]
mod operator;
mod scenes;
mod svg;

fn main() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/pictures");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, picture) in scenes::all() {
        std::fs::write(dir.join(name), picture).unwrap();
        println!("assets/pictures/{name}");
    }
}
