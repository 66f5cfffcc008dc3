# What centres have: a login shell knows module. What was loaded is in $LOADED; a module whose name begins with "missing" is not there.
module() {
	[ "$1" = load ] || return 1
	shift
	for m; do
		case $m in missing*)
			echo "module: $m is unknown" >&2
			return 1
			;;
		esac
		export LOADED="${LOADED:+$LOADED:}$m"
	done
}
[ -z "${BASH_VERSION:-}" ] || export -f module
