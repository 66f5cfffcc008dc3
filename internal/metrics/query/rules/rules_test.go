package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
)

// walkthrough has what the rules of people have: overrides and templates, filters, groups in names, values by name.
const walkthrough = `
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: "namespace"}, pod: {resource: "pod"}}}
  name: {matches: "^(.*)_total", as: "${1}_per_second"}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)'
- seriesQuery: '{__name__=~"^kube_.*",}'
  seriesFilters: [{isNot: "_total$"}, {is: "^kube_[a-z]+_"}]
  resources: {template: "kube_<<.Group>>_<<.Resource>>", overrides: {namespace: {resource: namespaces}}}
  name: {matches: "^kube_(.*)$"}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>}) by (<<range $i, $l := .GroupBySlice>><<if $i>>,<<end>><<$l>><<end>>)'
- seriesQuery: up
  resources: {template: "<<.Resource>>"}
  metricsQuery: 'avg(other{ns=~"<<index .LabelValuesByName "namespace">>",p=~"<<index .LabelValuesByName "pod">>"}) by (<<.GroupBy>>)'
externalRules:
- seriesQuery: '{__name__="queue_length",namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  name: {as: "queue"}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (name)
- seriesQuery: '{}'
  resources: {namespaced: false}
  metricsQuery: max(<<.Series>>{<<.LabelMatchers>>})
resourceRules:
  cpu: {containerQuery: 'sum(x) by (<<.GroupBy>>)', resources: {overrides: {pod: {resource: pod}}}, containerLabel: container}
  window: 3m
`

func set(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQueries(t *testing.T) {
	s := set(t, walkthrough)
	def := Default()
	for _, x := range []struct {
		rule      *Rule
		series    string
		of        *api.Kind // nil: external
		namespace string
		names     string
		selector  string
		want      string // or the error
	}{
		{s.Custom[0], "http_requests_total", api.Pods, "default", "a", "", `sum(rate(http_requests_total{namespace="default",pod="a"}[2m])) by (pod)`},
		{s.Custom[0], "http_requests_total", api.Pods, "default", "a.1 b", "verb in (GET,PUT),code!=500",
			`sum(rate(http_requests_total{code!="500",verb=~"GET|PUT",namespace="default",pod=~"a\\.1|b"}[2m])) by (pod)`},
		{s.Custom[0], "http_requests_total", api.Namespaces, "", "default", "a,!b,c notin (x,y),d notin (z)", `sum(rate(http_requests_total{a!="",b="",c!~"x|y",d!="z",namespace="default"}[2m])) by (namespace)`},
		{s.Custom[0], "http_requests_total", api.Nodes, "", "n", "", "no label stands for nodes"},
		{s.Custom[0], "http_requests_total", api.Pods, "default", "a", "size>3", `size: the operator "gt" cannot be asked of Prometheus: expected =, !=, in, notin or exists`},
		{s.Custom[0], "http_requests_total", api.Pods, "default", "a", "app.kubernetes.io/name=web", `"app.kubernetes.io/name" is no label of Prometheus: expected letters, digits and _`},
		{s.Custom[1], "kube_x", api.Deployments, "default", "web", "", `max(kube_x{namespace="default",kube_apps_deployment="web"}) by (kube_apps_deployment)`},
		{s.Custom[1], "kube_x", api.Ingresses, "default", "web", "", `max(kube_x{namespace="default",kube_networking_k8s_io_ingress="web"}) by (kube_networking_k8s_io_ingress)`},
		{s.Custom[1], "kube_x", api.Nodes, "", "a b", "", `max(kube_x{kube__node=~"a|b"}) by (kube__node)`},
		{s.Custom[2], "up", api.Pods, "default", "a b", "", `avg(other{ns=~"default",p=~"a|b"}) by (pod)`},
		{s.External[0], "queue_length", nil, "default", "", "name=mail", `sum(queue_length{name="mail",namespace="default"}) by (name)`},
		{s.External[0], "queue_length", nil, "default", "", "namespace=other", `sum(queue_length{namespace="other",namespace="default"}) by (name)`},
		{s.External[1], "up", nil, "default", "", "", `max(up{})`},
		{def.Custom[0], "hits_total", api.Pods, "default", "a", "", `sum(rate(hits_total{namespace="default",pod="a"}[2m])) by (pod)`},
		{def.Custom[1], "load", api.Nodes, "", "a", "", `sum(load{node="a"}) by (node)`},
		{def.External[1], "load", nil, "default", "", "a=b", `load{a="b",namespace="default"}`},
		{def.External[0], "hits_total", nil, "default", "", "", `rate(hits_total{namespace="default"}[2m])`},

		// What would change a query's meaning is refused.
		{s.Custom[0], "http_requests_total", api.Pods, "default", `a"} or vector(1) #`, "", `"a\"}" is no value that a label or a name can have`},
		{s.Custom[2], "up", api.Pods, "default", `.+|b`, "", `".+|b" is no value that a label or a name can have`},
		{s.Custom[2], "up", api.Pods, "default\\", `b`, "", `"default\\" is no value that a label or a name can have`},
		{s.External[0], "queue_length", nil, `x"}`, "", "", `"x\"}" is no value that a label or a name can have`},
	} {
		sel, err := labels.Parse(x.selector)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if x.of == nil {
			got, err = x.rule.External(x.series, x.namespace, sel)
		} else {
			got, _, err = x.rule.Custom(x.series, x.of, x.namespace, strings.Fields(x.names), sel)
		}
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s of %q in %q by %q:\n got %s\nwant %s", x.series, x.names, x.namespace, x.selector, got, x.want)
		}
	}
}

