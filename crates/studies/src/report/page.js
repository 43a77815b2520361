"use strict";
// Draws the figures of the page's data, and hands out what they show as files.
(() => {
  const problem = document.getElementById("problem");
  const complain = (what) => {
    problem.hidden = false;
    problem.textContent = `A part of this page could not be drawn: ${what}`;
  };
  window.addEventListener("error", (event) => complain(event.message));
  window.addEventListener("unhandledrejection", (event) => complain(event.reason));

  const data = JSON.parse(document.getElementById("data").textContent);
  const INK = "#1c1e21", SOFT = "#5a5f66";
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const colour = (style) => data.looks[style].colour;
  const format = vega.defaultLocale().format(",.4~r");
  const brief = (value) => value === undefined ? "" : format(value);
  const isNarrow = () => document.body.clientWidth < 600;

  const CONFIG = {
    font: FONT, background: "#fff", view: { stroke: null },
    axis: {
      labelColor: SOFT, titleColor: INK, titleFontWeight: "normal", titleFontSize: 12, labelFontSize: 11,
      gridColor: "#e6e8eb", domainColor: "#8a9099", tickColor: "#8a9099", titlePadding: 8,
    },
    legend: { labelColor: INK, labelFontSize: 12, labelLimit: 300, symbolStrokeWidth: 2 },
    title: { anchor: "start", color: INK, fontSize: 16, subtitleColor: SOFT, subtitleFontSize: 12, offset: 12 },
  };

  // Long lines of a title, broken where the chart is narrow.
  const broken = (text) => {
    const wide = Math.max(24, Math.floor((document.body.clientWidth - 60) / 7));
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = lines[lines.length - 1];
      if (line && line.length + word.length >= wide) lines.push(word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines;
  };

  const tooltips = (chart, mark, name) => {
    const isBars = chart.kind === "bars";
    const tip = { [isBars ? chart.y.title : "series"]: name };
    if (!isBars) tip[chart.x.title] = brief(mark.x);
    tip[isBars ? chart.x.title : chart.y.title] = brief(mark.y);
    if (mark.high !== undefined) tip["standard deviation"] = brief(mark.high - mark.y);
    if (mark.n) tip[chart.kind === "steps" ? "jobs" : "seeds"] = mark.n_of ? `${mark.n} of ${mark.n_of}: not the mean of all` : mark.n;
    return tip;
  };
  // The same in words, for screen readers.
  const told = (tip) => Object.entries(tip).map(([name, value]) => `${name}: ${value}`).join("; ");

  const scaleOf = (axis) => axis.time
    ? { nice: false, domainMin: { expr: "shown_from" }, domainMax: { expr: "shown_until" } }
    : axis.scale === "log"
    ? { type: "log", nice: false, padding: 10 } : { zero: axis.zero, nice: axis.zero, padding: axis.zero ? 0 : 10 };
  const axisOf = (axis) => ({
    title: isNarrow() ? broken(axis.title) : axis.title,
    format: ",.4~r", labelOverlap: true, tickCount: isNarrow() ? 5 : 8,
  });

  // Points in the legend, or pieces of the lines where those alone tell series apart.
  const legendOf = (names, asLines = false) => names.length > 1 ? {
    title: null, orient: "bottom", columns: isNarrow() ? 1 : 3, symbolOpacity: 1,
    ...(asLines ? { symbolType: "stroke", symbolSize: 1200 } : { symbolSize: 80 }),
  } : null;
  const colours = (names, styles, legend) => ({
    field: "name", type: "nominal", scale: { domain: names, range: styles.map(colour) }, legend,
  });

  // Lines and steps, over each other.
  const linesSpec = (chart) => {
    const shown = chart.series.filter((series, at) => series.marks.some((mark) => mark)
      || (chart.absent || []).some((absent) => absent.series === at));
    const names = shown.map((series) => series.name);
    const values = [];
    for (const series of shown) {
      let piece = 0;
      const goesOn = (mark) => mark && mark.n_of === undefined;
      series.marks.forEach((mark, at) => {
        if (!goesOn(mark)) piece += 1;
        if (!mark) return;
        const alone = !goesOn(series.marks[at - 1]) && !goesOn(series.marks[at + 1]);
        const tip = tooltips(chart, mark, series.name);
        const hollow = mark.n_of !== undefined;
        values.push({ ...mark, name: series.name, piece, alone, hollow, tip, told: told(tip) });
        if (hollow) piece += 1;
        if (chart.kind === "steps" && at === 0) values.unshift({ ...mark, y: 0, name: series.name, piece, told: series.name });
      });
    }
    const x = { field: "x", type: "quantitative", scale: scaleOf(chart.x), axis: { ...axisOf(chart.x), grid: false } };
    const y = { field: "y", type: "quantitative", scale: scaleOf(chart.y), axis: axisOf(chart.y) };
    const isDense = shown.some((series) => series.marks.length > data.points_shown_max);
    const anyDash = shown.some((series) => data.looks[series.style].dash.length);
    const hasPoints = chart.kind === "lines" && !isDense && names.length <= data.n_points;
    const asLines = anyDash && !hasPoints;
    const legend = legendOf(names, asLines);
    const color = colours(names, shown.map((series) => series.style), legend);
    const detail = { field: "piece" };
    const dashes = shown.map((series) => data.looks[series.style].dash);
    const strokeDash = { field: "name", type: "nominal", scale: { domain: names, range: dashes.map((dash) => dash.length ? dash : [1, 0]) }, legend };
    const description = { field: "told", type: "nominal" };
    const whole = { filter: "!datum.hollow" };
    const faint = (opacity) => ({ condition: { param: "picked", value: opacity, empty: true }, value: 0.06 });
    const hasBand = values.some((value) => value.low !== undefined && !value.alone);
    const hasWhisker = values.some((value) => value.low !== undefined && value.alone);
    const layer = [];
    if (hasBand) layer.push({
      transform: [whole], mark: { type: "area", clip: true, aria: false },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color, detail, opacity: faint(0.1) },
    });
    if (hasWhisker) layer.push({
      transform: [{ filter: "datum.alone && isValid(datum.low)" }], mark: { type: "rule", clip: true, aria: false },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color, opacity: faint(1) },
    });
    layer.push({
      params: chart.x.time ? [{ name: "picked", select: { type: "point", fields: ["name"] }, bind: "legend" }] : [
        { name: "view", select: { type: "interval", zoom: "wheel![event.shiftKey]" }, bind: "scales" },
        { name: "picked", select: { type: "point", fields: ["name"] }, bind: "legend" },
      ],
      transform: [whole],
      mark: { type: "line", interpolate: chart.kind === "steps" ? "step-after" : "linear", strokeWidth: 2, clip: true },
      encoding: {
        x, y, color, detail, order: { field: "x" }, opacity: faint(1), description: { field: "name", type: "nominal" },
        ...(anyDash ? { strokeDash } : {}),
      },
    });
    if (chart.kind === "steps") delete layer[layer.length - 1].encoding.order;
    const points = isDense || chart.kind === "steps"
      ? { type: "point", filled: true, size: 120, opacity: 0, tooltip: { content: "data" }, clip: true }
      : { type: "point", filled: true, size: 55, tooltip: { content: "data" }, clip: true };
    const shape = asLines ? {} : { shape: { field: "name", type: "nominal", scale: { domain: names, range: shown.map((series) => data.looks[series.style].shape) }, legend } };
    layer.push({
      transform: [{ filter: "isValid(datum.tip) && !datum.hollow" }], mark: points,
      encoding: { x, y, color, ...shape, description, tooltip: { field: "tip" }, ...(points.opacity === 0 ? {} : { opacity: faint(1) }) },
    });
    if (values.some((value) => value.hollow)) layer.push({
      transform: [{ filter: "datum.hollow" }],
      mark: { type: "point", filled: false, fill: "#fff", fillOpacity: 1, strokeWidth: 2, size: 55, tooltip: { content: "data" }, clip: true },
      encoding: { x, y, color, ...shape, description, tooltip: { field: "tip" }, opacity: faint(1) },
    });
    const rings = (chart.published || []).filter((series) => names.includes(series.name)).flatMap((series) =>
      series.marks.filter((mark) => mark).map(({ x, y }) => {
        const tip = { series: series.name, [chart.x.title]: brief(x), [`${chart.y.title}, published`]: brief(y) };
        return { x, y, name: series.name, tip, told: told(tip) };
      }));
    if (rings.length) layer.push({
      data: { values: rings },
      mark: { type: "point", shape: "circle", filled: false, strokeWidth: 1.2, size: 150, tooltip: { content: "data" }, clip: true },
      encoding: { x, y, color, description, tooltip: { field: "tip" }, opacity: faint(1) },
    });
    const lines = Math.min(12, chart.series.length);
    (chart.absent || []).forEach((absent) => {
      const series = chart.series[absent.series];
      const tip = { series: series.name, [chart.x.title]: brief(absent.x), "no number": absent.why };
      layer.push({
        data: { values: [{ x: absent.x, name: series.name, tip, told: told(tip) }] },
        mark: { type: "point", shape: "cross", filled: true, angle: 45, size: 55, opacity: 1, clip: false },
        encoding: { x, y: { value: -8 - 10 * (absent.series % lines) }, color, description, tooltip: { field: "tip" } },
      });
    });
    const until = Math.max(0, ...values.map((value) => value.x));
    const params = chart.x.time ? [{ name: "shown_from", value: 0 }, { name: "shown_until", value: until }] : [];
    return { data: { values }, params, height: chart.x.time ? 170 : isNarrow() ? 240 : 330, layer };
  };

  // Horizontal bars, a group a row.
  const barsSpec = (chart) => {
    const names = chart.series.map((series) => series.name);
    const many = names.length > 1;
    const values = [];
    chart.rows.forEach(([row, style], at) => chart.series.forEach((series) => {
      const mark = series.marks[at];
      if (!mark) return;
      const tip = tooltips(chart, mark, row);
      if (many) tip["of"] = series.name;
      values.push({ ...mark, row, style, name: series.name, hollow: mark.n_of !== undefined, tip, told: told(tip) });
    }));
    const rows = chart.rows.map(([row]) => row);
    const y = {
      field: "row", type: "nominal", sort: rows, scale: { domain: rows, paddingInner: 0.28 },
      axis: { title: null, labelLimit: isNarrow() ? 110 : 320, domain: false, ticks: false },
    };
    const x = { field: "y", type: "quantitative", scale: { zero: true }, axis: axisOf(chart.x) };
    const group = many ? { yOffset: { field: "name", sort: names, scale: { domain: names } } } : {};
    const color = many
      ? colours(names, chart.series.map((series) => series.style), legendOf(names))
      : { field: "row", type: "nominal", scale: { domain: rows, range: chart.rows.map(([, s]) => colour(s)) }, legend: null };
    const layer = [{
      mark: { type: "bar", opacity: 0.88, tooltip: { content: "data" } },
      encoding: {
        x, y, ...group, color, stroke: color, description: { field: "told", type: "nominal" }, tooltip: { field: "tip" },
        fillOpacity: { condition: { test: "datum.hollow", value: 0 }, value: 1 },
        strokeWidth: { condition: { test: "datum.hollow", value: 2 }, value: 0 },
      },
    }];
    // Colours come again: the name stands beside the bar.
    if (names.length > data.n_colours) layer.push({
      mark: { type: "text", align: "left", dx: 4, fontSize: 10, aria: false },
      encoding: { x, y, ...group, text: { field: "name" } },
    });
    if (values.some((value) => value.low !== undefined)) layer.push({
      transform: [{ filter: "isValid(datum.low)" }], mark: { type: "rule", color: "#222", aria: false },
      encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, ...group },
    });
    return { data: { values }, height: rows.length * (many ? 12 + 13 * names.length : 26), layer };
  };

  const specOf = (chart) => ({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    width: "container", autosize: { type: "fit-x", contains: "padding" }, config: CONFIG,
    title: { text: broken(chart.title), subtitle: broken(chart.subtitle) },
    description: `${chart.title}. ${chart.subtitle}`,
    ...(chart.kind === "bars" ? barsSpec(chart) : linesSpec(chart)),
  });

  // A tooltip's content is text, line by line; nothing in it is taken for HTML.
  const tooltip = new vegaTooltipLines();
  function vegaTooltipLines() {
    const tip = document.createElement("div");
    tip.id = "tip";
    tip.hidden = true;
    document.body.append(tip);
    this.show = (event, lines) => {
      tip.replaceChildren(...lines.map(([name, value]) => {
        const line = document.createElement("div");
        const head = document.createElement("span");
        head.textContent = name;
        const text = document.createElement("b");
        text.textContent = value;
        line.append(head, " ", text);
        return line;
      }));
      tip.hidden = false;
      const { width, height } = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
      const top = event.clientY + 16 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 16;
      tip.style.left = `${Math.max(4, left)}px`;
      tip.style.top = `${Math.max(4, top)}px`;
    };
    this.hide = () => { tip.hidden = true; };
  }
  const onTooltip = (_view, event, _item, value) => {
    if (value && typeof value === "object") tooltip.show(event, Object.entries(value));
    else tooltip.hide();
  };

  const csvField = (value) => {
    const text = value === undefined || value === null ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csvOf = (chart) => {
    const isBars = chart.kind === "bars";
    const [place, value] = isBars ? [chart.y.title, chart.x.title] : [chart.x.title, chart.y.title];
    const rows = [data.heads.map((head) => ({ place, value })[head] || head)];
    for (const series of chart.series) {
      series.marks.forEach((mark, at) => {
        if (!mark) return;
        const { x, y, low, high, n, n_of: of } = mark;
        const hollow = of !== undefined;
        rows.push([series.name, isBars ? chart.rows[at][0] : x, hollow ? "" : y, low, high, n, "", hollow ? of : n, hollow ? y : ""]);
      });
    }
    for (const { name, marks } of chart.published || []) {
      for (const mark of marks) rows.push([`${name} (published)`, mark.x, mark.y]);
    }
    for (const absent of chart.absent || []) rows.push([chart.series[absent.series].name, absent.x, "", "", "", "", absent.why]);
    return rows.map((row) => row.concat(Array(data.heads.length - row.length).fill("")).map(csvField).join(",") + "\n").join("");
  };
  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const figures = data.figures.map((figure, position) => {
    const element = document.getElementById(`figure-${position}`);
    const state = { chart: figure.variants[figure.first][1], view: null };
    state.draw = async () => {
      if (state.view) state.view.finalize();
      const drawn = await vegaEmbed(element.querySelector(".chart"), specOf(state.chart), {
        actions: false, renderer: "svg", tooltip: onTooltip,
      });
      state.view = drawn.view;
    };
    const select = element.querySelector("select");
    if (select) select.addEventListener("change", () => {
      state.chart = figure.variants[Number(select.value)][1];
      state.draw();
    });
    element.querySelector('[data-as="svg"]').addEventListener("click", async () => {
      save(`${state.chart.name}.svg`, await state.view.toSVG(), "image/svg+xml");
    });
    element.querySelector('[data-as="csv"]').addEventListener("click", () => {
      save(`${state.chart.name}.csv`, csvOf(state.chart), "text/csv");
    });
    return state;
  });
  for (const button of document.querySelectorAll("button[data-table]")) {
    button.addEventListener("click", () => save(`${button.dataset.table}.csv`, data.tables[button.dataset.table], "text/csv"));
  }

  if (data.gantt) {
    const follow = (from, until) => {
      for (const figure of figures) {
        if (figure.chart.x.time && figure.view) {
          figure.view.signal("shown_from", from).signal("shown_until", until).runAsync();
        }
      }
    };
    const csv = (rows) => rows.map((row) => row.map(csvField).join(",") + "\n").join("");
    drawGantt(data.gantt, document.getElementById("gantt"), { tooltip, save, follow, csv, format: brief });
  }

  let wasNarrow = isNarrow();
  window.addEventListener("resize", () => {
    if (isNarrow() !== wasNarrow) figures.forEach((figure) => figure.draw());
    wasNarrow = isNarrow();
  });
  (async () => {
    for (const figure of figures) await figure.draw();
    document.body.dataset.drawn = "yes";
  })();
})();
