#!/bin/sh
# Makes assets/pictures/*.svg from a recorded run, with the console as it is now.
set -eu
cd "$(dirname "$0")/.."
exec cargo run --quiet --example pictures
