// Package providers keeps the processes of resource providers running between operations.
//
// The stock engine starts a process of the provider for each operation. A [Pool] keeps one process for each provider,
// version and configuration. Operations use it one after the other or at the same time:
//
//   - An operation holds a [Lease]. The lease wraps the plugin host of the operation, which returns a proxy when the
//     engine asks for a provider. Until the engine configures the proxy, any process of the same provider answers its
//     calls. Configure binds the proxy to the process with exactly that configuration, or configures an unused process.
//     No process is configured twice.
//   - The calls of the engine at the end of an operation (Cancel, Close) do not reach a kept process. When a user
//     interrupts an operation, its processes receive Cancel as soon as no other operation uses them.
//   - A process is retired if a call failed, if it received Cancel, or if it uses too much memory. A retired process is
//     not leased again, and is closed when its last operation has ended.
//
// A provider that operations cannot share safely runs in a separate process for each operation, as with the stock
// engine; see [reasonToOwn].
package providers
