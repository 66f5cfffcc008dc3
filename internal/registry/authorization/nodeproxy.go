package authorization

import (
	"strings"

	"minik8s/internal/api"
)

// The rights to some paths of a kubelet, as Kubernetes' kubelets have them (nodes/metrics, ...). Whoever may use
// nodes/proxy may use all paths; whoever has only one of these, the paths that it is for, to read.
const (
	NodeMetrics = "metrics" // /metrics, /metrics/...
	NodeStats   = "stats"   // /stats/...
	NodeHealth  = "healthz" // /healthz
)

// kubeletRight is the right, below nodes/proxy, that is enough for a path of a kubelet; empty: nodes/proxy alone is. What is
// not written in the plainest way has none: it could mean another path to the kubelet than it does here.
func kubeletRight(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case NodeMetrics, NodeStats, NodeHealth:
	default:
		return ""
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || rest != "" && !plainPath(rest) {
		return ""
	}
	return first
}

func plainPath(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || strings.Trim(segment, ".") == "" {
			return false
		}
		for _, c := range []byte(segment) {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
				return false
			}
		}
	}
	return true
}

// throughProxy is a request for nodes/proxy as one for the right that is enough for its path, if there is one. It holds for
// the kubelet itself: a name with a port or a scheme is of whatever else listens on the node.
func throughProxy(q Attributes) (Attributes, bool) {
	if q.Kind != api.Nodes || q.Sub != "proxy" || q.View != nil || strings.Contains(q.Name, ":") {
		return q, false
	}
	right := kubeletRight(q.Below)
	if right == "" {
		return q, false
	}
	q.Sub, q.Below = right, ""
	return q, true
}
