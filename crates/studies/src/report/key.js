"use strict";
// What is selected in a page, the same in all its charts, and the key beside each: a line for each name, to select and to hover over.
const selectionOf = () => {
  const picked = new Set();
  const state = { picked, only: false, hovered: "", changed: [], pointed: [] };
  // The names to keep: those selected, if the others are hidden.
  state.kept = () => (state.only && picked.size ? (name) => picked.has(name) : null);
  state.pick = (names, on) => {
    for (const name of names) if (on) picked.add(name); else picked.delete(name);
    state.changed.forEach((tell) => tell());
  };
  state.hide = (only) => { state.only = only; state.changed.forEach((tell) => tell()); };
  state.point = (name) => {
    if (state.hovered === name) return;
    state.hovered = name;
    state.pointed.forEach((tell) => tell());
  };
  return state;
};

// A new element, with properties and content.
const make = (tag, properties = {}, ...content) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...content);
  return element;
};

const drawKey = (element, { chart, charts, data, selection, brief, id }) => {
  const FILTERED_FROM = 7;
  const SHAPES = {
    circle: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "triangle-up": "M0,-5L5,4L-5,4Z", square: "M-4,-4H4V4H-4Z",
    diamond: "M0,-5.5L5.5,0L0,5.5L-5.5,0Z", "triangle-down": "M0,5L5,-4L-5,-4Z",
  };
  const shown = charts.shownOf(chart, null);
  const { hasPoints } = charts.looksOf(chart, shown);

  const sampleOf = (series) => {
    const drawn = (tag, attributes) => {
      const part = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
      return part;
    };
    const look = data.looks[series.style], colour = charts.colour(series.style);
    const svg = drawn("svg", { width: 34, height: 14, viewBox: "-17 -7 34 14", "aria-hidden": "true" });
    svg.append(drawn("path", { d: "M-17,0H17", stroke: colour, "stroke-width": 2, "stroke-dasharray": look.dash.join(",") }));
    if (hasPoints) svg.append(drawn("path", { d: SHAPES[look.shape], fill: colour }));
    return svg;
  };
  // `× 4, 9`: where a name has no number; and why, for those who hover or listen.
  const lackOf = (series) => {
    const at = chart.series.indexOf(series);
    const lacking = (chart.absent || []).filter((absent) => absent.series === at);
    const reasons = [...new Set(lacking.map((absent) => absent.why))];
    const told = reasons.map((why) => `${lacking.filter((absent) => absent.why === why).map((absent) => brief(absent.x)).join(", ")}: ${why}`);
    if (!told.length) return [];
    const places = lacking.map((absent) => brief(absent.x)).join(", ");
    return [make("small", { title: told.join("; ") }, make("span", { "aria-hidden": "true" }, `× ${places}`), " ",
      make("span", { className: "heard" }, `no number at ${told.join("; ")}`))];
  };

  const lines = shown.map((series) => {
    const { name } = series;
    const box = make("input", { type: "checkbox", checked: selection.picked.has(name) });
    box.addEventListener("change", () => selection.pick([name], box.checked));
    const line = make("li", {}, make("label", {}, box, sampleOf(series), make("span", {}, name, " ", ...lackOf(series))));
    line.addEventListener("pointerenter", () => selection.point(name));
    // (a tap leaves the focus where it was, and is to light up nothing)
    line.addEventListener("focusin", () => { if (box.matches(":focus-visible")) selection.point(name); });
    for (const event of ["pointerleave", "focusout"]) line.addEventListener(event, () => selection.point(""));
    return { name, box, line };
  });
  element.replaceChildren();
  element.hidden = shown.length < 2;
  if (element.hidden) return () => {};
  const list = make("ul", { role: "group", "aria-label": "What is drawn: select to see it with its spread" }, ...lines.map(({ line }) => line));
  const tell = () => {
    for (const { name, box } of lines) box.checked = selection.picked.has(name);
    const only = element.querySelector('[name="only"]');
    if (only) only.checked = selection.only;
  };
  if (shown.length >= FILTERED_FROM) {
    const seek = make("input", { type: "search", placeholder: "filter", id: `${id}-filter`, "aria-label": "Filter the list by name" });
    seek.addEventListener("input", () => {
      for (const { name, line } of lines) line.hidden = !name.toLowerCase().includes(seek.value.trim().toLowerCase());
    });
    const there = () => lines.filter(({ line }) => !line.hidden).map(({ name }) => name);
    const all = make("button", { type: "button", title: "Select all in the list" }, "all");
    all.addEventListener("click", () => selection.pick(there(), true));
    const none = make("button", { type: "button", title: "Select none: all are drawn, without spread" }, "none");
    none.addEventListener("click", () => selection.pick([...selection.picked], false));
    const only = make("input", { type: "checkbox", name: "only", checked: selection.only });
    only.addEventListener("change", () => selection.hide(only.checked));
    element.append(make("div", { className: "tools" }, seek, all, none, make("label", {}, only, "hide the others")));
  }
  element.append(list);
  return tell;
};
