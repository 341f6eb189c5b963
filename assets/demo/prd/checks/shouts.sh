#!/bin/sh
got=$(sh greet.sh --loud Ada)
[ "$got" = "HELLO, ADA!" ] || { echo "greet.sh --loud Ada: expected 'HELLO, ADA!', got '$got'"; exit 1; }
