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

async function start() {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const answered = await fetch(new URL("./course.zip", import.meta.url));
  if (!answered.ok) throw new Error(`course.zip: ${answered.status}`);
  python.unpackArchive(await answered.arrayBuffer(), "zip", { extractDir: "/course" });
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
