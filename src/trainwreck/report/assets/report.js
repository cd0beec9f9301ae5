(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  function read(id) { return JSON.parse(document.getElementById(id).textContent); }
  function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
  function number(v) {
    if (v === null || v === undefined) return "";
    var a = Math.abs(v);
    if (a !== 0 && (a < 1e-3 || a >= 1e7)) return v.toExponential(3).replace(/\.?0+e/, "e");
    return String(Number(v.toPrecision(4)));
  }
  function flat(y) {
    var known = y.filter(function (v) { return v !== null; });
    var low = Math.min.apply(null, known), high = Math.max.apply(null, known), room = Math.max(Math.abs(low) / 2, 0.5);
    return low === high ? { range: [low - room, high + room] } : {};
  }
  // An exponential mean over a twentieth of the points, begun without bias; a gap starts it anew.
  function smoothed(y) {
    var keep = 1 - 2 / (y.length / 20 + 1), sum = 0, weight = 0;
    return y.map(function (v) {
      if (v === null) { sum = weight = 0; return null; }
      sum = keep * sum + (1 - keep) * v;
      weight = keep * weight + (1 - keep);
      return sum / weight;
    });
  }
  function every(u, splits) { return splits; }
  function decades(u, splits) {
    var tens = splits.map(function (v) { return Math.abs(Math.log10(v) % 1) < 1e-9 ? v : null; });
    return tens.some(function (v) { return v !== null; }) ? tens : splits;
  }
  function button(text, parent, act) {
    var made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    parent.appendChild(made);
    return made;
  }

  var save = document.getElementById("save");
  button("Save JSON", save, function () {
    var text = JSON.stringify(read("answer"), null, 2) + "\n";
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "trainwreck.json";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  });

  if (typeof uPlot === "undefined") return;
  var data = read("chart-data");
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure[data-chart]"));

  function Curve(figure, chart) {
    var self = this;
    this.figure = figure;
    this.chart = chart;
    this.log = chart.log;
    this.place = figure.querySelector(".live");
    this.still = figure.querySelector(".plot");
    this.figures = figure.querySelector(".figures");
    this.said = this.figures.textContent;
    var tools = figure.querySelector(".tools");
    var positive = chart.y.some(function (v) { return v !== null && v > 0; });
    this.toggle = button("log y", tools, function () { self.log = !self.log; self.build(); });
    this.toggle.disabled = !positive;
    if (chart.x.length >= 60) {
      this.smooth = false;
      this.smoother = button("smooth", tools, function () { self.smooth = !self.smooth; self.build(); });
    }
    this.reset = button("reset", tools, function () { self.build(); });
    this.build();
    new ResizeObserver(function () { self.fit(); }).observe(figure);
  }

  Curve.prototype.size = function () {
    return { width: Math.max(160, this.figure.clientWidth), height: this.figure === figures[0] ? 294 : 234 };
  };
  Curve.prototype.fit = function () {
    var size = this.size();
    if (this.plot && (size.width !== this.plot.width)) this.plot.setSize(size);
  };
  Curve.prototype.build = function () {
    var self = this, chart = this.chart, log = this.log;
    if (this.plot) this.plot.destroy();
    this.toggle.setAttribute("aria-pressed", String(log));
    var y = log ? chart.y.map(function (v) { return v !== null && v > 0 ? v : null; }) : chart.y;
    if (this.smoother) this.smoother.setAttribute("aria-pressed", String(this.smooth));
    var size = this.size();
    var axis = {
      stroke: css("--soft"), font: "11px system-ui, sans-serif",
      grid: { stroke: css("--rule"), width: 1 }, ticks: { stroke: css("--rule"), width: 1, size: 4 }
    };
    var dense = chart.x.length > 60;
    this.plot = new uPlot({
      width: size.width, height: size.height, padding: [14, 22, 0, 0], legend: { show: false },
      scales: { x: { time: false }, y: log ? { distr: 3, log: 10 } : flat(y) },
      cursor: { sync: { key: "trainwreck-" + chart.unit }, drag: { x: true, y: false }, points: { size: 6 } },
      axes: [
        Object.assign({}, axis, { values: function (u, v) { return v.map(number); }, space: 70, size: 30 }),
        Object.assign({}, axis, { size: 56, grid: { stroke: css("--rule"), width: 1, filter: log ? decades : every }, values: function (u, v) { return v.map(function (n) { return n === null ? "" : number(n); }); } })
      ],
      series: [
        {},
        { stroke: css("--line"), width: 1.6, alpha: this.smooth ? 0.28 : 1, points: { show: !dense, size: 4 } },
        { stroke: css("--line"), width: 2, show: Boolean(this.smooth), points: { show: false } }
      ],
      hooks: { draw: [function (u) { self.draw(u); }], setCursor: [function (u) { self.tell(u); }] }
    }, [chart.x, y, this.smooth ? smoothed(y) : y.map(function () { return null; })], this.place);
    this.place.classList.add("on");
    this.still.classList.add("off");
  };
  Curve.prototype.tell = function (u) {
    var at = u.cursor.idx;
    if (at === null || at === undefined) { this.figures.textContent = this.said; return; }
    var value = this.chart.y[at];
    this.figures.textContent = this.chart.unit + " " + number(this.chart.x[at]) + " · " + (value === null ? "not finite" : number(value));
  };
  Curve.prototype.draw = function (u) {
    var pen = u.ctx, box = u.bbox, ratio = window.devicePixelRatio || 1, chart = this.chart;
    var colour = css("--critical"), soft = css("--soft"), paper = css("--paper"), i, x;
    function inside(x) { return x >= box.left - 1 && x <= box.left + box.width + 1; }
    pen.save();
    pen.strokeStyle = colour;
    pen.lineWidth = 1.2 * ratio;
    pen.beginPath();
    var before = -1e9;
    for (i = 0; i < chart.x.length; i++) {
      if (chart.y[i] !== null) continue;
      x = u.valToPos(chart.x[i], "x", true);
      if (!inside(x) || x - before < 7 * ratio) continue;
      before = x;
      var foot = box.top + box.height - 7 * ratio, arm = 2.6 * ratio;
      pen.moveTo(x - arm, foot - arm); pen.lineTo(x + arm, foot + arm);
      pen.moveTo(x - arm, foot + arm); pen.lineTo(x + arm, foot - arm);
    }
    pen.stroke();
    pen.font = "700 " + 10 * ratio + "px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = ratio;
    for (i = 0; i < chart.marks.length; i++) {
      x = u.valToPos(chart.marks[i][0], "x", true);
      if (!inside(x)) continue;
      pen.strokeStyle = pen.fillStyle = chart.marks[i][1] ? soft : colour;
      pen.setLineDash([4 * ratio, 3 * ratio]);
      pen.beginPath(); pen.moveTo(x, box.top); pen.lineTo(x, box.top + box.height); pen.stroke();
      pen.setLineDash([]);
      pen.beginPath(); pen.arc(x, box.top, 8 * ratio, 0, 2 * Math.PI); pen.fill();
      pen.fillStyle = paper;
      pen.fillText(String(i + 1), x, box.top + 0.5 * ratio);
    }
    pen.restore();
  };

  var live = figures.map(function (figure) { return new Curve(figure, data[Number(figure.dataset.chart)]); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    live.forEach(function (curve) { curve.build(); });
  });
  root.dataset.curves = String(live.length);
})();
