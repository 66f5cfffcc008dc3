package validation

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumes checks a pod's volumes and returns the names that its containers may mount.
func volumes(list []corev1.Volume, path *field.Path) (field.ErrorList, sets.Set[string]) {
	var errs field.ErrorList
	declared := sets.New[string]()
	for i := range list {
		v, at := &list[i], path.Index(i)
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case declared.Has(v.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		default:
			errs = append(errs, say(at.Child("name"), v.Name, validation.IsDNS1123Label(v.Name))...)
		}
		declared.Insert(v.Name)
		sources := sourcesOf(&v.VolumeSource)
		if len(sources) == 0 {
			errs = append(errs, field.Required(at, "must specify a volume type"))
		}
		for j, source := range sources {
			if j > 0 {
				errs = append(errs, field.Forbidden(at.Child(source), "may not specify more than 1 volume type, and "+sources[0]+" is one"))
			}
		}
		errs = append(errs, volumeSource(&v.VolumeSource, at)...)
	}
	return errs, declared
}

// sourcesOf returns the names of a volume's sources, as spelled in a manifest: "emptyDir". Every source is a pointer in
// the struct, so that sources added to the wire types later are found too.
func sourcesOf(v *corev1.VolumeSource) []string {
	var set []string
	value := reflect.ValueOf(v).Elem()
	for i := range value.NumField() {
		if f := value.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	return set
}

func volumeSource(v *corev1.VolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e := v.EmptyDir; e != nil {
		at := path.Child("emptyDir")
		if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("sizeLimit"), e.SizeLimit.String(), "must be greater than or equal to 0"))
		}
		if m := e.Medium; m != "" && m != corev1.StorageMediumMemory && m != corev1.StorageMediumHugePages &&
			!strings.HasPrefix(string(m), string(corev1.StorageMediumHugePagesPrefix)) {
			errs = append(errs, field.NotSupported(at.Child("medium"), m, []corev1.StorageMedium{"", corev1.StorageMediumMemory, corev1.StorageMediumHugePages}))
		}
		if m := e.Mode; m != nil && (*m < 0 || *m > 0o1777) {
			errs = append(errs, field.Invalid(at.Child("mode"), *m, "must be a number between 0 and 01777 (octal), both inclusive"))
		}
	}
	if h := v.HostPath; h != nil {
		at := path.Child("hostPath")
		errs = append(errs, required(at.Child("path"), h.Path)...)
		errs = append(errs, noBacksteps(at.Child("path"), h.Path)...)
		if h.Type != nil && *h.Type != corev1.HostPathUnset {
			errs = append(errs, oneOf(at.Child("type"), *h.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
				corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
		}
	}
	if c := v.ConfigMap; c != nil {
		at := path.Child("configMap")
		errs = append(errs, required(at.Child("name"), c.Name)...)
		errs = append(errs, mode(c.DefaultMode, at.Child("defaultMode"))...)
		errs = append(errs, items(c.Items, at.Child("items"))...)
	}
	if s := v.Secret; s != nil {
		at := path.Child("secret")
		errs = append(errs, required(at.Child("secretName"), s.SecretName)...)
		errs = append(errs, mode(s.DefaultMode, at.Child("defaultMode"))...)
		errs = append(errs, items(s.Items, at.Child("items"))...)
	}
	if d := v.DownwardAPI; d != nil {
		at := path.Child("downwardAPI")
		errs = append(errs, mode(d.DefaultMode, at.Child("defaultMode"))...)
		errs = append(errs, downward(d.Items, at.Child("items"))...)
	}
	if p := v.Projected; p != nil {
		errs = append(errs, projected(p, path.Child("projected"))...)
	}
	if c := v.PersistentVolumeClaim; c != nil {
		errs = append(errs, required(path.Child("persistentVolumeClaim", "claimName"), c.ClaimName)...)
	}
	return errs
}

func mode(m *int32, path *field.Path) field.ErrorList {
	if m != nil && (*m < 0 || *m > 0o777) {
		return field.ErrorList{field.Invalid(path, *m, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

func items(list []corev1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range list {
		at := path.Index(i)
		errs = append(errs, required(at.Child("key"), item.Key)...)
		errs = append(errs, fileName(item.Path, at.Child("path"))...)
		errs = append(errs, mode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

// fileName checks the path of a projected file in its volume.
func fileName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := inside(path, name)
	if len(errs) == 0 && strings.HasPrefix(name, "..") {
		errs = append(errs, field.Invalid(path, name, "must not start with '..'"))
	}
	return errs
}

func downward(files []corev1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range files {
		f, at := &files[i], path.Index(i)
		errs = append(errs, fileName(f.Path, at.Child("path"))...)
		errs = append(errs, mode(f.Mode, at.Child("mode"))...)
		switch {
		case f.FieldRef != nil && f.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(at, f.Path, "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case f.FieldRef != nil:
			errs = append(errs, fieldRef(f.FieldRef, volumePaths, at.Child("fieldRef"))...)
		case f.ResourceFieldRef != nil:
			errs = append(errs, resourceRef(f.ResourceFieldRef, at.Child("resourceFieldRef"))...)
			errs = append(errs, required(at.Child("resourceFieldRef", "containerName"), f.ResourceFieldRef.ContainerName)...)
		default:
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

func projected(p *corev1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := mode(p.DefaultMode, path.Child("defaultMode"))
	for i := range p.Sources {
		s, at := &p.Sources[i], path.Child("sources").Index(i)
		sources := 0
		if c := s.ConfigMap; c != nil {
			sources++
			errs = append(errs, required(at.Child("configMap", "name"), c.Name)...)
			errs = append(errs, items(c.Items, at.Child("configMap", "items"))...)
		}
		if c := s.Secret; c != nil {
			sources++
			errs = append(errs, required(at.Child("secret", "name"), c.Name)...)
			errs = append(errs, items(c.Items, at.Child("secret", "items"))...)
		}
		if d := s.DownwardAPI; d != nil {
			sources++
			errs = append(errs, downward(d.Items, at.Child("downwardAPI", "items"))...)
		}
		if t := s.ServiceAccountToken; t != nil {
			sources++
			errs = append(errs, fileName(t.Path, at.Child("serviceAccountToken", "path"))...)
			if e := t.ExpirationSeconds; e != nil && *e < 600 {
				errs = append(errs, field.Invalid(at.Child("serviceAccountToken", "expirationSeconds"), *e, "may not specify a duration less than 10 minutes"))
			}
		}
		if s.ClusterTrustBundle != nil {
			sources++
		}
		if s.PodCertificate != nil {
			sources++
		}
		switch {
		case sources == 0:
			errs = append(errs, field.Required(at, "must specify a source"))
		case sources > 1:
			errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type per source"))
		}
	}
	return errs
}
