// Runs the page's session in node.  Reads the address and then actions, a JSON list each line; writes events.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** Unlike browsers, node fires no "close" after a connection that was refused. */
globalThis.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    let closed = false;
    this.addEventListener("close", () => (closed = true));
    this.addEventListener("error", () => setTimeout(() => closed || this.dispatchEvent(new Event("close"))));
  }
};

globalThis.window = globalThis.document = new EventTarget();

const [web] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${web}/js/net/${name}.js`));
const [{ Memory }, { Session }] = await Promise.all(["memory", "session"].map(load));
const memory = new Memory();
const session = new Session(memory);
const report = (event) => console.log(JSON.stringify(event));
const seen = new Set();
let code = null;

session.addEventListener("final", ({ detail: { utterance, text } }) => {
  if (!seen.has(utterance)) report({ type: "final", utterance, text }); // corrections come as final captions again
  seen.add(utterance);
});
session.addEventListener("problem", ({ detail }) => {
  if (detail.fatal) code = detail.code;
  else report({ type: "problem", utterance: detail.utterance });
});
session.addEventListener("state", ({ detail }) => detail === "over" && setTimeout(() => report({ type: "over", code })));

const ACTIONS = {
  begin: ({ address, ...start }) => {
    globalThis.location = { href: address };
    session.begin({ source: "en", targets: ["de"], ...start });
  },
  update: ({ utterance, text, final = true }) => session.send(utterance, text, final),
  pause: (fields) => session.control({ type: "pause", ...fields }),
  hide: (fields) => session.control({ type: "hide", hidden: true, ...fields }),
  correct: (fields) => session.control({ type: "correct", ...fields }),
  end: () => session.end(),
};
for await (const line of createInterface({ input: process.stdin })) {
  const [action, fields] = JSON.parse(line);
  ACTIONS[action](fields);
}
process.exit();
