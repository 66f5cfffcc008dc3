#!/bin/sh
# Builds a real cAdvisor for make test-metrics, into build/tools, from the module pinned here: ours is to say what it says, and
# --cadvisor is to read it. The program has been a module of its own since v0.37, which the module proxy does not serve, so this
# is the last one that is part of the library's module; its API is the same, but it knows cgroup v1 alone. The build is of a
# copy, since three things there are in the way: Go refuses a flag that is set before it is defined, where the program sets
# its logging; the databases that it may write to take as long to build as all else; and it would ask for the metadata of
# clouds. Does nothing when it is there.
set -eu

version=v0.36.0
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/build/tools
[ "$(cat "$out/cadvisor.version" 2>/dev/null)" = "$version" ] && exit 0
mkdir -p "$out"
dir=$(go mod download -json "github.com/google/cadvisor@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
echo "building cAdvisor, which takes a minute" >&2
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
cp -R "$dir/." "$copy"
chmod -R u+w "$copy"
sed -i -e '/flag.Set("v", "2")/d' -e '/_ ".*\/utils\/cloudinfo\//d' -e '/_ ".*\/cadvisor\/storage\//d' "$copy/cadvisor.go" "$copy/storagedriver.go"
(cd "$copy" && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -ldflags "-s -w" -o "$out/cadvisor" .)
echo "$version" >"$out/cadvisor.version"
