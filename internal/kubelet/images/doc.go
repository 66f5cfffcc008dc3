// Package images ensures that the image of a container is on the node before the container starts.
//
// It promises: Ensure follows the container's imagePullPolicy as Kubernetes does
// (pkg/kubelet/images/image_manager.go), records what it does in Events, logs in to registries with the pod's
// imagePullSecrets, or else with the machine's own logins, and cancels a pull that is no longer needed because the image was added in another way (an
// archive, an import by hand). Its errors are plan.ActionErrors, which have the reason for the pod's status and when
// the pull is retried; package plan does the retry (plan/retry.go), so that nothing waits here.
//
// The kubelet's worker calls Ensure, in the action's goroutine; code that adds images calls Changed. It calls the
// runtime and, for secrets, the client. Nothing survives a kill -9: a pull is started again, and the runtime keeps
// the layers that it has.
//
//	images.go       Ensure: by the pull policy
//	pull.go         one pull, with its progress and its logins
//	retry.go        the reason of a failure, and when it is retried
//	arrivals.go     waking waiters when images are added
//	pullsecrets.go  which logins fit an image
package images
