package strategy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// All is what is each kind's own: a row per stored kind of package api.
func All() map[*api.Kind]*registry.Strategy {
	return map[*api.Kind]*registry.Strategy{
		api.Namespaces:             namespaceStrategy(),
		api.Nodes:                  nodeStrategy(),
		api.Pods:                   podStrategy(),
		api.ReplicationControllers: replicationControllerStrategy(),
		api.PodTemplates:           podTemplateStrategy(),
		api.ConfigMaps:             configMapStrategy(),
		api.Secrets:                secretStrategy(),
		api.Events:                 eventStrategy(),
		api.ServiceAccounts:        serviceAccountStrategy(),
		api.Leases:                 leaseStrategy(),
		api.PriorityClasses:        priorityClassStrategy(),
		api.ReplicaSets:            replicaSetStrategy(),
		api.Deployments:            deploymentStrategy(),
		api.DaemonSets:             daemonSetStrategy(),
		api.ControllerRevisions:    controllerRevisionStrategy(),
		api.Jobs:                   jobStrategy(),
		api.ClusterConfigs:         clusterConfigStrategy(),
	}
}

// onOne lets a func for one type stand in a row for all; the registry hands a row only objects of its
// own kind.
func onOne[T api.Object](f func(T)) func(api.Object) {
	return func(obj api.Object) { f(obj.(T)) }
}

// onStep is onOne for the step from an old object to a new one.
func onStep[T api.Object](f func(obj, old T)) func(obj, old api.Object) {
	return func(obj, old api.Object) { f(obj.(T), old.(T)) }
}

// checkOne is onOne for a check.
func checkOne[T api.Object](f func(T) field.ErrorList) func(api.Object) field.ErrorList {
	return func(obj api.Object) field.ErrorList { return f(obj.(T)) }
}

// checkStep is onStep for a check.
func checkStep[T api.Object](f func(obj, old T) field.ErrorList) func(obj, old api.Object) field.ErrorList {
	return func(obj, old api.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}
