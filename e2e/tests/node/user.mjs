// A user's client as the official TypeScript SDK makes it: what user.py is, with this SDK.
//
// usage: user.mjs MODULES '["COMMAND", …]' '["TOOL", {…}]'|null [leak]

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, line, wanted, leak] = process.argv.slice(2);
const resolve = createRequire(modules + "/").resolve;
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const [command, ...args] = JSON.parse(line);
const call = JSON.parse(wanted);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
const client = new Client({ name: "e2e", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
if (tools.length === 0) throw new Error("no tools");
if (leak) {
  const { fd } = transport._process.stdin._handle;
  spawn("sleep", ["600"], { stdio: ["ignore", "ignore", "ignore", fd] }).unref();
}
if (call) client.callTool({ name: call[0], arguments: call[1] }).catch(() => {});
await new Promise((done) => setTimeout(done, call ? 300 : 0));
console.log("ready");
process.stdin.resume();
