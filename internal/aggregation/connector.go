package aggregation

import (
	"net/http"
	"net/url"

	"minik8s/internal/api"
)

// Connector answers a subresource that is no part of an object, but something that a part of the daemon knows of it, such
// as the files of a job. The API server has authenticated and authorised the request, and counts it as one that lasts as long as
// the client wants; each piece that is written must be read in time, and is sent at once. An error that is returned before anything was written is sent as its Status, or as 500 if it has none. After
// that it is not sent: a part shows that an answer is cut off by a panic with http.ErrAbortHandler.
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
