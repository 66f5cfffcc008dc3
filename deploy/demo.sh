#!/bin/sh
# make demo: one process becomes a cluster, a pod runs on it, and you see it answer. All of it happens
# in a network namespace and a directory of its own and is gone afterwards. On a terminal the cluster
# stays up until you press Enter.
set -eu
cd "$(dirname "$0")/.."
me=$(pwd)/bin/minik8sd

[ "$(id -u)" = 0 ] || { echo "make demo: containers need root; try: sudo make demo" >&2; exit 1; }
if ! command -v unshare >/dev/null 2>&1 || ! command -v ip >/dev/null 2>&1 || ! command -v curl >/dev/null 2>&1; then
	command -v apt-get >/dev/null 2>&1 || { echo "make demo: please install util-linux, iproute2 and curl" >&2; exit 1; }
	{ apt-get install -y -qq util-linux iproute2 curl || { apt-get update -qq && apt-get install -y -qq util-linux iproute2 curl; }; } >/dev/null
fi

# This machine's logind need not wait for the demo's pods.
DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent
export DBUS_SYSTEM_BUS_ADDRESS

# The second time round we are inside the namespace.
if [ "${1:-}" != inside ]; then
	exec unshare --net sh "$0" inside
fi

ip link set lo up
ip link add uplink0 type veth peer name uplink1
ip addr add 10.99.0.2/24 dev uplink0
ip link set uplink0 up
ip link set uplink1 up
ip route add default via 10.99.0.1

data=$(mktemp -d /tmp/minik8s-demo.XXXXXX)
cgroup=/minik8s-demo-$$
daemon=
cleanup() {
	trap - EXIT INT TERM
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	"$me" clean --data-dir "$data" --cgroup-root "$cgroup" || echo "make demo: something was left in $data" >&2
	rm -rf "$data"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { if [ -t 1 ]; then printf '\n\033[1m$ %s\033[0m\n' "$*"; else printf '\n$ %s\n' "$*"; fi; }
ctl() { say minik8sd ctl "$@"; "$me" ctl --data-dir "$data" "$@"; }

mkdir "$data/images"
cp build/images/*.tar "$data/images/"
say minik8sd --role=master,worker
"$me" --role=master,worker --data-dir "$data" --cgroup-root "$cgroup" &
daemon=$!
tries=0
until curl -sf --unix-socket "$data/api.sock" http://minik8s/readyz >/dev/null 2>&1; do
	kill -0 "$daemon" 2>/dev/null || { echo "make demo: the daemon ended" >&2; exit 1; }
	tries=$((tries + 1))
	[ "$tries" -lt 300 ] || { echo "make demo: not ready after 30 s" >&2; exit 1; }
	sleep 0.1
done

ctl get nodes -o wide
say cat testdata/manifests/demo.yaml
cat testdata/manifests/demo.yaml
ctl apply -f testdata/manifests/demo.yaml --wait
ctl get pods -o wide
address=$("$me" ctl --data-dir "$data" get pod demo -o json | sed -n 's/.*"podIP": *"\([^"]*\)".*/\1/p' | head -n 1)
say curl "http://$address/"
curl -sS --retry 20 --retry-delay 1 --retry-connrefused "http://$address/"
say curl "http://$address/files/shared/note   # what the other container wrote"
curl -sS --retry 20 --retry-all-errors --retry-delay 1 "http://$address/files/shared/note"
ctl logs demo -c writer
ctl why pod demo
printf '\nThat was one process and two containers of one pod.\n'
if [ -t 0 ] && [ -t 1 ]; then
	cat <<TXT

The cluster is still up. From another terminal, as root:
  $me ctl --data-dir $data get pods
  nsenter --net=/proc/$daemon/ns/net kubectl --kubeconfig $data/admin.kubeconfig get pods

Press Enter to remove it all.
TXT
	read -r _ || true
fi
