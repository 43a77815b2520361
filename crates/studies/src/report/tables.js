"use strict";
// Tables that sort by a click on a head, are filtered by typing, are chosen among, and compare any two policies.
const driveTables = (data, { save, csv, brief }) => {
  const FILTERED_FROM = 9;

  // Numbers come before words, words before nothing; `1.9 ± 0.1` is a number, `2 of 3 timeout` and a mean `over 1 of 3` are words.
  const keyOf = (cell) => {
    const text = cell.textContent.trim();
    if (text === "-" || text === "") return [2, ""];
    const number = !/\d of \d/.test(text) && /^[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?(?=$|[\s(%])/i.exec(text);
    return number ? [0, Number(number[0].replaceAll(",", ""))] : [1, text];
  };
  const order = ([kind, value], [otherKind, other]) => kind - otherKind
    || (kind === 0 ? value - other : String(value).localeCompare(String(other)));
  const sortBy = (table, column) => {
    const heads = [...table.tHead.rows[0].cells];
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    heads.forEach((head, at) => (at === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column]), row]);
    // What is no number stays last, whichever way the numbers go.
    rows.sort(([key], [other]) => (down && key[0] === other[0] ? -order(key, other) : order(key, other)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  const sortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button", title: "Sort" }, ...head.childNodes);
      button.addEventListener("click", () => sortBy(table, column));
      head.append(button);
    });
  };
  const filterable = (table, tools) => {
    const seek = make("input", { type: "search", placeholder: "filter", "aria-label": "Filter the rows" });
    seek.addEventListener("input", () => {
      const words = seek.value.toLowerCase().split(/\s+/);
      for (const row of table.tBodies[0].rows) {
        row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      }
    });
    tools.prepend(seek);
  };
  const chosen = (group) => {
    const select = group.querySelector("select");
    const tables = [...group.querySelectorAll(":scope > .table")];
    const show = () => tables.forEach((table, at) => { table.hidden = at !== Number(select.value); });
    select.addEventListener("change", show);
    select.closest(".tools").hidden = false;
    group.classList.add("chosen");
    show();
  };

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  // The mean, with the half width of its interval by Student's t where there are several values.
  const estimate = (values, t) => {
    const middle = mean(values), n = values.length;
    if (n < 2 || !t) return [middle, null];
    const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
    return [middle, t * Math.sqrt(squares / (n - 1) / n)];
  };
  const between = (low, high) => `${brief(low)} to ${brief(high)}`;
  // One place of two names: their means, their difference and their ratio over the same seeds, or why there are none.
  const compared = (values, others, t) => {
    if ([values, others].some((each) => !each.length || each.includes(null))) return null;
    const [difference, wide] = estimate(values.map((value, at) => value - others[at]), t);
    const areRatios = values.concat(others).every((value) => value > 0);
    const [log, wideLog] = areRatios ? estimate(values.map((value, at) => Math.log(value / others[at])), t) : [null, null];
    const ofMeans = mean(others) === 0 ? "" : brief(mean(values) / mean(others));
    return [
      brief(mean(values)), brief(mean(others)), brief(difference), wide === null ? "" : between(difference - wide, difference + wide),
      areRatios ? brief(Math.exp(log)) : ofMeans, wideLog === null ? "" : between(Math.exp(log - wideLog), Math.exp(log + wideLog)),
      String(values.length), "",
    ];
  };
  const rowsOf = (pairs, metric, [one, other]) => pairs.places.map((place, at) => {
    const cells = compared(metric.values[one][at], metric.values[other][at], pairs.t);
    if (cells) return [place, ...cells];
    const lack = (which) => (metric.values[which][at].length && !metric.values[which][at].includes(null) ? []
      : [`${pairs.names[which]}: ${pairs.lacking[which][at] || "no number"}`]);
    return [place, "", "", "", "", "", "", "", [...new Set([...lack(one), ...lack(other)])].join("; ")];
  });
  const drivePairs = (pairs, element) => {
    const chooser = (label, texts, value) => {
      const select = make("select", {}, ...texts.map((text, at) => make("option", { value: at }, text)));
      select.value = value;
      return [select, make("label", {}, `${label} `, select)];
    };
    const metrics = pairs.metrics.map(({ title }) => title);
    const [which, ofMetric] = chooser("metric", metrics, 0);
    const [one, ofOne] = chooser("A", pairs.names, Math.min(1, pairs.names.length - 1));
    const [other, ofOther] = chooser("B", pairs.names, 0);
    const button = make("button", { type: "button" }, "CSV");
    const wide = make("div", { className: "wide" });
    let rows = [];
    const show = () => {
      const metric = pairs.metrics[Number(which.value)];
      const both = [Number(one.value), Number(other.value)];
      const heads = [
        pairs.axis, ...both.map((at, position) => `${"AB"[position]}: ${pairs.names[at]}`), `A − B${metric.unit ? ` (${metric.unit})` : ""}`,
        "its interval", "A ÷ B", "its interval", "seeds", "not compared",
      ];
      const body = rowsOf(pairs, metric, both);
      rows = [["metric", ...heads], ...body.map((row) => [metric.title, ...row])];
      const isNumber = (at) => at > 0 && at < heads.length - 1;
      const head = make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", className: isNumber(at) ? "number" : "" }, text)));
      const lines = body.map((row) => make("tr", {}, ...row.map((text, at) => (at === 0
        ? make("th", { scope: "row" }, text) : make("td", { className: `${isNumber(at) ? "number" : ""}${text === "" ? " none" : ""}` }, text || "-")))));
      const table = make("table", { "aria-label": `${metric.title}: ${both.map((at) => pairs.names[at]).join(" and ")}` },
        make("thead", {}, head), make("tbody", {}, ...lines));
      sortable(table);
      wide.replaceChildren(table);
    };
    for (const select of [which, one, other]) select.addEventListener("change", show);
    button.addEventListener("click", () => save("two-compared.csv", csv(rows), "text/csv"));
    element.append(make("div", { className: "tools" }, ofMetric, ofOne, ofOther, make("span", { className: "buttons" }, button)), wide);
    show();
  };

  for (const table of document.querySelectorAll("table.sorts")) {
    sortable(table);
    const tools = table.closest(".table").querySelector(".tools");
    if (tools && table.tBodies[0].rows.length >= FILTERED_FROM) filterable(table, tools);
  }
  document.querySelectorAll(".tables").forEach(chosen);
  document.querySelectorAll(".pairs").forEach((element, at) => drivePairs(data.pairs[at], element));
  for (const button of document.querySelectorAll("button[data-table]")) {
    button.addEventListener("click", () => save(`${button.dataset.table}.csv`, data.tables[button.dataset.table], "text/csv"));
  }
};
