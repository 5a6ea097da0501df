package operation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/autonaming"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"

	"reside.dev/engine/internal/command"
)

// engineOptions returns the engine's options that all four operations have.
func (u *update) engineOptions() engine.UpdateOptions {
	return engine.UpdateOptions{
		ParallelDiff:              env.ParallelDiff.Value(),
		Parallel:                  u.command.Int32("parallel"),
		Debug:                     u.command.Bool("debug"),
		UseLegacyDiff:             env.EnableLegacyDiff.Value(),
		UseLegacyRefreshDiff:      env.EnableLegacyRefreshDiff.Value(),
		DisableProviderPreview:    env.DisableProviderPreview.Value(),
		DisableResourceReferences: env.DisableResourceReferences.Value(),
		DisableOutputValues:       env.DisableOutputValues.Value(),
		Targets:                   deploy.NewUrnTargets(u.command.Strings("target")),
		Excludes:                  deploy.NewUrnTargets(u.command.Strings("exclude")),
		TargetDependents:          u.command.Bool("target-dependents"),
		ExcludeDependents:         u.command.Bool("exclude-dependents"),
		Experimental:              env.Experimental.Value(),
		SkipPluginPreInstall:      u.command.Bool("skip-plugin-pre-install"),
	}
}

// programOptions returns the engine's options of operations that always run the program.
func (u *update) programOptions(generatePlan bool) (engine.UpdateOptions, error) {
	options := u.engineOptions()
	refresh, err := u.refreshes()
	if err != nil {
		return options, err
	}
	naming := autonaming.StackContext{
		Organization: "organization",
		Project:      u.project.Name.String(),
		Stack:        u.stack.Ref().Name().String(),
	}
	autonamer, err := autonaming.ParseAutonamingConfig(naming, u.config.Config, u.secrets.Decrypter())
	if err != nil {
		return options, fmt.Errorf("getting autonaming config: %w", err)
	}
	targets, replaces := u.command.Strings("target"), u.command.Strings("replace")
	for _, both := range u.command.Strings("target-replace") {
		targets, replaces = append(targets, both), append(replaces, both)
	}
	options.Refresh = refresh
	options.RefreshProgram = u.command.Bool("run-program")
	options.Targets = deploy.NewUrnTargets(targets)
	options.ReplaceTargets = deploy.NewUrnTargets(replaces)
	options.ShowSecrets = u.command.Bool("show-secrets")
	options.IgnoreProtect = u.command.Bool("ignore-protect")
	options.GeneratePlan = generatePlan
	options.Autonamer = autonamer
	return options, nil
}

// refreshes reports whether to refresh the state first, according to the flag or else to the project.
func (u *update) refreshes() (bool, error) {
	if flag := u.command.String("refresh"); flag != "" {
		refresh, err := strconv.ParseBool(flag)
		if err != nil {
			return false, errors.New("unable to determine value for --refresh")
		}
		return refresh, nil
	}
	return u.project.Options != nil && u.project.Options.Refresh == "always", nil
}

// display returns the display's options.
func (c *call) display() display.Options {
	on := c.command.Bool
	shown := display.DisplayProgress
	if on("diff") {
		shown = display.DisplayDiff
	}
	return display.Options{
		Color:                  c.color,
		ShowConfig:             on("show-config"),
		ShowPolicyRemediations: on("show-policy-remediations"),
		ShowReplacementSteps:   on("show-replacement-steps"),
		ShowSameResources:      on("show-sames"),
		ShowReads:              on("show-reads"),
		ShowURNs:               on("urns"),
		ShowSecrets:            on("show-secrets"),
		SuppressOutputs:        on("suppress-outputs"),
		SuppressProgress:       on("suppress-progress"),
		SuppressPermalink:      true,
		TruncateOutput:         c.command.Verb != command.Refresh && !on("show-full-output"),
		Type:                   shown,
		EventLogPath:           c.eventLog(),
		Debug:                  on("debug"),
		Stdout:                 &dots{color: c.color, writer: c.stdout},
		Stderr:                 c.stderr,
	}
}

// eventLog returns the address or file to which events are written.
func (c *call) eventLog() string {
	given := c.command.String("event-log")
	if strings.HasPrefix(given, "tcp://") {
		return given
	}
	return c.folder.resolve(given)
}
