package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// file is prometheus-adapter's configuration.
type file struct {
	Rules         []rule `json:"rules"`
	ExternalRules []rule `json:"externalRules"`
	ResourceRules any    `json:"resourceRules"`
}

type rule struct {
	SeriesQuery   string       `json:"seriesQuery"`
	SeriesFilters []filter     `json:"seriesFilters"`
	Resources     resources    `json:"resources"`
	Name          nameMatching `json:"name"`
	MetricsQuery  string       `json:"metricsQuery"`
}

type filter struct {
	Is    string `json:"is"`
	IsNot string `json:"isNot"`
}

type resources struct {
	Template   string              `json:"template"`
	Overrides  map[string]override `json:"overrides"`
	Namespaced *bool               `json:"namespaced"`
}

type override struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

type nameMatching struct {
	Matches string `json:"matches"`
	As      string `json:"as"`
}

// Set is the rules of a file, in their order.
type Set struct {
	Custom, External []*Rule
}

// Parse reads a file. An error names the field.
func Parse(text []byte) (*Set, error) {
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, fmt.Errorf("expected prometheus-adapter's rules: %w", err)
	}
	if len(f.Rules)+len(f.ExternalRules) == 0 {
		return nil, errors.New("rules, externalRules: there is none: give at least one")
	}
	s := &Set{}
	for i := range f.Rules {
		r, err := compile(&f.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("rules[%d].%w", i, err)
		}
		s.Custom = append(s.Custom, r)
	}
	for i := range f.ExternalRules {
		r, err := compile(&f.ExternalRules[i])
		if err != nil {
			return nil, fmt.Errorf("externalRules[%d].%w", i, err)
		}
		s.External = append(s.External, r)
	}
	return s, nil
}

// compile checks a rule. An error begins with the field's name.
func compile(from *rule) (*Rule, error) {
	r := &Rule{series: strings.TrimSpace(from.SeriesQuery), overrides: map[string]override{}, namespaced: from.Resources.Namespaced == nil || *from.Resources.Namespaced}
	if !selector.MatchString(r.series) {
		return nil, fmt.Errorf(`seriesQuery: %q: expected a selector of series, like {namespace!="",__name__=~"http_.+"}`, from.SeriesQuery)
	}
	for i, f := range from.SeriesFilters {
		if (f.Is == "") == (f.IsNot == "") {
			return nil, fmt.Errorf("seriesFilters[%d]: expected either is or isNot", i)
		}
		re, err := regexp.Compile(f.Is + f.IsNot)
		if err != nil {
			return nil, fmt.Errorf("seriesFilters[%d]: %w", i, err)
		}
		r.filters = append(r.filters, sieve{re, f.Is != ""})
	}
	var err error
	if r.name, err = regexp.Compile(from.Name.Matches); err != nil {
		return nil, fmt.Errorf("name.matches: %w", err)
	}
	if r.name.String() == "" {
		r.name = regexp.MustCompile("^.*$")
	}
	switch r.as = from.Name.As; {
	case r.as != "":
	case r.name.NumSubexp() == 0:
		r.as = "$0"
	case r.name.NumSubexp() == 1:
		r.as = "$1"
	default:
		return nil, fmt.Errorf("name.as: name.matches has %d groups: say which make the name, like ${1}_per_second", r.name.NumSubexp())
	}
	if err := r.compileResources(&from.Resources); err != nil {
		return nil, fmt.Errorf("resources.%w", err)
	}
	if from.MetricsQuery == "" {
		return nil, errors.New("metricsQuery: expected a query, like sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)")
	}
	if r.query, err = parsed(from.MetricsQuery); err == nil {
		_, err = expanded(r.query, args{Series: "a", LabelMatchers: "a", LabelValuesByName: map[string]string{}, GroupBy: "a", GroupBySlice: []string{"a"}})
	}
	if err != nil {
		return nil, fmt.Errorf("metricsQuery: %w", err)
	}
	return r, nil
}

func (r *Rule) compileResources(from *resources) (err error) {
	for label, o := range from.Overrides {
		switch {
		case !plainLabel.MatchString(label):
			return fmt.Errorf("overrides: %q is no name of a label: expected letters, digits and _", label)
		case o.Resource == "":
			return fmt.Errorf("overrides.%s.resource: expected the name of a resource, like pod", label)
		}
		r.overrides[label] = o
	}
	if from.Template != "" {
		if r.template, err = parsed(from.Template); err != nil {
			return fmt.Errorf("template: %w", err)
		}
		label, err := expanded(r.template, groupResource{Group: "a", Resource: "b"})
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		if !plainLabel.MatchString(label) {
			return fmt.Errorf("template: it makes the label %q: expected letters, digits and _, like kube_<<.Resource>>", label)
		}
	}
	if r.namespaced && r.NamespaceLabel() == "" {
		return errors.New("overrides: no label says the namespace: add one, like namespace: {resource: namespace}, or a template; for externalRules namespaced: false will do")
	}
	return nil
}

func parsed(text string) (*template.Template, error) {
	return template.New("").Delims("<<", ">>").Option("missingkey=zero").Parse(text)
}

func expanded(t *template.Template, with any) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, with); err != nil {
		return "", err
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", errors.New("the template makes an empty text")
	}
	return b.String(), nil
}
