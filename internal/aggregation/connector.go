package aggregation

import (
	"net/http"
	"net/url"

	"minik8s/internal/api"
)

// Connector answers a subresource that is no part of an object, but something that a part of the daemon knows of it, such
// as the files of a job. The API server has authenticated and authorised the request, and counts it as one that lasts as long as
// the client wants; each piece that is written must be read in time, and is sent at once. An error before anything is written is sent as its Status; any other one is internal (500).
type Connector func(w http.ResponseWriter, r *Connected) error

// Connected is one authorised request for a subresource.
type Connected struct {
	*http.Request
	// Object is the object above the subresource. It is shared: it must not be changed. It is nil if there is none and the subresource is
	// read all the same (api.Subresource.Absent).
	Object api.Object
	// Namespace and Name are the object's, User is who asks.
	Namespace, Name, User string
	// Path is what follows the subresource, with its first slash, unescaped; often empty.
	Path  string
	Query url.Values
}
