package get

import (
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

// followTable prints a row for every change after a table. A server may close a long watch at any time; it is then
// reopened where it ended.
func followTable(ctx context.Context, s *session.Session, kind *api.Kind, from found, seed string, g *printer.Grid) error {
	at := from.table.ResourceVersion
	if at == "" && len(from.table.Rows) == 1 {
		at = printer.RowMeta(&from.table.Rows[0]).ResourceVersion
	}
	for {
		watch := client.WatchOptions{Namespace: from.in.Namespace, Labels: from.in.Labels, Fields: from.in.Fields, ResourceVersion: at}
		err := s.API.WatchTable(ctx, kind, watch, seed, func(e remote.TableEvent) error {
			for i := range e.Table.Rows {
				if rv := printer.RowMeta(&e.Table.Rows[i]).ResourceVersion; rv != "" {
					at = rv
				}
			}
			g.Print(e.Table)
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		if !endedByServer(err) {
			return err
		}
	}
}

// followObjects prints the existing objects, and then every change.
func followObjects(ctx context.Context, s *session.Session, r Request) error {
	opts, err := watchOf(ctx, s, r)
	if err != nil {
		return err
	}
	for {
		w, err := s.API.Watch(ctx, r.Targets[0].Kind, opts)
		if err != nil {
			return err
		}
		for e := range w.Events() {
			opts.ResourceVersion = e.ResourceVersion
			if e.Object == nil {
				continue
			}
			if r.Form == "yaml" || r.Form == "yml" {
				s.Say("---")
			}
			if err := printer.Objects(s.Console, []api.Object{e.Object}, r.Form, true); err != nil {
				w.Stop()
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := w.Err(); !endedByServer(err) {
			return err
		}
	}
}

// watchOf returns the watch options for a request's only target.
func watchOf(ctx context.Context, s *session.Session, r Request) (client.WatchOptions, error) {
	t := r.Targets[0]
	if t.Name != "" {
		obj, err := target.Resolve(ctx, s, t)
		if err != nil {
			return client.WatchOptions{}, err
		}
		return client.WatchOptions{Namespace: obj.GetNamespace(), Fields: fields.OneTermEqualSelector("metadata.name", obj.GetName())}, nil
	}
	list, err := r.Scope.Options(s, t.Kind)
	return client.WatchOptions{Namespace: list.Namespace, Labels: list.Labels, Fields: list.Fields}, err
}

// endedByServer reports whether a watch ended only because servers end watches from time to time.
func endedByServer(err error) bool { return err == nil || errors.Is(err, io.EOF) }
