package main

// Where objects of the default namespace are in the API.
const (
	podsPath = "/api/v1/namespaces/default/pods"
	cmPath   = "/api/v1/namespaces/default/configmaps"
)

// m is an object as JSON.
type m = map[string]any

// pod returns a pod with one container, c. Without a command it runs the image's own.
func pod(name, image string, command ...string) m {
	c := m{"name": "c", "image": image, "imagePullPolicy": "IfNotPresent"}
	if len(command) > 0 {
		c["command"] = command
	}
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name},
		"spec": m{"containers": []m{c}, "terminationGracePeriodSeconds": 5}}
}

// polite is a command that ends at once on SIGTERM.
var polite = []string{"sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait $!; done"}

// waitingPod returns a pod that nothing happens to, because the scheduler ignores it.
func waitingPod(name string) m {
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name, "labels": m{"app": "big"}},
		"spec": m{"schedulingGates": []m{{"name": "example.com/never"}}, "containers": []m{{"name": "c", "image": "busybox", "command": []string{"sleep", "1000"}}}}}
}
