package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"minik8s/internal/api"
)

// args is what a template of queries sees, as in prometheus-adapter.
type args struct {
	Series        string
	LabelMatchers string
	// LabelValuesByName has the values that a label is asked for, with | between them.
	LabelValuesByName map[string]string
	GroupBy           string
	GroupBySlice      []string
}

// matchers are what the series of a question have to match.
type matchers struct {
	texts  []string
	values map[string]string
}

// harmless are values that mean themselves within any quotes: a template may write them where it likes. Names of objects
// and values of labels have no other letters.
var harmless = regexp.MustCompile(`^[a-zA-Z0-9._:-]*$`)

// Custom is the query for a metric of some objects of a kind, which are in a namespace unless it is empty. label is the one
// that says in the answer which object a value is of. The errors say what of the question cannot be asked.
func (r *Rule) Custom(series string, of *api.Kind, namespace string, names []string, selector labels.Selector) (query, label string, err error) {
	if label = r.label(of); label == "" {
		return "", "", fmt.Errorf("no label stands for %s", of.GR())
	}
	m, err := selected(selector)
	if err != nil {
		return "", "", err
	}
	if namespace != "" {
		err = m.add(r.NamespaceLabel(), selection.Equals, []string{namespace})
	}
	if err == nil {
		err = m.add(label, selection.In, names)
	}
	if err != nil {
		return "", "", err
	}
	query, err = m.query(r, series, label)
	return query, label, err
}

// External is the query for a metric of no object, as a namespace may ask for it.
func (r *Rule) External(series, namespace string, selector labels.Selector) (string, error) {
	m, err := selected(selector)
	if err == nil && r.namespaced {
		err = m.add(r.NamespaceLabel(), selection.Equals, []string{namespace})
	}
	if err != nil {
		return "", err
	}
	return m.query(r, series)
}

func selected(selector labels.Selector) (*matchers, error) {
	m := &matchers{values: map[string]string{}}
	list, selectable := selector.Requirements()
	if !selectable {
		return m, fmt.Errorf("the selector selects nothing")
	}
	for _, q := range list {
		if err := m.add(q.Key(), q.Operator(), q.Values().List()); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *matchers) add(label string, op selection.Operator, values []string) error {
	if !plainLabel.MatchString(label) {
		return fmt.Errorf("%q is no label of Prometheus: expected letters, digits and _", label)
	}
	for _, v := range values {
		if !harmless.MatchString(v) {
			return fmt.Errorf("%q is no value that a label or a name can have", v)
		}
	}
	sign, value := "", ""
	several := len(values) > 1
	switch op {
	case selection.Equals, selection.DoubleEquals, selection.In:
		sign = "="
		if several {
			sign = "=~"
		}
	case selection.NotEquals, selection.NotIn:
		sign = "!="
		if several {
			sign = "!~"
		}
	case selection.Exists:
		sign = "!="
	case selection.DoesNotExist:
		sign = "="
	default:
		return fmt.Errorf("%s: the operator %q cannot be asked of Prometheus: expected =, !=, in, notin or exists", label, op)
	}
	if value = strings.Join(values, "|"); several {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = regexp.QuoteMeta(v)
		}
		value = strings.Join(quoted, "|")
	}
	m.texts = append(m.texts, label+sign+strconv.Quote(value))
	m.values[label] = strings.Join(values, "|")
	return nil
}

func (m *matchers) query(r *Rule, series string, groupBy ...string) (string, error) {
	return expanded(r.query, args{Series: series, LabelMatchers: strings.Join(m.texts, ","), LabelValuesByName: m.values,
		GroupBy: strings.Join(groupBy, ","), GroupBySlice: groupBy})
}
