#!/bin/sh
# keep.sh DIR [CGROUP]: runs a test's cluster in namespaces of its own until standard input ends, which it does however the test
# ends. Then it removes what is left of the cluster: its directory and its memory cgroup.
dir=$1 cgroup=${2:-}
exec 3<&0 # a shell gives a command in the background no standard input
# shellcheck disable=SC2086  # NETWORK is one option or none
unshare --pid --fork --kill-child --mount --propagation private --uts --ipc --mount-proc ${NETWORK:-} sh "$dir/setup.sh" "$dir" "$cgroup" 3<&- &
cluster=$!
echo $cluster
exec >/dev/null 2>&1 # a test that was killed reads no more, and to write to it would end this
{ cat; kill -9 $cluster; } <&3 &
wait $cluster
# What was killed may take a moment to go.
for _ in $(seq 100); do
	rm -rf "$dir"
	left=$dir
	if [ -n "$cgroup" ]; then
		find "$cgroup" -depth -type d -exec rmdir {} \;
		[ ! -e "$cgroup" ] || left=$cgroup
	fi
	[ -e "$left" ] || exit 0
	sleep 0.1
done
exit 1
