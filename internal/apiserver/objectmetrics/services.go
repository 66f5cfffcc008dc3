package objectmetrics

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/internal/exposition"
)

type service = *corev1.Service

var services = of[service]{"services", func(s service) string {
	return exposition.Labels("namespace", s.Namespace, "service", s.Name, "uid", string(s.UID))
}, []family[service]{
	gauge("kube_service_info", "Information about service.", func(p page, s service) {
		p.put(1, "cluster_ip", s.Spec.ClusterIP, "external_name", s.Spec.ExternalName, "external_traffic_policy", string(s.Spec.ExternalTrafficPolicy),
			"load_balancer_ip", s.Spec.LoadBalancerIP)
	}),
	created[service]("kube_service"),
	gauge("kube_service_spec_type", "Type about service.", func(p page, s service) { p.put(1, "type", string(s.Spec.Type)) }),
	gauge("kube_service_spec_external_ip", "Service external ips. One series for each ip.", func(p page, s service) {
		for _, ip := range s.Spec.ExternalIPs {
			p.put(1, "external_ip", ip)
		}
	}),
	gauge("kube_service_status_load_balancer_ingress", "Service load balancer ingress status.", func(p page, s service) {
		for _, at := range s.Status.LoadBalancer.Ingress {
			p.put(1, "ip", at.IP, "hostname", at.Hostname)
		}
	}),
}}

type endpointSlice = *discoveryv1.EndpointSlice

var endpointSlices = of[endpointSlice]{"endpointslices.discovery.k8s.io", named[endpointSlice]("endpointslice"), []family[endpointSlice]{
	gauge("kube_endpointslice_info", "Information about endpointslice.", func(p page, s endpointSlice) { p.put(1, "addresstype", string(s.AddressType)) }),
	created[endpointSlice]("kube_endpointslice"),
	gauge("kube_endpointslice_endpoints", "Endpoints attached to the endpointslice.", func(p page, s endpointSlice) {
		for i := range s.Endpoints {
			e, of := &s.Endpoints[i], &corev1.ObjectReference{}
			if e.TargetRef != nil {
				of = e.TargetRef
			}
			for _, address := range e.Addresses {
				p.put(1, "ready", known(e.Conditions.Ready), "serving", known(e.Conditions.Serving), "terminating", known(e.Conditions.Terminating),
					"hostname", text(e.Hostname), "targetref_kind", of.Kind, "targetref_name", of.Name, "targetref_namespace", of.Namespace,
					"endpoint_nodename", text(e.NodeName), "endpoint_zone", text(e.Zone), "address", address)
			}
		}
	}),
	gauge("kube_endpointslice_ports", "Ports attached to the endpointslice.", func(p page, s endpointSlice) {
		for i := range s.Ports {
			port, number, protocol := &s.Ports[i], "", ""
			if port.Port != nil {
				number = strconv.Itoa(int(*port.Port))
			}
			if port.Protocol != nil {
				protocol = string(*port.Protocol)
			}
			p.put(1, "port_name", text(port.Name), "port_protocol", protocol, "port_number", number, "app_protocol", text(port.AppProtocol))
		}
	}),
}}

func known(b *bool) string {
	if b == nil {
		return ""
	}
	return word(*b)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type ingress = *networkingv1.Ingress

var ingresses = of[ingress]{"ingresses.networking.k8s.io", named[ingress]("ingress"), []family[ingress]{
	gauge("kube_ingress_info", "Information about ingress.", func(p page, o ingress) {
		name := ""
		if b := o.Spec.DefaultBackend; b != nil && b.Service != nil {
			name = b.Service.Name
		}
		p.put(1, "ingressclass", text(o.Spec.IngressClassName), "default_backend_service", name)
	}),
	created[ingress]("kube_ingress"),
	gauge("kube_ingress_path", "Ingress host, paths and backend service information.", func(p page, o ingress) {
		seen := map[[4]string]bool{} // a host may have several rules
		for i := range o.Spec.Rules {
			r := &o.Spec.Rules[i]
			if r.HTTP == nil {
				continue
			}
			for _, path := range r.HTTP.Paths {
				name, port := "", ""
				if s := path.Backend.Service; s != nil {
					if name, port = s.Name, s.Port.Name; port == "" {
						port = strconv.Itoa(int(s.Port.Number))
					}
				}
				if k := [4]string{r.Host, path.Path, name, port}; !seen[k] {
					seen[k] = true
					p.put(1, "host", r.Host, "path", path.Path, "service_name", name, "service_port", port)
				}
			}
		}
	}),
	gauge("kube_ingress_tls", "Ingress TLS host and secret information.", func(p page, o ingress) {
		seen := map[[2]string]bool{}
		for _, tls := range o.Spec.TLS {
			for _, host := range tls.Hosts {
				if k := [2]string{host, tls.SecretName}; !seen[k] {
					seen[k] = true
					p.put(1, "tls_host", host, "secret", tls.SecretName)
				}
			}
		}
	}),
}}

type configMap = *corev1.ConfigMap

var configMaps = of[configMap]{"configmaps", named[configMap]("configmap"), []family[configMap]{
	value("kube_configmap_info", "Information about configmap.", func(configMap) float64 { return 1 }),
	created[configMap]("kube_configmap"),
}}
