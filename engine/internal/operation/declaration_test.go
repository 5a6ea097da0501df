package operation

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/encoding/protojson"
)

// cases are read by tests/unit/engine/test_declaration_document.py, too.
type cases struct {
	Valid struct {
		Document  json.RawMessage
		Responses []*pulumirpc.RegisterResourceResponse
		Requests  []map[string]any
	}
	Invalid []struct {
		Name     string
		Document string
	}
}

func readCases(t *testing.T) cases {
	t.Helper()
	text, err := os.ReadFile("testdata/declarations.json")
	if err != nil {
		t.Fatal(err)
	}
	var found cases
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestADeclarationBecomesTheseRequests(t *testing.T) {
	valid := readCases(t).Valid
	program, err := parseDeclaration(string(valid.Document))
	if err != nil {
		t.Fatal(err)
	}
	for i, resource := range program.Resources {
		request, err := resource.request(valid.Responses)
		if err != nil {
			t.Fatal(err)
		}
		text, err := protojson.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		var found map[string]any
		if err := json.Unmarshal(text, &found); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(found, valid.Requests[i]) {
			t.Errorf("expected %v, got %v", valid.Requests[i], found)
		}
	}
	if len(program.Resources) != len(valid.Requests) {
		t.Errorf("expected %d resources, got %d", len(valid.Requests), len(program.Resources))
	}
}

func TestARequestDoesNotChangeTheDeclaration(t *testing.T) {
	valid := readCases(t).Valid
	program, err := parseDeclaration(string(valid.Document))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range program.Resources {
		before, _ := json.Marshal(resource.Inputs)
		if _, err := resource.request(valid.Responses); err != nil {
			t.Fatal(err)
		}
		if after, _ := json.Marshal(resource.Inputs); string(after) != string(before) {
			t.Errorf("expected %s, got %s", before, after)
		}
	}
}

func TestAnInvalidDeclarationIsRefused(t *testing.T) {
	for _, each := range readCases(t).Invalid {
		_, err := parseDeclaration(each.Document)
		if err == nil || !strings.HasPrefix(err.Error(), "the declaration of the stack is invalid: ") {
			t.Errorf("%s: expected an error, got %v", each.Name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains the value of an input: %v", each.Name, err)
		}
	}
}
