package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/blang/semver"
	pkgresource "github.com/pulumi/pulumi/pkg/v3/resource"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	sdkproviders "github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// declaredSource gives the resources of a declaration to a deployment, each as soon as those that it refers to exist.
type declaredSource struct {
	program *declaration
	project tokens.PackageName
	ready   chan index    // resources that can be registered
	outputs chan struct{} // closed when all are registered, so that the outputs of the stack follow
	end     chan struct{} // closed when these are registered, too
	closed  chan struct{}
	closing sync.Once

	mutex      sync.Mutex
	missing    []int // by resource: how many of those that it refers to are not registered
	left       int   // resources that are not registered
	registered []*pkgresource.State
	goals      []*pkgresource.Goal
}

var (
	_ deploy.Source         = (*declaredSource)(nil)
	_ deploy.SourceIterator = (*declaredSource)(nil)
)

func newDeclaredSource(program *declaration, project tokens.PackageName) *declaredSource {
	count := len(program.Resources)
	return &declaredSource{
		program: program, project: project,
		ready: make(chan index, count), outputs: make(chan struct{}), end: make(chan struct{}),
		closed: make(chan struct{}), missing: make([]int, count), left: count,
		registered: make([]*pkgresource.State, count),
	}
}

func (s *declaredSource) Project() tokens.PackageName { return s.project }

// Close ends the source. A deployment closes it at its end, also if it failed.
func (s *declaredSource) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

func (s *declaredSource) Cancel(context.Context) error { return nil }

func (s *declaredSource) Iterate(context.Context, deploy.ProviderSource) (deploy.SourceIterator, error) {
	for i := range s.program.Resources {
		s.missing[i] = len(s.program.Resources[i].references())
		if s.missing[i] == 0 {
			s.ready <- index(i)
		}
	}
	return s, nil
}

// Next returns the next resource, and nil when all are registered. If the deployment ends before, it returns an error:
// what a complete program did not register is deleted.
func (s *declaredSource) Next() (deploy.SourceEvent, error) {
	select {
	case i := <-s.ready:
		return s.registration(i)
	case <-s.outputs:
		s.outputs = nil
		return stackOutputs{source: s, urn: s.registered[0].URN}, nil
	case <-s.end:
		return nil, nil
	case <-s.closed:
		return nil, errors.New(interrupted)
	}
}

func (s *declaredSource) registration(i index) (deploy.SourceEvent, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	goal, err := s.program.Resources[i].goal(s.registered)
	if err != nil {
		return nil, err
	}
	s.goals = append(s.goals, goal)
	return registration{source: s, index: i, goal: goal}, nil
}

// note notes that a resource is registered.
func (s *declaredSource) note(done index, state *pkgresource.State) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if state == nil || s.registered[done] != nil {
		return // it failed, so the deployment fails
	}
	s.registered[done] = state
	if s.left--; s.left == 0 {
		close(s.outputs)
		return
	}
	for i := int(done) + 1; i < len(s.missing); i++ {
		for _, other := range s.program.Resources[i].references() {
			if other != done {
				continue
			}
			if s.missing[i]--; s.missing[i] == 0 {
				s.ready <- index(i) // never blocks: each resource is sent once
			}
		}
	}
}

// forget empties what a deployment got, see the function forget.
func (s *declaredSource) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, goal := range s.goals {
		*goal = pkgresource.Goal{}
	}
	s.goals, s.registered, s.program = nil, nil, nil
}

// registration asks the deployment for a resource. What it embeds is nil, and makes it one of the events of the engine.
type registration struct {
	deploy.RegisterResourceEvent
	source *declaredSource
	index  index
	goal   *pkgresource.Goal
}

func (r registration) Goal() *pkgresource.Goal            { return r.goal }
func (r registration) Extension() *apitype.Extension      { return nil }
func (r registration) ExtensionRef() apitype.ExtensionRef { return "" }
func (r registration) Done(result *deploy.RegisterResult) { r.source.note(r.index, result.State) }

// stackOutputs gives the deployment the outputs of the stack, which has none.
type stackOutputs struct {
	deploy.RegisterResourceOutputsEvent
	source *declaredSource
	urn    resource.URN
}

func (o stackOutputs) URN() resource.URN             { return o.urn }
func (o stackOutputs) Outputs() resource.PropertyMap { return resource.PropertyMap{} }

// Done is called twice: when the outputs are noted, and when they are stored, after the end of the source.
func (o stackOutputs) Done() {
	o.source.mutex.Lock()
	defer o.source.mutex.Unlock()
	select {
	case <-o.source.end:
	default:
		close(o.source.end)
	}
}

// goal returns the goal that the resource monitor makes of the same resource (see [declaredResource.request]).
func (r *declaredResource) goal(registered []*pkgresource.State) (*pkgresource.Goal, error) {
	kind := tokens.Type(r.Type)
	if r.Custom {
		parsed, err := tokens.ParseTypeToken(r.Type)
		if err != nil {
			return nil, err
		}
		kind = parsed
	}
	properties := resource.NewPropertyMapFromMap(r.Inputs)
	for _, name := range r.Secrets {
		key := resource.PropertyKey(name)
		properties[key] = resource.MakeSecret(properties[key])
	}
	dependencies := make(map[resource.PropertyKey][]resource.URN, len(properties))
	for name := range properties {
		dependencies[name] = []resource.URN{} // see request
	}
	if sdkproviders.IsProviderType(kind) && r.Version != "" {
		version, err := semver.Parse(r.Version)
		if err != nil {
			return nil, fmt.Errorf("the version of %s: %w", r.Name, err)
		}
		providers.SetProviderVersion(properties, &version)
	}
	made := pkgresource.NewGoal{
		Type:                    kind,
		Name:                    r.Name,
		Custom:                  r.Custom,
		Properties:              resource.FromResourcePropertyMap(properties),
		Dependencies:            r.dependencies(registered),
		PropertyDependencies:    dependencies,
		AdditionalSecretOutputs: []resource.PropertyKey{},
		Aliases:                 []resource.Alias{},
		CustomTimeouts:          &resource.CustomTimeouts{},
		ReplacementTrigger:      resource.FromResourcePropertyValue(resource.NewNullProperty()),
		ReplaceWith:             []resource.URN{},
	}
	if r.Retain {
		made.RetainOnDelete = &r.Retain
	}
	if r.Parent != noResource {
		made.Parent = registered[r.Parent].URN
	}
	if r.Provider != noResource {
		reference, err := reference(registered[r.Provider])
		if err != nil {
			return nil, err
		}
		made.Provider = reference
		made.CustomTimeouts.Delete = deletionSeconds
	}
	return made.Make(), nil
}

// deletionSeconds is deletionTimeout, as a state has it.
var deletionSeconds = func() float64 {
	duration, err := time.ParseDuration(deletionTimeout)
	if err != nil {
		panic(err)
	}
	return duration.Seconds()
}()

// dependencies returns what must exist before the resource.
func (r *declaredResource) dependencies(registered []*pkgresource.State) []resource.URN {
	found := make([]resource.URN, 0, len(r.After))
	seen := map[index]bool{}
	for _, other := range r.After {
		if !seen[other] {
			found, seen[other] = append(found, registered[other].URN), true
		}
	}
	return found
}

// reference returns the reference of a provider.
func reference(provider *pkgresource.State) (string, error) {
	id := provider.ID
	if id == "" {
		id = unknownID
	}
	made, err := sdkproviders.NewReference(provider.URN, id)
	if err != nil {
		return "", err
	}
	return made.String(), nil
}
