package life

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestASocketIsReachableOnlyWhenPublishedAndOnlyByItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	socket, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if exists(path) {
		t.Error("it is reachable before it is published")
	}
	if err := socket.Publish(); err != nil {
		t.Fatal(err)
	}
	stat, err := os.Stat(path)
	if err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", stat.Mode(), err)
	}
	socket.Withdraw()
	if exists(path) {
		t.Error("it was not withdrawn")
	}
}

func TestASuccessorsSocketIsNotWithdrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if err := old.Publish(); err != nil {
		t.Fatal(err)
	}
	next, err := net.Listen("unix", path+".next")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
	old.Withdraw()
	if !exists(path) {
		t.Error("the socket of the successor was removed")
	}
}

func TestASuccessorReportsToItsOwnDescriptor(t *testing.T) {
	got := withReadyFd([]string{"reside-engine", "serve", "--ready-fd", "7", "--socket", "s"})
	want := []string{"reside-engine", "serve", "--socket", "s", "--ready-fd", "3"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
