package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"minik8s/internal/suggest"
)

// Load makes the configuration. file may be empty; lookup is os.LookupEnv; environ is os.Environ; flags are those
// that were given. The error names the setting, its source and what was expected.
func Load(file string, lookup func(string) (string, bool), environ []string, flags map[string]string) (*Config, error) {
	values, where := map[string]string{}, map[string]string{}
	take := func(name, v, from string) { values[name], where[name] = v, from }
	for _, k := range Keys {
		take(k.Name, k.Default, "the default")
	}
	var errs []error
	if file != "" {
		fromFile, err := readFile(file)
		if err != nil {
			return nil, err
		}
		for name, v := range fromFile {
			if find(name) == nil {
				errs = append(errs, fmt.Errorf("%s: %q is no setting%s", file, name, meant(name)))
				continue
			}
			take(name, v, file)
		}
	}
	errs = append(errs, unknownVariables(environ)...)
	for _, k := range Keys {
		if v, ok := lookup(k.Env()); ok {
			take(k.Name, v, "the variable "+k.Env())
		}
		if v, ok := flags[k.Name]; ok {
			take(k.Name, v, "the flag --"+k.Name)
		}
	}
	c := &Config{}
	for _, k := range Keys {
		if err := k.set(c, values[k.Name]); err != nil {
			value := strconv.Quote(values[k.Name])
			if k.secret {
				value = "(not shown)"
			}
			errs = append(errs, fmt.Errorf("%s: %s = %s: %w", where[k.Name], k.Name, value, err))
		}
	}
	if len(errs) == 0 {
		if err := c.check(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// readFile reads a flat YAML map; lists are joined by commas, maps as key=value.
func readFile(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var raw map[string]any
	if err := yaml.UnmarshalStrict(data, &raw); err != nil {
		return nil, fmt.Errorf("%s: expected lines of \"setting: value\": %w", file, err)
	}
	out := map[string]string{}
	for name, v := range raw {
		switch v := v.(type) {
		case nil:
			out[name] = ""
		case []any:
			parts := make([]string, len(v))
			for i := range v {
				parts[i] = fmt.Sprint(v[i])
			}
			out[name] = strings.Join(parts, ",")
		case map[string]any:
			m := map[string]string{}
			for k, x := range v {
				m[k] = fmt.Sprint(x)
			}
			out[name] = joinLabels(m)
		case float64:
			out[name] = strings.TrimSuffix(fmt.Sprintf("%.0f", v), ".0")
		default:
			out[name] = fmt.Sprint(v)
		}
	}
	return out, nil
}

func find(name string) *Key {
	for i := range Keys {
		if Keys[i].Name == name {
			return &Keys[i]
		}
	}
	return nil
}

// own are variables with our prefix that are not settings.
var own = []string{"MINIK8S_CONFIG", "MINIK8S_KUBECONFIG", "MINIK8S_SERVER"}

func unknownVariables(environ []string) []error {
	var errs []error
next:
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "MINIK8S_") {
			continue
		}
		for _, o := range own {
			if name == o {
				continue next
			}
		}
		for _, k := range Keys {
			if name == k.Env() {
				continue next
			}
		}
		errs = append(errs, fmt.Errorf("the variable %s is no setting%s", name,
			meant(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "MINIK8S_"), "_", "-")))))
	}
	return errs
}

// meant names the settings that were probably meant.
func meant(name string) string {
	var names []string
	for _, k := range Keys {
		names = append(names, k.Name)
	}
	near := suggest.Nearest(name, names)
	if len(near) == 0 {
		return "; \"minik8sd config\" lists them all"
	}
	for i := range near {
		near[i] = strconv.Quote(near[i])
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// Print is the effective configuration as a file that Load accepts, with a comment per setting.
func (c *Config) Print() string {
	var b strings.Builder
	for _, k := range Keys {
		fmt.Fprintf(&b, "# %s (--%s, %s)\n", k.Doc, k.Name, k.Env())
		v := k.get(c)
		y, err := yaml.Marshal(map[string]string{k.Name: v})
		if err != nil {
			continue // cannot fail for a map of strings
		}
		b.Write(y)
		b.WriteByte('\n')
	}
	return b.String()
}
