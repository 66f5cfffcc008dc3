# What the scripts beside this file share. They speak to the API's routes of functions (/api/funcs/...):
#
#   API_SERVER, PORT   where it is; by default 127.0.0.1 and 8080, where "minik8sd ctl proxy --port=8080" serves the API with your rights
#   SCHEME             https for the API's own port, with what shows who you are in CURL_OPTIONS:
#   CURL_OPTIONS       further options of curl, as --cacert ca.crt --oauth2-bearer TOKEN, or, for root on a master,
#                      --unix-socket /var/lib/minik8s/api.sock

# ask METHOD PATH [options of curl...] prints the answer. If it is a refusal it goes to stderr, and the script fails.
ask() {
	method=$1 path=$2
	shift 2
	# shellcheck disable=SC2086 # options are several words
	answer=$(curl -sS --fail-with-body ${CURL_OPTIONS:-} -X "$method" "$@" "${SCHEME:-http}://${API_SERVER:-127.0.0.1}:${PORT:-8080}/api/funcs$path") || {
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
	pre=''
	if [ -n "$PRE_RUN" ]; then
		pre=$(base64 <"$PRE_RUN" | tr -d '\n')
	fi
	main=$(base64 <"$MAIN" | tr -d '\n')
	doc=$(printf '{"apiVersion":"%s","kind":"Func","metadata":{"name":"%s","namespace":"default"},"spec":{"name":"%s","preRun":"%s","function":"%s","left":"%s","right":"%s","serviceAddress":"%s","initInstanceNum":%d,"minInstanceNum":%d,"maxInstanceNum":%d}}' \
		"$VERSION" "$NAME" "$NAME" "$pre" "$main" "$LEFT_BRANCH" "$RIGHT_BRANCH" "$ADDR" "${INIT_INSTANCE_NUM:-0}" "${MIN_INSTANCE_NUM:-0}" "${MAX_INSTANCE_NUM:-0}")
}
