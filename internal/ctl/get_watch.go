package ctl

import (
	"context"
	"errors"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
)

// follow prints a row for every change after table. A server may close a long watch at any time, so
// it is opened again where it ended.
func (s *session) follow(ctx context.Context, kind *api.Kind, opts client.ListOptions, table *metav1.Table, seed string, g *grid) error {
	at := table.ResourceVersion
	if at == "" && len(table.Rows) == 1 {
		at = rowMeta(&table.Rows[0]).ResourceVersion
	}
	for {
		watch := client.WatchOptions{Namespace: opts.Namespace, Labels: opts.Labels, Fields: opts.Fields, ResourceVersion: at}
		err := s.api.WatchTable(ctx, kind, watch, seed, func(e remote.TableEvent) error {
			for i := range e.Table.Rows {
				if rv := rowMeta(&e.Table.Rows[i]).ResourceVersion; rv != "" {
					at = rv
				}
			}
			g.print(e.Table)
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		if !closed(err) {
			return err
		}
	}
}

// closed says whether a watch ended only because servers end watches now and then.
func closed(err error) bool { return err == nil || errors.Is(err, io.EOF) }
