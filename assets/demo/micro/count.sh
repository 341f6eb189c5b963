#!/bin/sh
# Counts lines.
wc -l < "$1"   
