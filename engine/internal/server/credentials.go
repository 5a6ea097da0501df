package server

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkUser returns an error unless the process at the other end belongs to the user of this process. The kernel
// reports the user, so it cannot be forged. Root is refused, too: an engine runs operations of its owner only.
func checkUser(connection *net.UnixConn) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return fmt.Errorf("the peer's credentials: %w", err)
	}
	var credentials *syscall.Ucred
	var failure error
	if err := raw.Control(func(descriptor uintptr) {
		credentials, failure = syscall.GetsockoptUcred(int(descriptor), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return fmt.Errorf("the peer's credentials: %w", err)
	}
	if failure != nil {
		return fmt.Errorf("the peer's credentials: %w", failure)
	}
	if owner := os.Getuid(); int(credentials.Uid) != owner {
		return fmt.Errorf("a process of user %d connected, but this engine serves user %d only", credentials.Uid, owner)
	}
	return nil
}
