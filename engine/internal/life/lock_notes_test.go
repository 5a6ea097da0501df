package life

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// deadPid is the id of a process that has ended.
func deadPid(t *testing.T) int {
	t.Helper()
	ended := exec.Command("/bin/true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	return ended.Process.Pid
}

// backendLock writes a lock as Pulumi's file backend does.
func backendLock(t *testing.T, backend, stack, name string, pid int, host string, at time.Time) string {
	t.Helper()
	path := filepath.Join(backend, ".pulumi/locks", stack, name+".json")
	content := fmt.Sprintf(`{"pid":%d,"username":"u","hostname":%q,"timestamp":%q}`, pid, host, at.Format(time.RFC3339Nano))
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestTheLocksOfADeadEngineAreRemovedAndNoOthers(t *testing.T) {
	folder, backend := filepath.Join(t.TempDir(), "identity"), t.TempDir()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dead, now := deadPid(t), time.Now()
	gone := backendLock(t, backend, "organization/project/demo", "gone", dead, host, now)
	kept := map[string]string{
		"another process'": backendLock(t, backend, "organization/project/demo", "alive", os.Getppid(), host, now),
		"another host's":   backendLock(t, backend, "organization/project/demo", "far", dead, "elsewhere", now),
		"an older one":     backendLock(t, backend, "organization/project/demo", "old", dead, host, now.Add(-time.Hour)),
		"another stack's":  backendLock(t, backend, "organization/project/other", "other", dead, host, now),
	}
	notes := filepath.Join(folder, "held", fmt.Sprintf("%d.json", dead))
	write(t, notes, fmt.Sprintf(`[{"backend":"file://%s","stack":"organization/project/demo","since":%q}]{"cut off`,
		backend, now.Format(time.RFC3339Nano)))
	state := filepath.Join(backend, ".pulumi/stacks/project/demo.json")
	write(t, state, "{}")
	write(t, state+".attrs", "")
	write(t, state+".bak.attrs", "{}")
	write(t, state+".123.tmp", "{")
	own, err := NewLockNotes(folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if exists(state+".attrs") || exists(state+".123.tmp") || !exists(state) || !exists(state+".bak.attrs") {
		t.Error("incomplete files remain, or complete ones were removed")
	}
	if exists(gone) {
		t.Error("the lock of the dead engine remains")
	}
	for whose, path := range kept {
		if !exists(path) {
			t.Errorf("%s lock was removed", whose)
		}
	}
	if exists(notes) {
		t.Error("the notes of the dead engine remain")
	}
}

func TestTheLocksOfARunningEngineAreKept(t *testing.T) {
	base := t.TempDir()
	removed := 0
	remove := func(context.Context, Lock, int) error { removed++; return nil }
	one, err := newLockNotes(filepath.Join(base, "one"), quiet, remove)
	if err != nil {
		t.Fatal(err)
	}
	release := one.Add("file:///state", "demo")
	two, err := newLockNotes(filepath.Join(base, "two"), quiet, remove)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if removed != 0 {
		t.Error("the lock of a running engine was removed")
	}
	if err := one.file.Close(); err != nil { // as its death does
		t.Fatal(err)
	}
	two.Add("file:///state", "other")()
	if removed != 1 {
		t.Errorf("%d locks of the dead engine were removed before the next operation", removed)
	}
	release()
}

func TestAnUnreachableBackendIsNotTriedWithEachOperation(t *testing.T) {
	base := t.TempDir()
	tries := 0
	remove := func(context.Context, Lock, int) error { tries++; return errors.New("no route") }
	notes := filepath.Join(base, "other", "held", fmt.Sprintf("%d.json", deadPid(t)))
	write(t, notes, `[{"backend":"s3://far","stack":"demo","since":"2026-01-01T00:00:00Z"}]`)
	own, err := newLockNotes(filepath.Join(base, "one"), quiet, remove)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	own.Add("file:///state", "demo")()
	if tries != 1 || !exists(notes) {
		t.Errorf("it was tried %d times; the notes exist: %v", tries, exists(notes))
	}
}

func TestAnEngineWithoutLocksLeavesNoNotes(t *testing.T) {
	folder := t.TempDir()
	own, err := NewLockNotes(folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	own.Add("file:///state", "demo")()
	own.Close()
	remaining, err := os.ReadDir(filepath.Join(folder, "held"))
	if err != nil || len(remaining) != 0 {
		t.Errorf("remaining: %v, %v", remaining, err)
	}
}

func TestALockOfANewProcessWithTheSameIDIsKept(t *testing.T) {
	now := time.Now()
	since := now.Add(-time.Hour)
	started := func(at time.Time) func(int) (time.Time, bool) {
		return func(int) (time.Time, bool) { return at, true }
	}
	lock := lockFile{Pid: 7, Hostname: "h", Timestamp: now}
	if lock.dead(7, "h", since, started(now.Add(-time.Minute))) {
		t.Error("the lock is younger than the new process")
	}
	if !lock.dead(7, "h", since, started(now.Add(time.Minute))) {
		t.Error("the lock is older than the new process")
	}
}
