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

// largestLog is the size in bytes from which the log is truncated.
const largestLog = 1 << 20

// Successor starts another engine with the same arguments, and returns when it has taken over the socket. The successor
// runs the same binary, even if its file was replaced. It inherits the environment, the working folder, the log, and
// standard input, which is the pipe of the owner.
func Successor(ctx context.Context, arguments []string) error {
	ready, signal, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe: %w", err)
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
	go func() { _ = command.Wait() }() // reaps the process; the pipe reports whether it is ready
	reported := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(ready).ReadString('\n')
		reported <- err
	}()
	select {
	case err = <-reported:
		if err != nil {
			err = errors.New("the successor ended before it was ready; see its messages above")
		}
	case <-ctx.Done():
		err = errors.New("the successor was not ready in time")
	}
	if err != nil {
		_ = command.Process.Kill()
	}
	return err
}

// withReadyFd replaces the argument --ready-fd by 3, which is the number of the first extra file.
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

// Ready reports to the process that started this engine that the engine accepts connections.
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

// BoundLog truncates the log if it is too long.
func BoundLog() {
	// os.NewFile(2, …) would close descriptor 2 when it is garbage-collected, and the next connection would get number 2
	if stat, err := os.Stderr.Stat(); err == nil && stat.Mode().IsRegular() && stat.Size() > largestLog {
		_ = os.Stderr.Truncate(0) // if it fails, the log remains long
	}
}

// backoff returns the pause after a number of consecutive failed starts of a successor.
func backoff(failures int) time.Duration {
	return min(time.Minute<<min(failures, 6), time.Hour)
}
