package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// shownToUser is the exit code of the SDK's runner if it has reported the error itself.
const shownToUser = 32

// Run executes a Pulumi program with the SDK's runner, pulumi-language-python-exec.
func (h *host) Run(ctx context.Context, req *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	runner, err := findRunner()
	if err != nil {
		return nil, err
	}
	python, err := findPython(req.GetInfo())
	if err != nil {
		return nil, err
	}
	config, err := configEnvironment(req)
	if err != nil {
		return nil, err
	}
	cmd := python.command(ctx, append([]string{"-u", runner}, h.runArguments(req)...)...)
	cmd.Dir = req.GetPwd()
	cmd.Env = append(cmd.Env, config...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // the engine shows them
	return runResponse(ctx, cmd.Run()), nil
}

// runArguments returns the runner's flags, the program, and the program's own arguments.
func (h *host) runArguments(req *pulumirpc.RunRequest) []string {
	info := req.GetInfo()
	args := []string{
		"--monitor", req.GetMonitorAddress(),
		"--engine", h.engine,
		"--project", req.GetProject(),
		"--stack", req.GetStack(),
		"--organization", req.GetOrganization(),
		"--root_directory", info.GetRootDirectory(),
		"--pwd", req.GetPwd(),
		"--parallel", strconv.Itoa(int(req.GetParallel())),
	}
	if req.GetDryRun() {
		args = append(args, "--dry_run", "true")
	}
	args = append(args, filepath.Join(info.GetProgramDirectory(), info.GetEntryPoint()))
	return append(args, req.GetArgs()...)
}

// configEnvironment returns the stack's configuration for the runner; absent values are {} and [], never null.
func configEnvironment(req *pulumirpc.RunRequest) ([]string, error) {
	config, keys := req.GetConfig(), req.GetConfigSecretKeys()
	if config == nil {
		config = map[string]string{}
	}
	if keys == nil {
		keys = []string{}
	}
	configJSON, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	keysJSON, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("encoding the names of secret configuration: %w", err)
	}
	return []string{"PULUMI_CONFIG=" + string(configJSON), "PULUMI_CONFIG_SECRET_KEYS=" + string(keysJSON)}, nil
}

// runResponse translates the result of the runner into a response to the engine.
func runResponse(ctx context.Context, err error) *pulumirpc.RunResponse {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}
	case ctx.Err() != nil:
		return &pulumirpc.RunResponse{Error: "the program was cancelled"}
	case errors.As(err, &exit) && exit.ExitCode() == shownToUser:
		return &pulumirpc.RunResponse{Bail: true}
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended with exit code %d", exit.ExitCode())}
	default:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program could not be run: %v", err)}
	}
}

// findRunner looks for the SDK's runner beside this binary, then on PATH.
func findRunner() (string, error) {
	const name = "pulumi-language-python-exec"
	self, err := os.Executable()
	if err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			self = resolved
		}
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s lies neither beside pulumi-language-python nor on PATH: "+
			"run tools/build.py again (%w)", name, err)
	}
	return path, nil
}

// RunPlugin executes a plugin that is written in Python: a policy pack (kind analyzer), or a provider.
func (h *host) RunPlugin(req *pulumirpc.RunPluginRequest, server pulumirpc.LanguageRuntime_RunPluginServer) error {
	python, err := findPython(req.GetInfo())
	if err != nil {
		return err
	}
	closer, stdout, stderr, err := rpcutil.MakeRunPluginStreams(server, false)
	if err != nil {
		return err
	}
	defer closer.Close() //nolint:errcheck // nothing is buffered without a terminal

	cmd := python.command(server.Context(), pluginArguments(req)...)
	cmd.Dir = req.GetPwd()
	if req.GetKind() == analyzer {
		cmd.Dir = req.GetInfo().GetProgramDirectory() // a pack finds its own modules, whatever project it checks
	}
	cmd.Env = python.environment(req.GetEnv())
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return sendExit(server, cmd.Run())
}

// analyzer is the kind under which the engine runs policy packs.
const analyzer = "analyzer"

// pluginArguments returns the arguments that run a policy pack with pulumi.policy, or the folder's __main__.py.
func pluginArguments(req *pulumirpc.RunPluginRequest) []string {
	program := req.GetInfo().GetProgramDirectory()
	if req.GetKind() == analyzer {
		args := append([]string{"-u", "-m", "pulumi.policy"}, req.GetArgs()...)
		return append(args, program)
	}
	entry := filepath.Join(program, req.GetInfo().GetEntryPoint())
	return append([]string{"-u", entry}, req.GetArgs()...)
}

// sendExit reports a plugin's exit code as the last message of its stream.
func sendExit(server pulumirpc.LanguageRuntime_RunPluginServer, err error) error {
	var exit *exec.ExitError
	code := 0
	switch {
	case server.Context().Err() != nil:
		return nil // the engine ended the plugin and no longer listens
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		return fmt.Errorf("running the plugin: %w", err)
	}
	return server.Send(&pulumirpc.RunPluginResponse{
		Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(code)},
	})
}
