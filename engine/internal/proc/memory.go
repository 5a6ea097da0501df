// Package proc reads information about processes from /proc.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Resident returns the resident memory of a process in bytes, or 0 if it has ended. Pages that several processes share
// are counted in full.
func Resident(pid int) int64 {
	fields := pages(pid)
	if len(fields) < 2 {
		return 0
	}
	return fields[1] * int64(os.Getpagesize())
}

// Meter measures the memory of processes often: their proportional set sizes, in which a page that n processes share
// counts as an n-th of a page, so that the sum over processes is their total memory.
//
// For that, the kernel looks at each page of a process, which takes up to 40 ms. So the meter asks for it now and then.
// In between it takes what has changed from the number of private pages, which the kernel counts. It is safe for
// concurrent use.
type Meter struct {
	mutex sync.Mutex
	known map[int]measurement
}

// measurement is what was measured of a process: the part of its memory that it may share.
type measurement struct {
	shared int64
	at     time.Time
}

// validity is how long a measurement of shared memory is used. Its largest part is the code that has run.
const validity = 10 * time.Second

// Proportional returns the memory of a process in bytes, or 0 if it has ended.
func (m *Meter) Proportional(pid int) int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	private := private(pid)
	found, there := m.known[pid]
	if !there || time.Since(found.at) > validity {
		found = measurement{proportional(pid) - private, time.Now()}
		if m.known == nil {
			m.known = map[int]measurement{}
		}
		m.known[pid] = found
		m.forget()
	}
	if private == 0 {
		return 0
	}
	return private + found.shared
}

// forget drops what is known about processes that nobody asks for any more.
func (m *Meter) forget() {
	for pid, found := range m.known {
		if time.Since(found.at) > 6*validity {
			delete(m.known, pid)
		}
	}
}

// private returns the memory that a process does not share with its file or other processes, or 0 if it has ended.
func private(pid int) int64 {
	fields := pages(pid)
	if len(fields) < 3 {
		return 0
	}
	return (fields[1] - fields[2]) * int64(os.Getpagesize())
}

// pages returns the numbers in statm, see proc(5): size, resident, shared, …
func pages(pid int) []int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return nil
	}
	var numbers []int64
	for _, field := range strings.Fields(string(content)) {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// proportional returns the proportional set size of a process in bytes. If the kernel does not provide the value, the
// resident memory is returned.
func proportional(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Resident(pid)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return Resident(pid)
}
