# What the scripts beside this file share. They speak to the API's routes of functions (/api/funcs/...):
#
#   API_SERVER, PORT   where it is; by default 127.0.0.1 and 8080, where "minik8sd ctl proxy --port=8080" serves the API with your rights
#   SCHEME             https for the API's own port, with what shows who you are in CURL_OPTIONS:
#   TOKEN_FILE         a file with your token, which others could read among the arguments of curl
#   CURL_OPTIONS       further options of curl, as --cacert ca.crt, or, for root on a master, --unix-socket /var/lib/minik8s/api.sock

# plain NAME VALUE fails unless the value is what it may be in a path and in JSON: letters, digits, '-', '_' and '.'.
plain() {
	case $2 in
	*[!A-Za-z0-9_.-]*)
		echo "$1: expected letters, digits, '-', '_' and '.', as in is_hello, and found: $2" >&2
		exit 1
		;;
	esac
}

# ask METHOD PATH [options of curl...] prints the answer. If it is a refusal it goes to stderr, and the script fails.
ask() {
	method=$1 path=$2
	shift 2
	header=''
	if [ -n "${TOKEN_FILE:-}" ]; then
		header="header = \"Authorization: Bearer $(cat "$TOKEN_FILE")\""
	fi
	# shellcheck disable=SC2086 # options are several words
	answer=$(curl -sS --fail-with-body -K /dev/fd/3 ${CURL_OPTIONS:-} -X "$method" "$@" "${SCHEME:-http}://${API_SERVER:-127.0.0.1}:${PORT:-8080}/api/funcs$path" 3<<-END
		$header
	END
	) || {
		printf '%s\n' "$answer" >&2
		exit 1
	}
	printf '%s\n' "$answer"
}

# load CONF.env reads a function's settings, and makes the document that is uploaded: $doc.
load() {
	case $1 in
	*/*) conf=$1 ;;
	*) conf=./$1 ;;
	esac
	VERSION=v1 NAME='' MAIN='' PRE_RUN='' LEFT_BRANCH=RETURN RIGHT_BRANCH=RETURN ADDR=''
	# shellcheck disable=SC1090 # it is the user's
	. "$conf"
	if [ -z "$NAME" ] || [ -z "$MAIN" ]; then
		echo "$conf: NAME and MAIN are needed" >&2
		exit 1
	fi
	plain VERSION "$VERSION"
	plain NAME "$NAME"
	plain LEFT_BRANCH "$LEFT_BRANCH"
	plain RIGHT_BRANCH "$RIGHT_BRANCH"
	plain ADDR "$ADDR"
	for setting in INIT_INSTANCE_NUM MIN_INSTANCE_NUM MAX_INSTANCE_NUM; do
		eval "value=\${$setting:-0}"
		case $value in
		*[!0-9]*)
			echo "$conf: $setting: expected a number, and found: $value" >&2
			exit 1
			;;
		esac
	done
	pre=''
	if [ -n "$PRE_RUN" ]; then
		pre=$(base64 <"$PRE_RUN" | tr -d '\n')
	fi
	main=$(base64 <"$MAIN" | tr -d '\n')
	doc=$(printf '{"apiVersion":"%s","kind":"Func","metadata":{"name":"%s","namespace":"default"},"spec":{"name":"%s","preRun":"%s","function":"%s","left":"%s","right":"%s","serviceAddress":"%s","initInstanceNum":%d,"minInstanceNum":%d,"maxInstanceNum":%d}}' \
		"$VERSION" "$NAME" "$NAME" "$pre" "$main" "$LEFT_BRANCH" "$RIGHT_BRANCH" "$ADDR" "${INIT_INSTANCE_NUM:-0}" "${MIN_INSTANCE_NUM:-0}" "${MAX_INSTANCE_NUM:-0}")
}
