// Makes the explorers of a page live. Python is loaded when the reader first touches one, in a worker of its own.
import { mount } from "./explorer.js";

const LOADING = "Loading Python into this page (13 MB, once) …";
let python = null;

/** The worker that computes frames for all explorers of this page. */
function start() {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const asked = new Map();
  let number = 0;
  let failed = null;
  const fail = (reason) => {
    failed = new Error(`✗ Python could not be loaded: ${reason}. The picture stays; reload the page to try again.`);
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

/** Settings in the page's address, so that a plan can be sent to somebody: only those that differ from the first. */
function read() {
  return Object.fromEntries(
    [...new URLSearchParams(location.hash.slice(1))].map(([name, text]) => [name, { true: true, false: false }[text] ?? text]),
  );
}

function write(first, state) {
  const changed = Object.entries(state).filter(([name, value]) => first[name] !== value);
  const hash = new URLSearchParams(changed.map(([name, value]) => [name, `${value}`]));
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
      const cold = !python;
      python ??= start();
      if (cold) live.say(LOADING);
      const frame = JSON.parse(await python(explorer, setting));
      if (addressed && !frame.problem) write(first.state, frame.state);
      return frame;
    },
    LOADING,
    { wide, narrow },
  );
  if (addressed && location.hash.length > 1) live.ask("", read());
}
