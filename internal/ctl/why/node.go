package why

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
)

func (s *situation) explainNode(node *corev1.Node) Explanation {
	if node.DeletionTimestamp != nil {
		return s.explainLeaving()
	}
	ready := brief.NodeReady(node)
	v := Explanation{Head: s.name() + " is ready", Good: true}
	switch {
	case ready == nil:
		v = Explanation{Head: s.name() + " has never reported: no kubelet speaks for it"}
		v.advise("start minik8sd with --role=worker and --node-name=%s on that machine", node.Name)
	case ready.Status == corev1.ConditionUnknown, ready.Reason == api.NodeSilent:
		v = Explanation{Head: s.name() + " is not ready: nothing was heard of it for a while"}
		v.because("%s", strings.Trim(ready.Reason+": "+ready.Message, ": "))
		v.because("last heard of %s", s.ago(ready.LastHeartbeatTime.Time))
		v.advise("on that machine: is minik8sd running, and does it reach the API server? Its log says so")
	case ready.Status != corev1.ConditionTrue:
		v = Explanation{Head: s.name() + " is not ready"}
		v.because("%s", strings.Trim(ready.Reason+": "+ready.Message, ": "))
		v.advise("its daemon runs and reports; the reason above is its own. Its log has more")
	}
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue {
			v.Good = false
			v.because("%s: %s", c.Type, strings.Trim(c.Reason+": "+c.Message, ": "))
		}
	}
	if node.Spec.Unschedulable {
		v.because("it is cordoned: no new pod is given to it")
		v.try("uncordon %s", node.Name)
	}
	for _, t := range node.Spec.Taints {
		v.because("it has the taint %s: only pods that tolerate it come here", t.ToString())
	}
	if e := s.lastWarning(); e != nil && !v.Good {
		v.because("%s, %s: %s", e.Reason, s.ago(brief.EventTime(e)), brief.Clip(e.Message, 300))
	}
	v.try("describe %s", s.args())
	return v
}
