// Package providers keeps resource providers alive between operations.
//
// The stock engine starts a provider's process for each operation and throws it away. A [Pool] keeps one process for each
// provider, version and configuration, and hands it to one operation after the other, several at a time:
//
//   - An operation holds a [Lease]. The lease wraps the operation's plugin host; where the engine asks that host for a
//     provider, it gets a proxy. Until the engine configures it, any live process of the same provider answers the
//     proxy's calls; Configure binds the proxy to the process with exactly that configuration, or configures a fresh one.
//     No process is ever configured twice.
//   - What the engine does to its host at the end of an operation (Cancel, Close) does not reach a kept process. What a
//     user does (interrupting an operation) does, as soon as no other operation is using the process.
//   - A process that an operation saw fail, that was cancelled, or that has grown, gets no new leases and is closed
//     when its last user is done.
//
// What cannot be shared safely runs as with the stock engine, in a process of the operation's own: see [reasonToOwn].
package providers
