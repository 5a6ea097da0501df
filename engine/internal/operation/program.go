package operation

import (
	"context"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"reside.dev/engine/internal/command"
)

// aboutProgram asks the program's language runtime what it is, for the history. The answer comes as soon as it is
// there; it is empty if the runtime does not tell, and for the commands that the CLI does not ask for.
func (u *update) aboutProgram(ctx context.Context) <-chan map[string]string {
	answer := make(chan map[string]string, 1)
	if u.command.Verb != command.Up && u.command.Verb != command.Preview || u.project.Runtime.Name() == declaredRuntime {
		answer <- nil
		return answer
	}
	go func() { answer <- u.askProgram(ctx) }()
	return answer
}

func (u *update) askProgram(ctx context.Context) map[string]string {
	connection, err := grpc.NewClient(u.command.String("client"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return nil
	}
	defer connection.Close()
	info := engine.Projinfo{Proj: u.project, Root: u.root}
	folder, main, err := info.GetPwdMain()
	if err != nil {
		return nil
	}
	name := u.project.Runtime.Name()
	runtime := plugin.NewLanguageRuntimeClient(name, pulumirpc.NewLanguageRuntimeClient(connection))
	about, err := runtime.About(ctx, plugin.NewProgramInfo(u.root, folder, main, u.project.Runtime.Options()))
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
