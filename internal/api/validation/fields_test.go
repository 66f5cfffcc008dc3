package validation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fate says how each field of a struct is treated. Every field of a pod's spec must be in one of these lists, so that a
// field that is new in the wire types is noticed here and not ignored.
type fate struct {
	of      any
	served  string
	partly  string // some values are served, others refused or warned about
	idle    string // accepted, but what they affect does not exist here
	warned  string
	refused string
	never   string // forbidden by the rules, as in Kubernetes
}

var fates = []fate{
	{of: corev1.PodSpec{},
		served: "volumes initContainers containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector" +
			" serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC shareProcessNamespace securityContext imagePullSecrets" +
			" hostname subdomain affinity schedulerName tolerations hostAliases priorityClassName priority dnsConfig readinessGates" +
			" topologySpreadConstraints setHostnameAsFQDN schedulingGates hostnameOverride ephemeralContainers",
		partly: "automountServiceAccountToken" + // true is warned about
			" os hostUsers", // linux, and true, which is what all pods have
		idle:    "enableServiceLinks preemptionPolicy", // there are no Services, and nothing is preempted
		warned:  "evictionResponders",
		refused: "runtimeClassName overhead resourceClaims resources schedulingGroup"},
	{of: corev1.PodSecurityContext{},
		served:  "runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy fsGroup sysctls seccompProfile",
		warned:  "seLinuxOptions fsGroupChangePolicy appArmorProfile seLinuxChangePolicy",
		refused: "windowsOptions"},
	{of: corev1.Container{},
		served: "name image command args workingDir ports envFrom env volumeMounts livenessProbe readinessProbe startupProbe lifecycle" +
			" terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty",
		partly:  "resources restartPolicy", // no claims and no limit of ephemeral-storage; Always, of an init container
		warned:  "resizePolicy",
		refused: "restartPolicyRules volumeDevices"},
	{of: corev1.EphemeralContainer{},
		served: "name image command args workingDir envFrom env volumeMounts terminationMessagePath terminationMessagePolicy" +
			" imagePullPolicy securityContext stdin stdinOnce tty targetContainerName",
		refused: "volumeDevices",
		never:   "ports resources resizePolicy restartPolicy restartPolicyRules livenessProbe readinessProbe startupProbe lifecycle"},
	{of: corev1.SecurityContext{},
		served: "capabilities privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile",
		warned: "seLinuxOptions appArmorProfile", refused: "windowsOptions"},
	{of: corev1.ResourceRequirements{}, served: "requests", partly: "limits", refused: "claims"},
	{of: corev1.VolumeMount{}, served: "name readOnly mountPath subPath mountPropagation subPathExpr",
		partly: "recursiveReadOnly", refused: "bindMountOptions"},
	{of: corev1.EnvVar{}, served: "name value valueFrom"},
	{of: corev1.EnvVarSource{}, served: "fieldRef resourceFieldRef configMapKeyRef secretKeyRef", refused: "fileKeyRef"},
	{of: corev1.EnvFromSource{}, served: "prefix configMapRef secretRef"},
	{of: corev1.ConfigMapEnvSource{}, served: "name optional"},
	{of: corev1.SecretEnvSource{}, served: "name optional"},
	{of: corev1.ConfigMapKeySelector{}, served: "name key optional"},
	{of: corev1.SecretKeySelector{}, served: "name key optional"},
	{of: corev1.ObjectFieldSelector{}, served: "apiVersion fieldPath"},
	{of: corev1.ResourceFieldSelector{}, served: "containerName resource divisor"},
	{of: corev1.ContainerPort{}, served: "name hostPort containerPort protocol hostIP"},
	{of: corev1.Capabilities{}, served: "add drop"},
	{of: corev1.SeccompProfile{}, served: "type localhostProfile"},
	{of: corev1.Sysctl{}, served: "name value"},

	{of: corev1.Lifecycle{}, served: "postStart preStop stopSignal"},
	{of: corev1.LifecycleHandler{}, served: "exec httpGet tcpSocket sleep"},
	{of: corev1.Probe{}, served: "exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold" +
		" failureThreshold terminationGracePeriodSeconds"},
	{of: corev1.ExecAction{}, served: "command"},
	{of: corev1.HTTPGetAction{}, served: "path port host scheme httpHeaders protocol"},
	{of: corev1.HTTPHeader{}, served: "name value"},
	{of: corev1.TCPSocketAction{}, served: "port host"},
	{of: corev1.GRPCAction{}, served: "port service mode"},
	{of: corev1.SleepAction{}, served: "seconds"},

	{of: corev1.Volume{}, served: "name emptyDir hostPath configMap secret downwardAPI projected",
		refused: "gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs" +
			" flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi ephemeral image"},
	{of: corev1.EmptyDirVolumeSource{}, served: "mode", partly: "medium sizeLimit"}, // Memory and none; with Memory
	{of: corev1.HostPathVolumeSource{}, served: "path type"},
	{of: corev1.ConfigMapVolumeSource{}, served: "name items defaultMode optional", warned: "defaultUser"},
	{of: corev1.SecretVolumeSource{}, served: "secretName items defaultMode optional", warned: "defaultUser"},
	{of: corev1.DownwardAPIVolumeSource{}, served: "items defaultMode", warned: "defaultUser"},
	{of: corev1.ProjectedVolumeSource{}, served: "sources defaultMode", warned: "defaultUser"},
	{of: corev1.VolumeProjection{}, served: "configMap secret downwardAPI serviceAccountToken", refused: "clusterTrustBundle podCertificate"},
	{of: corev1.ConfigMapProjection{}, served: "name items optional"},
	{of: corev1.SecretProjection{}, served: "name items optional"},
	{of: corev1.DownwardAPIProjection{}, served: "items"},
	{of: corev1.ServiceAccountTokenProjection{}, served: "audience expirationSeconds path", warned: "user"},
	{of: corev1.KeyToPath{}, served: "key path mode", warned: "user"},
	{of: corev1.DownwardAPIVolumeFile{}, served: "path fieldRef resourceFieldRef mode", warned: "user"},

	{of: corev1.Affinity{}, served: "nodeAffinity podAffinity podAntiAffinity"},
	{of: corev1.NodeAffinity{}, served: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
	{of: corev1.PodAffinity{}, served: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
	{of: corev1.PodAntiAffinity{}, served: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
	{of: corev1.NodeSelector{}, served: "nodeSelectorTerms"},
	{of: corev1.NodeSelectorTerm{}, served: "matchExpressions matchFields"},
	{of: corev1.NodeSelectorRequirement{}, served: "key operator values"},
	{of: corev1.PreferredSchedulingTerm{}, served: "weight preference"},
	{of: corev1.PodAffinityTerm{}, served: "labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys"},
	{of: corev1.WeightedPodAffinityTerm{}, served: "weight podAffinityTerm"},
	{of: metav1.LabelSelector{}, served: "matchLabels matchExpressions"},
	{of: metav1.LabelSelectorRequirement{}, served: "key operator values"},
	{of: corev1.TopologySpreadConstraint{}, served: "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy" +
		" nodeTaintsPolicy matchLabelKeys"},
	{of: corev1.Toleration{}, served: "key operator value effect tolerationSeconds"},

	{of: corev1.PodDNSConfig{}, served: "nameservers searches options"},
	{of: corev1.PodDNSConfigOption{}, served: "name value"},
	{of: corev1.HostAlias{}, served: "ip hostnames"},
	{of: corev1.LocalObjectReference{}, served: "name"},
	{of: corev1.PodReadinessGate{}, served: "conditionType"},
	{of: corev1.PodSchedulingGate{}, served: "name"},
	{of: corev1.PodOS{}, partly: "name"},
}

// TestEveryFieldHasAFate compares all fields of a pod's spec with the list above. It also sets each field and checks
// that NotServed does what the list says.
func TestEveryFieldHasAFate(t *testing.T) {
	w := &walker{t: t, todo: map[reflect.Type]fate{}, done: map[reflect.Type]bool{}}
	for _, f := range fates {
		w.todo[reflect.TypeOf(f.of)] = f
	}
	w.walk(reflect.TypeFor[corev1.PodSpec](), nil)
	for of := range w.todo {
		if !w.done[of] {
			t.Errorf("%s is in the list, and no pod holds it", of)
		}
	}
}

type walker struct {
	t    *testing.T
	todo map[reflect.Type]fate
	done map[reflect.Type]bool
}

// walk visits a struct below a PodSpec, at the chain of fields.
func (w *walker) walk(of reflect.Type, chain []int) {
	if w.done[of] {
		return
	}
	w.done[of] = true
	f, ok := w.todo[of]
	if !ok {
		w.t.Errorf("%s is not in the list of fates", of)
		return
	}
	listed := map[string]string{}
	for kind, names := range map[string]string{"served": f.served, "partly": f.partly, "idle": f.idle, "warned": f.warned, "refused": f.refused, "never": f.never} {
		for _, name := range strings.Fields(names) {
			if listed[name] != "" {
				w.t.Errorf("%s.%s is in the list twice", of, name)
			}
			listed[name] = kind
		}
	}
	w.fields(of, chain, listed)
	for name := range listed {
		w.t.Errorf("%s.%s is in the list, and there is no such field", of, name)
	}
}

// fields visits the fields of a struct, and those of embedded structs, and removes them from the list.
func (w *walker) fields(of reflect.Type, chain []int, listed map[string]string) {
	for i := range of.NumField() {
		at := append(slices.Clone(chain), i)
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			w.fields(of.Field(i).Type, at, listed)
			continue
		}
		kind := listed[name]
		delete(listed, name)
		if kind == "" {
			w.t.Errorf("%s.%s has no fate: is it served, warned about or refused?", of, name)
			continue
		}
		w.check(of.String()+"."+name, kind, at)
		if inner := element(of.Field(i).Type); inner != nil && (kind == "served" || kind == "partly") {
			w.walk(inner, at)
		}
	}
}

// check sets one field of a pod and checks the result of NotServed.
func (w *walker) check(name, kind string, chain []int) {
	var spec corev1.PodSpec
	set(reflect.ValueOf(&spec).Elem(), chain)
	refused, warnings := NotServed(&spec, field.NewPath("spec"))
	var bad bool
	switch kind {
	case "served", "idle":
		bad = len(refused)+len(warnings) > 0
	case "warned":
		bad = len(refused) > 0 || len(warnings) == 0
	case "refused":
		bad = len(refused) == 0
	}
	if bad {
		w.t.Errorf("%s is to be %s: refused %v, warnings %v", name, kind, refused, warnings)
	}
}

// element returns the struct type in a field, also behind a pointer or in a list; nil if there is none.
func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]() || strings.HasSuffix(of.PkgPath(), "/intstr") {
		return nil
	}
	return of
}

// set gives the field at the chain below v a value that is not empty, and creates everything on the way to it.
func set(v reflect.Value, chain []int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			v = v.Index(0)
		} else {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
	}
	if len(chain) > 0 {
		set(v.Field(chain[0]), chain[1:])
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	}
}
