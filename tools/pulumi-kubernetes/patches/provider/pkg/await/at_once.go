package await

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/clients"
)

// yieldAnnotation names the fields that an object leaves to others (reside/policy/yielded_fields.py).
const yieldAnnotation = "reside.io/yield"

// updateAtOnce updates an object, and returns it as it was before and as it is now.
//
// The release reads the object, sends a patch of its managers, even an empty one, and then the update. If the caller
// knows the uid of the object, the update comes first: the API server refuses it if no object has this uid, so it changes
// no object that was created again, and creates none that was deleted. It is not forced, so it takes nothing from another
// manager. If it is refused for such a reason, the release's way follows, as without a uid. But the release takes over
// what kubectl has changed: not from an object that leaves fields to others, of which the caller knows more.
func updateAtOnce(c *UpdateConfig, client dynamic.ResourceInterface) (before, now *unstructured.Unstructured, err error) {
	if c.mayUpdateAtOnce() {
		c.Inputs.SetUID(c.UID)
		now, err = ssaPatch(c, c.OldOutputs, client)
		unstructured.RemoveNestedField(c.Inputs.Object, "metadata", "uid") // the inputs go into the state
		if !isRefused(err) || isOfManagers(err) && c.Inputs.GetAnnotations()[yieldAnnotation] != "" {
			return c.OldOutputs, now, handleSSAErr(err, c.FieldManager)
		}
	}
	before, err = client.Get(c.Context, c.OldOutputs.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	now, err = updateResource(c, before, client)
	return before, now, err
}

// mayUpdateAtOnce reports whether an update depends on the inputs alone. The last outputs tell whether the object is
// older than server-side apply, which does not change.
func (c *UpdateConfig) mayUpdateAtOnce() bool {
	return c.UID != "" && c.ServerSideApply && !c.Preview && len(c.IgnoreChanges) == 0 && !clients.IsCRD(c.Inputs) &&
		len(c.OldOutputs.GetManagedFields()) > 0
}

// isRefused reports whether the API server refused an update because of the object that it found, or did not find. A uid
// that is not that of the object is an invalid change.
func isRefused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}

// isOfManagers reports whether other managers own fields that an update sets.
func isOfManagers(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
