#!/bin/sh
# Uploads a function: uploader.sh CONF.env
set -eu
. "$(dirname "$0")/common.sh"
load "${1:?usage: uploader.sh CONF.env}"
printf '%s' "$doc" | ask POST /template --data-binary @- >/dev/null
echo "function $NAME uploaded"
