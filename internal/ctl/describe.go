package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
)

func (p *program) describeCommand() *cli.Command {
	return &cli.Command{
		Name: "describe", Aliases: []string{"desc"}, Usage: "tell all about objects, with their events",
		ArgsUsage: "KIND [NAME...] | KIND/NAME...", Flags: selectFlags(),
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			objects, err := s.pick(c, c.Args().Slice(), true)
			for i, obj := range objects {
				if i > 0 {
					s.say("\n")
				}
				if err := s.describe(c, obj); err != nil {
					return err
				}
			}
			return err
		},
	}
}

func (s *session) describe(c *cli.Context, obj api.Object) error {
	var out sheet
	s.describeMeta(&out, obj)
	var err error
	switch o := obj.(type) {
	case *corev1.Pod:
		s.describePod(&out, o)
	case *corev1.Node:
		err = s.describeNode(c.Context, &out, o)
	case *corev1.Secret:
		describeSecret(&out, o)
	default:
		err = describeRest(&out, obj)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.out, out.String()); err != nil {
		return err
	}
	if api.KindOf(obj) == api.Events {
		return nil
	}
	events, err := brief.EventsOf(c.Context, s.api, obj)
	if err != nil {
		s.say("Events:  (not to be had: %s)", message(err))
		return nil
	}
	if len(events) == 0 {
		s.say("Events:  <none>")
		return nil
	}
	s.say("Events:")
	s.simpleTable([]string{"  Type", "Reason", "Age", "From", "Message"}, s.eventRows(events))
	return nil
}

func (s *session) describeMeta(out *sheet, obj api.Object) {
	out.field("Name", obj.GetName())
	if obj.GetNamespace() != "" {
		out.field("Namespace", obj.GetNamespace())
	}
	out.pairs("Labels", obj.GetLabels())
	notes := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		// It is the manifest once more, and of a Secret its values.
		if k != lastApplied {
			notes[k] = brief.Clip(v, 200)
		}
	}
	out.pairs("Annotations", notes)
	out.field("Created", s.when(obj.GetCreationTimestamp()))
	if at := obj.GetDeletionTimestamp(); at != nil {
		out.field("Terminating", "gone by "+at.UTC().Format(time.RFC3339)+"; "+leaving(obj))
	}
	if owner := metav1.GetControllerOf(obj); owner != nil {
		out.field("Controlled By", owner.Kind+"/"+owner.Name)
	}
	if f := obj.GetFinalizers(); len(f) > 0 {
		out.field("Finalizers", strings.Join(f, ", "))
	}
}

// when is a time as describe writes it.
func (p *program) when(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return t.UTC().Format(time.RFC3339) + " (" + p.age(t.Time) + " ago)"
}

// describeSecret shows how long the values are, and no more.
func describeSecret(out *sheet, secret *corev1.Secret) {
	out.field("Type", string(secret.Type))
	out.line("Data:")
	var keys []string
	for k := range secret.Data {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		out.line("  %s:  %d bytes", k, len(secret.Data[k]))
	}
	if len(keys) == 0 {
		out.line("  <none>")
	}
}

// describeRest shows what an object says beyond its metadata, as YAML.
func describeRest(out *sheet, obj api.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(doc, key)
	}
	hide(doc)
	var keys []string
	for k := range doc {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		title := strings.ToUpper(k[:1]) + k[1:]
		switch v := doc[k].(type) {
		case map[string]any, []any:
			text, err := yaml.Marshal(v)
			if err != nil {
				return err
			}
			out.line("%s:", title)
			out.block("  ", string(text))
		default:
			out.field(title, fmt.Sprint(v))
		}
	}
	return nil
}

// hide takes passwords out: the seeds' GPU jobs carry them in their manifests.
func hide(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if word := strings.ToLower(k); word == "password" || word == "token" {
				if text, ok := inner.(string); ok {
					v[k] = fmt.Sprintf("<%d bytes>", len(text))
					continue
				}
			}
			hide(inner)
		}
	case []any:
		for _, inner := range v {
			hide(inner)
		}
	}
}
