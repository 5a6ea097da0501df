// Greet callers that have the permission `greet`: the same contract as examples/replicas/greeter.
import { Replica } from "@reside/replica";
import { greeting } from "./greeting.ts";

const VERSION = 3;

await new Replica(greeting)
  .method(greeting, "greet", (call, body) => {
    call.require("greet");
    return { message: `Hi, ${body.name}`, version: VERSION };
  })
  .launch();
