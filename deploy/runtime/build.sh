#!/bin/sh
# Builds what travels inside minik8sd: runc (static, with seccomp), from the module pinned beside this script, the keeper and
# the pause process, and leaves them compressed in internal/kubelet/containerd/bin for go:embed. Does nothing when they are
# up to date.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/internal/kubelet/containerd/bin
tags="seccomp runc_nocriu urfave_cli_no_docs netgo osusergo"

# The stamp is the content of everything the result depends on, and the file is the last one written.
stamp=$(cat "$here/build.sh" "$here"/runc/go.* "$here"/keeper/* "$here"/pack/*.go "$here"/pause/* |
	sha256sum | cut -c1-32)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi

# What the C half of runc needs. On Debian it is installed; elsewhere it is named.
missing=
command -v "${CC:-gcc}" >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config" # by it cgo finds libseccomp
have_header() { echo "#include <$1>" | "${CC:-gcc}" -E - >/dev/null 2>&1; }
if command -v "${CC:-gcc}" >/dev/null 2>&1; then
	have_header stdio.h || missing="$missing libc6-dev"
	have_header seccomp.h || missing="$missing libseccomp-dev"
else
	missing="$missing libseccomp-dev"
fi
if [ -n "$missing" ]; then
	if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
		echo "installing$missing" >&2
		# shellcheck disable=SC2086  # a list of words
		{ apt-get install -y -qq --no-install-recommends $missing ||
			{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }; } >/dev/null
	else
		echo "deploy/runtime: please install:$missing" >&2
		echo "  (a C compiler, the C library's headers and its static form, and libseccomp's headers and static form)" >&2
		exit 1
	fi
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"

echo "building runc and the keeper" >&2
(cd "$here/runc" && GOWORK=off CGO_ENABLED=1 go build -trimpath -tags "$tags" \
	-ldflags "-s -w -linkmode external -extldflags -static" \
	-o "$tmp/runc" github.com/opencontainers/runc)
"${CC:-gcc}" -Os -static -Wall -Wextra -Werror -s -o "$tmp/keeper" "$here/keeper/keeper.c"
"${CC:-gcc}" -Os -static -nostdlib -nostartfiles -fno-stack-protector -fno-asynchronous-unwind-tables \
	-s -o "$tmp/pause" "$here/pause/pause.c"

(cd "$root" && go run ./deploy/runtime/pack -out "$out" "$tmp/runc" "$tmp/keeper" "$tmp/pause")
echo "$stamp" >"$out/stamp.new"
mv "$out/stamp.new" "$out/stamp"
