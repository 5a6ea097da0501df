package server

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// samePerson says whether the process at the other end belongs to the user that this one belongs to. The kernel tells:
// nobody can claim to be someone else. Root is no exception, so that an engine runs nobody's operations but its owner's.
func samePerson(connection *net.UnixConn) error {
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
		return fmt.Errorf("a process of user %d connected, this engine serves user %d only", credentials.Uid, owner)
	}
	return nil
}
