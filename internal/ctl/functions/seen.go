package functions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
)

// Top prints what the leading master knows of functions' calls: of those named, or of all in a namespace; empty: in all.
func Top(ctx context.Context, s *session.Session, namespace string, names []string) error {
	all, _, err := client.All[*minik8s.Function](ctx, s.API, api.Functions, client.ListOptions{Namespace: namespace})
	if err != nil {
		return err
	}
	var rows [][]string
	found := map[string]bool{}
	for _, f := range all {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		found[f.Name] = true
		var l minik8s.FunctionLoad
		err := ask(ctx, s, f.Namespace, f.Name, minik8s.FunctionLoadSubresource, &l)
		if apierrors.IsNotFound(err) {
			continue // it has gone meanwhile
		}
		if err != nil {
			return err
		}
		p50, p99 := "-", "-"
		if l.Calls > 0 {
			p50, p99 = millis(l.P50Millis), millis(l.P99Millis)
		}
		name := f.Name
		if namespace == "" {
			name = f.Namespace + "/" + name
		}
		instances := fmt.Sprintf("%d/%d", l.ReadyInstances, l.DesiredInstances)
		if l.Panicking {
			instances += " (burst)"
		}
		rows = append(rows, []string{name, fmt.Sprint(l.Calls), fmt.Sprint(l.Errors), p50, p99, fmt.Sprint(l.ColdStarts), fmt.Sprint(l.UnderWay), fmt.Sprint(l.Waiting), instances})
	}
	for _, n := range names {
		if !found[n] {
			return apierrors.NewNotFound(api.Functions.GR(), n)
		}
	}
	printer.Table(s.Console, []string{"NAME", "CALLS", "ERRORS", "P50", "P99", "COLD", "UNDER WAY", "WAITING", "INSTANCES"}, rows)
	return nil
}

func millis(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
}

// Calls prints how a function's last calls went that somebody has waited for.
func Calls(ctx context.Context, s *session.Session, namespace, name string) error {
	var all []minik8s.FunctionRecord
	if err := ask(ctx, s, namespace, name, minik8s.FunctionCallsSubresource, &all); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range all {
		how := fmt.Sprint(r.Status)
		if r.Fault != "" {
			lines := strings.Split(strings.TrimSpace(r.Result), "\n")
			how += " " + r.Fault + ": " + console.Name(lines[len(lines)-1]) // of a traceback what was raised
		}
		start := "warm"
		if r.Cold {
			start = "cold"
		}
		rows = append(rows, []string{r.ID, r.Time.Format(time.RFC3339), console.Name(r.Caller), millis(r.TookMillis), millis(r.QueuedMillis), start, how})
	}
	printer.Table(s.Console, []string{"ID", "TIME", "CALLER", "TOOK", "QUEUED", "START", "RESULT"}, rows)
	return nil
}

// ask reads what a subresource of a function says.
func ask(ctx context.Context, s *session.Session, namespace, name, sub string, to any) error {
	path := fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functions/%s/%s", url.PathEscape(namespace), url.PathEscape(name), sub)
	resp, err := s.API.Do(ctx, http.MethodGet, path, nil, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	return json.NewDecoder(resp.Body).Decode(to)
}
