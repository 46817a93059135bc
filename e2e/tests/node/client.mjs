// A client made of the official TypeScript SDKs alone: lists tools, calls one, gives one up, calls again.
//
// usage: client.mjs (client2|sdk1) MODULES MODE COMMAND [ARGUMENT…] < '{"tool": …, "arguments": …, "slow": …}'

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [which, modules, mode, command, ...args] = process.argv.slice(2);
const resolve = createRequire(modules + "/").resolve;
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { tool, arguments: given, slow } = JSON.parse(readFileSync(0, "utf8"));

const sdk1 = which === "sdk1";
const { Client } = await load(sdk1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = await load(
  sdk1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
);

const options = sdk1 ? {} : { versionNegotiation: { mode } };
const client = new Client({ name: "e2e", version: "1" }, options);
const call = (name, parameters, more) =>
  sdk1
    ? client.callTool({ name, arguments: parameters }, undefined, more)
    : client.callTool({ name, arguments: parameters }, more);

await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
const { tools } = await client.listTools();
const result = await call(tool, given);

let cancelled = null;
if (slow) {
  const giveUp = new AbortController();
  setTimeout(() => giveUp.abort("test"), 300);
  cancelled = await call("http_request", slow, { signal: giveUp.signal }).then(
    () => "answered",
    () => "cancelled",
  );
}
const after = await call("channels", {});
await client.close();
console.log(JSON.stringify({
  tools: tools.map((known) => known.name),
  result,
  cancelled,
  after: after.isError === true ? "error" : "answered",
}));
