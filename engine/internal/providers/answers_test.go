package providers

import (
	"context"
	"testing"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func configMap(name string, data any) resource.PropertyMap {
	return resource.NewPropertyMapFromMap(map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"x": data},
	})
}

func checked(t *testing.T, by plugin.Provider, olds, news resource.PropertyMap) resource.PropertyMap {
	t.Helper()
	urn := urnOf("demo")
	response, err := by.Check(context.Background(), plugin.CheckRequest{
		URN: urn, Name: urn.Name(), Type: urn.Type(), Olds: olds, News: news,
	})
	if err != nil || len(response.Failures) > 0 {
		t.Fatal(response.Failures, err)
	}
	return response.Properties
}

func changes(t *testing.T, by plugin.Provider, old, outputs, now resource.PropertyMap) plugin.DiffChanges {
	t.Helper()
	urn := urnOf("demo")
	response, err := by.Diff(context.Background(), plugin.DiffRequest{
		URN: urn, Name: urn.Name(), Type: urn.Type(), ID: "id", OldInputs: old, OldOutputs: outputs, NewInputs: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return response.Changes
}

func TestTheSameCheckAndDiffAreAnsweredOnce(t *testing.T) {
	s := newFixture(t, Options{})
	for range 3 { // an operation, and two that repeat it
		operation := s.begin("demo")
		provider := operation.configured(inputs("a"))
		found := checked(t, provider, nil, configMap("m", "1"))
		if !found.DeepEquals(configMap("m", "1")) {
			t.Errorf("checked inputs: %v", found)
		}
		if got := changes(t, provider, found, found, found); got != plugin.DiffNone {
			t.Errorf("changes: %v", got)
		}
		operation.end(Succeeded)
	}
	if made := s.processes()[0]; made.checks != 1 || made.diffs != 1 {
		t.Errorf("the provider was asked for %d checks and %d diffs", made.checks, made.diffs)
	}
	if status := s.pool.Status(); status[0].Answered != 4 {
		t.Errorf("status: %+v", status[0])
	}
}

func TestAnotherRequestReachesTheProvider(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	provider := operation.configured(inputs("a"))
	made := s.processes()[0]
	one, two := configMap("m", "1"), configMap("m", "2")
	secret := configMap("m", "1")
	secret["data"] = resource.MakeSecret(secret["data"])
	for _, news := range []resource.PropertyMap{one, two, secret, configMap("m", 1.0), configMap("m", []any{"1"})} {
		checked(t, provider, nil, news)
		checked(t, provider, one, news)
	}
	if made.checks != 10 {
		t.Errorf("the provider was asked for %d of 10 checks", made.checks)
	}
	for range 2 {
		changes(t, provider, one, one, two) // changes are not remembered
		changes(t, provider, one, one, one)
		changes(t, provider, one, two, one) // another state
	}
	if made.diffs != 4 {
		t.Errorf("the provider was asked for %d of 4 diffs", made.diffs)
	}
	if got := changes(t, operation.configured(inputs("b")), one, one, one); got != plugin.DiffNone {
		t.Errorf("changes: %v", got)
	}
	if other := s.processes()[1]; other.diffs != 1 {
		t.Error("a process answered for one with another configuration")
	}
}

func TestWhatDependsOnMoreThanTheRequestReachesTheProvider(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	provider := operation.configured(inputs("a"))
	made := s.processes()[0]
	unnamed := resource.NewPropertyMapFromMap(map[string]any{"metadata": map[string]any{}})
	unready := resource.NewPropertyMapFromMap(map[string]any{"metadata": map[string]any{
		"name": "m", "annotations": map[string]any{"pulumi.com/replaceUnready": "true"},
	}})
	for range 2 {
		checked(t, provider, nil, unnamed)
		changes(t, provider, unready, unready, unready)
	}
	made.check = func(request plugin.CheckRequest) (plugin.CheckResponse, error) {
		s.messages[0].Warningf(diag.Message(request.URN, "deprecated"))
		return plugin.CheckResponse{Properties: request.News}, nil
	}
	for range 2 {
		checked(t, provider, nil, configMap("m", "1"))
	}
	if made.checks != 4 || made.diffs != 2 {
		t.Errorf("the provider was asked for %d of 4 checks, and %d of 2 diffs", made.checks, made.diffs)
	}
	if len(operation.said.lines) != 3 { // the first says which program the provider is
		t.Errorf("messages: %v", operation.said.lines)
	}
}

func TestAProcessRemembersABoundedNumberOfAnswers(t *testing.T) {
	var kept answers
	for number := range uint64(5 * mostAnswers) {
		var key answerKey
		key[0], key[1], key[2] = byte(number), byte(number>>8), byte(number>>16)
		kept.remember(key, noChanges)
	}
	if found := len(kept.now) + len(kept.earlier); found > 2*mostAnswers {
		t.Errorf("%d answers", found)
	}
}
