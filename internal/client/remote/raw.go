package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// tableType asks for Tables instead of objects; a server without them sends objects.
const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// Logs opens the log of a pod's container; query is that of pods/log: container, follow, previous,
// tailLines, sinceSeconds, timestamps. The caller closes it.
func (c *Client) Logs(ctx context.Context, ns, pod string, query url.Values) (io.ReadCloser, error) {
	path, err := objectPath(client.Key{Kind: api.Pods, Namespace: ns, Name: pod}, "log")
	if err != nil {
		return nil, err
	}
	resp, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query, accept: "*/*"})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Table is one object (with a name) or a list, as the Table that the server makes of it. layout is empty for
// Kubernetes' columns, or "x" or "a" for those of the seed systems.
func (c *Client) Table(ctx context.Context, kind *api.Kind, ns, name string, opts client.ListOptions, layout string) (*metav1.Table, error) {
	path, query := collectionPath(kind, ns), listQuery(opts)
	if name != "" {
		var err error
		if path, err = objectPath(client.Key{Kind: kind, Namespace: ns, Name: name}, ""); err != nil {
			return nil, err
		}
		query = url.Values{}
	}
	if layout != "" {
		query.Set("layout", layout)
	}
	data, err := c.read(ctx, request{method: http.MethodGet, path: path, query: query, accept: tableType})
	if err != nil {
		return nil, err
	}
	return decodeTable(data)
}

// TableEvent is a change of an object, as rows of a Table. Only the first Table of a stream is certain to have the
// column definitions.
type TableEvent struct {
	Type  client.EventType
	Table *metav1.Table
}

// WatchTable calls each for every existing object of a kind, and then for every change. It returns nil when ctx ends,
// each's error, or that of the stream.
func (c *Client) WatchTable(ctx context.Context, kind *api.Kind, opts client.WatchOptions, layout string, each func(TableEvent) error) error {
	query := watchQuery(opts)
	if layout != "" {
		query.Set("layout", layout)
	}
	s, err := c.stream(ctx, collectionPath(kind, opts.Namespace), query, tableType)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		raw, ok := s.next()
		if !ok {
			return s.Err()
		}
		if raw.Type == string(client.Bookmark) {
			continue
		}
		table, err := decodeTable(raw.Object)
		if err != nil {
			return err
		}
		if err := each(TableEvent{Type: client.EventType(raw.Type), Table: table}); err != nil {
			return err
		}
	}
}

func decodeTable(data []byte) (*metav1.Table, error) {
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil {
		return nil, fmt.Errorf("the server's answer is no table: %w", err)
	}
	if table.Kind != "Table" {
		return nil, fmt.Errorf("the server's answer is a %s where a Table was asked for", table.Kind)
	}
	return table, nil
}

// Version is what the server says it is.
func (c *Client) Version(ctx context.Context) (*version.Info, error) {
	data, err := c.read(ctx, request{method: http.MethodGet, path: "/version"})
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(data, info); err != nil {
		return nil, fmt.Errorf("the server's version: %w", err)
	}
	return info, nil
}
