#!/bin/sh
got=$(sh count.sh sample.txt)
[ "$got" = 3 ] || { echo "count.sh sample.txt: expected 3, got $got"; exit 1; }
