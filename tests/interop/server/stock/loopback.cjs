// Loaded before the stock server, which listens on all interfaces: it gets a free port of the loopback instead, and the
// port is printed on a line of its own.
const net = require("node:net");
const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
  const callback = args.find((argument) => typeof argument === "function");
  this.once("listening", () => process.stdout.write(`${JSON.stringify({ port: this.address().port })}\n`));
  return listen.call(this, { host: "127.0.0.1", port: 0 }, callback);
};
