// Package kubernetesservice keeps the Service through which pods reach the API: default/kubernetes, on the first address of
// the service range, and its endpoints, the masters.
//
// It promises: the Service exists, also after somebody has deleted it; its EndpointSlices and Endpoints name every
// master whose Node announces an API and is not silent, and follow the Nodes. A master of whose API nothing is heard is
// taken out when its Node counts as lost. When all seem lost they stay: then it is rather this master that is cut off.
// Masters with another port than most have a slice of their own.
//
// In Kubernetes each API server keeps its own entry and a lease beside it; here a Node says all of that already, so the
// master that leads writes for all. It reads Nodes, Services, Endpoints and EndpointSlices and writes the last three, of
// that one name. It keeps nothing.
package kubernetesservice
