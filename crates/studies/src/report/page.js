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
  const format = vega.defaultLocale().format(",.4~r");
  const brief = (value) => value === undefined ? "" : format(value);
  const charts = chartsOf(data, brief);
  const selection = selectionOf();

  // A tooltip's content is text, line by line; nothing in it is taken for HTML.
  const tooltip = (() => {
    const tip = make("div", { id: "tip", hidden: true });
    document.body.append(tip);
    const show = (event, lines) => {
      tip.replaceChildren(...lines.map(([name, value]) => make("div", {}, make("span", {}, name), " ", make("b", {}, String(value)))));
      tip.hidden = false;
      const { width, height } = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
      const top = event.clientY + 16 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 16;
      tip.style.left = `${Math.max(4, left)}px`;
      tip.style.top = `${Math.max(4, top)}px`;
    };
    return { show, hide: () => { tip.hidden = true; } };
  })();
  const onTooltip = (_view, event, _item, value) => {
    if (value && typeof value === "object") tooltip.show(event, Object.entries(value));
    else tooltip.hide();
  };

  const save = (name, text, type) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // A chart as a file, in the light colours, with its title and a legend.
  const fileOf = async (chart, how) => {
    const { spec } = vegaLite.compile(charts.specOf(chart, { ...how, isFile: true }));
    const svg = await new vega.View(vega.parse(spec), { renderer: "none" }).toSVG();
    return svg.replace(/var\(--([a-z0-9]+)\)/g, (whole, name) => data.light[name] ?? whole);
  };

  // Buttons that show a part of both axes, or all; the mouse does it, too.
  const zoomed = (view, channel, factor) => {
    const scale = view.scale(channel);
    const isLog = scale.type === "log";
    const [from, until] = scale.domain().map((end) => (isLog ? Math.log(end) : end));
    const middle = (from + until) / 2;
    const ends = [from, until].map((end) => middle + (end - middle) * factor);
    return isLog ? ends.map(Math.exp) : ends;
  };
  const zoom = (state, factor) => {
    for (const [channel, signal] of [["x", "view_x"], ["y", "view_y"]]) {
      state.view.signal(signal, factor === null ? null : zoomed(state.view, channel, factor));
    }
    state.view.runAsync();
  };
  const switchesOf = (state) => {
    const { chart } = state;
    if (chart.kind === "bars" || chart.x.time) return [];
    const switches = ["x", "y"].filter((axis) => charts.canRunByFactors(chart, axis)).map((axis) => {
      const box = make("input", { type: "checkbox", checked: charts.runsByFactors(chart, axis, state.logs) });
      box.dataset.log = axis;
      box.addEventListener("change", () => { state.logs[axis] = box.checked; state.draw(); });
      return make("label", { title: "By factors" }, box, `log ${axis}`);
    });
    const buttons = [["+", "Zoom in", 0.5], ["−", "Zoom out", 2], ["all", "Show all", null]].map(([text, title, factor]) => {
      const button = make("button", { type: "button", title: `${title}; drag to move, Shift and the wheel to zoom`, "aria-label": title }, text);
      button.dataset.zoom = text;
      button.addEventListener("click", () => zoom(state, factor));
      return button;
    });
    return [...switches, make("span", {}, ...buttons.flatMap((button) => [button, " "]))];
  };

  const figures = data.figures.map((figure, position) => {
    const element = document.getElementById(`figure-${position}`);
    const state = { chart: figure.variants[figure.first][1], view: null, logs: {}, tell: () => {}, keyed: null, drawn: Promise.resolve() };
    const how = () => ({ logs: state.logs, kept: selection.kept(), picked: [...selection.picked] });
    // One drawing after another.
    state.draw = () => {
      state.drawn = state.drawn.then(drawNow);
      return state.drawn;
    };
    const drawNow = async () => {
      if (state.view) state.view.finalize();
      state.kept = selection.kept();
      element.querySelector("h3").textContent = state.chart.title;
      element.querySelector(".of").textContent = state.chart.subtitle;
      element.querySelector(".switches").replaceChildren(...switchesOf(state));
      if (state.chart.kind !== "bars" && state.keyed !== state.chart) {
        state.keyed = state.chart;
        state.tell = drawKey(element.querySelector(".key"), { chart: state.chart, charts, data, selection, brief, id: element.id });
      }
      const drawn = await vegaEmbed(element.querySelector(".chart"), charts.specOf(state.chart, how()), {
        actions: false, renderer: "svg", tooltip: onTooltip,
      });
      state.view = drawn.view;
      state.view.addEventListener("mouseover", (_event, item) => selection.point((item && item.datum && item.datum.name) || ""));
    };
    // The selection is a signal of the drawing; hidden series need another drawing.
    state.follow = () => {
      if (state.chart.kind === "bars" || !state.view) return;
      if (selection.only || state.kept) state.draw();
      else state.view.signal("picked", [...selection.picked]).runAsync();
      state.tell();
    };
    const select = element.querySelector("select");
    if (select) select.addEventListener("change", () => {
      state.chart = figure.variants[Number(select.value)][1];
      state.logs = {};
      state.draw();
    });
    element.querySelector('[data-as="svg"]').addEventListener("click", async () => {
      save(`${state.chart.name}.svg`, await fileOf(state.chart, how()), "image/svg+xml");
    });
    element.querySelector('[data-as="csv"]').addEventListener("click", () => {
      save(`${state.chart.name}.csv`, charts.csvOf(state.chart), "text/csv");
    });
    return state;
  });
  selection.changed.push(() => figures.forEach((figure) => figure.follow()));
  selection.pointed.push(() => {
    for (const { view, chart } of figures) if (view && chart.kind !== "bars") view.signal("hovered", selection.hovered).runAsync();
  });
  driveTables(data, { save, csv: charts.csv, brief });

  if (data.gantt) {
    const follow = (from, until) => {
      for (const figure of figures) {
        if (figure.chart.x.time && figure.view) {
          figure.view.signal("shown_from", from).signal("shown_until", until).runAsync();
        }
      }
    };
    drawGantt(data.gantt, document.getElementById("gantt"), { tooltip, save, follow, csv: charts.csv, format: brief, light: data.light });
  }

  let wasNarrow = charts.isNarrow();
  window.addEventListener("resize", () => {
    if (charts.isNarrow() !== wasNarrow) figures.forEach((figure) => figure.draw());
    wasNarrow = charts.isNarrow();
  });
  (async () => {
    for (const figure of figures) await figure.draw();
    document.body.dataset.drawn = "yes";
  })();
})();
