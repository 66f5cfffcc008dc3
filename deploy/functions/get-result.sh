#!/bin/sh
# Prints the result of a call that was not waited for: get-result.sh ID
set -eu
. "$(dirname "$0")/common.sh"
id=${1:?usage: get-result.sh ID}
plain ID "$id"
ask GET "/$id"