func TestNames(t *testing.T) {
	s, def := set(t, walkthrough), Default()
	for _, x := range []struct {
		rule         *Rule
		series, want string // "": no metric
	}{
		{s.Custom[0], "http_requests_total", "http_requests_per_second"},
		{s.Custom[0], "http_requests", ""},
		{s.Custom[1], "kube_pod_x", "pod_x"},
		{s.Custom[1], "kube_pod_x_total", ""},
		{s.Custom[1], "kube_x", ""},
		{s.Custom[2], "up", "up"},
		{s.External[0], "queue_length", "queue"},
		{def.Custom[0], "hits_total", "hits"},
		{def.Custom[1], "job:hits:rate", "job:hits:rate"},
		{s.External[1], `up{} or vector(1) #`, ""}, // Prometheus 3 lets a pod have such names
		{s.External[1], "http.requests", ""},
		{s.External[1], "", ""},
	} {
		if got, ok := x.rule.Metric(x.series); got != x.want && ok || ok != (x.want != "") {
			t.Errorf("%s: %q %v, want %q", x.series, got, ok, x.want)
		}
	}
}

func TestSeriesQueries(t *testing.T) {
	for of, want := range map[string]string{
		"up":                 `up{pod!=""}`,
		"up{}":               `up{pod!=""}`,
		`up{a="b", }`:        `up{a="b",pod!=""}`,
		"{a=\"}\"\n}":        `{a="}",pod!=""}`,
		` {a=~"b{2}"} `:      `{a=~"b{2}",pod!=""}`,
		`up {namespace!=""}`: `up {namespace!="",pod!=""}`,
	} {
		r := set(t, "rules: [{seriesQuery: "+quoted(of)+`, resources: {template: "<<.Resource>>"}, metricsQuery: x}]`).Custom[0]
		if got := r.SeriesQuery("pod"); got != want {
			t.Errorf("%q: %s, want %s", of, got, want)
		}
	}
	if got := Default().Custom[1].SeriesQuery("namespace", "pod"); got != `{__name__!~".+_total|.+_bucket|container_.+",namespace!="",pod!=""}` {
		t.Error(got)
	}
}

func quoted(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "'", "''"), "\n", "\n\n") + "'"
}

