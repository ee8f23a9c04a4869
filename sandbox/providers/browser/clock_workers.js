// Who else keeps time: dedicated workers, and frames of other origins. Messages of ours travel on
// the same road as the page's own and stay in order with them; no listener of the page sees them.

const MARK = "\u0000tandem.clock";

function installWorkers(scope, disguise, engine, real, start, source) {
  if (!scope.Worker) return;
  const { replace, replaceClass } = disguise;
  const { createObjectURL, revokeObjectURL } = scope.URL;
  const { postMessage, terminate } = scope.Worker.prototype;
  const blobs = new Map();
  const links = new WeakMap();
  let count = 0;

  replace(scope.URL, "createObjectURL", (original, [thing]) => {
    const url = createObjectURL.call(scope.URL, thing);
    if (thing instanceof scope.Blob) blobs.set(url, thing);
    return url;
  });
  replace(scope.URL, "revokeObjectURL", (original, [url]) => {
    blobs.delete(String(url));
    revokeObjectURL.call(scope.URL, url);
  });
  const publish = (...parts) =>
    createObjectURL.call(scope.URL, new scope.Blob(parts, { type: "text/javascript" }));

  // The page may revoke a blob's address as soon as the worker is made, so it gets one of ours.
  function wrapped(href, type) {
    const blob = blobs.get(href);
    const config = {
      now: engine.now(), epoch: engine.epoch, seed: engine.seed, ordinal: engine.ordinal(), href,
    };
    const shim = `(${source})(${JSON.stringify(config)});`;
    // What is inside the same script loses its "use strict"; an opaque origin leaves no other way.
    if (blob && (type === "module" || scope.origin === "null")) return publish(shim, "\n", blob);
    if (type !== "module") {
      return publish(`${shim}\nimportScripts(${JSON.stringify(blob ? publish(blob) : href)});`);
    }
    return publish(`import ${JSON.stringify(publish(shim))};\nimport ${JSON.stringify(href)};`);
  }

  replaceClass(scope, "Worker", {
    construct(target, [url, options], made) {
      const base = engine.href ?? scope.document?.baseURI ?? scope.location.href;
      const href = new URL(url, base).href;
      const worker = Reflect.construct(target, [wrapped(href, options?.type), options], made);
      const follower = {
        name: `worker ${++count}`,
        send: (said) => postMessage.call(worker, { [MARK]: said }),
      };
      links.set(worker, follower);
      engine.followers.add(follower);
      real.listen(worker, "message", (event) => {
        const said = event.data?.[MARK];
        if (!said) return;
        event.stopImmediatePropagation();
        if (said.done) follower.done?.();
        if (said.bye) engine.drop(follower);
      });
      // A script that could not be loaded gives a plain event; one that threw gives an ErrorEvent.
      real.listen(worker, "error", (event) => {
        if (!(event instanceof scope.ErrorEvent)) engine.drop(follower);
      });
      return worker;
    },
  });
  replace(scope.Worker.prototype, "terminate", function (original) {
    engine.drop(links.get(this));
    terminate.call(this);
  });
  if (scope.SharedWorker) {
    replaceClass(scope, "SharedWorker", {
      construct(target, args, made) {
        engine.uncovered.add("a shared worker keeps real time");
        return Reflect.construct(target, args, made);
      },
    });
  }
}

// Inside a worker: answer the page, and be where the page's script is, not where the wrapper is.
function followPage(scope, disguise, engine, real, config) {
  const { replace, replaceGetter } = disguise;
  const post = scope.postMessage.bind(scope);
  real.listen(scope, "message", (event) => {
    const said = event.data?.[MARK];
    if (!said) return;
    event.stopImmediatePropagation();
    engine.reach(said.to).then(() => post({ [MARK]: { done: true } }));
  });
  replace(scope, "close", (original) => {
    post({ [MARK]: { bye: true } });
    original.call(scope);
  });
  if (config.href.startsWith("blob:")) return;

  const absolute = (url) => new URL(url, config.href).href;
  const place = new URL(config.href);
  engine.href = config.href;
  replaceGetter(scope.WorkerGlobalScope.prototype, "location", () => location);
  const location = Object.create(scope.WorkerLocation.prototype);
  const parts = [
    "href", "origin", "protocol", "host", "hostname", "port", "pathname", "search", "hash",
  ];
  for (const name of parts) {
    Object.defineProperty(location, name, { value: place[name], enumerable: true });
  }
  Object.defineProperty(location, "toString", { value: () => config.href });
  if (scope.importScripts) {
    replace(scope, "importScripts", (original, urls) => original.apply(scope, urls.map(absolute)));
  }
  replace(scope, "fetch", (original, [what, how]) =>
    original.call(scope, what instanceof Request ? what : absolute(what), how));
  replace(scope.XMLHttpRequest.prototype, "open", function (original, [method, url, ...rest]) {
    return original.call(this, method, absolute(url), ...rest);
  });
}

// A frame of another origin asks the top window for the time; the top window is asked once a step.
function followTop(scope, engine, real) {
  real.listen(scope, "message", (event) => {
    const said = event.data?.[MARK];
    if (!said) return;
    event.stopImmediatePropagation();
    if (event.source !== scope.top) return;
    if (said.welcome) engine.welcome(said.welcome);
    else engine.reach(said.to).then(() => scope.top.postMessage({ [MARK]: { done: true } }, "*"));
  });
  scope.top.postMessage({ [MARK]: { hello: true } }, "*");
}

function leadFrames(scope, engine, real) {
  const frames = new Map();
  real.listen(scope, "message", (event) => {
    const said = event.data?.[MARK];
    if (!said) return;
    event.stopImmediatePropagation();
    const frame = event.source;
    if (said.done) return frames.get(frame)?.done?.();
    engine.drop(frames.get(frame));
    const follower = {
      name: `frame of ${event.origin}`,
      send: (to) => frame.postMessage({ [MARK]: to }, "*"),
      gone: () => frame.closed,
    };
    frames.set(frame, follower);
    follower.send({ welcome: { now: engine.now(), epoch: engine.epoch } });
    engine.followers.add(follower);
  });
}
