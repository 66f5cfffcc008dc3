#!/bin/sh
# Builds the clients that people come with, kubectl and Helm, for make test-clients, into build/tools, at the versions that
# testdata/clients/go.mod pins. Does nothing when they are there.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/build/tools
version=$(sha256sum "$root/testdata/clients/go.mod" | cut -c1-16)
[ "$(cat "$out/clients.version" 2>/dev/null)" = "$version" ] && exit 0
mkdir -p "$out"
echo "building kubectl and Helm, which takes minutes" >&2
cd "$root/testdata/clients"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/kubectl" ./kubectl
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/helm" helm.sh/helm/v4/cmd/helm
echo "$version" >"$out/clients.version"
