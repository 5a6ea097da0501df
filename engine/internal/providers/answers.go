package providers

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// mostAnswers bounds the answers of a process: at most twice as many are remembered, of 50 bytes each.
const mostAnswers = 32768

// answers remembers what a process of the Kubernetes provider answered to Check and Diff, for as long as the process
// runs. An apply repeats the calls of its preview, and a further change those for each object that does not change.
//
// Only answers that repeat a part of the request are remembered, so that no inputs are kept. The same request gets the
// same answer because both calls of this provider (source of 4.25) depend on the request, and on what the process reads
// from the cluster once: its version and its schema. Three kinds of call do more, and always reach the provider: Check
// of an object that gets a random name or defines a kind, Diff of one that is replaced when it is not ready, and any
// call during which the provider sent a message.
type answers struct {
	messages atomic.Int64 // number of messages of the process
	answered atomic.Int64 // number of calls that were answered without the process

	mutex        sync.Mutex
	now, earlier map[answerKey]answer // earlier has those of before the last time that now was full
}

type answerKey [sha256.Size]byte

// answer says which part of the request is the answer.
type answer byte

const (
	theOlds   answer = iota + 1 // Check returns the old inputs
	theNews                     // Check returns the new inputs
	noChanges                   // Diff finds no changes
)

// check returns the answer to a request: a remembered one, or else that of ask.
func (a *answers) check(
	request plugin.CheckRequest, ask func() (plugin.CheckResponse, error),
) (plugin.CheckResponse, error) {
	key, ok := checkKey(request)
	switch a.find(key, ok) {
	case theOlds:
		return plugin.CheckResponse{Properties: request.Olds.Copy()}, nil
	case theNews:
		return plugin.CheckResponse{Properties: request.News.Copy()}, nil
	}
	before := a.messages.Load()
	response, err := ask()
	if !ok || err != nil || len(response.Failures) > 0 || a.messages.Load() != before {
		return response, err
	}
	switch {
	case response.Properties.DeepEquals(request.Olds):
		a.remember(key, theOlds)
	case response.Properties.DeepEquals(request.News):
		a.remember(key, theNews)
	}
	return response, nil
}

// diff returns the answer to a request: a remembered one, or else that of ask.
func (a *answers) diff(request plugin.DiffRequest, ask func() (plugin.DiffResponse, error)) (plugin.DiffResponse, error) {
	key, ok := diffKey(request)
	if a.find(key, ok) == noChanges {
		return plugin.DiffResponse{Changes: plugin.DiffNone}, nil
	}
	before := a.messages.Load()
	response, err := ask()
	if ok && err == nil && isNoChange(response) && a.messages.Load() == before {
		a.remember(key, noChanges)
	}
	return response, err
}

func isNoChange(found plugin.DiffResponse) bool {
	return found.Changes == plugin.DiffNone && !found.DeleteBeforeReplace &&
		len(found.ReplaceKeys)+len(found.StableKeys)+len(found.ChangedKeys)+len(found.DetailedDiff) == 0
}

func (a *answers) find(key answerKey, ok bool) answer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !ok {
		return 0
	}
	found := a.now[key]
	if found == 0 {
		found = a.earlier[key]
	}
	if found != 0 {
		a.answered.Add(1)
	}
	return found
}

func (a *answers) remember(key answerKey, found answer) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.now == nil || len(a.now) >= mostAnswers {
		a.now, a.earlier = map[answerKey]answer{}, a.now
	}
	a.now[key] = found
}

// checkKey identifies a request; false: its answer must not be remembered.
//
// AllowUnknowns, in which previews differ from applies, is left out: values with unknown parts have no key.
func checkKey(request plugin.CheckRequest) (answerKey, bool) {
	metadata, ok := member(request.News, "metadata")
	if !ok || !metadata.IsObject() {
		return answerKey{}, false
	}
	name, ok := member(metadata.ObjectValue(), "name")
	if !ok || !name.IsString() || name.StringValue() == "" || request.Type.Name() == "CustomResourceDefinition" {
		return answerKey{}, false
	}
	hashed := hashing{sha256.New()}
	hashed.text("check", string(request.URN), string(request.Type))
	return hashed.key(request.Olds, request.News)
}

// diffKey identifies a request; false: its answer must not be remembered.
func diffKey(request plugin.DiffRequest) (answerKey, bool) {
	if metadata, ok := member(request.NewInputs, "metadata"); ok && metadata.IsObject() {
		annotations, ok := member(metadata.ObjectValue(), "annotations")
		if ok && (!annotations.IsObject() || annotations.ObjectValue().HasValue("pulumi.com/replaceUnready")) {
			return answerKey{}, false
		}
	}
	hashed := hashing{sha256.New()}
	hashed.text("diff", string(request.URN), string(request.Type), string(request.ID))
	hashed.text(request.IgnoreChanges...)
	return hashed.key(request.OldInputs, request.OldOutputs, request.NewInputs)
}

// member returns a property without the marks of secrets around it.
func member(of resource.PropertyMap, key resource.PropertyKey) (resource.PropertyValue, bool) {
	value, ok := of[key]
	for value.IsSecret() {
		value = value.SecretValue().Element
	}
	return value, ok
}

// hashing hashes values without ambiguity: each has a kind, and a length where it varies.
type hashing struct{ hash.Hash }

// key returns the hash of what was written and of these properties; false: they have something else than plain values.
func (h hashing) key(properties ...resource.PropertyMap) (answerKey, bool) {
	for _, each := range properties {
		if !h.value(resource.NewProperty(each)) {
			return answerKey{}, false
		}
	}
	return answerKey(h.Sum(nil)), true
}

func (h hashing) number(kind byte, value uint64) {
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{kind}, value))
}

func (h hashing) text(values ...string) {
	h.number('t', uint64(len(values)))
	for _, each := range values {
		h.number('s', uint64(len(each)))
		_, _ = h.Write([]byte(each))
	}
}

func (h hashing) flag(value bool) {
	if value {
		h.number('b', 1)
	} else {
		h.number('b', 0)
	}
}

func (h hashing) value(value resource.PropertyValue) bool {
	switch {
	case value.IsNull():
		h.number('0', 0)
	case value.IsBool():
		h.flag(value.BoolValue())
	case value.IsNumber():
		h.number('n', math.Float64bits(value.NumberValue()))
	case value.IsString():
		h.text(value.StringValue())
	case value.IsSecret():
		h.number('x', 0)
		return h.value(value.SecretValue().Element)
	case value.IsArray():
		h.number('a', uint64(len(value.ArrayValue())))
		for _, each := range value.ArrayValue() {
			if !h.value(each) {
				return false
			}
		}
	case value.IsObject():
		h.number('o', uint64(len(value.ObjectValue())))
		for _, key := range value.ObjectValue().StableKeys() {
			h.text(string(key))
			if !h.value(value.ObjectValue()[key]) {
				return false
			}
		}
	default:
		return false
	}
	return true
}
