package life

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// largestLog is the size, in bytes, from which on a successor begins the log anew.
const largestLog = 1 << 20

// Successor starts another engine like this one, from the very same program even if its file was replaced, and returns
// when it has taken the socket over. It inherits the environment, the working folder, the log, and standard input,
// which is the pipe of an owner.
func Successor(ctx context.Context, arguments []string) error {
	ready, signal, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("the pipe to a successor: %w", err)
	}
	defer func() { _ = ready.Close() }()
	command := exec.Command(fmt.Sprintf("/proc/%d/exe", os.Getpid()))
	command.Args = withReadyFd(arguments)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stderr, os.Stderr
	command.ExtraFiles = []*os.File{signal}
	err = command.Start()
	_ = signal.Close()
	if err != nil {
		return fmt.Errorf("starting a successor: %w", err)
	}
	go func() { _ = command.Wait() }() // so that one that ends before us is no zombie; the pipe tells what matters
	said := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(ready).ReadString('\n')
		said <- err
	}()
	select {
	case err = <-said:
		if err != nil {
			err = errors.New("the successor ended before it was ready; see its words above")
		}
	case <-ctx.Done():
		err = errors.New("the successor did not get ready in time")
	}
	if err != nil {
		_ = command.Process.Kill()
	}
	return err
}

// withReadyFd says in the arguments where to report to: descriptor 3 is the first that is handed down.
func withReadyFd(arguments []string) []string {
	changed := []string{}
	for i := 0; i < len(arguments); i++ {
		if arguments[i] == "--ready-fd" {
			i++
			continue
		}
		changed = append(changed, arguments[i])
	}
	return append(changed, "--ready-fd", "3")
}

// Ready tells who started this engine that it listens.
func Ready(descriptor int) error {
	if descriptor < 0 {
		return nil
	}
	pipe := os.NewFile(uintptr(descriptor), "ready")
	if pipe == nil {
		return fmt.Errorf("--ready-fd %d is not open", descriptor)
	}
	_, err := pipe.WriteString("ready " + strconv.Itoa(os.Getpid()) + "\n")
	return errors.Join(err, pipe.Close())
}

// BoundLog begins the log anew if it has grown too long.
func BoundLog() {
	// Not os.NewFile(2, …): such a file closes its descriptor when it is collected, and the next connection gets number 2
	if stat, err := os.Stderr.Stat(); err == nil && stat.Mode().IsRegular() && stat.Size() > largestLog {
		_ = os.Stderr.Truncate(0) // a log that cannot be cut stays as it is
	}
}

// backoff is how long to wait after some failures in a row to start a successor.
func backoff(failures int) time.Duration {
	return min(time.Minute<<min(failures, 6), time.Hour)
}
