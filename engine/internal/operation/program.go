package operation

import (
	"context"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// debugUnused is the metadata of an About request that says that the program's debug messages are not used. Programs
// may ignore it; reside/resident/debug_filter.py does not.
var debugUnused = []string{"debug-messages", "unheard"}

// usesDebug reports whether debug messages of the program are used, by the display or the event log.
func (c *call) usesDebug() bool {
	return c.command.Bool("debug") || c.command.String("event-log") != ""
}

// aboutProgram asks the language runtime of the program for its name and version, which go into the history. It does
// not block. The result is sent to the channel; it is empty if the runtime does not respond.
func (c *call) aboutProgram(ctx context.Context, project *workspace.Project, root string) <-chan map[string]string {
	answer := make(chan map[string]string, 1)
	if project.Runtime.Name() == declaredRuntime {
		answer <- nil
		return answer
	}
	go func() { answer <- c.askProgram(ctx, project, root) }()
	return answer
}

func (c *call) askProgram(ctx context.Context, project *workspace.Project, root string) map[string]string {
	connection, err := grpc.NewClient(c.command.String("client"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return nil
	}
	defer connection.Close()
	info := engine.Projinfo{Proj: project, Root: root}
	folder, main, err := info.GetPwdMain()
	if err != nil {
		return nil
	}
	name := project.Runtime.Name()
	if !c.usesDebug() {
		ctx = metadata.AppendToOutgoingContext(ctx, debugUnused...)
	}
	runtime := plugin.NewLanguageRuntimeClient(name, pulumirpc.NewLanguageRuntimeClient(connection))
	about, err := runtime.About(ctx, plugin.NewProgramInfo(root, folder, main, project.Runtime.Options()))
	if err != nil {
		return nil
	}
	facts := map[string]string{"runtime.name": name}
	if about.Executable != "" {
		facts["runtime.executable"] = about.Executable
	}
	if about.Version != "" {
		facts["runtime.version"] = about.Version
	}
	for key, value := range about.Metadata {
		facts["runtime.metadata."+key] = value
	}
	return facts
}
