package operation

import (
	"context"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

func TestAnEmptyBackendIsOpenedConcurrently(t *testing.T) {
	sink := diag.DefaultSink(t.Output(), t.Output(), diag.FormatOptions{Color: colors.Never})
	for range 100 {
		url := "file://" + t.TempDir()
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := (logins{sink: sink}).open(context.Background(), url, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
