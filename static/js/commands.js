// The actions as people type them, for the page: completion, the preview on the desktop and early
// messages. annotation/commands.py reads the same language and has the last word.

const BUTTONS = ["left", "middle", "right", "back", "forward"];
const COUNTS = { double: 2, triple: 3 };
const TURNS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const KEYS = ["ctrl", "shift", "alt", "meta", "enter", "tab", "escape", "backspace", "delete", "space", "up",
  "down", "left", "right", "home", "end", "pageup", "pagedown", "f1", "f2", "f4", "f5", "f11", "insert", "menu"];

// name: [what completion writes, what it says]; ‸ is where the caret goes.
export const ACTIONS = {
  click: ["click(‸)", "x, y, then right · middle · double · hold ctrl"],
  type: ['type("‸")', '"text", then submit to press Enter'],
  hotkey: ["hotkey(‸)", "keys held together: ctrl, c"],
  scroll: ["scroll(‸)", "x, y, down 3"],
  drag: ["drag(‸)", "x1, y1, x2, y2"],
  wait: ["wait(1000‸)", "milliseconds"],
  finish: ['finish("‸")', "the task is done; an answer if it asks for one"],
  fail: ['fail("‸")', "it can't be done, and why"],
  move: ["move(‸)", "x, y"],
  long_press: ["long_press(‸)", "x, y, milliseconds"],
  mouse_down: ["mouse_down(‸)", "button"],
  mouse_up: ["mouse_up(‸)", "button"],
  key_down: ["key_down(‸)", "one key"],
  key_up: ["key_up(‸)", "one key"],
  navigate: ['navigate("‸")', "address for the browser"],
  navigate_back: ["navigate_back()‸", "one page back"],
  open_app: ['open_app("‸")', "name of the application"],
  shell: ['shell("‸")', "a command of the computer's shell"],
  ask_user: ['ask_user("‸")', "a question"],
};

