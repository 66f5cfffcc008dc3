#!/bin/sh
# Builds Prometheus and promtool for make test-metrics, into build/tools, from the module pinned here. Debian's package
# will not do: it is built without the discovery of Kubernetes (2.42.0+ds), of which a file with kubernetes_sd_configs
# has no use. Only that discovery is built in here; the pages for people are not. Does nothing when they are there.
set -eu

version=v0.312.0 # of the module; the program says 3.12.0
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/build/tools
[ "$(cat "$out/prometheus.version" 2>/dev/null)" = "$version" ] && exit 0
mkdir -p "$out"
dir=$(go mod download -json "github.com/prometheus/prometheus@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
echo "building Prometheus, which takes minutes" >&2
for program in prometheus promtool; do
	(cd "$dir" && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -tags remove_all_sd,enable_kubernetes_sd -ldflags "-s -w" \
		-o "$out/$program" "./cmd/$program")
done
echo "$version" >"$out/prometheus.version"
