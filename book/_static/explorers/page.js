// Makes the explorers of a page live. Python is loaded when the reader first touches one, in a worker of its own.
import { mount } from "./explorer.js";

const LOADING = "Loading Python (13 MB, which your browser keeps; it takes a few seconds on each page) …";
const LONG = "Still loading Python (13 MB). If nothing happens, reload the page to try again.";
const PATIENCE = 60_000; // ms until that is said
let python = null;
let awake = false; // whether it has answered

/** The worker that computes frames for all explorers of this page. */
function start() {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const asked = new Map();
  let number = 0;
  let failed = null;
  const fail = (reason) => {
    const advice = "The picture still shows the first settings; reload the page to try again.";
    failed = new Error(`✗ Python could not be loaded: ${reason}. ${advice}`);
    for (const { reject } of asked.values()) reject(failed);
    asked.clear();
  };
  worker.onerror = (event) => fail(event.message ?? "the worker did not start");
  worker.onmessage = ({ data }) => {
    if (data.failed) return fail(data.failed);
    const { resolve, reject } = asked.get(data.number);
    asked.delete(data.number);
    if (data.error) reject(new Error(`✗ ${data.error}`));
    else resolve(data.frame);
  };
  return (explorer, setting) =>
    new Promise((resolve, reject) => {
      if (failed) return reject(failed);
      number += 1;
      asked.set(number, { resolve, reject });
      worker.postMessage({ number, explorer, ...setting });
    });
}

/** Settings in the page's address, so that a plan can be sent to somebody: only those that aren't the defaults. */
function read() {
  return Object.fromEntries(
    [...new URLSearchParams(location.hash.slice(1))].map(([name, text]) => [name, { true: true, false: false }[text] ?? text]),
  );
}

function write(controls) {
  const changed = controls.filter((control) => control.value !== control.default);
  const hash = new URLSearchParams(changed.map(({ name, value }) => [name, `${value}`]));
  history.replaceState(null, "", changed.length ? `#${hash}` : location.pathname + location.search);
}

for (const still of document.querySelectorAll("[data-explorer]")) {
  const explorer = still.dataset.explorer;
  const first = JSON.parse(still.dataset.frame);
  const addressed = still.closest("[data-addressed]") !== null;
  const [wide, narrow] = ["wide", "narrow"].map((width) => still.querySelector(`.course-${width}`).innerHTML);
  first.svg = wide;
  first.lines = still.querySelector(".course-lines > div")?.innerHTML ?? "";
  const live = mount(
    still,
    first,
    async (setting) => {
      python ??= start();
      let slow = null;
      if (!awake) {
        live.wait(LOADING);
        slow = setTimeout(() => live.wait(LONG), PATIENCE);
      }
      try {
        const frame = JSON.parse(await python(explorer, setting));
        awake = true;
        if (addressed && !frame.problem) write(frame.controls);
        return frame;
      } finally {
        clearTimeout(slow);
      }
    },
    LOADING,
    { wide, narrow },
  );
  // While a finger is on a control, Python can be on its way already.
  still.addEventListener("pointerdown", ({ target }) => {
    if (target.closest("input, select, label, .course-play, .course-handle, [data-value]")) python ??= start();
  });
  if (!addressed) continue;
  /** Show the plan of the address, and nothing of the one before. A link to a heading of the page has no plan. */
  const follow = () => {
    if (location.hash && !location.hash.includes("=")) return;
    const none = Object.fromEntries(Object.keys(still.frame.state).map((name) => [name, undefined]));
    live.ask("", { ...none, ...read() });
  };
  addEventListener("hashchange", follow);
  if (location.hash.length > 1) follow();
}
