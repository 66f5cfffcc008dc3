#!/bin/sh
# Installs what some tests need on a machine: what plays a host's administrator (ip, nft, dig), a machine's system bus
# (dbus-daemon), and a computing centre (Slurm, its database, munge, sshd, a C compiler). The daemon itself needs none of
# them. Without them, and where they cannot be installed, those tests are skipped.
set -eu
[ "$(id -u)" = 0 ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
missing=
need() { command -v "$1" >/dev/null 2>&1 || case " $missing " in *" $2 "*) ;; *) missing="$missing $2" ;; esac; }
need ip iproute2
need nft nftables
need dbus-daemon dbus
need slurmctld slurmctld
need slurmd slurmd
need sbatch slurm-client
need slurmdbd slurmdbd
need mariadbd mariadb-server-core
need munged munge
need sshd openssh-server
need ssh-keygen openssh-client
need openssl openssl
need dig bind9-dnsutils
need pkill procps
need cc "tcc libc6-dev" # programs that stand in for CUDA
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
	echo "make test: without$missing some tests of the network, of a machine's shutdown and of GPU jobs are skipped" >&2
	exit 0
fi
echo "installing$missing" >&2
# The tests start what they need themselves, in namespaces: the machine is to run none of it.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of words
{ apt-get install -y -qq --no-install-recommends $missing ||
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }; } >/dev/null
