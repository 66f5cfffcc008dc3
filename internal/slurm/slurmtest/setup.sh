#!/bin/sh
# setup.sh DIR: the cluster of a test, as process 1 of its namespaces. It ends with its standard input.
set -eu
dir=$1
mount --make-rprivate /
if [ "${NETWORK:-}" = own ]; then
	ip link set lo up
	# slurmd looks its port up, and the C library finds none where all addresses are loopback.
	ip link add eth0 type veth peer name eth1
	ip addr add 10.99.0.1/24 dev eth0
	ip link set eth0 up
	ip link set eth1 up
fi
mkdir -p "$dir/run" "$dir/etc" "$dir/var/spool/n1" "$dir/var/spool/n2" "$dir/log" "$dir/bin" "$dir/control"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/sshd /run/slurm
cp "$dir/passwd" "$dir/etc/passwd"
for f in passwd shadow group; do mount --bind "$dir/$f" /etc/$f; done
echo '127.0.0.1 localhost login n1 n2' >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
hostname login
mount --bind "$dir/bin" /usr/local/bin
mkdir -p /etc/slurm
mount -t tmpfs -o mode=755 tmpfs /etc/slurm
cp "$dir/slurm.conf" "$dir/gres.conf" /etc/slurm/
mkdir -p "$dir/profile.d"
mount --bind "$dir/profile.d" /etc/profile.d
if [ -n "${HOME_BYTES:-}" ]; then mount -t tmpfs -o size="$HOME_BYTES",mode=700 tmpfs "$dir/home"; fi
chown 20077:20077 "$dir/home"
chmod 711 "$dir" "$dir/control" "$dir/bin"
chmod 700 "$dir/home"

head -c 128 /dev/urandom >/run/munge/key
chmod 400 /run/munge/key
chown -R munge /run/munge
runuser -u munge -- munged --key-file=/run/munge/key --log-file=/run/munge/log --pid-file=/run/munge/pid --seed-file=/run/munge/seed
"$dir/start" slurmctld
"$dir/start" n1
"$dir/start" n2
"$dir/start" sshd
echo ready
cat >/dev/null
