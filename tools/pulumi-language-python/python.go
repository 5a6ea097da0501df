package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// killDelay is how long a cancelled process may take to end before it is killed.
const killDelay = 5 * time.Second

// python is the interpreter of one program, with the environment that its processes get.
type python struct {
	executable string
	virtualenv string // absolute path; empty: the Python of the machine
}

// options are the supported members of `runtime.options` in Pulumi.yaml or PulumiPolicy.yaml.
type options struct {
	virtualenv string // folder of the virtual environment, relative to the project's root
	toolchain  string // pip (the default) or uv; the default virtual environment of uv is .venv
}

func readOptions(info *pulumirpc.ProgramInfo) (options, error) {
	opts := options{toolchain: "pip"}
	for name, value := range info.GetOptions().GetFields() {
		switch name {
		case "virtualenv":
			opts.virtualenv = value.GetStringValue()
		case "toolchain":
			opts.toolchain = strings.ToLower(value.GetStringValue())
		}
	}
	switch opts.toolchain {
	case "pip":
	case "uv":
		if opts.virtualenv == "" {
			opts.virtualenv = ".venv"
		}
	default:
		return opts, fmt.Errorf("runtime option toolchain is %q: this host knows pip and uv", opts.toolchain)
	}
	if opts.virtualenv != "" && !filepath.IsAbs(opts.virtualenv) {
		opts.virtualenv = filepath.Join(info.GetRootDirectory(), opts.virtualenv)
	}
	return opts, nil
}

// findPython returns the interpreter of the configured virtual environment, otherwise PULUMI_PYTHON_CMD or python3.
func findPython(info *pulumirpc.ProgramInfo) (*python, error) {
	opts, err := readOptions(info)
	if err != nil {
		return nil, err
	}
	if opts.virtualenv != "" {
		executable := filepath.Join(opts.virtualenv, "bin", "python")
		if _, err := os.Stat(executable); err != nil {
			return nil, fmt.Errorf("no Python at %s: make the virtual environment there, "+
				"or correct the runtime option virtualenv (%w)", executable, err)
		}
		return &python{executable: executable, virtualenv: opts.virtualenv}, nil
	}
	name := os.Getenv("PULUMI_PYTHON_CMD")
	if name == "" {
		name = "python3"
	}
	executable, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not on PATH: install Python, or name a virtual environment "+
			"in the runtime option virtualenv (%w)", name, err)
	}
	return &python{executable: executable}, nil
}

// command prepares a run of the interpreter in a process group of its own, which is ended when ctx is cancelled.
func (p *python) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.executable, args...)
	cmd.Env = p.environment(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	return cmd
}

// environment puts the virtual environment first on PATH, as activating it does.
func (p *python) environment(base []string) []string {
	if p.virtualenv == "" {
		return base
	}
	bin := filepath.Join(p.virtualenv, "bin")
	path := os.Getenv("PATH")
	env := make([]string, 0, len(base)+2)
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "PYTHONHOME", "VIRTUAL_ENV":
		case "PATH":
			path = value
		default:
			env = append(env, entry)
		}
	}
	return append(env, "VIRTUAL_ENV="+p.virtualenv, "PATH="+bin+string(os.PathListSeparator)+path)
}

// withStderr adds the standard error of a failed process.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
