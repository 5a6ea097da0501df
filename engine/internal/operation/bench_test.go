package operation

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkUnchanged runs an update of five components without changes, including the program and its gRPC server.
func BenchmarkUnchanged(b *testing.B) {
	m := newMachine(b, "bench")
	m.must("stack init dev")
	address := (&program{components: 5}).serve(b)
	up := "--non-interactive up --yes --skip-preview --stack dev --client=" + address
	m.must(up)
	before := used()
	for b.Loop() {
		m.must(up)
	}
	b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
