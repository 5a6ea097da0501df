package life

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Socket is a listener that takes over its path atomically, also from another engine.
type Socket struct {
	*net.UnixListener
	path, private string
	own           os.FileInfo
}

// Listen listens at a temporary path in the same folder. Only the owner may connect.
func Listen(path string) (*Socket, error) {
	private := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Remove(private); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("removing the socket %s of an earlier engine with the same process id: %w", private, err)
	}
	before := syscall.Umask(0o177)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	syscall.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("creating the socket: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	own, err := os.Lstat(private)
	if err != nil {
		return nil, fmt.Errorf("creating the socket: %w", err)
	}
	return &Socket{UnixListener: listener, path: path, private: private, own: own}, nil
}

// Publish takes over the path. Later connections reach this listener.
func (s *Socket) Publish() error {
	if err := os.Rename(s.private, s.path); err != nil {
		return fmt.Errorf("taking over the path of the socket: %w", err)
	}
	return nil
}

// Withdraw removes the path, unless another engine has taken it over. It holds the lock that starting engines hold. If
// an engine is starting, that engine will take over the path.
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
		_ = os.Remove(s.path) // if it remains, connections are refused, and clients start another engine
	}
}
