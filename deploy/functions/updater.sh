#!/bin/sh
# Changes a function; the next call gets the new one, and those under way end in peace: updater.sh CONF.env
set -eu
. "$(dirname "$0")/common.sh"
load "${1:?usage: updater.sh CONF.env}"
printf '%s' "$doc" | ask PUT "/template/$NAME" --data-binary @- >/dev/null
echo "function $NAME updated"
