// A bare HTTP server of Node, for benchmarks/rpc.py: reads JSON, answers JSON. The port is the argument.
import { createServer } from "node:http";

createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const { name } = JSON.parse(Buffer.concat(chunks).toString() || "{}");
    const text = JSON.stringify({ message: `Hi, ${name}`, version: 3 });
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
