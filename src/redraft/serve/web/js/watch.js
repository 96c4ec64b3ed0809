// The captions of somebody else's session, to be read only.

import { Columns } from "./columns.js";
import { problem } from "./problem.js";
import { STATES } from "./session.js";
import { Viewer } from "./viewer.js";

const at = (id) => document.getElementById(id);

/** The languages of a session; null where there is no such session. */
async function targetsOf(name) {
  const answer = await fetch(`/v1/sessions/${encodeURIComponent(name)}`);
  return answer.ok ? (await answer.json()).targets : null;
}

const name = new URLSearchParams(location.search).get("session") ?? "";
const targets = await targetsOf(name);
if (targets === null) {
  problem("There is no such session, or it was forgotten some time after its end.");
} else {
  const columns = new Columns(at("captions"), targets);
  const viewer = new Viewer(name);
  viewer.addEventListener("partial", ({ detail }) => columns.partial(detail));
  viewer.addEventListener("final", ({ detail }) => columns.final(detail));
  viewer.addEventListener("problem", ({ detail }) => problem(detail.sentence));
  viewer.addEventListener("state", ({ detail }) => {
    at("state").textContent = STATES[detail];
    at("state").dataset.state = detail;
    if (detail === "live") problem("");
  });
  viewer.connect();
}
