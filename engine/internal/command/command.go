// Package command parses the arguments of a `pulumi` command line and decides whether the engine serves it.
//
// The CLI's own command definitions parse the arguments, without being run. So each flag has the meaning that it has in
// the CLI. A list of commands, with a list of flags for each, is served. Everything else is unserved, including invalid
// arguments, so that the CLI reports the error. The decision is made before anything is done.
package command

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Verb is the name of a command that the engine serves.
type Verb string

// The commands that the engine serves.
const (
	Up      Verb = "up"
	Preview Verb = "preview"
	Refresh Verb = "refresh"
	Destroy Verb = "destroy"
	Cancel  Verb = "cancel"
	Version Verb = "version"
	Select  Verb = "stack select"
	New     Verb = "stack new"
	Output  Verb = "stack output"
	History Verb = "stack history"
	Export  Verb = "stack export"
	Import  Verb = "stack import"
	Remove  Verb = "stack remove"
)

// Command is a command line that the engine serves.
type Command struct {
	Verb Verb
	// Args are the positional arguments.
	Args []string
	// Flags are all flags of the command, including those of the root.
	Flags *pflag.FlagSet
}

// Unserved is the reason why the engine does not serve a command line; the stock CLI runs it.
type Unserved struct{ Why string }

func (u Unserved) Error() string { return u.Why }

func unserved(format string, values ...any) error { return Unserved{fmt.Sprintf(format, values...)} }

// Bool returns the value of a flag of this type. Like the other accessors, it returns the zero value if the command
// does not have the flag.
func (c Command) Bool(name string) bool { return value(c, name, c.Flags.GetBool) }

// String returns the value of a flag of this type.
func (c Command) String(name string) string { return value(c, name, c.Flags.GetString) }

// Strings returns the value of a flag of this type.
func (c Command) Strings(name string) []string { return value(c, name, c.Flags.GetStringArray) }

// Int returns the value of a flag of this type.
func (c Command) Int(name string) int { return value(c, name, c.Flags.GetInt) }

// Int32 returns the value of a flag of this type.
func (c Command) Int32(name string) int32 { return value(c, name, c.Flags.GetInt32) }

func value[T any](c Command, name string, get func(string) (T, error)) (found T) {
	if c.Flags.Lookup(name) == nil {
		return found
	}
	found, err := get(name)
	if err != nil {
		panic(err) // a bug: the flag has another type
	}
	return found
}
