// An explorer's controls and drawing, for JupyterLab (through anywidget) and for the web book alike.
//
// Everything shown comes in a frame (course_utils/explorers/explorer.py). This script builds the controls once, says
// what was moved, and turns the page into the next frame. It computes nothing that a frame says.

const WIDE = 760; // as in explorer.py

/** Show `frame` in `root`, and ask for the next one whenever a control moves.
 *
 * `request({state, moved, width})` returns a promise of a frame. One request is under way at a time: while it is, only
 * the latest setting is remembered, so a drag never leaves a queue behind. `patience` is shown when an answer takes
 * long. `stills` has the first drawing at both widths, {wide, narrow}, where nothing may be asked until the reader moves
 * something. Returns {ask, wait, stop}; `wait(text)` says why the answer takes long.
 */
export function mount(root, frame, request, patience = "Waiting for an answer …", stills = null) {
  const part = (name, tag) => {
    let found = root.querySelector(`:scope > .course-${name}`);
    if (!found) {
      found = document.createElement(tag);
      found.className = `course-${name}`;
      root.append(found);
    }
    return found;
  };
  root.classList.remove("course-still");
  root.classList.add("course-explorer");
  // JupyterLab takes arrows and letters as its own shortcuts, even from the focused element, unless that opts out
  // (https://github.com/jupyter-widgets/ipywidgets/issues/3912). Buttons in a drawing come with the attribute.
  root.addEventListener("focusin", ({ target }) => {
    if (target.matches("input, select, button")) target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
  const panel = part("panel", "div");
  const note = part("wake", "p");
  note.id = `course-${Math.random().toString(36).slice(2)}`;
  const line = document.createElement("span");
  note.replaceChildren(line);
  const reply = part("guess", "p");
  reply.setAttribute("role", "status");
  panel.after(reply, note);
  const title = part("title", "p");
  root.querySelector(":scope > .course-narrow")?.remove();
  const drawing = part("drawing", "div");
  drawing.classList.remove("course-wide");
  const finding = part("finding", "p");
  finding.setAttribute("role", "status");
  finding.setAttribute("aria-live", "polite");

  const controls = new Map();
  let current = frame;
  let waiting = null;
  let busy = false;
  let stopped = false;
  let lastMove = -Infinity;
  let playing = null;
  let waited = false; // whether the note says why an answer takes long
  let told = false; // whether the reader has guessed, or asked for the answer
  let telling = false; // whether the reader has asked for the answer while a guess was on its way
  const clock = setInterval(() => {
    if (busy && performance.now() - busy > 1500 && !waited) wait(patience);
  }, 500);

  /** Say something between the controls and the title: what's wrong, or else what a reader can do here. */
  function say(text = wrong()) {
    note.setAttribute("aria-live", text ? "polite" : "off");
    note.classList.toggle("course-problem", text.startsWith("✗"));
    const said = text || invitation();
    if (line.textContent !== said) line.textContent = said;
    point();
  }

  /** What's wrong stands at its control, over whatever is there: the picture is faded, and nothing moves.

      It stands below the control, or above it; if other controls are there, below all of them, with a line to its own. */
  function point() {
    const control = current.problem && line.textContent === wrong() ? controls.get(current.at) : null;
    note.classList.toggle("course-at", Boolean(control));
    line.removeAttribute("style");
    if (!control) return;
    const frame = root.getBoundingClientRect();
    const box = control.input.getBoundingClientRect();
    const left = Math.max(0, Math.min(box.left - frame.left, root.clientWidth - line.offsetWidth));
    const others = [...controls.values()].filter((each) => each !== control).map((each) => each.box.getBoundingClientRect());
    const height = line.offsetHeight, start = frame.left + left, end = start + line.offsetWidth;
    const free = (top) => !others.some((o) => o.top < top + height && top < o.bottom && o.left < end && start < o.right);
    const below = Math.max(box.bottom, ...others.map((other) => other.bottom)) + 3;
    const top = [box.bottom + 3, box.top - height - 3].find((place) => place >= frame.top && free(place)) ?? below;
    line.style.left = `${left}px`;
    line.style.top = `${top - frame.top}px`;
    line.style.setProperty("--reach", `${Math.max(0, top - box.bottom)}px`);
    line.style.setProperty("--from", `${box.left + Math.min(box.width, line.offsetWidth) / 2 - start}px`);
  }

  function wrong() {
    const found = current.problem ? [current.problem] : Object.values(current.replaced);
    return found.map((each) => `✗ ${each}`).join(" ");
  }

  function invitation() {
    if (!told) return "Enter your guess, or press “Show me”, to see the picture.";
    const ways = [current.controls.some(({ kind }) => kind === "slider") ? "Move a slider" : "Change a setting"];
    if (drawing.querySelector(".course-handle")) ways.push("drag the ring ○");
    if (drawing.querySelector("[role=button]")) ways.push("click a box below");
    return `${ways.join(" or ")}: the picture follows.`;
  }

  /** What is shown belongs to the last setting, not to the one that the controls have. */
  function fade(on) {
    for (const each of [title, drawing, finding]) each.classList.toggle("course-stale", on);
  }

  function wait(text) {
    waited = true;
    say(text);
    fade(true);
  }

  const width = () => (root.clientWidth && root.clientWidth < WIDE - 100 ? 380 : WIDE);
  let drawn = WIDE;
  const resized = new ResizeObserver(() => {
    point();
    if (root.clientWidth && width() !== drawn) redraw();
  });

  /** Show the same at another width; before the first move the drawing is there already. */
  function redraw() {
    if (!stills) return ask("");
    drawn = width();
    show({ ...frame, svg: drawn === WIDE ? stills.wide : stills.narrow }, "");
  }

  function ask(moved, changes = {}) {
    if (stopped) return;
    stills = null;
    if (moved) {
      if (performance.now() - lastMove > 800) haunt();
      lastMove = performance.now();
    }
    // Changes made while an answer is on its way wait, and are applied to the state that comes with it.
    waiting = { changes: { ...waiting?.changes, ...changes }, moved: moved || waiting?.moved || "" };
    next();
  }

  async function next() {
    if (busy || !waiting || stopped) return;
    const asked = { state: { ...current.state, ...waiting.changes }, moved: waiting.moved, width: width() };
    waiting = null;
    busy = performance.now();
    try {
      const answer = await request(asked);
      if (stopped) return;
      drawn = asked.width;
      waited = false;
      show(answer, asked.moved);
      say();
      root.dispatchEvent(new CustomEvent("course-frame", { detail: { asked, answer } }));
    } catch (error) {
      waited = false;
      fade(false);
      question(false); // a guess can't be judged now: show the picture at least
      say(error.message);
    } finally {
      busy = false;
    }
    if (telling && !waiting) reveal();
    next();
  }

  /** Leave the present shapes behind, faint, so that the next ones can be compared with them. */
  function haunt() {
    const svg = drawing.querySelector("svg");
    svg?.querySelector(":scope > .course-ghost")?.remove();
    const front = svg?.querySelector(":scope > .course-front");
    if (!front) return;
    const ghost = faint(front);
    ghost.setAttribute("class", "course-ghost course-same");
    ghost.setAttribute("aria-hidden", "true");
    svg.prepend(ghost);
  }

  /** A copy of the shapes without what belongs to the present alone: texts, handles, and whatever has the look "now". */
  function faint(front) {
    const copy = front.cloneNode(true);
    for (const shape of copy.querySelectorAll("text, title, .f-now, .l-now, .course-handle")) shape.remove();
    for (const shape of copy.querySelectorAll("[tabindex]")) shape.removeAttribute("tabindex");
    return copy;
  }

  function show(answer, moved) {
    current = answer;
    root.frame = answer;
    build(answer, moved);
    question(answer.asking);
    fade(Boolean(answer.problem));
    for (const [name, { input }] of controls) {
      if (answer.problem && name === answer.at) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    if (answer.problem) return;
    write(title, answer.title);
    write(finding, answer.finding);
    draw(answer.svg);
    tell(answer.lines);
  }

  /** Put a text into an element, where no line breaks inside a number or between it and its unit. */
  function write(element, text) {
    if (element.said === text) return;
    element.said = text;
    const whole = document.createElement("span");
    let end = 0;
    for (const { 0: number, index } of text.matchAll(/(?:× )?\d\S{0,15}(?:(?<=\d) \p{L}\S{0,7}(?!\S))?/gu)) {
      const span = document.createElement("span");
      span.className = "course-number";
      span.textContent = number;
      whole.append(text.slice(end, index), span);
      end = index + number.length;
    }
    whole.append(text.slice(end));
    element.replaceChildren(whole);
  }

  /** Until the reader has guessed or asked for the answer, hide what gives it away; then say it beside the field. */
  function question(open) {
    told ||= !open;
    root.classList.toggle("course-asking", !told);
    drawing.inert = !told; // its description has the finding
    const field = controls.get("guess")?.box;
    let button = panel.querySelector(".course-tell");
    if (told) button?.remove();
    else if (!button) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "course-tell";
      button.textContent = "Show me";
      button.addEventListener("click", () => {
        // A guess was entered by leaving its field for this button: it's judged first. Who presses again won't wait.
        if ((busy || waiting) && !telling) telling = true;
        else reveal();
      });
      field.append(button);
    }
    if (field && reply.parentElement !== field) field.append(reply);
    const text = told ? current.guess : "";
    if (reply.textContent !== text) reply.textContent = text;
  }

  /** Show the answer to a reader who asked for it. */
  function reveal() {
    telling = false;
    if (told) return;
    question(false);
    say();
    title.tabIndex = -1;
    title.focus(); // the button, which had the focus, is gone
  }

  /** The table of a plan below the drawing; whether it is open is the reader's affair. */
  function tell(table) {
    let lines = root.querySelector(":scope > .course-lines");
    if (!table) {
      lines?.remove();
      return;
    }
    if (!lines) {
      lines = document.createElement("details");
      lines.className = "course-lines";
      lines.innerHTML = "<summary>Every number, with its formula and its sources</summary><div></div>";
      root.append(lines);
    }
    const inside = lines.lastElementChild;
    if (inside.shown !== table) {
      inside.shown = table;
      inside.innerHTML = table;
    }
  }

  function draw(text) {
    const fresh = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    const old = drawing.querySelector("svg");
    if (!old || old.getAttribute("viewBox") !== fresh.getAttribute("viewBox")) {
      drawing.replaceChildren(document.importNode(fresh, true));
    } else {
      const ghost = old.querySelector(":scope > .course-ghost");
      ghost?.remove();
      const back = old.querySelector(":scope > .course-back").outerHTML;
      patch(old, fresh);
      // On other axes the old shapes would mislead.
      if (ghost && back === old.querySelector(":scope > .course-back").outerHTML) {
        const front = old.querySelector(":scope > .course-front");
        ghost.classList.toggle("course-same", ghost.innerHTML === faint(front).innerHTML);
        old.prepend(ghost); // below axes and texts
      }
    }
  }

  /** Build the controls that are not there yet, take away those that are gone, and set all of them. */
  function build(answer, moved) {
    const wanted = new Set(answer.controls.map((control) => control.name));
    for (const [name, { box }] of controls) {
      if (!wanted.has(name) && !answer.problem) {
        box.remove();
        controls.delete(name);
      }
    }
    for (const control of answer.controls) {
      while (panel.children.length <= control.row) {
        const row = document.createElement("div");
        row.className = "course-row";
        panel.append(row);
      }
      let made = controls.get(control.name);
      if (made && made.kind !== control.kind) {
        made.box.remove();
        made = null;
      }
      if (!made) {
        made = create(control);
        controls.set(control.name, made);
      }
      const row = panel.children[control.row];
      if (made.box.parentElement !== row) row.append(made.box);
      made.set(control, control.name === moved);
    }
    // In the order asked for, but without moving elements that are in place: a moved element would lose the focus.
    for (const row of panel.children) {
      const here = answer.controls.filter((c) => panel.children[c.row] === row).map((c) => controls.get(c.name));
      here.forEach(({ box }, i) => {
        if (row.children[i] !== box) row.insertBefore(box, row.children[i] ?? null);
      });
    }
  }

  let count = 0;
  function create(control) {
    const box = document.createElement("div");
    box.className = `course-control course-${control.kind}`;
    const id = `course-${Math.random().toString(36).slice(2)}-${count++}`;
    const label = document.createElement("label");
    label.htmlFor = id;
    label.textContent = control.label;
    const input = document.createElement(control.kind === "choice" ? "select" : "input");
    input.id = id;
    input.name = control.name;
    input.setAttribute("aria-errormessage", note.id); // while it's invalid
    const made = { kind: control.kind, box, input, options: [] };
    if (control.kind === "slider") {
      input.type = "range";
      input.min = 0;
      input.step = 1;
      const words = document.createElement("output");
      words.htmlFor = id;
      box.append(label, input, words);
      made.set = (to, mine) => {
        made.options = to.options;
        input.max = to.options.length - 1;
        const place = to.options.indexOf(to.value);
        // A hand that is still moving is ahead of the answer: leave the slider where it holds it.
        if (!mine || !(waiting || input.matches(":active"))) input.value = place;
        said(Number(input.value));
      };
      const said = (place) => {
        words.textContent = made.options[place];
        input.setAttribute("aria-valuetext", made.options[place]);
      };
      input.addEventListener("input", () => {
        said(Number(input.value));
        ask(control.name, { [control.name]: made.options[Number(input.value)] });
      });
      if (control.play) box.append(player(control, made));
    } else if (control.kind === "choice") {
      box.append(label, input);
      made.set = (to) => {
        if (made.options.join("\n") !== to.options.join("\n")) {
          input.replaceChildren(...to.options.map((text) => new Option(text, text)));
          made.options = to.options;
        }
        input.value = to.value;
      };
      input.addEventListener("change", () => ask(control.name, { [control.name]: input.value }));
    } else if (control.kind === "switch") {
      input.type = "checkbox";
      box.append(input, label);
      made.set = (to) => { input.checked = to.value; };
      input.addEventListener("change", () => ask(control.name, { [control.name]: input.checked }));
    } else {
      input.type = "text";
      input.maxLength = 200;
      input.size = 6;
      const fit = () => { input.size = Math.max(input.size, Math.min(input.value.length + 1, 30)); };
      input.spellcheck = false;
      input.autocomplete = "off";
      box.append(label, input);
      made.set = (to, mine) => {
        const typing = control.entered && input.matches(":focus");
        if (!mine && !typing && input.value !== to.value) input.value = to.value;
        fit();
      };
      let typed = false;
      const send = () => {
        if (typed) ask(control.name, { [control.name]: input.value });
        typed = false;
      };
      input.addEventListener("input", () => {
        typed = true;
        if (!control.entered) send();
      });
      if (control.entered) {
        input.addEventListener("change", send); // the field is left
        input.addEventListener("keydown", ({ key }) => { if (key === "Enter") send(); }); // no change in JupyterLab
      }
    }
    if (control.hint) {
      const hint = document.createElement("span");
      hint.className = "course-hint";
      hint.id = `${id}-hint`;
      hint.textContent = control.hint;
      input.setAttribute("aria-describedby", hint.id);
      box.append(hint);
    }
    return made;
  }

  /** A button that moves a slider by itself, from the start if it is at the end. */
  function player(control, made) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "course-play";
    const label = (on) => {
      button.textContent = on ? "❚❚" : "▶"; // phones draw ⏸ as a colored picture
      button.setAttribute("aria-label", on ? `pause ${control.label}` : `play ${control.label}`);
    };
    label(false);
    const stop = () => {
      clearInterval(playing);
      playing = null;
      label(false);
    };
    button.addEventListener("click", () => {
      if (playing) return stop();
      const { input } = made;
      if (Number(input.value) >= Number(input.max)) input.value = -1;
      label(true);
      const step = () => {
        if (!root.isConnected || Number(input.value) >= Number(input.max)) return stop();
        if (busy) return; // the drawing decides the pace
        input.value = Number(input.value) + 1;
        input.dispatchEvent(new Event("input"));
      };
      playing = setInterval(step, control.play);
      step();
    });
    return button;
  }

  // What can be pressed or dragged in the drawing.
  const press = (event) => {
    const target = event.target.closest?.("[data-name][data-value]");
    if (!target || !drawing.contains(target)) return;
    event.preventDefault();
    ask(target.dataset.name, { [target.dataset.name]: target.dataset.value });
  };
  drawing.addEventListener("click", press);
  drawing.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") press(event);
  });
  drawing.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest?.(".course-front .course-handle");
    if (!handle) return;
    event.preventDefault();
    const svg = handle.ownerSVGElement;
    const { name } = handle.dataset;
    const drag = (move) => {
      const place = new DOMPoint(move.clientX, move.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const [left, top, right, bottom] = handle.dataset.within.split(" ").map(Number);
      const x = Math.min(Math.max(place.x, left), right);
      const y = Math.min(Math.max(place.y, top), bottom);
      ask(name, { [name]: `${x.toFixed(1)} ${y.toFixed(1)}` });
    };
    const stop = () => {
      removeEventListener("pointermove", drag);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
    };
    addEventListener("pointermove", drag);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  });

  show(frame, "");
  if (stills) redraw(); // at once: the wide drawing would flash on a phone
  say();
  resized.observe(root);
  return {
    ask,
    wait,
    stop: () => {
      stopped = true;
      clearInterval(clock);
      clearInterval(playing);
      resized.disconnect();
    },
  };
}

