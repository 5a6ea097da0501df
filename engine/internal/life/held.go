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

// Lock is the note of a lock that an engine takes in a backend.
type Lock struct {
	Backend string    `json:"backend"` // URL
	Stack   string    `json:"stack"`   // fully qualified
	Since   time.Time `json:"since"`
}

// Held notes which locks this engine holds, in a file that is locked while the engine lives. An engine that finds the
// notes of a dead one removes exactly that one's locks from their backends: Pulumi itself knows no end of a lock.
type Held struct {
	folder string
	file   *os.File
	log    *slog.Logger
	remove func(ctx context.Context, lock Lock, owner int) error

	sweeping sync.Mutex
	failed   map[string]time.Time // notes that could not be dealt with, and when

	mutex sync.Mutex
	locks map[int]Lock
	next  int
}

// sweepAgain is after how long notes that could not be dealt with (a backend that is not reached, say) are tried again.
const sweepAgain = 5 * time.Minute

// NewHeld begins this engine's notes in a folder of the engine's folder, and removes the locks of dead engines.
func NewHeld(folder string, log *slog.Logger) (*Held, error) { return newHeld(folder, log, removeLock) }

func newHeld(
	folder string, log *slog.Logger, remove func(context.Context, Lock, int) error,
) (*Held, error) {
	h := &Held{folder: folder, log: log, remove: remove, locks: map[int]Lock{}, failed: map[string]time.Time{}}
	own := filepath.Join(folder, "held")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for notes of locks: %w", err)
	}
	h.Sweep()
	path := filepath.Join(own, fmt.Sprintf("%d.json", os.Getpid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the notes of locks: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("the notes of locks %s are another engine's: %w", path, err)
	}
	h.file = file
	return h, nil
}

// Taken notes that an operation is about to lock a stack, and returns what to call when the lock is gone. Before, it
// removes the locks of engines that have died since.
func (h *Held) Taken(backend, stack string) (release func()) {
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

// write replaces the notes. The new text comes before the cut, and the reader stops at the end of the first value, so
// that a death in between leaves something readable.
func (h *Held) write() {
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
		h.log.Error("a lock could not be noted", "error", err)
	}
}

// Close ends the notes of an engine that holds nothing any more. What it still holds is left for the next one.
func (h *Held) Close() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.locks) == 0 {
		_ = os.Remove(h.file.Name()) // notes that stay are found empty
	}
	_ = h.file.Close()
}

// Sweep removes the locks of dead engines: of this folder, and of those beside it, which are of other versions and
// settings of the same user.
func (h *Held) Sweep() {
	h.sweeping.Lock() // who comes second must find the work done, not under way
	defer h.sweeping.Unlock()
	notes, err := filepath.Glob(filepath.Join(filepath.Dir(h.folder), "*", "held", "*.json"))
	if err != nil {
		h.log.Error("looking for dead engines", "error", err)
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
			h.log.Error("removing the locks of a dead engine", "notes", path, "error", err)
		}
	}
}

func (h *Held) sweep(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // its engine lives
	}
	owner, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil {
		return fmt.Errorf("no engine's notes: %w", err)
	}
	var locks []Lock
	if stat, err := file.Stat(); err == nil && stat.Size() > 0 {
		if err := json.NewDecoder(file).Decode(&locks); err != nil {
			return fmt.Errorf("the notes are damaged: %w", err)
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
