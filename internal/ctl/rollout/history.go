package rollout

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
)

// History lists a workload's revisions. If number is not 0, it shows the template of that revision.
func History(ctx context.Context, s *session.Session, obj api.Object, number int64) error {
	list, err := revisions(ctx, s, obj)
	if err != nil {
		return err
	}
	if number != 0 {
		return showTemplate(s, obj, list, number)
	}
	s.Say("%s", brief.RefOf(obj))
	var rows [][]string
	for i := range list {
		cause := list[i].cause
		if cause == "" {
			cause = "<none>"
		}
		rows = append(rows, []string{strconv.FormatInt(list[i].number, 10), list[i].images(), cause})
	}
	printer.Table(s.Console, []string{"Revision", "Images", "Change-Cause"}, rows)
	return nil
}

func showTemplate(s *session.Session, obj api.Object, list []revision, number int64) error {
	r := find(list, number)
	if r == nil {
		return noRevision(obj, number)
	}
	data, err := yaml.Marshal(r.template)
	if err != nil {
		return err
	}
	s.Say("%s, revision %d:\n%s", brief.RefOf(obj), number, strings.TrimRight(string(data), "\n"))
	return nil
}

// Undo restores the template of a revision; 0 means the previous one.
func Undo(ctx context.Context, s *session.Session, obj api.Object, number int64) error {
	if err := notPaused(obj); err != nil {
		return err
	}
	list, err := revisions(ctx, s, obj)
	if err != nil {
		return err
	}
	var to *revision
	switch {
	case number != 0:
		if to = find(list, number); to == nil {
			return noRevision(obj, number)
		}
	case len(list) < 2:
		return exit.Failf(exit.NotFound, "%s has no earlier template", brief.RefOf(obj))
	default:
		to = &list[len(list)-2]
	}
	if to.number == list[len(list)-1].number {
		s.Say("%s is at revision %d already", brief.RefOf(obj), to.number)
		return nil
	}
	template, err := replacement(to.template)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	patch := client.Patch{Type: types.StrategicMergePatchType, Data: data}
	if _, err = s.API.Patch(ctx, client.KeyOf(obj), patch, client.WriteOptions{FieldManager: session.Manager}); err != nil {
		return err
	}
	s.Say("%s rolled back to revision %d (%s)", brief.RefOf(obj), to.number, to.images())
	return nil
}

// replacement returns a template as a patch that replaces the old template instead of merging with it.
func replacement(t corev1.PodTemplateSpec) (map[string]any, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	out["$patch"] = "replace"
	return out, nil
}
