package ctl

import (
	"encoding/json"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// getObjects prints whole objects, or their names.
func (s *session) getObjects(c *cli.Context, targets []target, form string) error {
	if c.Bool("watch") {
		return s.watchObjects(c, targets[0], form)
	}
	count := tally{p: s.program}
	var objects []api.Object
	for _, t := range targets {
		if t.name != "" {
			obj, err := s.resolve(c.Context, t)
			if codeOf(err) == codeNotFound && c.Bool("ignore-not-found") {
				continue
			}
			if count.add(err); err == nil {
				objects = append(objects, obj)
			}
			continue
		}
		opts, err := s.listOptions(c, t.kind)
		if err != nil {
			return err
		}
		list, err := s.api.List(c.Context, t.kind, opts)
		if count.add(err); err == nil {
			objects = append(objects, list.Items...)
		}
	}
	if err := s.printObjects(objects, form, len(targets) == 1 && targets[0].name != ""); err != nil {
		return err
	}
	return count.err()
}

// printObjects writes objects in a form: one as itself, several as a List.
func (s *session) printObjects(objects []api.Object, form string, single bool) error {
	if form == "name" {
		for _, obj := range objects {
			s.say("%s", refOf(obj))
		}
		return nil
	}
	if single {
		if len(objects) == 0 {
			return nil
		}
		return s.printOne(objects[0], form)
	}
	if objects == nil {
		objects = []api.Object{}
	}
	return s.printOne(map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": objects,
	}, form)
}

func (s *session) printOne(v any, form string) error {
	if form == "json" {
		data, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			return err
		}
		s.say("%s", data)
		return nil
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.out.Write(data)
	return err
}

// watchObjects prints what there is and then every change.
func (s *session) watchObjects(c *cli.Context, t target, form string) error {
	list, err := s.listOptions(c, t.kind)
	if err != nil {
		return err
	}
	opts := client.WatchOptions{Namespace: list.Namespace, Labels: list.Labels, Fields: list.Fields}
	if t.name != "" {
		obj, err := s.resolve(c.Context, t)
		if err != nil {
			return err
		}
		opts = client.WatchOptions{Namespace: obj.GetNamespace(), Fields: fields.OneTermEqualSelector("metadata.name", obj.GetName())}
	}
	for {
		w, err := s.api.Watch(c.Context, t.kind, opts)
		if err != nil {
			return err
		}
		for e := range w.Events() {
			opts.ResourceVersion = e.ResourceVersion
			if e.Object == nil {
				continue
			}
			if form == "yaml" || form == "yml" {
				s.say("---")
			}
			if err := s.printObjects([]api.Object{e.Object}, form, true); err != nil {
				w.Stop()
				return err
			}
		}
		if c.Context.Err() != nil {
			return nil
		}
		if err := w.Err(); !closed(err) {
			return err
		}
	}
}
