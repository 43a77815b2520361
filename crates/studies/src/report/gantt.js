"use strict";
// A Gantt chart of many thousand bars on a canvas: moved, zoomed, and asked what is under the mouse.
// `page` brings the tooltip, the way to save a file, and what else follows the shown time.
const drawGantt = (gantt, element, page) => {
  const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
  const LEFT = 64, TOP = 26, RIGHT = 10, PLOT_MAX = 620;
  const canvas = element.querySelector("canvas");
  const nRows = gantt.types.reduce((sum, [, n]) => sum + n, 0);
  const row = Math.min(16, Math.max(0.5, PLOT_MAX / nRows));
  const height = TOP + row * nRows + 8;
  const view = { from: 0, until: gantt.until, held: null };
  const shortest = gantt.until / 20000;
  let picked = null;

  // The page's colours: light ones for files and for paper.
  const colours = (isLight) => {
    const shown = getComputedStyle(document.documentElement);
    return (name) => isLight ? page.light[name] : shown.getPropertyValue(`--${name}`).trim();
  };
  const colour = (id) => `hsl(${Math.round((id * 137.508) % 360)},58%,${52 + 9 * (id % 3)}%)`;
  const width = () => Math.max(260, element.clientWidth);
  const plot = () => width() - LEFT - RIGHT;
  const xOf = (time) => LEFT + (time - view.from) / (view.until - view.from) * plot();
  const timeOf = (x) => view.from + (x - LEFT) / plot() * (view.until - view.from);
  const ticksOf = () => {
    const scale = vega.scale("linear")().domain([view.from, view.until]);
    const n = Math.max(3, Math.floor(plot() / 90));
    const format = scale.tickFormat(n);
    return scale.ticks(n).map((time) => [time, format(time)]);
  };

  // Draws on anything that fills rectangles and text: the canvas, or a file.
  const paint = (on, ink) => {
    on.fillStyle = ink("paper");
    on.fillRect(0, 0, width(), height);
    on.font = FONT;
    let first = 0;
    for (const [name, n] of gantt.types) {
      const y = TOP + row * first, tall = row * n;
      on.fillStyle = ink("shade");
      on.fillRect(LEFT, y, plot(), tall - 1);
      on.fillStyle = ink("ink");
      on.textAlign = "right";
      on.fillText(name.length > 9 ? `${name.slice(0, 8)}…` : name, LEFT - 6, y + tall / 2 + 4);
      first += n;
    }
    on.textAlign = "center";
    for (const [time, text] of ticksOf()) {
      const x = xOf(time);
      on.fillStyle = ink("line");
      on.fillRect(x, TOP - 5, 1, height - TOP);
      on.fillStyle = ink("soft");
      on.fillText(text, x, TOP - 9);
    }
    on.textAlign = "left";
    on.fillText("time (h)", 2, TOP - 9);
    const dim = ink("dim");
    // Bars narrower than a pixel are drawn once a pixel and row.
    const drawn = new Float64Array(nRows).fill(-1);
    for (const [start, end, , jobs, workers] of gantt.bars) {
      if (end < view.from || start > view.until) continue;
      const from = Math.max(LEFT, xOf(start)), until = Math.min(LEFT + plot(), xOf(end));
      for (const [worker, n] of workers) {
        if (until - drawn[worker] < 0.5) continue;
        for (let at = worker; at < worker + n; at += 1) drawn[at] = until;
        const gap = until - from > 4 ? 0.6 : 0;
        const tall = (row * n - (row >= 3 ? 0.6 : 0)) / jobs.length;
        jobs.forEach((job, at) => {
          on.fillStyle = picked !== null && job !== picked ? dim : colour(job);
          on.fillRect(from, TOP + row * worker + tall * at, Math.max(0.7, until - from - gap), tall);
        });
      }
    }
  };

  const draw = (isLight = false) => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width() * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const on = canvas.getContext("2d");
    on.scale(ratio, ratio);
    paint(on, colours(isLight));
  };
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); page.follow(view.from, view.until); });
  };
  const show = (from, until) => {
    const length = Math.min(gantt.until, Math.max(shortest, until - from));
    view.from = Math.min(Math.max(0, from), gantt.until - length);
    view.until = view.from + length;
    redraw();
  };
  const zoom = (factor, at) => show(at - (at - view.from) * factor, at + (view.until - at) * factor);
  const middle = () => (view.from + view.until) / 2;

  const barAt = (x, y) => {
    const worker = Math.floor((y - TOP) / row), time = timeOf(x), slack = (view.until - view.from) / plot();
    if (x < LEFT || worker < 0 || worker >= nRows) return null;
    let best = null;
    for (const bar of gantt.bars) {
      if (bar[0] > time + slack) break;
      if (bar[1] < time - slack) continue;
      if (bar[4].some(([first, n]) => worker >= first && worker < first + n)) best = bar;
    }
    return best && { bar: best, worker };
  };
  const hours = (time) => `${page.format(time)} h`;
  const nameOf = (id) => (gantt.jobs[id] || [])[4] ?? id;
  const tipOf = ({ bar, worker }) => {
    const [start, end, type, jobs, workers, firstRound, nRounds, nServers, nFailed] = bar;
    const lines = [];
    for (const id of jobs) {
      const [name, scale, arrival, done] = gantt.jobs[id] || ["?", 1, 0, null];
      lines.push([`job ${nameOf(id)}`, `${name}${scale > 1 ? `, ${scale} workers` : ""}`]);
      lines.push(["arrived", `${hours(arrival)}, ${done === null ? "not done" : `done ${hours(done)}`}`]);
    }
    const n = workers.reduce((sum, [, count]) => sum + count, 0);
    lines.push([gantt.types[type][0], `worker ${worker}${n > 1 ? `, one of ${n} on ${nServers} server${nServers > 1 ? "s" : ""}` : ""}`]);
    lines.push(["from", `${hours(start)} to ${hours(end)}`]);
    lines.push(["rounds", nRounds > 1 ? `${firstRound} to ${firstRound + nRounds - 1}` : `${firstRound}`]);
    lines.push(["lease", nRounds > 1 ? `extended ${nRounds - 1} times` : "not extended"]);
    if (nFailed) lines.push(["failed slices", nFailed]);
    return lines;
  };

  canvas.addEventListener("wheel", (event) => {
    if (!(event.shiftKey || event.ctrlKey)) return;
    event.preventDefault();
    zoom(2 ** ((event.deltaY || event.deltaX) / 240), timeOf(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    view.held = { x: event.offsetX, from: view.from, until: view.until };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { view.held = null; });
  canvas.addEventListener("pointercancel", () => { view.held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (view.held) {
      const moved = (view.held.x - event.offsetX) / plot() * (view.held.until - view.held.from);
      show(view.held.from + moved, view.held.until + moved);
      page.tooltip.hide();
      return;
    }
    const found = barAt(event.offsetX, event.offsetY);
    const job = found && found.bar[3][0];
    if (job !== picked) { picked = job; redraw(); }
    if (found) page.tooltip.show(event, tipOf(found));
    else page.tooltip.hide();
  });
  canvas.addEventListener("pointerleave", () => {
    page.tooltip.hide();
    if (picked !== null) { picked = null; redraw(); }
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, timeOf(event.offsetX)));
  const steps = {
    "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()),
    "0": () => show(0, gantt.until),
    ArrowLeft: () => show(view.from - (view.until - view.from) / 5, view.until - (view.until - view.from) / 5),
    ArrowRight: () => show(view.from + (view.until - view.from) / 5, view.until + (view.until - view.from) / 5),
  };
  canvas.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    step();
  });
  for (const button of element.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", steps[button.dataset.zoom]);
  }

  element.querySelector('[data-as="svg"]').addEventListener("click", () => {
    const escape = (text) => String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
    const pieces = [];
    const round = (value) => Math.round(value * 100) / 100;
    const anchors = { left: "start", center: "middle", right: "end" };
    paint({
      fillRect(x, y, w, h) { pieces.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${this.fillStyle}"/>`); },
      fillText(text, x, y) { pieces.push(`<text x="${round(x)}" y="${round(y)}" fill="${this.fillStyle}" text-anchor="${anchors[this.textAlign] || "start"}">${escape(text)}</text>`); },
    }, colours(true));
    page.save("gantt.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="${width()}" height="${Math.ceil(height)}" font-family="sans-serif" font-size="12">${pieces.join("\n")}</svg>`, "image/svg+xml");
  });
  element.querySelector('[data-as="csv"]').addEventListener("click", () => {
    const rows = [["jobs", "job_type", "worker_type", "workers", "servers", "start_h", "end_h", "first_round", "rounds", "extended", "failed_slices"]];
    for (const [start, end, type, jobs, workers, firstRound, nRounds, nServers, nFailed] of gantt.bars) {
      const all = workers.flatMap(([first, n]) => Array.from({ length: n }, (_, at) => first + at));
      rows.push([jobs.map(nameOf).join("+"), jobs.map((id) => (gantt.jobs[id] || ["?"])[0]).join("+"), gantt.types[type][0], all.join(" "),
        nServers, start, end, firstRound, nRounds, nRounds - 1, nFailed]);
    }
    page.save("gantt.csv", page.csv(rows), "text/csv");
  });
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => draw(true));
  window.addEventListener("afterprint", () => draw());
  draw();
};
