package providers

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
)

// connections are what an operation's plugin context has dialled, above all the connection to the program, which the
// engine of the pinned version never closes: it costs a descriptor, three goroutines and their buffers an operation.
//
// The context's dial options are the only way to it: an interceptor is shown the connection that a call goes over.
type connections struct {
	mutex sync.Mutex
	open  map[*grpc.ClientConn]struct{}
}

// watch adds to a context's dial options. It must come before the context dials anything.
func (c *connections) watch(ctx *plugin.Context) {
	before := ctx.DialOptions
	ctx.DialOptions = func(about any) []grpc.DialOption {
		var options []grpc.DialOption
		if before != nil {
			options = before(about)
		}
		return append(options, grpc.WithChainUnaryInterceptor(c.note))
	}
}

func (c *connections) note(
	ctx context.Context, method string, request, reply any, over *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	c.mutex.Lock()
	if c.open == nil {
		c.open = map[*grpc.ClientConn]struct{}{}
	}
	c.open[over] = struct{}{}
	c.mutex.Unlock()
	return invoke(ctx, method, request, reply, over, options...)
}

// close closes all; those that the engine has closed itself are no error.
func (c *connections) close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var failures []error
	for each := range c.open {
		if err := each.Close(); status.Code(err) != codes.Canceled && err != nil {
			failures = append(failures, err)
		}
	}
	c.open = nil
	return errors.Join(failures...)
}
