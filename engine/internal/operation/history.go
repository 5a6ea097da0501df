package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/cmd"
	cmdstack "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/ui"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// entry is one update in the history of a stack, as the CLI writes it.
type entry struct {
	Version         int                     `json:"version"`
	Kind            string                  `json:"kind"`
	StartTime       string                  `json:"startTime"`
	Message         string                  `json:"message"`
	Environment     map[string]string       `json:"environment"`
	Config          map[string]entrySetting `json:"config"`
	Result          string                  `json:"result,omitempty"`
	EndTime         *string                 `json:"endTime,omitempty"`
	ResourceChanges *map[string]int         `json:"resourceChanges,omitempty"`
}

type entrySetting struct {
	Value       *string `json:"value,omitempty"`
	ObjectValue any     `json:"objectValue,omitempty"`
	Secret      bool    `json:"secret"`
}

// undecipherable replaces a secret that was encrypted with another key.
const undecipherable = "ERROR_UNABLE_TO_DECRYPT"

// history writes the history of a stack.
func (c *call) history(ctx context.Context) error {
	target, err := c.requireStack(ctx, c.command.String("stack"), cmdstack.LoadOnly)
	if err != nil {
		return err
	}
	updates, err := target.Backend().GetHistory(
		ctx, target.Ref(), c.command.Int("page-size"), c.command.Int("page"))
	if err != nil {
		return fmt.Errorf("getting history: %w", err)
	}
	var decrypter config.Decrypter
	if c.command.Bool("show-secrets") {
		if decrypter, err = c.decrypter(ctx, target); err != nil {
			return err
		}
	}
	entries := make([]entry, len(updates))
	for index, update := range updates {
		if entries[index], err = newEntry(update, decrypter); err != nil {
			return err
		}
	}
	return ui.FprintJSON(c.stdout, entries)
}

// decrypter returns the decrypter for the secrets in the settings of a stack.
func (c *call) decrypter(ctx context.Context, target backend.Stack) (config.Decrypter, error) {
	project, _, err := c.folder.ReadProject("")
	if err != nil {
		return nil, fmt.Errorf("loading project: %w", err)
	}
	file, err := c.configuration(target)
	if err != nil {
		return nil, fmt.Errorf("getting stack config: %w", err)
	}
	settings, err := workspace.LoadProjectStack(c.sink, project, file)
	if err != nil {
		return nil, fmt.Errorf("getting stack config: %w", err)
	}
	loader := cmdstack.NewStackSecretsManagerLoaderFromEnv()
	decrypter, change, err := loader.GetDecrypter(ctx, target, settings)
	if err != nil {
		return nil, fmt.Errorf("decrypting secrets: %w", err)
	}
	if change != cmdstack.SecretsManagerUnchanged {
		if err := settings.Save(file); err != nil {
			return nil, fmt.Errorf("saving stack config: %w", err)
		}
	}
	return decrypter, nil
}

func newEntry(update backend.UpdateInfo, decrypter config.Decrypter) (entry, error) {
	made := entry{
		Version:     update.Version,
		Kind:        string(update.Kind),
		StartTime:   cmd.FormatTime(time.Unix(update.StartTime, 0).UTC()),
		Message:     update.Message,
		Environment: update.Environment,
		Config:      map[string]entrySetting{},
		Result:      string(update.Result),
	}
	for key, value := range update.Config {
		setting, err := newSetting(value, decrypter)
		if err != nil {
			return entry{}, err
		}
		made.Config[key.String()] = setting
	}
	if update.Result != backend.InProgressResult {
		end := cmd.FormatTime(time.Unix(update.EndTime, 0).UTC())
		changes := map[string]int{}
		for operation, count := range update.ResourceChanges {
			changes[string(operation)] = count
		}
		made.EndTime, made.ResourceChanges = &end, &changes
	}
	return made, nil
}

// newSetting decrypts a setting if there is a decrypter.
func newSetting(value config.Value, decrypter config.Decrypter) (entrySetting, error) {
	setting := entrySetting{Secret: value.Secure()}
	if setting.Secret && decrypter == nil {
		return setting, nil
	}
	text, err := value.Value(decrypter)
	if err != nil {
		text = undecipherable
		setting.Value = &text
		return setting, nil // the rest of the history can be read
	}
	setting.Value = &text
	if text != "" && value.Object() {
		if err := json.Unmarshal([]byte(text), &setting.ObjectValue); err != nil {
			return setting, err
		}
	}
	return setting, nil
}
