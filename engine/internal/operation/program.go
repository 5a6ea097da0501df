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

// unheard are metadata of the question what a program is: nobody will see its debug messages. Who does not know them,
// sends the messages as ever; reside/resident/unheard.py does.
var unheard = []string{"debug-messages", "unheard"}

// heard tells whether somebody will see debug messages of the program: the display, or who reads the event log.
func (c *call) heard() bool { return c.command.Bool("debug") || c.command.String("event-log") != "" }

// aboutProgram asks the program's language runtime what it is, for the history, while the stack is being looked for.
// The answer comes as soon as it is there; it is empty if the runtime does not tell.
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
	if !c.heard() {
		ctx = metadata.AppendToOutgoingContext(ctx, unheard...)
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
