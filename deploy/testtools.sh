#!/bin/sh
# Installs what some tests play a host's administrator with, ip and nft, and a machine's system bus, dbus-daemon. The
# daemon itself needs none of them. Without them, and where they cannot be installed, those tests are skipped.
set -eu
[ "$(id -u)" = 0 ] || exit 0
missing=
command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
command -v nft >/dev/null 2>&1 || missing="$missing nftables"
command -v dbus-daemon >/dev/null 2>&1 || missing="$missing dbus"
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing" >&2
	# shellcheck disable=SC2086  # a list of words
	{ apt-get install -y -qq --no-install-recommends $missing ||
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }; } >/dev/null
else
	echo "make test: without$missing some tests of the network and of a machine's shutdown are skipped" >&2
fi
