package dialect

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// workflow makes the words of both seed systems canonical: a state machine in the Amazon States Language.
//
// The first's has startAt, params and nodes at the top; a Task calls the function of its own name, and is tried five times, five
// seconds apart. A Choice of which no rule is true ends the run. The second's branches, left and right (or LEFT_BRANCH and RIGHT_BRANCH, as
// in the files of its functions), may stand in the nodes. RETURN is the end.
func workflow(r *rewriter, doc map[string]any) {
	if !hasOne(doc, "nodes", "startAt", "params") {
		return
	}
	spec := r.below(doc, "spec")
	if spec == nil {
		return
	}
	if _, ok := doc["params"]; !ok && doc["nodes"] != nil && spec["params"] == nil {
		spec["params"] = map[string]any{} // it starts when applied
		r.note("params", "missing, {} was filled in: the workflow starts when it is applied")
	} else if ok {
		r.put(spec, "params", "spec", "params", doc["params"])
		delete(doc, "params")
	}
	machine := r.below(spec, "definition")
	if machine == nil {
		return
	}
	if start, ok := doc["startAt"]; ok {
		r.put(machine, "startAt", "spec.definition", "StartAt", start)
		delete(doc, "startAt")
	}
	nodes, ok := doc["nodes"].(map[string]any)
	if !ok {
		return // the strict reader says what is wrong with it
	}
	states := map[string]any{}
	ends := false
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node, ok := nodes[name].(map[string]any)
		if !ok {
			states[name] = nodes[name]
			continue
		}
		state, open := r.node(name, node)
		states[name] = state
		ends = ends || open
	}
	if ends {
		end := "end"
		for i := 2; states[end] != nil; i++ {
			end = "end" + strconv.Itoa(i)
		}
		states[end] = map[string]any{"Type": "Succeed"}
		for _, s := range states {
			if s := object(s); s["Default"] == unnamedEnd {
				s["Default"] = end
			}
		}
	}
	r.put(machine, "nodes", "spec.definition", "States", states)
	delete(doc, "nodes")
	r.note("nodes", "read as spec.definition.States")
}

// unnamedEnd stands for the state that ends a run, until its name is known. No state has it.
const unnamedEnd = "\x00end"

// words are the first seed system's, and the language's.
var stateWords = map[string]string{"type": "Type", "next": "Next", "comment": "Comment", "resource": "Resource", "end": "End", "default": "Default",
	"left": "Left", "right": "Right", "LEFT_BRANCH": "Left", "RIGHT_BRANCH": "Right"}

// node is a node as a state. open: it is a Choice that may have no true rule.
func (r *rewriter) node(name string, node map[string]any) (state map[string]any, open bool) {
	state = map[string]any{}
	for key, value := range node {
		if word, ok := stateWords[key]; ok {
			key = word
		}
		state[key] = value
	}
	switch kind, _ := state["Type"].(string); strings.ToLower(kind) {
	case "task":
		state["Type"] = "Task"
		if state["Resource"] == nil {
			state["Resource"] = name
		}
		if state["Retry"] == nil {
			state["Retry"] = []any{map[string]any{"ErrorEquals": []any{"States.ALL"}, "IntervalSeconds": 5, "MaxAttempts": 4, "BackoffRate": 1}}
		}
		for _, side := range []string{"Left", "Right"} { // nothing is the end, too
			if v, ok := state[side]; ok && v == "" {
				state[side] = "RETURN"
			}
		}
		switch left, right := state["Left"], state["Right"]; {
		case left != nil && right == nil:
			state["Right"] = "RETURN"
		case left == nil && right != nil:
			state["Left"] = "RETURN"
		case left == nil && right == nil && (state["Next"] == nil || state["Next"] == ""):
			delete(state, "Next")
			state["End"] = true
		}
	case "choice":
		state["Type"] = "Choice"
		if choices, ok := state["choices"]; ok {
			delete(state, "choices")
			rules := []any{}
			for _, c := range list(choices) {
				rules = append(rules, rule(object(c)))
			}
			state["Choices"] = rules
		}
		if state["Default"] == nil {
			state["Default"], open = unnamedEnd, true
		}
	}
	return state, open
}

// rule is a choice as a rule. What it does not know it leaves as it is, and the check of the definition names it.
func rule(choice map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range choice {
		switch key {
		case "variable":
			if s, ok := value.(string); ok && !strings.HasPrefix(s, "$") {
				value = "$." + s
			}
			out["Variable"] = value
		case "next":
			out["Next"] = value
		default:
			compare(out, key, value)
		}
	}
	for _, part := range []string{"Not", "And"} { // what a comparison is about
		for _, p := range append(list(out[part]), out[part]) {
			if p := object(p); p != nil && out["Variable"] != nil {
				p["Variable"] = out["Variable"]
			}
		}
	}
	if out["Not"] != nil || out["And"] != nil {
		delete(out, "Variable")
	}
	return out
}

// compare translates a comparison: numericNotEquals is not NumericEquals, and false comes before true.
func compare(out map[string]any, key string, value any) {
	kind, test := "", ""
	for _, k := range []string{"numeric", "string", "boolean"} {
		if rest, ok := strings.CutPrefix(key, k); ok {
			kind, test = strings.ToUpper(k[:1])+k[1:], rest
		}
	}
	if s, ok := value.(string); ok { // numbers and booleans may be in quotes
		switch kind {
		case "Numeric":
			if n := strings.TrimSpace(s); json.Valid([]byte(n)) && strings.ContainsAny(n[:1], "-0123456789") { // as JSON has them: no NaN, no 0x10
				value = json.Number(n)
			}
		case "Boolean":
			if b, err := strconv.ParseBool(s); err == nil {
				value = b
			}
		}
	}
	test = strings.TrimSuffix(test, "s")
	switch {
	case kind == "" || test == "":
		out[key] = value
	case test == "NotEqual":
		out["Not"] = map[string]any{kind + "Equals": value}
	case test == "Equal":
		out[kind+"Equals"] = value
	case kind == "Boolean" && (test == "LessThan" && value == true || test == "GreaterThan" && value == false):
		out["BooleanEquals"] = value != true
	case kind == "Boolean" && (test == "LessThan" || test == "GreaterThan"):
		out["And"] = []any{map[string]any{"BooleanEquals": true}, map[string]any{"BooleanEquals": false}} // never
	default:
		out[kind+strings.TrimPrefix(key, strings.ToLower(kind))] = value
	}
}
