// A realm is one document or one worker: what it replaces still looks like the browser's own.

function realFunctions(scope) {
  const bind = (name, owner = scope) => owner[name]?.bind(owner);
  const { addEventListener, dispatchEvent } = scope.EventTarget.prototype;
  return {
    MessageChannel: scope.MessageChannel,
    setTimeout: bind("setTimeout"),
    clearTimeout: bind("clearTimeout"),
    now: bind("now", scope.performance),
    reportError: bind("reportError"),
    listen: (target, kind, run, how) => addEventListener.call(target, kind, run, how),
    dispatch: (target, event) => dispatchEvent.call(target, event),
  };
}

// `shown` maps every function of ours to what its toString says; it is shared by all realms.
function makeDisguise(scope, shown) {
  const plain = scope.Function.prototype.toString;
  const say = (name) => `function ${name}() { [native code] }`;

  // A worker's functions sit on the prototypes of its scope, a window's on the window.
  const ownerOf = (owner, name) =>
    (!owner || Object.hasOwn(owner, name) ? owner : ownerOf(Object.getPrototypeOf(owner), name));

  function replace(thing, name, body) {
    const owner = ownerOf(thing, name);
    const held = owner && Object.getOwnPropertyDescriptor(owner, name);
    if (!held || !held.configurable) return null;
    const original = held.value;
    const method = { [name](...args) { return body.call(this, original, args); } }[name];
    Object.defineProperty(method, "length", { value: original.length, configurable: true });
    shown.set(method, say(name));
    Object.defineProperty(owner, name, { ...held, value: method });
    return original;
  }

  function replaceGetter(owner, name, get, set) {
    const held = owner && Object.getOwnPropertyDescriptor(owner, name);
    if (!held || !held.configurable || !held.get) return null;
    const accessor = {
      get [name]() { return get.call(this, held.get); },
      set [name](value) { (set ?? ((own, to) => own.call(this, to))).call(this, held.set, value); },
    };
    const mine = Object.getOwnPropertyDescriptor(accessor, name);
    shown.set(mine.get, say(`get ${name}`));
    shown.set(mine.set, say(`set ${name}`));
    Object.defineProperty(owner, name, {
      ...held, get: mine.get, set: held.set && mine.set,
    });
    return held;
  }

  function replaceClass(owner, name, handler) {
    const original = owner[name];
    const proxy = new Proxy(original, handler);
    shown.set(proxy, say(name));
    Object.defineProperty(owner, name, {
      ...Object.getOwnPropertyDescriptor(owner, name), value: proxy,
    });
    if (original.prototype?.constructor === original) {
      Object.defineProperty(original.prototype, "constructor", {
        value: proxy, writable: true, enumerable: false, configurable: true,
      });
    }
    return original;
  }

  replace(scope.Function.prototype, "toString", function (original) {
    return shown.get(this) ?? plain.call(this);
  });
  return { replace, replaceGetter, replaceClass };
}

// A small fast counter (sfc32), one stream per realm. Seeding: the ordinal keeps realms apart.
function makeRandom(seed, ordinal) {
  let a = seed | 0, b = (seed / 2 ** 32) | 0, c = (ordinal * 0x9e3779b9) | 0, d = 1;
  const next = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 16; i += 1) next();
  return next;
}

function installRandom(scope, disguise, engine, ordinal) {
  if (engine.seed === null) return;
  const next = makeRandom(engine.seed, ordinal);
  disguise.replace(scope.Math, "random", () => next() / 2 ** 32);
  const prototype = scope.Crypto?.prototype;
  if (!prototype) return;
  const fill = (bytes) => {
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = next() >>> 24;
    return bytes;
  };
  disguise.replace(prototype, "getRandomValues", function (original, [array]) {
    original.call(this, array); // for its errors
    fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  });
  if (!prototype.randomUUID) return;
  disguise.replace(prototype, "randomUUID", () => {
    const bytes = fill(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  });
}
