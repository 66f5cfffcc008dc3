package validation

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The maximum sizes in a job's success policy.
const (
	maxSuccessRules   = 20
	maxSuccessIndexes = 64 << 10 // bytes of one rule's list
)

// successPolicy checks which indexes of an Indexed job must have succeeded.
func successPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.SuccessPolicy == nil || s.Completions == nil {
		return nil // a job without completions is reported elsewhere
	}
	var errs field.ErrorList
	rules := path.Child("rules")
	switch n := len(s.SuccessPolicy.Rules); {
	case n == 0:
		errs = append(errs, field.Required(rules, "at least one rules must be specified when the successPolicy is specified"))
	case n > maxSuccessRules:
		errs = append(errs, field.TooMany(rules, n, maxSuccessRules))
	}
	for i := range s.SuccessPolicy.Rules {
		errs = append(errs, successRule(&s.SuccessPolicy.Rules[i], *s.Completions, rules.Index(i))...)
	}
	return errs
}

func successRule(rule *batchv1.SuccessPolicyRule, completions int32, path *field.Path) field.ErrorList {
	if rule.SucceededCount == nil && rule.SucceededIndexes == nil {
		return field.ErrorList{field.Required(path, "at least one of succeededCount or succeededIndexes must be specified")}
	}
	var errs field.ErrorList
	named := int32(0) // number of indexes that the rule names
	if list := rule.SucceededIndexes; list != nil {
		at := path.Child("succeededIndexes")
		if len(*list) > maxSuccessIndexes {
			return append(errs, field.TooLong(at, "", maxSuccessIndexes))
		}
		var err error
		if named, err = indexList(*list, completions); err != nil {
			errs = append(errs, field.Invalid(at, *list, "error parsing succeededIndexes: "+err.Error()))
		}
	}
	if n := rule.SucceededCount; n != nil {
		at := path.Child("succeededCount")
		errs = append(errs, nonNegative(at, *n)...)
		if *n > completions {
			errs = append(errs, field.Invalid(at, *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
		}
		if rule.SucceededIndexes != nil && *n > named {
			errs = append(errs, field.Invalid(at, *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", named)))
		}
	}
	return errs
}

// indexList counts the indexes of a list like "0,2-4". It fails if the list cannot be read, does not ascend, or has an
// index that is not below completions.
func indexList(list string, completions int32) (total int32, err error) {
	if list == "" {
		return 0, nil
	}
	last := int32(-1)
	for part := range strings.SplitSeq(list, ",") {
		ends := strings.Split(part, "-")
		if len(ends) > 2 {
			return 0, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		first := last
		for i, end := range ends {
			n, err := strconv.ParseInt(end, 10, 32)
			switch {
			case err != nil:
				return 0, fmt.Errorf("cannot convert string to integer for index: %q", end)
			case int32(n) >= completions:
				return 0, fmt.Errorf("too large index: %q", end)
			case int32(n) <= last:
				return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, n)
			}
			last = int32(n)
			if i == 0 {
				first = last
			}
		}
		total += last - first + 1
	}
	return total, nil
}
