"use strict";
(() => {
  const canvas = document.getElementById("timeline");
  const source = document.getElementById("timeline-data");
  if (!canvas || !source) return;
  const data = JSON.parse(source.textContent);
  const pointed = document.getElementById("pointed");
  const secondsPerTick = 1e-7;
  const gutter = 34, axis = 22;
  const rowHeight = Math.max(8, Math.min(26, Math.floor(420 / data.ranks.length)));

  // Numbers of a run to tasks with absolute times.
  const tasksOf = (run) => {
    const tasks = [];
    let now = 0;
    for (let i = 0; i < run.length; i += 5) {
      const start = now + run[i];
      now = start + run[i + 1];
      tasks.push({ start, end: now, kind: data.kinds[run[i + 2]], stage: run[i + 3], microBatch: run[i + 4] });
    }
    return tasks;
  };
  const begin = data.total - data.update;
  const rows = data.ranks.map((rank) => {
    const row = { compute: tasksOf(rank.compute), communication: tasksOf(rank.communication) };
    if (rank.update > 0)
      row.compute.push({ start: begin, end: begin + rank.update, kind: "update", stage: -1, microBatch: -1 });
    return row;
  });

  const colourNames = { "forward": "--blue", "backward": "--orange", "input gradient": "--orange", "weight gradient": "--teal" };
  let from = 0, to = data.total;

  // The first task of a row that ends after a time.
  const firstAfter = (tasks, time) => {
    let low = 0, high = tasks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tasks[middle].end <= time) low = middle + 1; else high = middle;
    }
    return low;
  };

  const timeWords = (ticks) => {
    const seconds = ticks * secondsPerTick;
    if (seconds >= 1 || seconds === 0) return seconds.toPrecision(4).replace(/\.?0+$/, "") + " s";
    return (seconds * 1e3).toPrecision(4).replace(/\.?0+$/, "") + " ms";
  };

  const roundStep = (span) => {
    const raw = span / 6, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
  };

  const draw = () => {
    const width = canvas.clientWidth, height = rows.length * rowHeight + axis;
    const density = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    const paint = canvas.getContext("2d");
    paint.scale(density, density);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const scale = (width - gutter) / (to - from);
    const place = (time) => gutter + (time - from) * scale;
    paint.font = "12px system-ui, sans-serif";

    paint.fillStyle = colour("--faint");
    paint.strokeStyle = colour("--line");
    const step = roundStep(to - from);
    let freeFrom = 0;
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      const words = timeWords(tick), x = place(tick), half = paint.measureText(words).width / 2;
      const centre = Math.min(Math.max(x, half), width - half);
      if (centre - half < freeFrom) continue;
      freeFrom = centre + half + 8;
      paint.textAlign = "center";
      paint.fillText(words, centre, 13);
    }

    let drawn = 0;
    const every = Math.ceil(14 / rowHeight);
    rows.forEach((row, rank) => {
      const top = axis + rank * rowHeight, bar = rowHeight - 2;
      paint.fillStyle = colour("--faint");
      paint.textAlign = "right";
      if (rank % every === 0) paint.fillText(String(rank), gutter - 6, top + rowHeight / 2 + 4);
      paint.fillStyle = colour("--track");
      paint.fillRect(gutter, top, width - gutter, bar);
      const strip = Math.max(2, Math.round(bar / 5));
      for (const [tasks, offset, tall] of [[row.compute, 0, bar], [row.communication, bar - strip, strip]]) {
        for (let i = firstAfter(tasks, from); i < tasks.length && tasks[i].start < to; ++i) {
          const left = Math.max(gutter, place(tasks[i].start)), right = Math.min(width, place(tasks[i].end));
          const length = Math.max(0.5, right - left);
          paint.fillStyle = colour(colourNames[tasks[i].kind] || "--violet");
          paint.fillRect(left, top + offset, length > 3 ? length - 0.75 : length, tall);
          ++drawn;
          if (offset === 0 && length > 26 && bar >= 14 && tasks[i].microBatch >= 0) {
            paint.fillStyle = colour("--page");
            paint.textAlign = "center";
            paint.fillText(String(tasks[i].microBatch), left + length / 2, top + bar / 2 + 4);
          }
        }
      }
    });
    canvas.dataset.drawn = String(drawn);
  };

  const show = (newFrom, newTo) => {
    const span = Math.min(Math.max(newTo - newFrom, data.total / 20000), data.total);
    from = Math.min(Math.max(newFrom, 0), data.total - span);
    to = from + span;
    draw();
  };
  const zoom = (factor, around) => {
    const centre = around === undefined ? (from + to) / 2 : around;
    show(centre - (centre - from) * factor, centre + (to - centre) * factor);
  };
  const timeAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return from + (event.clientX - box.left - gutter) / (box.width - gutter) * (to - from);
  };

  for (const button of document.querySelectorAll("button[data-zoom]"))
    button.addEventListener("click", () => {
      if (button.dataset.zoom === "all") show(0, data.total);
      else zoom(button.dataset.zoom === "in" ? 0.5 : 2);
    });
  canvas.addEventListener("keydown", (event) => {
    const span = to - from;
    if (event.key === "+") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "ArrowRight") show(from + span / 8, to + span / 8);
    else if (event.key === "ArrowLeft") show(from - span / 8, to - span / 8);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;  // the page scrolls
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event));
  }, { passive: false });

  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { x: event.clientX, from, to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    if (dragged) {
      const moved = (dragged.x - event.clientX) / (box.width - gutter) * (dragged.to - dragged.from);
      show(dragged.from + moved, dragged.to + moved);
      return;
    }
    const row = rows[Math.floor((event.clientY - box.top - axis) / rowHeight)];
    if (!row) return;
    const time = timeAt(event);
    const hit = [row.compute, row.communication].map((tasks) => tasks[firstAfter(tasks, time)])
      .find((task) => task && task.start <= time);
    const rank = rows.indexOf(row);
    pointed.textContent = !hit ? "pipeline rank " + rank + ": idle at " + timeWords(time) :
      "pipeline rank " + rank + ": " + hit.kind + (hit.microBatch >= 0 ? " of micro-batch " + hit.microBatch : "") +
      (hit.stage >= 0 ? ", stage " + hit.stage : "") + ", from " + timeWords(hit.start) + ", takes " + timeWords(hit.end - hit.start);
  });

  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
