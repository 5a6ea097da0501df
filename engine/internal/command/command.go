// Package command reads the arguments of a `pulumi` command line and says whether the engine serves it.
//
// The arguments are parsed by the CLI's own command definitions, which are never run: so a flag means here what it
// means there, and what the CLI would refuse is left to it to refuse. What is served is a list of commands and, for
// each, a list of flags; everything else is unserved, and nothing has happened when that is found.
package command

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Verb is a served command.
type Verb string

// The served commands.
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

// Command is a served command line.
type Command struct {
	Verb Verb
	// Args are the positional arguments.
	Args []string
	// Flags are all flags of the command, those of the root among them.
	Flags *pflag.FlagSet
}

// Unserved says why a command line is left to the stock CLI.
type Unserved struct{ Why string }

func (u Unserved) Error() string { return u.Why }

func unserved(format string, values ...any) error { return Unserved{fmt.Sprintf(format, values...)} }

// Bool returns a flag of this type. As with the other accessors, a flag that the command does not have is off or empty.
func (c Command) Bool(name string) bool { return value(c, name, c.Flags.GetBool) }

// String returns a flag of this type.
func (c Command) String(name string) string { return value(c, name, c.Flags.GetString) }

// Strings returns a flag of this type.
func (c Command) Strings(name string) []string { return value(c, name, c.Flags.GetStringArray) }

// Int returns a flag of this type.
func (c Command) Int(name string) int { return value(c, name, c.Flags.GetInt) }

// Int32 returns a flag of this type.
func (c Command) Int32(name string) int32 { return value(c, name, c.Flags.GetInt32) }

func value[T any](c Command, name string, get func(string) (T, error)) (found T) {
	if c.Flags.Lookup(name) == nil {
		return found
	}
	found, err := get(name)
	if err != nil {
		panic(err) // of another type: a mistake of the program
	}
	return found
}
