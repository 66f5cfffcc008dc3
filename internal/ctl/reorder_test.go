package ctl

import (
	"bytes"
	"strings"
	"testing"

	"minik8s/internal/ctl/commandline"
)

func TestReorder(t *testing.T) {
	p := newProgram(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	for _, c := range []struct{ name, in, want string }{
		{"flags after arguments", "get pods -A", "get --all-namespaces -- pods"},
		{"a value after arguments", "delete pod web -n x", "--namespace=x delete -- pod web"},
		{"flags before the command", "-n x get pods", "--namespace=x get -- pods"},
		{"the second seed's -f in front", "-f web.yaml apply", "apply --filename=web.yaml"},
		{"-f is a file", "apply pod -f web.yaml", "apply --filename=web.yaml -- pod"},
		{"-f is to follow", "logs -f web", "logs --follow -- web"},
		{"a value in the same word", "get pods -oyaml", "get --output=yaml -- pods"},
		{"an equals sign", "get pods -o=yaml --selector=a=b", "get --output=yaml --selector=a=b -- pods"},
		{"letters together", "get -wA pods", "get --watch --all-namespaces -- pods"},
		{"letters together, the last with a value", "get -wn x pods", "--namespace=x get --watch -- pods"},
		{"one dash before a long name", "get -namespace x pods", "--namespace=x get -- pods"},
		{"negative numbers are values", "logs web --tail -1", "logs --tail=-1 -- web"},
		{"standard input", "apply -f -", "apply --filename=-"},
		{"two files", "apply -f a -f b", "apply --filename=a --filename=b"},
		{"commands below commands", "image import x.tar --node n1", "image import --node=n1 -- x.tar"},
		{"a flag between them", "image --node n1 list", "image list --node=n1"},
		{"a key to remove is no flag", "label nodes n1 a=b c- -o", "label --overwrite -- nodes n1 a=b c-"},
		{"after two dashes all are arguments", "get pods -- -A", "get -- pods -A"},
		{"an alias", "del pod web", "del -- pod web"},
		{"a name like a command", "get pods get", "get -- pods get"},
		{"help wins", "get pods --help", "get --help"},
		{"a switch turned off", "delete pod web --wait=false", "delete --wait=false -- pod web"},
		{"a value is missing", "get pods -o", "get --output -- pods"},
		{"an unknown flag is left to be refused", "get pods --nonsense", "get --nonsense -- pods"},
		{"an unknown command is left alone", "frobnicate -x", "frobnicate -x"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := p.app()
			if got := strings.Join(commandline.Reorder(app.Flags, app.Commands, strings.Fields(c.in)), " "); got != c.want {
				t.Errorf("%q became\n%q, want\n%q", c.in, got, c.want)
			}
		})
	}
}
