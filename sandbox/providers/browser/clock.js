// Put the clock into this document or worker. Runs before any script of the page, in every frame.

function install(config, source) {
  const scope = globalThis;
  const KEY = Symbol.for("tandem.clock");
  const inWorker = !scope.document;
  // A worker's clock is its page's: only the page's own wrapper knows what time it is there.
  if (scope[KEY] || (inWorker && !config.href)) return;
  const real = realFunctions(scope);

  let shared = null;
  let follows = inWorker;
  if (!inWorker && scope.parent !== scope) {
    try {
      shared = scope.parent[KEY] ?? null;
    } catch {
      follows = true;
    }
  }
  const shown = shared?.shown ?? new WeakMap();
  const running = config.running && !follows;
  const engine = shared?.engine ?? makeEngine(real, { ...config, running });
  const disguise = makeDisguise(scope, shown);
  let start = shared || follows ? engine.now() : 0;

  const realm = {};
  const ordinal = config.ordinal ?? engine.join(realm);
  if (inWorker) engine.join(realm);
  const timers = installTimers(scope, disguise, engine, real, start);
  installTime(scope, disguise, engine, start);
  installRandom(scope, disguise, engine, ordinal);
  installWorkers(scope, disguise, engine, real, start, source);
  const motion = installMotion(scope, disguise, engine, real, start);
  const media = installMedia(scope, disguise, engine, real, timers.after, timers.cancel);
  realm.alive = timers.alive;
  realm.frame = (jobs) => {
    motion.frame(jobs);
    timers.frame(jobs);
  };
  realm.rest = () => {
    motion.rest();
    media.rest();
  };

  engine.welcome = ({ now, epoch }) => {
    engine.epoch = epoch;
    engine.set(now);
  };
  if (inWorker) followPage(scope, disguise, engine, real, config);
  else if (follows) followTop(scope, engine, real);
  else if (!shared) leadFrames(scope, engine, real);
  Object.defineProperty(scope, KEY, {
    value: Object.freeze({ ...engine.api, engine, shown }), enumerable: false,
  });
}
