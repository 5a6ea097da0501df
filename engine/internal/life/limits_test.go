package life

import (
	"strings"
	"testing"
	"time"
)

func TestALimitIsDueFromItsValueOn(t *testing.T) {
	limits := Limits{Operations: 60, Memory: 100 << 20, Age: time.Hour}
	for want, facts := range map[string]Facts{ // of engines that are idle
		"":                              {Operations: 59, Memory: 99 << 20, Age: 59 * time.Minute},
		"it has served 60 operations":   {Operations: 60},
		"it and its providers use 100":  {Memory: 100 << 20, Operations: 50},
		"it is 1h0m0s old":              {Age: time.Hour},
		"it has served 1000 operations": {Operations: 1000, Memory: 1 << 40, Age: 1000 * time.Hour},
	} {
		facts.IdleSince = time.Second
		if got := limits.Due(facts); !strings.HasPrefix(got, want) || (want == "" && got != "") {
			t.Errorf("%+v: %q, not %q", facts, got, want)
		}
	}
	if got := limits.Due(Facts{Memory: 1 << 40, Operations: 49}); got != "" {
		t.Errorf("an engine with few operations: %q", got)
	}
	if got := (Limits{}).Due(Facts{Operations: 1 << 30, Memory: 1 << 50, Age: 1 << 60}); got != "" {
		t.Errorf("without limits: %q", got)
	}
}

func TestAnEngineDoesNotHandOverInTheMiddleOfItsWorkAtOnce(t *testing.T) {
	limits := Limits{Operations: 600, Memory: 96 << 20, Age: time.Hour}
	for _, facts := range []Facts{
		{Running: 1, Operations: 60, Memory: 107 << 20},
		{Operations: 60, Memory: 107 << 20, IdleSince: time.Second - 1}, // between two commands
	} {
		if got := limits.Due(facts); got != "" {
			t.Errorf("%+v: %q", facts, got)
		}
		facts.Running, facts.IdleSince = 0, time.Second
		if limits.Due(facts) == "" {
			t.Errorf("%+v: it goes on although no command runs", facts)
		}
	}
	if limits.Due(Facts{Running: 1, Operations: 60, Memory: 108 << 20}) == "" {
		t.Error("it goes on for ever")
	}
}

func TestAnEngineThatRunsACommandIsNotIdle(t *testing.T) {
	limits := Limits{Idle: time.Minute}
	if limits.Expired(Facts{Running: 1, IdleSince: time.Hour}) || limits.Expired(Facts{IdleSince: 59 * time.Second}) {
		t.Error("it ends too early")
	}
	if !limits.Expired(Facts{IdleSince: time.Minute}) {
		t.Error("it does not end")
	}
	if (Limits{}).Expired(Facts{IdleSince: time.Hour}) {
		t.Error("it ends without a limit")
	}
}
