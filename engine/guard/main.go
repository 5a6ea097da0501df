// Command reside-plugin-guard starts a plugin that the kernel kills when the engine dies.
//
// Pulumi's plugin loader cannot set a parent-death signal, but it runs the file at the plugin's path. The engine puts a
// link to this program there, with two more links in the same folder: "target" points to the plugin and "parent" to the
// engine's process id. The program requests the parent-death signal and replaces itself by the plugin with exec, which
// keeps the request.
//
// It is a separate program because the initialisation of the engine's packages takes 0.08 seconds, which would delay
// each start of a provider.
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
		fail("only reside-engine can start it: " + err.Error())
	}
	parent, err := os.Readlink(filepath.Join(folder, "parent"))
	if err != nil {
		fail("only reside-engine can start it: " + err.Error())
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGKILL), 0); errno != 0 {
		fail("setting the parent-death signal: " + errno.Error())
	}
	// If the engine died before the request, no signal is sent.
	if strconv.Itoa(os.Getppid()) != parent {
		fail("the engine (process " + parent + ") has died")
	}
	// Exec keeps the process id, which Pulumi's loader does not report, so the engine reads it here.
	if err := os.Symlink(strconv.Itoa(os.Getpid()), filepath.Join(folder, "process")); err != nil {
		fail("writing the process id: " + err.Error())
	}
	err = syscall.Exec(target, append([]string{target}, os.Args[1:]...), os.Environ())
	fail("starting " + target + ": " + err.Error())
}

func fail(why string) {
	os.Stderr.WriteString("reside-plugin-guard: " + why + "\n")
	os.Exit(1)
}
