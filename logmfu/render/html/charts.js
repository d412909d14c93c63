"use strict";
// Draws the series with uPlot: one panel per quantity, one horizontal axis, stalls shaded behind.
(function () {
  const source = document.getElementById("data");
  const data = JSON.parse(source.textContent);
  const host = document.getElementById("panels");
  const readout = document.getElementById("readout");
  const byStep = document.getElementById("by-step");
  const fromZero = document.getElementById("from-zero");
  const night = matchMedia("(prefers-color-scheme: dark)");
  const total = (differences) => { let sum = 0; return differences.map((d) => (sum += d)); };
  for (const name of ["step", "attempt", "lost", "line"]) data[name] = total(data[name]);
  const rows = data.step.length;
  const dated = data.clock === "timestamps" && data.start !== null;
  const wholeNumbers = new Intl.NumberFormat("en-US");
  const ROUND = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400].concat(
    [2, 5, 10, 20, 50, 100].map((days) => days * 86400)); // seconds between labels
  // A printed number holds for the time it was averaged over, and no slope crosses a pause.
  const stairs = uPlot.paths.stepped({ align: -1 });
  // uPlot's riser to the value after a gap stands on the gap's left edge: cut it off, too.
  const wider = (u, series, first, last, gaps) => gaps.map(([from, to]) => [from - 1, to]);
  let charts = [];
  let view = null; // positions of the current axis
  let current = null; // its rows
  let reading = -1; // index into them
  let whole = [0, 1];

  if (!data.elapsed) { byStep.checked = true; byStep.disabled = true; }

  function position(row) {
    if (byStep.checked) return data.step[row];
    return data.elapsed[row] === null ? null : data.elapsed[row] + (dated ? data.start : 0);
  }

  const begins = new Map(data.begins);

  // Rows in the order of the axis. By time, a row of null breaks the line before a row that does not
  // follow on the one before it; the line goes on where that row's own steps began.
  function layout() {
    const order = [];
    for (let row = 0; row < rows; row++) if (position(row) !== null) order.push(row);
    order.sort((a, b) => position(a) - position(b) || a - b);
    const out = { x: [], row: [] };
    for (const row of order) {
      if (!byStep.checked && begins.has(row)) {
        const at = Math.min(begins.get(row) + (dated ? data.start : 0), position(row));
        out.x.push(at, at); out.row.push(-1, row);
      }
      out.x.push(position(row)); out.row.push(row);
    }
    return out;
  }

  // null breaks a line, undefined lets it pass. Steps that were done again have a line of their own;
  // by step it runs beside the one that replaced it, by time it does not.
  function split(places, values, lost) {
    const passing = byStep.checked ? bridges(places, lost) : null;
    return places.row.map(function (row, n) {
      if (row >= 0 && Boolean(data.lost[row]) === lost) return values[row];
      return row >= 0 && passing && passing[n] ? undefined : null;
    });
  }

  // Whether the line's nearest rows on both sides belong together.
  function bridges(places, lost) {
    const nearest = function (order) {
      const out = [];
      let last = null;
      for (const n of order) {
        if (Boolean(data.lost[places.row[n]]) === lost) last = lost ? data.attempt[places.row[n]] : 0;
        out[n] = last;
      }
      return out;
    };
    const order = Array.from(places.row.keys());
    const before = nearest(order), after = nearest(order.slice().reverse());
    return order.map((n) => before[n] !== null && before[n] === after[n]);
  }

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function colour(kind) { return night.matches ? kind.night : kind.day; }

  function stallSpan(stall) {
    if (byStep.checked) return stall[1] === null ? null : [stall[1] + 0.5, stall[1] + 0.5];
    if (stall[2] === null) return null;
    const start = stall[2] + (dated ? data.start : 0);
    return [start, start + stall[3]];
  }

  function shade(u) {
    const box = u.bbox, context = u.ctx, ratio = devicePixelRatio || 1;
    context.save();
    context.beginPath(); context.rect(box.left, box.top, box.width, box.height); context.clip();
    for (const stall of data.stalls) {
      const span = stallSpan(stall);
      if (!span || span[1] < u.scales.x.min || span[0] > u.scales.x.max) continue;
      const left = u.valToPos(span[0], "x", true);
      const width = u.valToPos(span[1], "x", true) - left;
      context.fillStyle = colour(data.kinds[stall[0]]);
      if (width >= ratio || data.stalls.length <= 200) {
        context.globalAlpha = 0.25;
        context.fillRect(left, box.top, Math.max(width, ratio), box.height);
      }
      context.globalAlpha = 1;
      context.fillRect(left, box.top + box.height - 6 * ratio, Math.max(width, 1.5 * ratio), 6 * ratio);
    }
    context.restore();
  }

  function restarts(u, labelled) {
    if (byStep.checked) return;
    const context = u.ctx, box = u.bbox, ratio = devicePixelRatio || 1;
    context.save();
    context.strokeStyle = css("--faint"); context.fillStyle = css("--faint");
    context.lineWidth = ratio; context.setLineDash([2 * ratio, 3 * ratio]);
    context.font = 11 * ratio + "px system-ui, sans-serif"; context.textBaseline = "top"; context.textAlign = "left";
    let taken = -Infinity;
    const seen = data.restarts.filter(([, elapsed]) => elapsed !== null).map(([number, elapsed]) => [
      number, u.valToPos(elapsed + (dated ? data.start : 0), "x", true),
    ]).filter(([, x]) => x >= box.left && x <= box.left + box.width);
    if (seen.length > 12) { labelled = false; context.globalAlpha = Math.min(0.4, Math.max(0.05, 20 / seen.length)); }
    for (const [number, x] of seen) {
      context.beginPath(); context.moveTo(x, box.top); context.lineTo(x, box.top + box.height); context.stroke();
      if (labelled && x > taken) {
        const text = "attempt " + number;
        context.fillText(text, x + 4 * ratio, box.top + 3 * ratio);
        taken = x + context.measureText(text).width + 12 * ratio;
      }
    }
    context.restore();
  }

  function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " "); }

  function duration(seconds) {
    if (seconds < 60) return Number(seconds.toPrecision(3)) + " s";
    const two = (whole, unit, rest, part) => wholeNumbers.format(whole) + " " + unit + (rest ? " " + rest + " " + part : "");
    if (seconds < 3600) return two(Math.floor(seconds / 60), "min", Math.floor(seconds % 60), "s");
    return two(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  }

  function amount(value, unit) {
    if (value === null || value === undefined) return "unknown";
    const text = Math.abs(value) >= 10000 ? wholeNumbers.format(Math.round(value)) : String(Number(value.toPrecision(4)));
    return unit ? text + " " + unit : text;
  }

  function tell(row) {
    const parts = ["step " + wholeNumbers.format(data.step[row])];
    if (data.elapsed && data.elapsed[row] !== null) {
      parts.push(dated ? clock(data.start + data.elapsed[row]) : duration(data.elapsed[row]));
    }
    for (const panel of data.panels) parts.push(panel.title + " " + amount(panel.y[row], panel.unit));
    parts.push("attempt " + data.attempt[row]);
    if (data.lost[row]) parts.push("done again later");
    if (data.paths.length) parts.push(data.paths[data.path[row]] + ":" + data.line[row]);
    readout.textContent = parts.join(" · ");
  }

  function onCursor(places) {
    return function (u) {
      const found = u.cursor.idx;
      if (found === null || found === undefined) return;
      reading = places.row[found] >= 0 ? found : found + 1;
      if (places.row[reading] >= 0) tell(places.row[reading]);
    };
  }

  function follow(u, scale) {
    if (scale !== "x") return;
    const range = [u.scales.x.min, u.scales.x.max];
    if (view && range[0] === view[0] && range[1] === view[1]) return;
    view = range;
    host.dataset.view = range.join(" ");
    for (const other of charts) if (other !== u) other.setScale("x", { min: range[0], max: range[1] });
  }

  function heights(panel) {
    if (panel.log || panel.title === "loss") return {};
    return { range: function (u, low, high) {
      if (low === null || high === null) return [0, 1];
      const floor = fromZero.checked ? Math.min(0, low) : low - (high - low) * 0.1;
      return [floor, high + ((high - floor) * 0.08 || 1)];
    } };
  }

  function options(panel, index, places) {
    const axis = { stroke: css("--faint"), grid: { stroke: css("--line"), width: 0.5 }, ticks: { stroke: css("--line") } };
    const time = !byStep.checked && dated;
    return {
      width: Math.max(240, host.clientWidth), height: index ? 150 : 280, legend: { show: false }, pxAlign: 0, padding: [8, 30, 0, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: time, range: (u, low, high) => [low, high] }, y: Object.assign({ distr: panel.log ? 3 : 1 }, heights(panel)) },
      axes: [
        Object.assign({}, axis, {
          size: 50, space: 80, incrs: time || byStep.checked ? undefined : ROUND, values: time ? [
            [86400, "{YYYY}-{MM}-{DD}", null, null, null, null, null, null, 1],
            [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
            [0.001, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
          ] : (u, ticks) => ticks.map((tick) => (byStep.checked ? wholeNumbers.format(tick) : duration(tick))),
        }),
        Object.assign({}, axis, { size: 62, values: (u, ticks) => ticks.map((tick) => (tick === null ? "" : amount(tick, panel.unit === "%" ? "%" : ""))) }),
      ],
      series: [
        {},
        { stroke: css("--series"), width: 1, paths: stairs, gaps: wider, points: { show: places.x.length <= 80, size: 5 } },
        { stroke: css("--lost"), width: 1, paths: stairs, gaps: wider, dash: [4, 3], points: { show: false } },
      ],
      cursor: { sync: { key: "logmfu", setSeries: false }, drag: { x: true, y: false, uni: 10 }, points: { size: 6 }, focus: { prox: -1 } },
      hooks: { drawClear: [shade], draw: [(u) => restarts(u, index === 0)], setCursor: [onCursor(places)], setScale: [follow] },
    };
  }

  function build() {
    for (const chart of charts) chart.destroy();
    host.replaceChildren();
    charts = []; view = null; reading = -1;
    const places = current = layout();
    whole = [places.x[0], places.x[places.x.length - 1]];
    if (!byStep.checked && data.wall !== null) {
      const start = dated ? data.start : 0;
      whole = [Math.min(whole[0], start), Math.max(whole[1], start + data.wall)];
    }
    if (whole[0] === whole[1]) whole = [whole[0] - 1, whole[1] + 1];
    const made = data.panels.map(function (panel, index) {
      const title = document.createElement("p");
      title.className = "panel-title";
      title.textContent = panel.title + (panel.unit === "s" ? " (s)" : "");
      host.append(title);
      const values = [places.x, split(places, panel.y, false), split(places, panel.y, true)];
      return new uPlot(options(panel, index, places), values, host);
    });
    charts = made;
    show(whole[0], whole[1]);
  }

  function show(low, high) {
    const least = Math.max((whole[1] - whole[0]) * 1e-7, 1e-3);
    if (high - low < least) { const middle = (low + high) / 2; low = middle - least / 2; high = middle + least / 2; }
    low = Math.max(low, whole[0]); high = Math.min(high, whole[1]);
    if (high > low) charts[0].setScale("x", { min: low, max: high });
  }

  function zoom(factor) {
    const chart = charts[0], low = chart.scales.x.min, high = chart.scales.x.max;
    const cursor = chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : (low + high) / 2;
    show(cursor - (cursor - low) * factor, cursor + (high - cursor) * factor);
  }

  function pan(share) {
    const chart = charts[0], low = chart.scales.x.min, width = chart.scales.x.max - low;
    const start = Math.min(Math.max(low + width * share, whole[0]), whole[1] - width);
    show(start, start + width);
  }

  // To the next row that has not been read; a row may stand in the data twice.
  function step(by) {
    const chart = charts[0], rowAt = current.row;
    let index = reading;
    for (let left = Math.abs(by); left > 0; left--) {
      const from = rowAt[index];
      let next = index;
      do next += Math.sign(by); while (next >= 0 && next < rowAt.length && (rowAt[next] < 0 || rowAt[next] === from));
      if (next < 0 || next >= rowAt.length) break;
      index = next;
    }
    if (index < 0) return;
    while (rowAt[index + 1] === rowAt[index]) index++;
    if (current.x[index] < chart.scales.x.min || current.x[index] > chart.scales.x.max) pan(by > 0 ? 0.5 : -0.5);
    reading = index;
    chart.setCursor({ left: chart.valToPos(current.x[index], "x"), top: 20 });
    reading = index;
    tell(rowAt[index]);
  }

  const doing = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.5), right: () => pan(0.5), reset: () => show(whole[0], whole[1]) };
  const keys = {
    "+": doing.in, "=": doing.in, "-": doing.out, "0": doing.reset, Escape: doing.reset,
    ArrowLeft: (event) => step(event.shiftKey ? -25 : -1), ArrowRight: (event) => step(event.shiftKey ? 25 : 1),
    PageUp: doing.left, PageDown: doing.right,
  };

  function legend() {
    const list = document.getElementById("key-list");
    list.replaceChildren(...data.kinds.map(function (kind) {
      const item = document.createElement("li"), box = document.createElement("i");
      box.style.background = colour(kind);
      item.append(box, kind.name);
      return item;
    }));
  }

  document.getElementById("charts").hidden = false;
  document.querySelector(".picture").classList.add("drawn");
  legend();
  build();
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => doing[button.dataset.do]());
  host.addEventListener("keydown", function (event) {
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (action) { event.preventDefault(); action(event); }
  });
  byStep.addEventListener("change", build);
  fromZero.addEventListener("change", function () { const [low, high] = view; build(); show(low, high); });
  night.addEventListener("change", function () { legend(); build(); });
  new ResizeObserver(function () {
    for (const chart of charts) chart.setSize({ width: Math.max(240, host.clientWidth), height: chart.height });
  }).observe(host);
})();
