// Python in the reader's page: answers with the frame of an explorer, as JSON text.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ANSWER = `
import json, sys
from functools import cache

sys.path.insert(0, "/course")
from course_utils.explorers.explorer import load

@cache
def explorer(text):
    return load(**json.loads(text))

def answer(text, setting):
    asked = json.loads(setting)
    return json.dumps(explorer(text).frame(asked["state"], asked["moved"], asked["width"]))

answer
`;

/** A file beside this one. Throws an error that names it if it can't be had. */
async function get(name, method = "GET") {
  const answered = await fetch(new URL(name, import.meta.url), { method }).catch(({ message }) => {
    throw new Error(`${name}: ${message}`);
  });
  if (!answered.ok) throw new Error(`${name}: ${answered.status}`);
  return answered;
}

async function start() {
  const [python, course] = await Promise.all([
    loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href }),
    get("course.zip"),
    // Without these, loadPyodide only writes to the console, and never ends.
    get("pyodide/pyodide.asm.wasm", "HEAD"),
    get("pyodide/python_stdlib.zip", "HEAD"),
  ]);
  python.unpackArchive(await course.arrayBuffer(), "zip", { extractDir: "/course" });
  return python.runPython(ANSWER);
}

const ready = start();
ready.catch((error) => postMessage({ failed: error.message }));

onmessage = async ({ data: { number, explorer, ...setting } }) => {
  const answer = await ready;
  try {
    postMessage({ number, frame: answer(explorer, JSON.stringify(setting)) });
  } catch (error) {
    postMessage({ number, error: error.message.trim().split("\n").at(-1) });
  }
};
