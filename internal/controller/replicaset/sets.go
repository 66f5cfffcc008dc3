package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// set is a ReplicaSet or a ReplicationController, read as one type. It is shared with the informer and must not be
// changed.
type set struct {
	obj    api.Object // as stored: it is what pods and events name
	spec   *appsv1.ReplicaSetSpec
	status *appsv1.ReplicaSetStatus
}

// form is how the objects of a kind are read and written as sets.
type form struct {
	kind  *api.Kind
	queue string // its name in metrics, as in Kubernetes
	// workers is how many objects of the kind are reconciled at the same time.
	workers int
	read    func(obj api.Object) set
	// report is a copy of obj with a new status; nil if it is the one that obj has.
	report func(obj api.Object, s appsv1.ReplicaSetStatus) api.Object
}

var replicaSets = form{kind: api.ReplicaSets, queue: "replicaset", workers: 5,
	read: func(obj api.Object) set {
		rs := obj.(*appsv1.ReplicaSet)
		return set{rs, &rs.Spec, &rs.Status}
	},
	report: func(obj api.Object, s appsv1.ReplicaSetStatus) api.Object {
		rs := obj.(*appsv1.ReplicaSet)
		if apiequality.Semantic.DeepEqual(s, rs.Status) {
			return nil
		}
		upd := rs.DeepCopy()
		upd.Status = s
		return upd
	},
}

var replicationControllers = form{kind: api.ReplicationControllers, queue: "replicationmanager", workers: 2,
	read: func(obj api.Object) set {
		rc := obj.(*corev1.ReplicationController)
		spec := &appsv1.ReplicaSetSpec{Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector: &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}}
		if rc.Spec.Template != nil {
			spec.Template = *rc.Spec.Template
		}
		status := &appsv1.ReplicaSetStatus{Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas: rc.Status.ReadyReplicas, AvailableReplicas: rc.Status.AvailableReplicas, ObservedGeneration: rc.Status.ObservedGeneration}
		for _, c := range rc.Status.Conditions {
			status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetConditionType(c.Type),
				Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
		}
		return set{rc, spec, status}
	},
	report: func(obj api.Object, s appsv1.ReplicaSetStatus) api.Object {
		rc := obj.(*corev1.ReplicationController)
		status := corev1.ReplicationControllerStatus{Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas,
			ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas, ObservedGeneration: s.ObservedGeneration}
		for _, c := range s.Conditions {
			status.Conditions = append(status.Conditions, corev1.ReplicationControllerCondition{Type: corev1.ReplicationControllerConditionType(c.Type),
				Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
		}
		if apiequality.Semantic.DeepEqual(status, rc.Status) {
			return nil
		}
		upd := rc.DeepCopy()
		upd.Status = status
		return upd
	},
}