/** Make `old` equal to `fresh` by changing as little as possible, so that what stays can glide to its new place. */
function patch(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const keyed = new Map([...old.children].filter((c) => c.dataset.key).map((c) => [c.dataset.key, c]));
  if (!fresh.children.length) {
    if (old.children.length || old.textContent !== fresh.textContent) old.textContent = fresh.textContent;
    return;
  }
  let place = old.firstElementChild;
  for (const child of fresh.children) {
    const { key } = child.dataset;
    let mine = key ? keyed.get(key) : place && !place.dataset.key ? place : null;
    if (mine && mine.tagName !== child.tagName) mine = null;
    if (!mine) {
      mine = document.importNode(child, true);
      old.insertBefore(mine, place);
    } else {
      if (mine === place) place = place.nextElementSibling;
      else old.insertBefore(mine, place);
      patch(mine, child);
    }
    keyed.delete(key);
  }
  while (place) {
    const after = place.nextElementSibling;
    place.remove();
    place = after;
  }
}

// JupyterLab, Notebook, VS Code and Colab: the kernel answers, unless it is busy or another one by now.
const ASLEEP = "No answer from the kernel. If it was restarted, run this cell again to use the controls.";

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    el.append(root);
    let number = 0;
    const asked = new Map();
    const answered = (message) => {
      const [resolve, reject] = asked.get(message.number) ?? [];
      if (message.error) reject?.(new Error(`✗ ${message.error}`));
      else resolve?.(message.frame);
      asked.delete(message.number);
    };
    model.on("msg:custom", answered);
    const request = (setting) =>
      new Promise((resolve, reject) => {
        number += 1;
        asked.set(number, [resolve, reject]);
        try {
          model.send({ number, ...setting });
        } catch {
          reject(new Error(ASLEEP)); // its connection is closed
        }
      });
    const { stop } = mount(root, model.get("frame"), request, ASLEEP);
    return () => {
      model.off("msg:custom", answered);
      stop();
    };
  },
};
