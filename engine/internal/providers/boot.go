package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	utilenv "github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// booter starts plugins with Pulumi's own loader.
type booter struct {
	folder      string // for links to the guard
	guard       string
	environment map[string]string
}

// start starts a plugin through reside-plugin-guard, so that the kernel kills it when the engine dies.
//
// The kernel sends the parent-death signal when the thread that started the process ends, so the thread is kept until
// the process has ended.
func (b booter) start(required spec, hosts hostMaker, messages, status diag.Sink) (*running, error) {
	type outcome struct {
		started *running
		err     error
	}
	outcomes, exited := make(chan outcome, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started, err := b.open(required, hosts, messages, status)
		if err != nil {
			outcomes <- outcome{nil, err}
			return
		}
		started.exited = exited
		outcomes <- outcome{started, nil}
		awaitExit(started.pid)
		close(exited)
	}()
	got := <-outcomes
	return got.started, got.err
}

// open starts a plugin with a host and context of its own, which are independent of operations.
func (b booter) open(required spec, hosts hostMaker, messages, status diag.Sink) (_ *running, err error) {
	host, err := hosts(context.Background(), messages, status, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the plugin host of %s: %w", required.descriptor.Name, err)
	}
	undo := []func() error{host.Close}
	release := func() error { return runBackwards(undo) }
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	folder, err := b.guarded(required)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return os.RemoveAll(folder) })
	version := ""
	if required.descriptor.Version != nil {
		version = required.descriptor.Version.String()
	}
	plugins := &workspace.Plugins{Providers: []workspace.PluginOptions{
		{Name: required.descriptor.Name, Version: version, Path: folder},
	}}
	ctx, err := plugin.NewContextWithRoot(context.Background(), messages, status, host, required.folder, required.folder,
		nil, required.disableProviderPreview, nil, plugins, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the plugin context of %s: %w", required.descriptor.Name, err)
	}
	ctx.CloudCredentialEnv = required.credentials
	undo = append(undo, ctx.Close)

	options := map[string]any{}
	for key, value := range required.options {
		options[key] = value
	}
	started, err := plugin.NewProvider(host, ctx, required.descriptor, options, required.disableProviderPreview,
		required.config, "", joinEnv(required.env, b.added(required)))
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return closePlugin(started) })
	info, err := started.GetPluginInfo(ctx.Request())
	if err != nil {
		return nil, err
	}
	pid, err := readPid(folder)
	if err != nil {
		return nil, err
	}
	return &running{Provider: started, info: info, pid: pid, close: release, kill: func() { killGroup(pid) }}, nil
}

// sweep removes the folders that killed engines left.
func (b booter) sweep() error {
	parents, err := filepath.Glob(filepath.Join(b.folder, "*", "parent"))
	if err != nil {
		return err
	}
	for _, parent := range parents {
		pid, err := os.Readlink(parent)
		if err != nil {
			continue // its engine has just removed it
		}
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			if err := os.RemoveAll(filepath.Dir(parent)); err != nil {
				return err
			}
		}
	}
	return nil
}

// guarded creates the folder from which the plugin is started.
func (b booter) guarded(required spec) (string, error) {
	if err := os.MkdirAll(b.folder, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for plugins: %w", err)
	}
	folder, err := os.MkdirTemp(b.folder, required.descriptor.Name+"-")
	if err != nil {
		return "", fmt.Errorf("creating the folder for plugins: %w", err)
	}
	links := map[string]string{
		required.descriptor.File(): b.guard,
		"target":                   required.path,
		"parent":                   strconv.Itoa(os.Getpid()),
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			return "", errors.Join(fmt.Errorf("creating the folder for plugins: %w", err), os.RemoveAll(folder))
		}
	}
	return folder, nil
}

// added returns the variables that are added to the environment of the engine and of the stock host.
func (b booter) added(required spec) env.MapStore {
	values := env.MapStore{}
	for name, value := range b.environment {
		if _, set := os.LookupEnv(name); !set {
			values[name] = value
		}
	}
	if required.project != "" {
		maps.Copy(values, env.MapStore{"PULUMI_PROJECT": required.project})
	}
	return values
}

// joinEnv returns an environment in which the values of first have precedence.
func joinEnv(base env.Env, first env.MapStore) env.Env {
	return utilenv.NewEnv(utilenv.JoinStore(first, base.GetStore()))
}

// closePlugin ends a plugin as the stock host does. A plugin that has acknowledged Cancel ends without an error
// message.
func closePlugin(started plugin.Provider) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := started.SignalCancellation(ctx); err != nil {
		_ = err // it is closed even if it does not acknowledge
	}
	return started.Close()
}

func runBackwards(undo []func() error) error {
	var failures []error
	for i := len(undo) - 1; i >= 0; i-- {
		failures = append(failures, undo[i]())
	}
	return errors.Join(failures...)
}

// killGroup kills a plugin with all processes that it started. Pulumi makes each plugin the leader of a process group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// awaitExit waits for the end of a child process that other code reaps.
func awaitExit(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it was reaped
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
