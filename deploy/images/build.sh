#!/bin/sh
# Makes the images of the demo and the tests as OCI archives in build/images, without a registry:
# busybox:latest from Debian's busybox-static (or any static busybox), minik8s/hello:latest from
# testdata/images/hello. Does nothing when they are up to date.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/images

busybox=
find_busybox() {
	for b in ${BUSYBOX:-} /bin/busybox /usr/bin/busybox /usr/local/bin/busybox; do
		# A static program has no interpreter, that is, does not name a dynamic loader.
		if [ -x "$b" ] && ! head -c 4096 "$b" | grep -q 'ld-linux\|ld-musl'; then
			busybox=$b
			return 0
		fi
	done
	return 1
}
if ! find_busybox; then
	if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
		echo "installing busybox-static" >&2
		{ apt-get install -y -qq --no-install-recommends busybox-static ||
			{ apt-get update -qq && apt-get install -y -qq --no-install-recommends busybox-static; }; } >/dev/null
	fi
	find_busybox || {
		echo "deploy/images: please install a static busybox (Debian: busybox-static) or name one in BUSYBOX" >&2
		exit 1
	}
fi

stamp=$(cat "$here/build.sh" "$root"/testdata/images/*/*.go "$root"/internal/exposition/*.go "$busybox" | sha256sum | cut -c1-32)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
cd "$root"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$tmp/hello" ./testdata/images/hello
CGO_ENABLED=0 go build -o "$tmp/mkimage" ./testdata/images/mkimage
"$tmp/mkimage" -tag busybox:latest -out "$out/busybox.tar" -applets -cmd sh "$busybox=/bin/busybox"
"$tmp/mkimage" -tag minik8s/hello:latest -out "$out/hello.tar" -entrypoint /hello -expose 80 "$tmp/hello=/hello"
echo "$stamp" >"$out/stamp.new"
mv "$out/stamp.new" "$out/stamp"
