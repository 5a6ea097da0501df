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

// connections are the connections of an operation's plugin context. The pinned version of the engine never closes the
// connection to the program, which leaks a file descriptor, three goroutines and their buffers for each operation.
//
// The connections are found through the context's dial options: an interceptor gets the connection of each call.
type connections struct {
	mutex sync.Mutex
	open  map[*grpc.ClientConn]struct{}
}

// watch adds an interceptor to the dial options of a context. It must be called before the context dials.
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

// close closes all connections that the engine has not closed.
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
