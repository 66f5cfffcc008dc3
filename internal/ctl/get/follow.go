package get

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
	"minik8s/internal/informer/reflector"
)

// followTable prints a row for every change after a table.
func followTable(ctx context.Context, s *session.Session, kind *api.Kind, from found, seed string, g *printer.Grid) error {
	at := from.table.ResourceVersion
	if at == "" && len(from.table.Rows) == 1 {
		at = printer.RowMeta(&from.table.Rows[0]).ResourceVersion
	}
	return follow(ctx, func(ctx context.Context, fail func(error)) {
		reflector.Recover(ctx, at, func(ctx context.Context, revision string) (string, error) {
			watch := client.WatchOptions{Namespace: from.in.Namespace, Labels: from.in.Labels, Fields: from.in.Fields, ResourceVersion: revision}
			err := s.API.WatchTable(ctx, kind, watch, seed, func(e remote.TableEvent) error {
				for i := range e.Table.Rows {
					if rv := printer.RowMeta(&e.Table.Rows[i]).ResourceVersion; rv != "" {
						revision = rv
					}
				}
				g.Print(e.Table)
				return nil
			})
			return revision, err
		}, func(err error, _ time.Duration, nothing bool) {
			if nothing {
				fail(err)
			}
		})
	})
}

// followObjects prints the existing objects, and then every change.
func followObjects(ctx context.Context, s *session.Session, r Request) error {
	opts, err := watchOf(ctx, s, r)
	if err != nil {
		return err
	}
	return follow(ctx, func(ctx context.Context, fail func(error)) {
		show := func(obj api.Object) {
			if r.Form == "yaml" || r.Form == "yml" {
				s.Say("---")
			}
			if err := printer.Objects(s.Console, []api.Object{obj}, r.Form, true); err != nil {
				fail(err)
			}
		}
		at := "" // what was printed
		f := reflector.Reflector{Client: s.API, Kind: r.Targets[0].Kind, Namespace: opts.Namespace, Labels: opts.Labels, Fields: opts.Fields,
			Log: slog.New(slog.DiscardHandler), Failed: fail,
			Replace: func(items []api.Object, revision string) {
				for _, obj := range items {
					if newer(obj.GetResourceVersion(), at) {
						show(obj)
					}
				}
				at = revision
			},
			Apply: func(e client.Event) {
				at = e.ResourceVersion
				if e.Object != nil {
					show(e.Object)
				}
			}}
		f.Run(ctx)
	})
}

// newer compares revisions, which are numbers (KEP-5504). What cannot be compared is taken for newer.
func newer(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err != nil || err2 != nil || x > y
}

// follow runs a watch that recovers, until ctx ends or the watch fails: when it is opened again and brings nothing but
// an error, a person wants to know. That a server ends a long watch is no error.
func follow(ctx context.Context, run func(ctx context.Context, fail func(error))) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run(inner, func(err error) {
		if err != nil && !errors.Is(err, io.EOF) {
			cancel(err)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(inner)
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
