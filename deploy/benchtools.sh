#!/bin/sh
# Installs what some figures are measured against: nginx, and dnsperf with a stock CoreDNS of the version whose libraries the
# daemon has. Where they cannot be installed, these figures are left out.
set -eu
cd "$(dirname "$0")/.."
missing=
command -v nginx >/dev/null 2>&1 || missing="$missing nginx-light"
command -v dnsperf >/dev/null 2>&1 || missing="$missing dnsperf"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing" >&2
	# shellcheck disable=SC2086  # a list of words
	{ apt-get install -y -qq --no-install-recommends $missing ||
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }; } >/dev/null ||
		echo "make bench: without$missing some figures are left out" >&2
fi
sh deploy/testtools.sh
version=$(go list -m -f '{{.Version}}' github.com/coredns/coredns)
if [ "$(cat build/bench/coredns.version 2>/dev/null)" != "$version" ]; then
	echo "building CoreDNS $version" >&2
	mkdir -p build/bench
	GOBIN=$PWD/build/bench CGO_ENABLED=0 go install "github.com/coredns/coredns@$version" && echo "$version" >build/bench/coredns.version ||
		echo "make bench: without CoreDNS the figures of the DNS are left out" >&2
fi
