package providers

import "strings"

// serverRefusals are what the Kubernetes API server says when it has looked at an object and refuses it, and what the
// provider says when it has waited for an object in vain. The provider remembers nothing of either: the server was
// reached, and knew the kind.
var serverRefusals = []string{
	"is invalid:", "already exists", "is forbidden:", "the object has been modified", "Apply failed with ",
	"Server-Side Apply field conflict detected", "admission webhook", "exceeded quota", "field is immutable",
	"failed to become available",
}

// remembers tells whether a provider may behave differently after this error than a process that never saw it.
//
// The Kubernetes provider remembers a cluster that it did not reach, and the kinds that a cluster did not have. Of other
// providers we know nothing.
func remembers(name string, err error) bool {
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
