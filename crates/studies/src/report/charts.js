"use strict";
// Makes of each chart what Vega-Lite draws, in the page's colours, and what is saved of it as CSV.
// A chart follows two signals: `picked`, the names selected in the key, and `hovered`, the name under the mouse.
const chartsOf = (data, brief) => {
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const CROSS = "M-1,-1L1,1M1,-1L-1,1";
  const CROSS_LINES = 6, CROSS_LINE = 9;
  const LATER = 0.12;
  const colour = (style) => `var(--c${style % data.n_colours})`;
  const isNarrow = () => document.body.clientWidth < 600;

  const CONFIG = {
    font: FONT, background: "transparent", view: { stroke: null },
    axis: {
      labelColor: "var(--soft)", titleColor: "var(--ink)", titleFontWeight: "normal", titleFontSize: 12, labelFontSize: 11,
      gridColor: "var(--grid)", domainColor: "var(--axis)", tickColor: "var(--axis)", titlePadding: 8,
    },
    legend: { labelColor: "var(--ink)", labelFontSize: 12, labelLimit: 300, symbolStrokeWidth: 2 },
    title: { anchor: "start", color: "var(--ink)", fontSize: 16, subtitleColor: "var(--soft)", subtitleFontSize: 12, offset: 12 },
  };

  // A text broken into lines of at most a number of letters.
  const broken = (text, letters) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = lines[lines.length - 1];
      if (line && line.length + word.length >= letters) lines.push(word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines;
  };

  const tipOf = (chart, mark, name) => {
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

  // May an axis run by factors? Steps begin at zero, and time is drawn as it goes.
  const canRunByFactors = (chart, axis) => {
    if (chart.kind === "bars" || chart[axis].time || (chart.kind === "steps" && axis === "y")) return false;
    const marks = [...chart.series, ...(chart.published || [])].flatMap((series) => series.marks.filter((mark) => mark));
    const places = axis === "x" ? (chart.absent || []).map((absent) => absent.x) : [];
    const values = marks.map((mark) => mark[axis]).concat(places);
    return values.length > 0 && values.every((value) => value > 0);
  };
  const runsByFactors = (chart, axis, logs) => logs[axis] ?? chart[axis].scale === "log";
  const scaleOf = (axis, isLog, domain) => {
    if (axis.time) return { nice: false, domainMin: { expr: "shown_from" }, domainMax: { expr: "shown_until" } };
    if (isLog) return { type: "log", nice: false, ...(domain ? { domain } : { padding: 10 }) };
    if (domain) return { domain, zero: false, nice: false, padding: 10 };
    return { zero: axis.zero, nice: axis.zero, padding: axis.zero ? 0 : 10 };
  };
  const axisOf = (axis) => ({
    title: isNarrow() ? broken(axis.title, 40) : axis.title,
    format: ",.4~r", labelOverlap: true, tickCount: isNarrow() ? 5 : 8,
  });

  // Files have a legend; the page has a key of its own beside each chart of lines.
  const legendOf = (names, isFile, asLines = false) => names.length > 1 && isFile ? {
    title: null, orient: "bottom", columns: 3, symbolOpacity: 1,
    ...(asLines ? { symbolType: "stroke", symbolSize: 1200 } : { symbolSize: 80 }),
  } : null;

  // Names with anything to show, or said to have nothing somewhere.
  const shownOf = (chart, kept) => chart.series.filter((series, at) => (!kept || kept(series.name))
    && (series.marks.some((mark) => mark) || (chart.absent || []).some((absent) => absent.series === at)));

  // The marks of lines and steps, with what is said of each.
  const valuesOf = (chart, shown) => {
    const values = [];
    for (const series of shown) {
      let piece = 0;
      const goesOn = (mark) => mark && mark.n_of === undefined;
      series.marks.forEach((mark, at) => {
        if (!goesOn(mark)) piece += 1;
        if (!mark) return;
        const alone = !goesOn(series.marks[at - 1]) && !goesOn(series.marks[at + 1]);
        const tip = tipOf(chart, mark, series.name);
        const hollow = mark.n_of !== undefined;
        values.push({ ...mark, name: series.name, piece, alone, hollow, tip, told: told(tip) });
        if (hollow) piece += 1;
        if (chart.kind === "steps" && at === 0) values.unshift({ ...mark, y: 0, name: series.name, piece, told: series.name });
      });
    }
    return values;
  };

  // By factors a range that goes to zero goes on below the plot.
  const domainByFactors = (values) => {
    const ends = values.flatMap(({ y, low, high }) => [y, low, high]).filter((value) => value > 0);
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    for (const value of values) if (value.low <= 0) value.low = least / 1000;
    return [least / 1.15, most * 1.15];
  };

  // Crosses above the plot: a line for each name where they are few or selected, else one cross a place that says how many.
  const crossLayers = (chart, shown, x, color) => {
    const names = shown.map((series) => series.name);
    const crosses = (chart.absent || []).map((absent) => {
      const { name } = chart.series[absent.series];
      const tip = { series: name, [chart.x.title]: brief(absent.x), "no number": absent.why };
      return { x: absent.x, name, why: absent.why, tip, told: told(tip) };
    }).filter(({ name }) => names.includes(name));
    if (!crosses.length) return [];
    const lacking = names.filter((name) => crosses.some((cross) => cross.name === name));
    const areFew = lacking.length <= CROSS_LINES;
    const isPicked = "indexof(picked, datum.name) >= 0";
    const line = areFew ? `indexof(${JSON.stringify(lacking)}, datum.name)`
      : `((${isPicked} ? indexof(picked, datum.name) : length(picked) ? length(picked) : 3) % ${CROSS_LINES})`;
    const at = (field) => ({ field, type: "quantitative", scale: null });
    const mark = { type: "point", shape: CROSS, filled: false, strokeWidth: 2, size: 45, opacity: 1, clip: false, tooltip: { content: "data" } };
    const description = { field: "told", type: "nominal" };
    const layers = [
      {
        data: { values: crosses },
        transform: [...(areFew ? [] : [{ filter: `${isPicked} || datum.name === hovered` }]), { calculate: `-8 - ${CROSS_LINE} * ${line}`, as: "up" }],
        mark, encoding: { x, y: at("up"), color, description, tooltip: { field: "tip" } },
      },
    ];
    if (areFew) return layers;
    const together = [...new Set(crosses.map((cross) => cross.x))].map((place) => {
      const here = crosses.filter((cross) => cross.x === place);
      const tip = { [chart.x.title]: brief(place), "no number": `${here.length} of ${names.length}` };
      for (const { name, why } of here) tip[why] = tip[why] ? `${tip[why]}, ${name}` : name;
      return { x: place, up: -8, over: -22, n: here.length, tip, told: told(tip) };
    });
    const transform = [{ filter: "!length(picked)" }];
    return [...layers,
      { data: { values: together }, transform, mark: { ...mark, stroke: "var(--ink)" }, encoding: { x, y: at("up"), description, tooltip: { field: "tip" } } },
      { data: { values: together }, transform, mark: { type: "text", fontSize: 11, color: "var(--ink)", clip: false, aria: false }, encoding: { x, y: at("over"), text: { field: "n" } } },
    ];
  };

  // Above the plot, for the crosses.
  const roomOf = (chart, shown) => {
    const lacking = new Set((chart.absent || []).map((absent) => chart.series[absent.series])).size;
    return shown.length && lacking ? CROSS_LINE * Math.min(lacking, CROSS_LINES) + 8 : 5;
  };
  // From the first place to the last, those without a number among them.
  const domainOfPlaces = (chart, values, isLog) => {
    const places = values.map((value) => value.x).concat((chart.absent || []).map((absent) => absent.x));
    const [first, last] = [Math.min(...places), Math.max(...places)];
    if (first < last) return isLog ? [first / (last / first) ** 0.03, last * (last / first) ** 0.03] : [first, last];
    return first > 0 ? [first * 0.8, first * 1.25] : [first - 1, first + 1];
  };

  const ringsOf = (chart, names) => (chart.published || []).filter((series) => names.includes(series.name)).flatMap((series) =>
    series.marks.filter((mark) => mark).map(({ x, y }) => {
      const tip = { series: series.name, [chart.x.title]: brief(x), [`${chart.y.title}, published`]: brief(y) };
      return { x, y, name: series.name, tip, told: told(tip) };
    }));

  // How the series of a chart differ: by points, or by pieces of their lines where there are none.
  const looksOf = (chart, shown) => {
    const isDense = shown.some((series) => series.marks.length > data.points_shown_max);
    const anyDash = shown.some((series) => data.looks[series.style].dash.length);
    const hasPoints = chart.kind === "lines" && !isDense && chart.series.length <= data.n_points;
    return { hasPoints, anyDash, asLines: anyDash && !hasPoints };
  };

  const linesSpec = (chart, { logs, kept, isFile }) => {
    const shown = shownOf(chart, kept);
    const names = shown.map((series) => series.name);
    const values = valuesOf(chart, shown);
    const { hasPoints, anyDash, asLines } = looksOf(chart, shown);
    const legend = legendOf(names, isFile, asLines);
    const byName = (range) => ({ field: "name", type: "nominal", scale: { domain: names, range }, legend });
    const color = byName(shown.map((series) => colour(series.style)));
    const dashes = shown.map((series) => data.looks[series.style].dash);
    const strokeDash = byName(dashes.map((dash) => dash.length ? dash : [1, 0]));
    const shape = asLines ? {} : { shape: byName(shown.map((series) => data.looks[series.style].shape)) };
    const isLogY = runsByFactors(chart, "y", logs);
    const domain = isLogY && chart.kind === "lines" && values.length ? domainByFactors(values.concat(ringsOf(chart, names))) : null;
    const isLogX = runsByFactors(chart, "x", logs);
    const ofPlaces = (chart.absent || []).length && !chart.x.zero ? domainOfPlaces(chart, values.concat(ringsOf(chart, names)), isLogX) : null;
    const x = { field: "x", type: "quantitative", scale: scaleOf(chart.x, isLogX, ofPlaces), axis: { ...axisOf(chart.x), grid: false } };
    const y = { field: "y", type: "quantitative", scale: scaleOf(chart.y, isLogY, domain), axis: axisOf(chart.y) };
    const detail = { field: "piece" }, description = { field: "told", type: "nominal" }, tooltip = { field: "tip" };
    const isOn = "hovered ? datum.name === hovered : !length(picked) || indexof(picked, datum.name) >= 0";
    const isBanded = `datum.name === hovered || indexof(picked, datum.name) >= 0${names.length > data.bands_max ? "" : " || !length(picked)"}`;
    const opacity = { condition: { test: isOn, value: 1 }, value: LATER };
    const ofBand = (value) => ({ condition: { test: isBanded, value }, value: 0 });
    const whole = { filter: "!datum.hollow" };
    const layer = [];
    if (values.some((value) => value.low !== undefined && !value.alone)) layer.push({
      transform: [whole], mark: { type: "area", clip: true, aria: false },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color, detail, opacity: ofBand(0.16) },
    });
    if (values.some((value) => value.low !== undefined && value.alone)) layer.push({
      transform: [{ filter: "datum.alone && isValid(datum.low)" }], mark: { type: "rule", clip: true, aria: false },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color, opacity: ofBand(1) },
    });
    layer.push({
      params: chart.x.time || isFile ? [] : [{ name: "view", select: { type: "interval", zoom: "wheel![event.shiftKey]" }, bind: "scales" }],
      transform: [whole],
      mark: { type: "line", interpolate: chart.kind === "steps" ? "step-after" : "linear", strokeWidth: 2, clip: true },
      encoding: {
        x, y, color, detail, opacity, description: { field: "name", type: "nominal" },
        ...(chart.kind === "steps" ? {} : { order: { field: "x" } }), ...(anyDash ? { strokeDash } : {}),
      },
    });
    const dot = { type: "point", filled: true, clip: true, tooltip: { content: "data" } };
    layer.push({
      transform: [{ filter: "isValid(datum.tip) && !datum.hollow" }], mark: hasPoints ? { ...dot, size: 55 } : { ...dot, size: 120, opacity: 0 },
      encoding: { x, y, color, ...shape, description, tooltip, ...(hasPoints ? { opacity } : {}) },
    });
    if (values.some((value) => value.hollow)) layer.push({
      transform: [{ filter: "datum.hollow" }],
      mark: { ...dot, filled: false, fill: "var(--paper)", fillOpacity: 1, strokeWidth: 2, size: 55 },
      encoding: { x, y, color, ...shape, description, tooltip, opacity },
    });
    const rings = ringsOf(chart, names);
    if (rings.length) layer.push({
      data: { values: rings }, mark: { ...dot, shape: "circle", filled: false, strokeWidth: 1.2, size: 150 },
      encoding: { x, y, color, description, tooltip, opacity },
    });
    layer.push(...crossLayers(chart, shown, x, color));
    const until = Math.max(0, ...values.map((value) => value.x));
    const params = chart.x.time ? [{ name: "shown_from", value: 0 }, { name: "shown_until", value: until }] : [];
    const padding = { left: 5, right: 5, bottom: 5, top: roomOf(chart, shown) };
    return { data: { values }, params, padding, height: chart.x.time ? 170 : isNarrow() ? 240 : 330, layer };
  };

  // Horizontal bars, a group a row.
  const barsSpec = (chart) => {
    const names = chart.series.map((series) => series.name);
    const many = names.length > 1;
    const values = [];
    chart.rows.forEach(([row, style], at) => chart.series.forEach((series) => {
      const mark = series.marks[at];
      if (!mark) return;
      const tip = tipOf(chart, mark, row);
      if (many) tip["of"] = series.name;
      values.push({ ...mark, row, style, name: series.name, hollow: mark.n_of !== undefined, tip, told: told(tip) });
    }));
    const rows = chart.rows.map(([row]) => row);
    const y = {
      field: "row", type: "nominal", sort: rows, scale: { domain: rows, paddingInner: 0.28 },
      axis: { title: null, labelLimit: isNarrow() ? 130 : 320, domain: false, ticks: false },
    };
    const x = { field: "y", type: "quantitative", scale: { zero: true }, axis: axisOf(chart.x) };
    const group = many ? { yOffset: { field: "name", sort: names, scale: { domain: names } } } : {};
    const legend = many ? { ...legendOf(names, true), columns: isNarrow() ? 1 : 3 } : null;
    const color = many
      ? { field: "name", type: "nominal", scale: { domain: names, range: chart.series.map((series) => colour(series.style)) }, legend }
      : { field: "row", type: "nominal", scale: { domain: rows, range: chart.rows.map(([, style]) => colour(style)) }, legend };
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
      mark: { type: "text", align: "left", dx: 4, fontSize: 10, color: "var(--ink)", aria: false },
      encoding: { x, y, ...group, text: { field: "name" } },
    });
    if (values.some((value) => value.low !== undefined)) layer.push({
      transform: [{ filter: "isValid(datum.low)" }], mark: { type: "rule", color: "var(--rule)", aria: false },
      encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, ...group },
    });
    return { data: { values }, params: [], height: rows.length * (many ? 12 + 13 * names.length : 26), layer };
  };

  // `how`: which axes run by factors, which names are kept, what is selected, and whether it is for a file.
  const specOf = (chart, how) => {
    const spec = chart.kind === "bars" ? barsSpec(chart) : linesSpec(chart, how);
    const title = { text: chart.title, subtitle: broken(chart.subtitle, 110) };
    return {
      $schema: "https://vega.github.io/schema/vega-lite/v6.json",
      width: how.isFile ? 760 : "container", autosize: { type: how.isFile ? "pad" : "fit-x", contains: "padding" },
      config: CONFIG, description: `${chart.title}. ${chart.subtitle}`,
      ...(how.isFile ? { title, background: "var(--paper)" } : {}), ...spec,
      params: [...spec.params, { name: "picked", value: how.picked }, { name: "hovered", value: "" }],
    };
  };

  const csvField = (value) => {
    const text = value === undefined || value === null ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => rows.map((row) => row.map(csvField).join(",") + "\n").join("");
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
    return csv(rows.map((row) => row.concat(Array(data.heads.length - row.length).fill(""))));
  };

  return { specOf, csvOf, csv, colour, isNarrow, shownOf, looksOf, canRunByFactors, runsByFactors };
};
