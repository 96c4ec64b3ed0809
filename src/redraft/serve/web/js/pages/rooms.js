// The page of a room for those who run it: its links and its QR code, before, during and after a talk.

import { at, element } from "../captions/elements.js";
import { ofAddress } from "../forms/room.js";
import { ask, insist } from "../net/server.js";
import { copyButton } from "./link-buttons.js";
import { item, keptSentence, link, showLinks } from "./share.js";
import { notice, problem, showState } from "./status.js";

/** Milliseconds between two looks at the room. */
const LOOK = 5000;
/** State of a room -> state shown, and what it means. */
const STATES = { waiting: "before", live: "live", over: "over" };
const SENTENCES = { waiting: "The server does not answer. Trying again…" };

const { room } = ofAddress(at("which"));

function showSpeak() {
  const page = new URL(`./?room=${room}`, location.href).href;
  const command = `redraft listen --server ${new URL(".", page).href.replace(/\/$/, "")} --room ${room} --to de`;
  const code = element("code", { textContent: command });
  at("speak").replaceChildren(item(link(page, "Speak in this room"), copyButton(() => page, "Speak in this room")), item(code, copyButton(() => command, "the command")));
}

function showCode() {
  const viewers = new URL(`watch/${room}`, location.href).href;
  at("title").textContent = `Room ${room}`;
  document.title = `Redraft: room ${room}`;
  at("address").textContent = viewers;
  Object.assign(at("code"), { src: `v1/qr?link=${encodeURIComponent(viewers)}`, alt: `QR code of ${viewers}` });
}

/** Look at the room again and again; links change only when the talk does. */
async function look(forms) {
  let shown = "";
  for (;;) {
    const { body, error } = await ask(`v1/rooms/${encodeURIComponent(room)}`);
    problem(error?.message ?? "");
    showState(body ? STATES[body.state] : error ? "idle" : "waiting", SENTENCES);
    const found = JSON.stringify(body);
    if (body && found !== shown) showLinks(at("share"), body, forms);
    shown = body ? found : shown;
    await new Promise((go) => setTimeout(go, LOOK));
  }
}

if (room) {
  const offer = await insist("v1/offer", () => notice(SENTENCES.waiting));
  at("kept").textContent = keptSentence(offer.transcript_seconds);
  at("state").hidden = false;
  showSpeak();
  showCode();
  document.querySelector("main").hidden = false;
  look(offer.transcripts);
}
