#!/bin/sh
# setup.sh DIR [CGROUP]: makes the cluster of a test in the namespaces it finds itself in, says "ready", and is its process 1.
set -eu
dir=$1 cgroup=$2
if [ -n "${NETWORK:-}" ]; then
	ip link set lo up
	# slurmd looks its port up, and the C library finds none where all addresses are loopback.
	ip link add eth0 type veth peer name eth1
	ip addr add 10.99.0.1/24 dev eth0
	ip link set eth0 up
	ip link set eth1 up
fi

# The machine's own files and programs, but for these.
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/sshd /run/slurm /run/mysqld
for f in passwd shadow group; do mount --bind "$dir/etc/$f" /etc/$f; done
echo "127.0.0.1 localhost login $NODES" >"$dir/etc/hosts"
mount --bind "$dir/etc/hosts" /etc/hosts
hostname login
mkdir -p /etc/slurm
mount -t tmpfs -o mode=755 tmpfs /etc/slurm
cp "$dir"/*.conf /etc/slurm/
chmod 600 /etc/slurm/slurmdbd.conf
mount --bind "$dir/profile.d" /etc/profile.d
mount --bind "$dir/bin" /usr/local/bin
[ ! -e /etc/pam.d/sshd ] || mount --bind "$dir/pam" /etc/pam.d/sshd

# What the cluster itself keeps is not on a disk: it is gone with the test, and is not to wait for one.
mkdir -p "$dir/run" "$dir/log" "$dir/var"
mount -t tmpfs -o mode=755 tmpfs "$dir/var"
mkdir "$dir/var/db" "$dir/var/ctld" "$dir/var/spool"
for n in $NODES; do mkdir "$dir/var/spool/$n"; done
if [ -n "$cgroup" ]; then
	mkdir -p "$dir/cgroup/memory"
	mount --bind "$cgroup" "$dir/cgroup/memory"
fi
if [ -n "${HOME_BYTES:-}" ]; then
	mount -t tmpfs -o "size=$HOME_BYTES" tmpfs "$dir/new"
	cp -a "$dir/home/." "$dir/new/"
	mount --move "$dir/new" "$dir/home"
fi
chown -R "$OWNER" "$dir/home"
chmod 700 "$dir/home"
chmod 711 "$dir" "$dir/control"

head -c 128 /dev/urandom >/run/munge/key
chmod 400 /run/munge/key
chown -R munge /run/munge
"$dir/start" munged
if [ -n "${ACCOUNTING:-}" ]; then
	{
		printf 'create database mysql;\nuse mysql;\n'
		cat /usr/share/mysql/mysql_system_tables.sql
	} | "$dir/start" mariadbd --bootstrap
	"$dir/start" mariadbd
	"$dir/start" slurmdbd
	sacctmgr -i add cluster test >"$dir/log/sacctmgr.log"
fi
"$dir/start" slurmctld
for n in $NODES; do "$dir/start" "$n" & done
wait
"$dir/start" sshd
echo ready
exec >/dev/null 2>&1
sleep infinity
