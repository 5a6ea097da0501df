// Command reside-plugin-guard starts a plugin that dies with the engine.
//
// Pulumi's plugin loader gives no way to set a parent-death signal, but it runs whatever lies at the plugin's path. The
// engine puts a link to this program there, with two links beside it: "target" names the real plugin and "parent" the
// engine's process id. The program asks the kernel to kill it with its parent, and becomes the plugin: the request
// survives exec, so nothing remains of this program but the request.
//
// It is a program of its own because the engine's package initialisation costs 0.08 seconds, which each start of a
// provider would pay.
package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// prSetPdeathsig is PR_SET_PDEATHSIG of prctl(2).
const prSetPdeathsig = 1

func main() {
	folder := filepath.Dir(os.Args[0])
	target, err := os.Readlink(filepath.Join(folder, "target"))
	if err != nil {
		fail("it is started by reside-engine only: " + err.Error())
	}
	parent, err := os.Readlink(filepath.Join(folder, "parent"))
	if err != nil {
		fail("it is started by reside-engine only: " + err.Error())
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL), 0); errno != 0 {
		fail("the kernel refuses a parent-death signal: " + errno.Error())
	}
	// The engine may have died before the request: then nobody would send the signal.
	if strconv.Itoa(os.Getppid()) != parent {
		fail("the engine (process " + parent + ") is gone")
	}
	// Exec keeps the process id, so the engine can read here what Pulumi's loader doesn't tell it.
	if err := os.Symlink(strconv.Itoa(os.Getpid()), filepath.Join(folder, "process")); err != nil {
		fail("cannot tell its process id: " + err.Error())
	}
	err = syscall.Exec(target, append([]string{target}, os.Args[1:]...), os.Environ())
	fail("cannot start " + target + ": " + err.Error())
}

func fail(why string) {
	os.Stderr.WriteString("reside-plugin-guard: " + why + "\n")
	os.Exit(1)
}
