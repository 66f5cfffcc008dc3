package bed

// Where objects of the default namespace are in the API.
const (
	PodsPath       = "/api/v1/namespaces/default/pods"
	ConfigMapsPath = "/api/v1/namespaces/default/configmaps"
)

// M is an object as JSON.
type M = map[string]any

// Pod returns a pod with one container, c. Without a command it runs the image's own.
func Pod(name, image string, command ...string) M {
	c := M{"name": "c", "image": image, "imagePullPolicy": "IfNotPresent"}
	if len(command) > 0 {
		c["command"] = command
	}
	return M{"apiVersion": "v1", "kind": "Pod", "metadata": M{"name": name},
		"spec": M{"containers": []M{c}, "terminationGracePeriodSeconds": 5}}
}

// Polite is a command that ends at once on SIGTERM.
var Polite = []string{"sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait $!; done"}

// WaitingPod returns a pod that nothing happens to, because the scheduler ignores it.
func WaitingPod(name string) M {
	return M{"apiVersion": "v1", "kind": "Pod", "metadata": M{"name": name, "labels": M{"app": "big"}},
		"spec": M{"schedulingGates": []M{{"name": "example.com/never"}}, "containers": []M{{"name": "c", "image": "busybox", "command": []string{"sleep", "1000"}}}}}
}
