package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// InstallDependencies creates the program's virtual environment if it is missing and installs the dependencies of the
// program (`pulumi install`): with pip from requirements.txt, or with `uv sync`.
func (h *host) InstallDependencies(
	req *pulumirpc.InstallDependenciesRequest, server pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	opts, err := readOptions(req.GetInfo())
	if err != nil {
		return err
	}
	closer, stdout, stderr, err := rpcutil.MakeInstallDependenciesStreams(server, req.GetIsTerminal())
	if err != nil {
		return err
	}
	defer closer.Close() //nolint:errcheck // the streams end with the call
	for _, step := range installSteps(opts, req.GetInfo().GetProgramDirectory()) {
		if err := runStep(server.Context(), step, req.GetInfo().GetProgramDirectory(), stdout, stderr); err != nil {
			return err
		}
	}
	return nil
}

// installSteps returns the commands to run, in order; none if there is nothing to install.
func installSteps(opts options, program string) [][]string {
	if opts.toolchain == "uv" {
		return [][]string{{"uv", "sync"}}
	}
	interpreter := "python3"
	var steps [][]string
	if opts.virtualenv != "" {
		interpreter = filepath.Join(opts.virtualenv, "bin", "python")
		if !exists(interpreter) {
			steps = append(steps, []string{"python3", "-m", "venv", opts.virtualenv})
		}
	}
	if exists(filepath.Join(program, "requirements.txt")) {
		steps = append(steps, []string{interpreter, "-m", "pip", "install", "-r", "requirements.txt"})
	}
	return steps
}

func runStep(ctx context.Context, step []string, dir string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, step[0], step[1:]...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("installing the program's dependencies with %v: %w", step, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
