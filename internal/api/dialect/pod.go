package dialect

import (
	"reflect"
	"slices"
	"strings"
)

// The seed systems' words for values that Kubernetes spells differently.
var (
	restartPolicies = map[string]string{"RestartOnFailure": "OnFailure"}
	pullPolicies    = map[string]string{"PullIfNotPresent": "IfNotPresent"}
)

// pod makes a pod's manifest canonical.
func pod(r *rewriter, doc map[string]any) { podSpec(r, object(doc["spec"]), "spec") }

// podSpec makes the spec of a pod, or of a workload's template, canonical.
func podSpec(r *rewriter, spec map[string]any, path string) {
	if spec == nil {
		return
	}
	r.alias(spec, path, "restartPolicy", restartPolicies)
	r.drop(spec, path, "clusterIp", "a pod gets its address from its node")
	r.drop(spec, path, "exposedPorts", "the containers' ports say it")
	r.drop(spec, path, "bindPorts", "the containers' hostPorts say it")
	var mounted []string
	for _, key := range []string{"initContainers", "containers"} {
		for i, c := range list(spec[key]) {
			if c := object(c); c != nil {
				mounted = r.container(c, index(path+"."+key, i), mounted)
			}
		}
	}
	r.sharedVolumes(spec, path, mounted)
	r.softAntiAffinity(spec, path)
}

// container makes a container canonical and appends the names of the volumes that it mounts to mounted.
func (r *rewriter) container(c map[string]any, path string, mounted []string) []string {
	r.rename(c, path, "cmd", "command")
	r.alias(c, path, "imagePullPolicy", pullPolicies)
	r.drop(c, path, "exposedPorts", "ports say it")
	r.drop(c, path, "bindPorts", "hostPorts say it")
	for i, v := range list(c["env"]) {
		e := object(v)
		if s, ok := scalar(e["value"]); ok {
			e["value"] = s
			r.note(index(path+".env", i)+".value", "%s read as the string %q", s, s)
		}
	}
	for i, v := range list(c["ports"]) {
		p, at := object(v), index(path+".ports", i)
		r.number(p, at, "containerPort")
		r.number(p, at, "hostPort")
		if given, ok := p["protocol"].(string); ok {
			if upper := strings.ToUpper(given); upper != given && slices.Contains([]string{"TCP", "UDP", "SCTP"}, upper) {
				p["protocol"] = upper
				r.note(at+".protocol", "%s read as %s", given, upper)
			}
		}
	}
	r.limits(c, path)
	for _, hook := range []string{"postStart", "preStop"} {
		h := object(object(c["lifecycle"])[hook])
		if exec := object(h["exec"]); exec != nil {
			r.rename(exec, path+".lifecycle."+hook+".exec", "cmd", "command")
		}
		r.number(object(h["httpGet"]), path+".lifecycle."+hook+".httpGet", "port")
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		r.number(object(object(c[probe])["httpGet"]), path+"."+probe+".httpGet", "port")
	}
	for _, v := range list(c["volumeMounts"]) {
		if name, ok := object(v)["name"].(string); ok && name != "" && !slices.Contains(mounted, name) {
			mounted = append(mounted, name)
		}
	}
	return mounted
}

// limits turns resources that are given without limits or requests into limits.
func (r *rewriter) limits(c map[string]any, path string) {
	resources := object(c["resources"])
	for _, name := range []string{"cpu", "memory"} {
		amount, ok := resources[name]
		if !ok || amount == nil {
			continue
		}
		limits, isMap := resources["limits"].(map[string]any)
		if resources["limits"] != nil && !isMap {
			return
		}
		if limits == nil {
			limits = map[string]any{}
			resources["limits"] = limits
		}
		delete(resources, name)
		at := path + ".resources." + name
		if limits[name] != nil && !r.patched {
			r.note(at, "dropped, limits.%s is given too", name)
			continue
		}
		limits[name] = amount
		r.note(at, "read as limits.%s", name)
	}
}

// sharedVolumes declares the volumes that are mounted but not declared, as directories that the pod's containers share
// and that are removed with the pod.
func (r *rewriter) sharedVolumes(spec map[string]any, path string, mounted []string) {
	volumes, isList := spec["volumes"].([]any)
	if spec["volumes"] != nil && !isList {
		return
	}
	for _, v := range volumes {
		if name, ok := object(v)["name"].(string); ok {
			mounted = slices.DeleteFunc(mounted, func(m string) bool { return m == name })
		}
	}
	for _, name := range mounted {
		volumes = append(volumes, map[string]any{"name": name, "emptyDir": map[string]any{}})
		r.note(path+".volumes", "%q is mounted and not declared, so it is an emptyDir that the containers of the pod share", name)
	}
	if len(mounted) > 0 {
		spec["volumes"] = volumes
	}
}

const (
	hard = "requiredDuringSchedulingIgnoredDuringExecution"
	soft = "preferredDuringSchedulingIgnoredDuringExecution"
)

// softAntiAffinity turns a required term without a topologyKey into a preference for different hosts.
func (r *rewriter) softAntiAffinity(spec map[string]any, path string) {
	anti := object(object(spec["affinity"])["podAntiAffinity"])
	if anti == nil {
		return
	}
	wishes, isList := anti[soft].([]any)
	if anti[soft] != nil && !isList {
		return
	}
	var rest []any
	terms := list(anti[hard])
	at := path + ".affinity.podAntiAffinity." + hard
	for i, t := range terms {
		term := object(t)
		key, isString := term["topologyKey"].(string)
		if term == nil || key != "" || term["topologyKey"] != nil && !isString {
			rest = append(rest, t)
			continue
		}
		term["topologyKey"] = "kubernetes.io/hostname"
		if !r.patched || !wished(wishes, term) {
			wishes = append(wishes, map[string]any{"weight": int64(100), "podAffinityTerm": term})
		}
		r.note(index(at, i), "it has no topologyKey, so it is read as a preference for different hosts")
	}
	if len(rest) == len(terms) {
		return
	}
	anti[soft] = wishes
	if anti[hard] = rest; rest == nil {
		delete(anti, hard)
	}
}

// wished reports whether a preference for term exists already.
func wished(wishes []any, term map[string]any) bool {
	return slices.ContainsFunc(wishes, func(w any) bool { return reflect.DeepEqual(object(w)["podAffinityTerm"], any(term)) })
}
