#!/bin/sh
said=$(sh greet.sh 2>&1)
code=$?
[ "$code" = 2 ] || { echo "greet.sh without a name: expected exit 2, got $code"; exit 1; }
case "$said" in *usage*) ;; *) echo "greet.sh without a name: says nothing about its usage"; exit 1 ;; esac
