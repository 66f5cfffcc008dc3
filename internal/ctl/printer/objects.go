package printer

import (
	"encoding/json"

	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/console"
)

// Objects prints objects as yaml, json or name: a single one by itself, several as a List.
func Objects(c *console.Console, objects []api.Object, form string, single bool) error {
	if form == "name" {
		for _, obj := range objects {
			c.Say("%s", brief.RefOf(obj))
		}
		return nil
	}
	if single {
		if len(objects) == 0 {
			return nil
		}
		return printOne(c, objects[0], form)
	}
	if objects == nil {
		objects = []api.Object{}
	}
	return printOne(c, map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": objects,
	}, form)
}

func printOne(c *console.Console, v any, form string) error {
	if form == "json" {
		data, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			return err
		}
		c.Say("%s", data)
		return nil
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.Out.Write(data)
	return err
}
