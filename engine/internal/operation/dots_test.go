package operation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

func TestDotsAreOnALineOfTheirOwn(t *testing.T) {
	var shown bytes.Buffer
	dots := &dots{color: colors.Never, writer: &shown}
	fmt.Fprint(dots, "one\n")
	dots.grow("updating")
	dots.grow("updating")
	fmt.Fprint(dots, "two\n")
	dots.grow("updating")
	if got := shown.String(); got != "one\n@ updating.....\ntwo\n@ updating...." {
		t.Errorf("%q", got)
	}
}

func TestDotsGrowUntilTheEnd(t *testing.T) {
	var shown bytes.Buffer
	dots := &dots{color: colors.Never, writer: &shown}
	end := dots.begin("updating", time.Microsecond)
	for range 1000 {
		dots.mutex.Lock()
		enough := strings.Count(shown.String(), ".") > 5
		dots.mutex.Unlock()
		if enough {
			break
		}
		time.Sleep(time.Millisecond)
	}
	end()
	before := shown.String()
	if !strings.HasPrefix(before, "@ updating....") || shown.String() != before {
		t.Errorf("%q", before)
	}
}

func TestDotsDoNotInterruptALine(t *testing.T) {
	var shown strings.Builder
	dots := &dots{color: colors.Never, writer: &shown}
	fmt.Fprint(dots, "Outputs:")
	dots.grow("updating")
	fmt.Fprint(dots, "\n")
	if shown.String() != "Outputs:\n" {
		t.Errorf("shown: %q", shown.String())
	}
}
