#!/bin/sh
# Makes build/functions/python.tar, the image on which Python functions stand, as an OCI archive: the interpreter and its
# standard library from Debian's packages, and busybox for shell scripts. Does nothing when it is up to date. It needs apt-get
# and root; without them an image of your own does, by the daemon's --function-base: python3 on the PATH, and /bin/sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/functions
packages="python3-minimal libpython3-stdlib busybox-static"

program=$root/internal/function/instance
stamp=$(cat "$here/python.sh" "$root"/testdata/images/mkimage/*.go "$program"/*.py /etc/os-release | sha256sum | cut -c1-32)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] && [ -f "$out/python.tar" ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
	echo "deploy/images: no image for Python functions: it is made from Debian's packages, by root" >&2
	exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/debs/partial" "$tmp/root/usr" "$out"
: >"$tmp/status" # nothing is installed there, so all that Python needs comes along
fetch() {
	apt-get install -y -qq --download-only --no-install-recommends -o Dir::State::status="$tmp/status" \
		-o Dir::Cache::archives="$tmp/debs" -o Debug::NoLocking=1 -o APT::Sandbox::User=root $packages >/dev/null
}
fetch 2>/dev/null || { apt-get update -qq >/dev/null && fetch; } || {
	echo "deploy/images: no image for Python functions: Debian's packages cannot be fetched" >&2
	exit 0
}
for d in bin lib lib64 sbin; do # as Debian's own base has them
	mkdir -p "$tmp/root/usr/$d"
	ln -s "usr/$d" "$tmp/root/$d"
done
for deb in "$tmp"/debs/*.deb; do
	case ${deb##*/} in
	dpkg_* | tar_* | gcc-12-base_* | media-types_* | readline-common_* | libmd0_* | libacl1_*) continue ;; # of installing alone
	esac
	dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$tmp/root"
done
cd "$tmp/root"
rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/lintian usr/share/bug usr/share/info usr/share/binfmts usr/share/python3 \
	usr/lib/python3*/test usr/lib/python3*/ensurepip usr/lib/python3*/idlelib usr/lib/python3*/lib2to3 usr/lib/python3*/pydoc_data \
	usr/lib/*-linux-gnu/gconv usr/share/initramfs-tools var etc/init.d etc/kernel
busybox=$(find . -path '*bin/busybox' -type f | head -1)
if [ "$busybox" != ./usr/bin/busybox ]; then
	mv "$busybox" usr/bin/busybox
fi
for name in $(usr/bin/busybox --list); do
	[ -e "usr/bin/$name" ] || [ -e "usr/sbin/$name" ] || ln -s busybox "usr/bin/$name"
done
mkdir -p dev etc home proc root run sys tmp var/tmp function
chmod 1777 tmp var/tmp
chmod 700 root
echo "root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/home:/bin/false" >etc/passwd
echo "root:x:0:
nogroup:x:65534:" >etc/group
# Compiled once, here: an interpreter starts in half the time. The files have no times that matter.
chroot . /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3* >/dev/null || true
# So is the program that calls functions, whose files come with each function. Those of another minik8s are compiled anew: they have
# another sum.
mkdir minik8s
cp "$program"/*.py minik8s
chroot . /usr/bin/python3 -m compileall -q --invalidation-mode checked-hash /minik8s >/dev/null || true
rm minik8s/*.py
cd "$root"
CGO_ENABLED=0 go build -o "$tmp/mkimage" ./testdata/images/mkimage
"$tmp/mkimage" -tag minik8s/python:latest -out "$out/python.tar" -root "$tmp/root"
echo "$stamp" >"$out/stamp.new"
mv "$out/stamp.new" "$out/stamp"
