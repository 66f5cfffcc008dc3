package get

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/used"
)

// usage is what an object of the seed system's tables uses.
type usage struct{ cpu, memory resource.Quantity }

func (u *usage) add(list corev1.ResourceList) {
	u.cpu.Add(*list.Cpu())
	u.memory.Add(*list.Memory())
}

// fillUsage writes what nodes, pods and replica sets use into their columns Cpu and Memory of the layout x, as the seed system
// does: CPU in percent of one core, which is also the measure of its autoscalers. What is not known, or may not be asked for,
// is "-".
func fillUsage(ctx context.Context, s *session.Session, kind *api.Kind, namespace string, t *metav1.Table) {
	of := map[types.UID]*usage{}
	var err error
	switch kind {
	case api.Nodes:
		err = nodeUsage(ctx, s, of)
	case api.Pods, api.ReplicaSets:
		err = podUsage(ctx, s, namespace, of)
	default:
		return
	}
	if err != nil {
		s.Note("what they use is not known: %v", err)
	}
	for i := range t.Rows {
		u := of[printer.RowMeta(&t.Rows[i]).UID]
		for j, c := range t.ColumnDefinitions {
			text := "-"
			switch strings.ToLower(c.Name) {
			case "cpu":
				if u != nil {
					text = fmt.Sprintf("%.1f%%", u.cpu.AsApproximateFloat64()*100)
				}
			case "memory":
				if u != nil {
					text = fmt.Sprintf("%.1fMi", u.memory.AsApproximateFloat64()/(1<<20))
				}
			default:
				continue
			}
			t.Rows[i].Cells[j] = text
		}
	}
}

func nodeUsage(ctx context.Context, s *session.Session, of map[types.UID]*usage) error {
	nodes, _, err := client.All[*corev1.Node](ctx, s.API, api.Nodes, client.ListOptions{})
	if err != nil {
		return err
	}
	list, err := used.Nodes(ctx, s, "")
	if err != nil {
		return err
	}
	for _, n := range nodes {
		for i := range list {
			if list[i].Name == n.Name {
				of[n.UID] = &usage{}
				of[n.UID].add(list[i].Usage)
			}
		}
	}
	return nil
}

// podUsage counts a pod's use for the pod itself and for its owners.
func podUsage(ctx context.Context, s *session.Session, namespace string, of map[types.UID]*usage) error {
	pods, _, err := client.All[*corev1.Pod](ctx, s.API, api.Pods, client.ListOptions{Namespace: namespace})
	if err != nil {
		return err
	}
	list, err := used.Pods(ctx, s, namespace, "")
	if err != nil {
		return err
	}
	byName := map[types.NamespacedName]*corev1.Pod{}
	for _, p := range pods {
		byName[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	for i := range list {
		p := byName[types.NamespacedName{Namespace: list[i].Namespace, Name: list[i].Name}]
		if p == nil {
			continue
		}
		to := []types.UID{p.UID}
		for _, o := range p.OwnerReferences {
			to = append(to, o.UID)
		}
		for _, uid := range to {
			if of[uid] == nil {
				of[uid] = &usage{}
			}
			for _, c := range list[i].Containers {
				of[uid].add(c.Usage)
			}
		}
	}
	return nil
}
