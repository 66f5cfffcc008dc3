package get

import (
	"context"

	"minik8s/internal/api"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

// showObjects prints whole objects, or their names.
func showObjects(ctx context.Context, s *session.Session, r Request) error {
	count := s.Tally()
	var objects []api.Object
	for _, t := range r.Targets {
		if t.Name != "" {
			obj, err := target.Resolve(ctx, s, t)
			if r.missing(err) {
				continue
			}
			if count.Add(err); err == nil {
				objects = append(objects, obj)
			}
			continue
		}
		opts, err := r.Scope.Options(s, t.Kind)
		if err != nil {
			return err
		}
		list, err := s.API.List(ctx, t.Kind, opts)
		if count.Add(err); err == nil {
			objects = append(objects, list.Items...)
		}
	}
	single := len(r.Targets) == 1 && r.Targets[0].Name != ""
	if err := printer.Objects(s.Console, objects, r.Form, single); err != nil {
		return err
	}
	return count.Err()
}
