#!/bin/sh
# Fails on blanks at the end of a line.
if grep -n '[[:blank:]]$' count.sh; then
    echo "lint error: would reformat count.sh"
    exit 1
fi
