// What tells the time: Date, performance, Event.timeStamp, Intl and Temporal.

function installTime(scope, disguise, engine, start) {
  const { replace, replaceGetter, replaceClass } = disguise;
  const wall = () => Math.floor(engine.epoch + engine.read());
  const since = () => engine.read() - start;

  const NativeDate = scope.Date;
  replace(NativeDate, "now", () => wall());
  replaceClass(scope, "Date", {
    apply: () => new NativeDate(wall()).toString(),
    construct: (target, args, made) =>
      Reflect.construct(target, args.length ? args : [wall()], made),
  });

  replace(scope.Performance.prototype, "now", () => since());
  replaceGetter(scope.Performance.prototype, "timeOrigin", () => engine.epoch + start);
  replace(scope.Performance.prototype, "mark", function (original, [name, options = {}]) {
    return original.call(this, name, { ...options, startTime: options.startTime ?? since() });
  });
  replace(scope.Performance.prototype, "measure", function (original, [name, from, to]) {
    let options = from;
    if (typeof from !== "object" || from === null) options = { start: from ?? 0, end: to };
    const given = { ...options };
    if (given.duration === undefined) given.end ??= since();
    if (given.start === undefined && given.duration === undefined) given.start = 0;
    return original.call(this, name, given);
  });
  const timing = scope.PerformanceTiming?.prototype;
  for (const name of timing ? Object.keys(timing) : []) {
    replaceGetter(timing, name, function (get) {
      return get.call(this) ? Math.floor(engine.epoch + start) : 0;
    });
  }
  if (timing) {
    replace(timing, "toJSON", function (original) {
      const said = original.call(this);
      return Object.fromEntries(Object.keys(said).map((name) => [name, this[name]]));
    });
  }

  const stamps = new WeakMap();
  replaceGetter(scope.Event.prototype, "timeStamp", function (get) {
    get.call(this);
    if (!stamps.has(this)) stamps.set(this, since());
    return stamps.get(this);
  });

  const format = scope.Intl.DateTimeFormat.prototype;
  replace(format, "formatToParts", function (original, [date]) {
    return original.call(this, date === undefined ? wall() : date);
  });
  const bound = new WeakMap();
  replaceGetter(format, "format", function (get) {
    const own = get.call(this);
    if (!bound.has(own)) {
      const holder = { "": own };
      replace(holder, "", (original, [date]) => original(date === undefined ? wall() : date));
      bound.set(own, holder[""]);
    }
    return bound.get(own);
  });

  const zone = () => new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const Temporal = scope.Temporal;
  if (Temporal) {
    const instant = () => Temporal.Instant.fromEpochMilliseconds(wall());
    const zoned = (at) => instant().toZonedDateTimeISO(at ?? zone());
    replace(Temporal.Now, "instant", instant);
    replace(Temporal.Now, "zonedDateTimeISO", (original, [at]) => zoned(at));
    replace(Temporal.Now, "plainDateTimeISO", (original, [at]) => zoned(at).toPlainDateTime());
    replace(Temporal.Now, "plainDateISO", (original, [at]) => zoned(at).toPlainDate());
    replace(Temporal.Now, "plainTimeISO", (original, [at]) => zoned(at).toPlainTime());
  }
}
