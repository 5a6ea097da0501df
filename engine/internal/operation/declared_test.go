package operation

import (
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func TestADeclarationNamesOnlyWhatComesBefore(t *testing.T) {
	for text, words := range map[string]string{
		`{"resources":[{"name":"a","parent":-1,"provider":-1},{"name":"b","parent":0,"provider":-1,"after":[0]}]}`: "",
		`{"resources":[{"name":"a","parent":0,"provider":-1}]}`:                                                    `"a" names one after it`,
		`{"resources":[{"name":"a","parent":-1,"provider":-1,"after":[1]}]}`:                                       `"a" names one after it`,
		`nonsense`: "the program on standard input",
	} {
		_, err := parseDeclaration(text)
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestARequestNamesOthersByWhatTheEngineAnswered(t *testing.T) {
	answers := []*pulumirpc.RegisterResourceResponse{{Urn: "stack"}, {Urn: "provider"}, {Urn: "part", Id: "x"}}
	made := declared{
		Type: "t", Name: "n", Custom: true, Parent: 0, Provider: 1, After: []int{2},
		Inputs: map[string]any{"data": map[string]any{"k": "v"}}, Secrets: []string{"data"},
	}
	request, err := made.request(answers)
	if err != nil {
		t.Fatal(err)
	}
	if request.Parent != "stack" || request.Provider != "provider::"+unknownID || request.Dependencies[0] != "part" {
		t.Error(request)
	}
	if secret := request.Object.Fields["data"].GetStructValue().Fields; len(secret) != 2 || secret["value"] == nil {
		t.Error("a secret input is not marked as such")
	}
	if free, there := request.PropertyDependencies["data"]; !there || len(free.Urns) > 0 {
		t.Error("an input is said to follow from others")
	}
	if _, changed := made.Inputs["data"].(map[string]any)["value"]; changed {
		t.Error("the declaration itself was changed")
	}
}
