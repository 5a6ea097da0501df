package life

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Socket is a listener that becomes reachable under its path at once, in the place of another engine's.
type Socket struct {
	*net.UnixListener
	path, private string
	own           os.FileInfo
}

// Listen listens beside the path; only the owner may connect.
func Listen(path string) (*Socket, error) {
	private := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Remove(private); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("the socket %s, left by an engine of the same process id: %w", private, err)
	}
	before := syscall.Umask(0o177)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	syscall.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("the socket: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	own, err := os.Lstat(private)
	if err != nil {
		return nil, fmt.Errorf("the socket: %w", err)
	}
	return &Socket{UnixListener: listener, path: path, private: private, own: own}, nil
}

// Publish takes the path over. Who connects from then on comes here.
func (s *Socket) Publish() error {
	if err := os.Rename(s.private, s.path); err != nil {
		return fmt.Errorf("taking the socket's path over: %w", err)
	}
	return nil
}

// Withdraw removes the path, unless another engine has it. It does so under the lock that starting engines hold; while
// one is starting, the path is left to it.
func (s *Socket) Withdraw() {
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(s.path), "start.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.own) {
		_ = os.Remove(s.path) // a path that stays leads to a refused connection, which clients take for no engine
	}
}
