#!/bin/sh
# The script can be read by a shell, and it answers.
sh -n greet.sh && sh greet.sh Ada >/dev/null
