#!/bin/sh
got=$(sh greet.sh Ada)
[ "$got" = "Hello, Ada!" ] || { echo "greet.sh Ada: expected 'Hello, Ada!', got '$got'"; exit 1; }