func TestLabels(t *testing.T) {
	kinds := api.NewTable(api.Builtin()...).Stored()
	s := set(t, walkthrough)
	if l := s.Custom[0].Labels(kinds); len(l) != 2 || l["pod"] != api.Pods || l["namespace"] != api.Namespaces {
		t.Error(l)
	}
	if l := s.Custom[1].Labels(kinds); l["namespace"] != api.Namespaces || l["kube_apps_deployment"] != api.Deployments || l["kube__pod"] != api.Pods {
		t.Error(l)
	}
	if l := s.Custom[2].Labels(kinds); l["service"] != api.Services || l["ingress"] != api.Ingresses || l["event"] == nil || l["event"].Group != "" {
		t.Error(l)
	}
	if len(s.External) != 2 {
		t.Error(s.External)
	}
}

func TestMistakes(t *testing.T) {
	const good = `seriesQuery: up, resources: {template: "<<.Resource>>"}, metricsQuery: x`
	for text, want := range map[string]string{
		"":                                  "rules, externalRules: there is none",
		"rules: [":                          "expected prometheus-adapter's rules",
		"rules: [{" + good + ", query: x}]": `unknown field "query"`,
		"rules: [{" + good + "}, {metricsQuery: x}]":                                                             `rules[1].seriesQuery: "": expected a selector of series`,
		"externalRules: [{seriesQuery: 'up or vector(1)'}]":                                                      "externalRules[0].seriesQuery: ",
		"rules: [{seriesQuery: 'up{a=\"b\"'}]":                                                                   "rules[0].seriesQuery: ",
		"rules: [{" + good + ", seriesFilters: [{is: a}, {is: a, isNot: b}]}]":                                   "rules[0].seriesFilters[1]: expected either is or isNot",
		"rules: [{" + good + ", seriesFilters: [{is: '('}]}]":                                                    "rules[0].seriesFilters[0]: error parsing regexp",
		"rules: [{" + good + ", name: {matches: '('}}]":                                                          "rules[0].name.matches: error parsing regexp",
		"rules: [{" + good + ", name: {matches: '(a)(b)'}}]":                                                     "rules[0].name.as: name.matches has 2 groups",
		"rules: [{seriesQuery: up, metricsQuery: x}]":                                                            "rules[0].resources.overrides: no label says the namespace",
		"externalRules: [{seriesQuery: up, metricsQuery: x}]":                                                    "externalRules[0].resources.overrides: no label says the namespace",
		"rules: [{seriesQuery: up, metricsQuery: x, resources: {template: '<<.Res'}}]":                           "rules[0].resources.template: ",
		"rules: [{seriesQuery: up, metricsQuery: x, resources: {template: '<<.Name>>'}}]":                        "rules[0].resources.template: ",
		"rules: [{seriesQuery: up, metricsQuery: x, resources: {template: 'a-<<.Resource>>'}}]":                  `rules[0].resources.template: it makes the label "a-b"`,
		"rules: [{seriesQuery: up, metricsQuery: x, resources: {overrides: {a-b: {}}}}]":                         `rules[0].resources.overrides: "a-b" is no name of a label`,
		"rules: [{seriesQuery: up, metricsQuery: x, resources: {overrides: {a: {group: apps}}}}]":                "rules[0].resources.overrides.a.resource: expected",
		"rules: [{seriesQuery: up, resources: {template: '<<.Resource>>'}}]":                                     "rules[0].metricsQuery: expected a query",
		"rules: [{seriesQuery: up, resources: {template: '<<.Resource>>'}, metricsQuery: '<<'}]":                 "rules[0].metricsQuery: ",
		"rules: [{seriesQuery: up, resources: {template: '<<.Resource>>'}, metricsQuery: '<<.X>>'}]":             "rules[0].metricsQuery: ",
		"rules: [{seriesQuery: up, resources: {template: '<<.Resource>>'}, metricsQuery: ' <<if .X>>a<<end>>'}]": "rules[0].metricsQuery: ",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}
