package rules

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"minik8s/internal/api"
)

// Rule says which series are metrics, and how they are asked for.
type Rule struct {
	series     string
	filters    []sieve
	name       *regexp.Regexp
	as         string
	overrides  map[string]override // by label
	template   *template.Template  // nil: the overrides alone
	namespaced bool
	query      *template.Template
}

// sieve lets series through whose names match, or those whose names do not.
type sieve struct {
	*regexp.Regexp
	pass bool
}

// groupResource is what a template of labels sees.
type groupResource struct{ Group, Resource string }

var (
	// selector is the rough form of a selector of series; Prometheus knows the exact one.
	selector    = regexp.MustCompile(`(?s)^([a-zA-Z_:][a-zA-Z0-9_:]*|[a-zA-Z_:][a-zA-Z0-9_:]*\s*\{.*\}|\{.*\})$`)
	plainLabel  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	plainSeries = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	// underscored are a group's letters that no label may have.
	underscored = strings.NewReplacer(".", "_", "-", "_")
)

// SeriesQuery selects the series of the rule that have all these labels.
func (r *Rule) SeriesQuery(labels ...string) string {
	q := r.series
	for _, l := range labels {
		body, closed := strings.CutSuffix(q, "}")
		body = strings.TrimRight(body, " \t\r\n")
		switch {
		case !closed:
			q = body + "{" + l + `!=""}`
		case strings.HasSuffix(body, "{") || strings.HasSuffix(body, ","):
			q = body + l + `!=""}`
		default:
			q = body + "," + l + `!=""}`
		}
	}
	return q
}

// Metric is the name of the metric that a series is; false if it is none by this rule.
func (r *Rule) Metric(series string) (string, bool) {
	if !plainSeries.MatchString(series) {
		return "", false
	}
	for _, f := range r.filters {
		if f.MatchString(series) != f.pass {
			return "", false
		}
	}
	at := r.name.FindStringSubmatchIndex(series)
	if at == nil {
		return "", false
	}
	name := string(r.name.ExpandString(nil, r.as, series, at))
	return name, name != "" && len(content.IsPathSegmentName(name)) == 0
}

// Template reports whether any kind may have a label.
func (r *Rule) Template() bool { return r.template != nil }

// Labels are the labels that stand for kinds, of those that are served.
func (r *Rule) Labels(kinds []*api.Kind) map[string]*api.Kind {
	out := map[string]*api.Kind{}
	if r.template != nil {
		for _, k := range kinds {
			if k.View != nil || k.Asked {
				continue
			}
			l, err := expanded(r.template, groupResource{underscored.Replace(k.Group), singular(k)})
			if have := out[l]; err == nil && plainLabel.MatchString(l) && (have == nil || have.Group > k.Group) {
				out[l] = k
			}
		}
	}
	for label, o := range r.overrides {
		if k := Find(kinds, o.Group, o.Resource); k != nil {
			out[label] = k
		}
	}
	return out
}

// label is the one that stands for a kind; empty if none does. An override comes before the template.
func (r *Rule) label(k *api.Kind) string {
	var found []string
	for label, o := range r.overrides {
		if Find([]*api.Kind{k}, o.Group, o.Resource) != nil {
			found = append(found, label)
		}
	}
	if len(found) > 0 {
		return slices.Min(found)
	}
	if r.template == nil {
		return ""
	}
	l, err := expanded(r.template, groupResource{underscored.Replace(k.Group), singular(k)})
	if err != nil || !plainLabel.MatchString(l) || r.overrides[l].Resource != "" {
		return ""
	}
	return l
}

// NamespaceLabel is the label with the namespace; empty if there is none.
func (r *Rule) NamespaceLabel() string { return r.label(api.Namespaces) }

func singular(k *api.Kind) string { return cmp.Or(k.Singular, strings.ToLower(k.Kind)) }

// Find is the kind of a resource, by its plural or singular; nil if none of them is. Without a group it is the core's before
// others.
func Find(kinds []*api.Kind, group, resource string) *api.Kind {
	var found *api.Kind
	for _, k := range kinds {
		if k.Plural != resource && singular(k) != resource || group != "" && k.Group != group {
			continue
		}
		if found == nil || k.Group < found.Group {
			found = k
		}
	}
	return found
}
