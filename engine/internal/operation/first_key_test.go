package operation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOperationsWaitForTheFirstKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := newFirstKey()
		end := keys.await(t.Context(), time.Hour)
		others := make(chan struct{}, 2)
		for range 2 {
			go func() {
				keys.await(t.Context(), time.Hour)(true)
				others <- struct{}{}
			}()
		}
		synctest.Wait()
		if len(others) != 0 {
			t.Fatal("they did not wait")
		}
		end(true)
		synctest.Wait()
		if len(others) != 2 {
			t.Errorf("%d of 2 go on", len(others))
		}
	})
}

func TestTheNextOperationDerivesTheKeyAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := newFirstKey()
		keys.await(t.Context(), time.Hour)(false)
		end := keys.await(t.Context(), time.Hour)
		began := time.Now()
		keys.await(t.Context(), time.Minute)(true)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("it waited for %s", waited)
		}
		end(true)
		keys.await(t.Context(), time.Minute)(true)
	})
}

func TestNobodyWaitsLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := newFirstKey()
		keys.await(t.Context(), time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		keys.await(ctx, time.Hour)(true)
		if time.Since(began) != 0 {
			t.Error("it waited")
		}
	})
}
