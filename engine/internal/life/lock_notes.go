package life

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Lock describes a lock that an engine holds in a backend.
type Lock struct {
	Backend string    `json:"backend"` // URL
	Stack   string    `json:"stack"`   // fully qualified
	Since   time.Time `json:"since"`
}

// LockNotes is a file that lists the locks that this engine holds. The file itself is locked while the engine runs. An
// engine that finds the notes of a dead engine removes exactly the locks of that engine from their backends, because
// locks of Pulumi do not expire.
type LockNotes struct {
	folder string
	file   *os.File
	log    *slog.Logger
	remove func(ctx context.Context, lock Lock, owner int) error

	sweeping sync.Mutex
	failed   map[string]time.Time // notes that could not be processed → time of the attempt

	mutex sync.Mutex
	locks map[int]Lock
	next  int
}

// sweepAgain is the pause before another attempt to process notes, for example if a backend was unreachable.
const sweepAgain = 5 * time.Minute

// NewLockNotes creates the notes of this engine in a folder below the engine's folder, and removes the locks of dead
// engines.
func NewLockNotes(folder string, log *slog.Logger) (*LockNotes, error) {
	return newLockNotes(folder, log, removeLock)
}

func newLockNotes(
	folder string, log *slog.Logger, remove func(context.Context, Lock, int) error,
) (*LockNotes, error) {
	h := &LockNotes{folder: folder, log: log, remove: remove, locks: map[int]Lock{}, failed: map[string]time.Time{}}
	own := filepath.Join(folder, "held")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for lock notes: %w", err)
	}
	h.Sweep()
	path := filepath.Join(own, fmt.Sprintf("%d.json", os.Getpid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the lock notes: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another engine holds the lock notes %s: %w", path, err)
	}
	h.file = file
	return h, nil
}

// Add notes that an operation is about to lock a stack, and returns a function to call when the lock is released.
// Before that, it removes the locks of dead engines.
func (h *LockNotes) Add(backend, stack string) (release func()) {
	h.Sweep()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	id := h.next
	h.next++
	h.locks[id] = Lock{backend, stack, time.Now()}
	h.write()
	return sync.OnceFunc(func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		delete(h.locks, id)
		h.write()
	})
}

// write replaces the notes. It writes the new text before it truncates the file, and a reader stops after the first
// JSON value, so the notes can be read even if the engine dies in between.
func (h *LockNotes) write() {
	locks := []Lock{}
	for _, lock := range h.locks {
		locks = append(locks, lock)
	}
	content, err := json.Marshal(locks)
	if err == nil {
		_, err = h.file.WriteAt(content, 0)
	}
	if err == nil {
		err = h.file.Truncate(int64(len(content)))
	}
	if err != nil {
		h.log.Error("cannot write the lock notes", "error", err)
	}
}

// Close removes the notes if they are empty. Otherwise the next engine finds them and removes the locks.
func (h *LockNotes) Close() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.locks) == 0 {
		_ = os.Remove(h.file.Name()) // an empty file is harmless
	}
	_ = h.file.Close()
}

// Sweep removes the locks of dead engines of this folder and its sibling folders. Those are for other versions and
// settings of the same user.
func (h *LockNotes) Sweep() {
	h.sweeping.Lock() // a concurrent caller must wait until the sweep has ended
	defer h.sweeping.Unlock()
	notes, err := filepath.Glob(filepath.Join(filepath.Dir(h.folder), "*", "held", "*.json"))
	if err != nil {
		h.log.Error("cannot list the notes of dead engines", "error", err)
	}
	own := fmt.Sprintf("%d.json", os.Getpid())
	for _, path := range notes {
		if h.file != nil && filepath.Base(path) == own && filepath.Dir(filepath.Dir(path)) == h.folder {
			continue
		}
		if at, ok := h.failed[path]; ok && time.Since(at) < sweepAgain {
			continue
		}
		if err := h.sweep(path); err != nil {
			h.failed[path] = time.Now()
			h.log.Error("cannot remove the locks of a dead engine", "notes", path, "error", err)
		}
	}
}

func (h *LockNotes) sweep(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // its engine is running
	}
	owner, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil {
		return fmt.Errorf("the name contains no process id: %w", err)
	}
	var locks []Lock
	if stat, err := file.Stat(); err == nil && stat.Size() > 0 {
		if err := json.NewDecoder(file).Decode(&locks); err != nil {
			return fmt.Errorf("reading the notes: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, lock := range locks {
		if err := h.remove(ctx, lock, owner); err != nil {
			return err
		}
		h.log.Info("removed the lock of a dead engine", "stack", lock.Stack, "process", owner)
	}
	return os.Remove(path)
}
