package providers

import "strings"

// serverRefusals are texts of errors after which the Kubernetes provider caches nothing: the API server refused an
// object, or an object did not become ready in time. In both cases the server was reached and knew the kind.
var serverRefusals = []string{
	"is invalid:", "already exists", "is forbidden:", "the object has been modified", "Apply failed with ",
	"Server-Side Apply field conflict detected", "admission webhook", "exceeded quota", "field is immutable",
	"failed to become available",
}

// mayCache reports whether a provider may behave differently after this error, because it caches the cause.
//
// The Kubernetes provider caches that a cluster is unreachable, and which kinds a cluster does not have. Any other
// provider may cache anything.
func mayCache(name string, err error) bool {
	if name != kubernetes {
		return true
	}
	text := err.Error()
	if strings.Contains(text, "unreachable") {
		return true
	}
	for _, refusal := range serverRefusals {
		if strings.Contains(text, refusal) {
			return false
		}
	}
	return true
}