const CALL = /^\s*([A-Za-z_]+)\s*\((.*)\)\s*$/s;
const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(,)|([^\s,"']+))/sy;

/** Return the canonical action that `text` writes, as JSON; throws an Error for the person. */
export function parse(text) {
  const call = CALL.exec(text);
  if (!call) throw new Error("write an action as name(arguments), such as click(412, 305)");
  const name = call[1].toLowerCase();
  if (!(name in READERS)) throw new Error(`there is no action '${name}'`);
  const args = split(call[2].trimEnd());
  const action = { type: name, ...READERS[name](args) };
  if (args.length) throw new Error(`${name} does not know what to do with '${args[0].words.join(" ")}'`);
  return action;
}

/** Return up to eight completions of the text before `caret`: {label, detail, text, caret}. */
export function complete(text, caret) {
  const before = text.slice(0, caret);
  const open = before.indexOf("(");
  if (open < 0) {
    const word = before.trim().toLowerCase();
    return Object.entries(ACTIONS)
      .filter(([name]) => name.includes(word))
      .sort(([a], [b]) => Number(b.startsWith(word)) - Number(a.startsWith(word)))
      .slice(0, 8)
      .map(([name, [template, detail]]) => ({ label: name, detail, ...place(template) }));
  }
  if (inQuotes(before.slice(open + 1)) || before.trimEnd().endsWith(")")) return [];
  const name = before.slice(0, open).trim().toLowerCase();
  const parts = before.slice(open + 1).split(",");
  const typed = parts.at(-1).trimStart();
  const lead = before.slice(0, before.length - typed.length);
  const rest = text.slice(caret) || ")";
  return words(name, parts.length)
    .filter((word) => word.startsWith(typed) && word !== typed)
    .slice(0, 8)
    .map((word) => {
      const head = lead.endsWith(",") ? `${lead} ${word}` : lead + word;
      return { label: word, detail: "", text: head + rest, caret: head.length };
    });
}

/** Return what `name` takes, for the hint under the box; "" if it is unknown. */
export function usage(text) {
  const name = text.split("(")[0].trim().toLowerCase();
  return text.includes("(") && name in ACTIONS ? ACTIONS[name][1] : "";
}

/** Return the points of an action, [] where it has none. */
export function points(action) {
  if (!action) return [];
  if (action.type === "drag") return action.path;
  return Number.isInteger(action.x) ? [[action.x, action.y]] : [];
}

/** Put a picked place into what is typed: it moves the action's point, or starts a click. */
export function withPlace(text, [x, y]) {
  const called = /^(\s*(?:click|move|scroll|long_press)\s*\(\s*)(?:-?\d+\s*(?:,\s*(?:-?\d+)?)?)?(.*)$/s.exec(text);
  if (!called) return `click(${x}, ${y})`;
  const rest = called[2].trim() || ")";
  const glue = rest.startsWith(")") || rest.startsWith(",") ? "" : ", ";
  if (rest === ")" && /scroll/.test(called[1])) return `${called[1]}${x}, ${y}, down 3)`;
  return `${called[1]}${x}, ${y}${glue}${rest}`;
}

function place(template) {
  return { text: template.replace("‸", ""), caret: template.indexOf("‸") };
}

function inQuotes(text) {
  return (text.replace(/\\./g, "").match(/"/g) || []).length % 2 === 1;
}

function words(name, position) {
  if (["hotkey", "key_down", "key_up"].includes(name)) return KEYS;
  if (["mouse_down", "mouse_up"].includes(name)) return BUTTONS;
  if (name === "click" && position > 2) return ["right", "double", "middle", "triple", "hold ctrl", "hold shift"];
  if (name === "scroll" && position > 2) return ["down 3", "up 3", "right 3", "left 3", "down 10", "up 10"];
  if (name === "type" && position > 1) return ["submit"];
  if (name === "drag" && position > 4) return ["right", "middle"];
  return [];
}

// -- reading -------------------------------------------------------------------------------------

function split(text) {
  const args = [];
  let current = null;
  let comma = false;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text);
    if (!token) throw new Error("a quoted text is not closed");
    comma = Boolean(token[2]);
    if (comma) {
      if (!current) throw new Error("there is nothing before a comma");
      args.push(current);
      current = null;
    } else if (token[1] !== undefined) {
      if (current) throw new Error(`a comma is missing before ${token[1]}`);
      current = { words: [unquote(token[1])], quoted: true };
    } else {
      if (current?.quoted) throw new Error(`a comma is missing before ${token[3]}`);
      current ??= { words: [], quoted: false };
      current.words.push(token[3]);
    }
  }
  if (comma) throw new Error("there is nothing after the last comma");
  return current ? [...args, current] : args;
}

function unquote(string) {
  let body = string.slice(1, -1);
  if (string[0] === "'") body = body.replaceAll("\\'", "'").replaceAll('"', '\\"');
  try {
    return JSON.parse(`"${body.replace(/\r/g, "\\r").replace(/\n/g, "\\n").replace(/\t/g, "\\t")}"`);
  } catch {
    throw new Error(`${string} has a bad backslash; write \\\\ for one`);
  }
}

const isNumber = (arg) => Boolean(arg) && !arg.quoted && /^-?\d{1,9}$/.test(arg.words.join(" "));

function number(args, what, otherwise) {
  if (!args.length && otherwise !== undefined) return otherwise;
  const arg = args.shift();
  if (!isNumber(arg) || Number(arg.words[0]) < 0) throw new Error(`${what} must be a whole number`);
  return Number(arg.words[0]);
}

function quoted(args, what, otherwise) {
  if (!args.length && otherwise !== undefined) return otherwise;
  const arg = args.shift();
  if (!arg?.quoted) throw new Error(`put ${what} in quotes`);
  return arg.words[0];
}

const point = (args) => ({ x: number(args, "x"), y: number(args, "y") });

function button(args) {
  const word = args.shift()?.words.join(" ") ?? "left";
  if (!BUTTONS.includes(word)) throw new Error(`a button is one of ${BUTTONS.join(", ")}`);
  return word;
}

const keysOf = (arg) =>
  arg.quoted ? arg.words : arg.words.flatMap((word) => (word === "+" ? [word] : word.split("+")));

function oneKey(args) {
  const keys = args.length ? keysOf(args.shift()) : [];
  if (keys.length !== 1) throw new Error("this takes one key");
  return { key: keys[0] };
}

const READERS = {
  click(args) {
    const action = { ...point(args), button: "left", count: 1, modifiers: [] };
    while (args.length) {
      const [word, ...rest] = args.shift().words;
      if (BUTTONS.includes(word) && !rest.length) action.button = word;
      else if (word in COUNTS && !rest.length) action.count = COUNTS[word];
      else if (word === "count" && /^[1-9]$/.test(rest[0])) action.count = Number(rest[0]);
      else if (word === "hold" && rest.length) action.modifiers = keysOf({ words: rest });
      else throw new Error(`click does not know '${[word, ...rest].join(" ")}'`);
    }
    return action;
  },
  move: point,
  mouse_down: (args) => ({ button: button(args) }),
  mouse_up: (args) => ({ button: button(args) }),
  drag(args) {
    const path = [];
    while (isNumber(args[0])) path.push(Object.values(point(args)));
    if (path.length < 2) throw new Error("drag needs two points: drag(x1, y1, x2, y2)");
    return { path, button: button(args) };
  },
  scroll(args) {
    const action = { ...point(args), dx: 0, dy: 0 };
    if (!args.length) throw new Error("say which way to scroll: scroll(640, 300, down 3)");
    while (args.length) {
      const [word, count = "3", more] = args.shift().words;
      if (!(word in TURNS) || more || !/^\d{1,4}$/.test(count)) throw new Error("scroll takes a direction and notches: down 3");
      action.dx += TURNS[word][0] * Number(count);
      action.dy += TURNS[word][1] * Number(count);
    }
    return action;
  },
  long_press: (args) => ({ ...point(args), duration_ms: number(args, "the milliseconds", 1000) }),
  key_down: oneKey,
  key_up: oneKey,
  hotkey(args) {
    const keys = [];
    while (args.length) keys.push(...keysOf(args.shift()));
    if (!keys.length) throw new Error("hotkey needs at least one key: hotkey(ctrl, c)");
    return { keys };
  },
  type(args) {
    const text = quoted(args, "the text");
    const flag = args.shift()?.words.join(" ");
    if (flag !== undefined && flag !== "submit") throw new Error(`after the text comes submit or nothing, not '${flag}'`);
    return { text, submit: flag === "submit" };
  },
  wait: (args) => ({ duration_ms: number(args, "the milliseconds", 1000) }),
  navigate: (args) => ({ url: quoted(args, "the address") }),
  navigate_back: () => ({}),
  open_app: (args) => ({ name: quoted(args, "the name") }),
  shell: (args) => ({ command: quoted(args, "the command"), timeout_ms: number(args, "the time limit", 30000) }),
  finish: (args) => ({ answer: quoted(args, "the answer", "") }),
  fail: (args) => ({ reason: quoted(args, "the reason", "") }),
  ask_user: (args) => ({ question: quoted(args, "the question", "") }),
};
