#!/bin/sh
# Calls a function and prints its result or, if that takes longer than ten seconds, the call's id: call.sh NAME ARGUMENT
set -eu
. "$(dirname "$0")/common.sh"
name=${1:?usage: call.sh NAME ARGUMENT}
plain NAME "$name"
printf '%s' "${2-}" | ask POST "/$name" -H 'Content-Type: text/plain' --data-binary @-
