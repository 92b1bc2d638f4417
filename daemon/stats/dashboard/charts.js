// The two pictures of a feed: throughput of the last two minutes, and the plan's lengths.

const kSecondsShown = 120;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function paintDefaults() {
  Chart.defaults.color = colour("faint");
  Chart.defaults.borderColor = colour("rule");
  Chart.defaults.animation = false;
  Chart.defaults.parsing = false;  // points are {x, y} already, and in order
  Chart.defaults.normalized = true;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.size = 0.75 * parseFloat(getComputedStyle(document.body).fontSize);
}

function drop(chart) {
  const frame = chart.canvas.parentElement;
  chart.destroy();
  frame.remove();
}

function canvas(box, label) {
  const frame = put(box, make("div", "chart"));
  const picture = put(frame, make("canvas"));
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  return picture;
}

function axis(text, more) {
  return {title: {display: true, text}, beginAtZero: true, ...more};
}

function throughputChart(box) {
  const line = {data: [], borderColor: colour("client"), backgroundColor: colour("client") + "22",
                fill: true, pointRadius: 0, borderWidth: 2};
  return new Chart(canvas(box, "Bytes per second, over the last two minutes"), {
    type: "line",
    data: {datasets: [line]},
    options: {
      events: [],
      scales: {
        x: axis("seconds ago", {type: "linear", min: -kSecondsShown, max: 0, beginAtZero: false,
                                ticks: {callback: value => -value}}),
        y: axis("", {ticks: {callback: value => show.byteRate(value)}})},
      plugins: {legend: {display: false}}}});
}

// The step of an axis that goes up to `most` bytes with five marks at most, each a round figure.
function byteStep(most) {
  for (let unit = 1; ; unit *= 1024) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 256, 512].find(count => most <= 4 * count * unit);
    if (step) return step * unit;
  }
}

// `history` holds [uptime, bytes per second]; uptime is the daemon's, so its restart begins anew.
function drawThroughput(chart, history) {
  const now = history.length ? history[history.length - 1][0] : 0;
  chart.data.datasets[0].data = history.map(([at, bytes]) => ({x: at - now, y: bytes}));
  const most = Math.max(2 ** 20, ...history.map(([, bytes]) => bytes));
  const axis = chart.options.scales.y;
  axis.ticks.stepSize = byteStep(most);
  axis.max = axis.ticks.stepSize * Math.ceil(most / axis.ticks.stepSize);
  chart.update("none");
}

function planChart(box) {
  const dots = (label, name, scale) => ({
    label, data: [], yAxisID: scale, pointRadius: 1.5, backgroundColor: colour(name),
    borderColor: colour(name)});
  return new Chart(canvas(box, "Longest length and rows of each batch, in the order of delivery"), {
    type: "scatter",
    data: {datasets: [dots("longest length", "client", "y"), dots("rows", "daemon", "rows")]},
    options: {
      events: [],
      scales: {x: axis("batch", {ticks: {maxTicksLimit: 6, maxRotation: 0}}),
               y: axis("frames", {ticks: {maxTicksLimit: 6}}),
               rows: axis("rows", {position: "right", grid: {display: false},
                                   ticks: {maxTicksLimit: 6, precision: 0}})},
      plugins: {legend: {labels: {usePointStyle: true, boxHeight: 6}}}}});
}

function drawPlan(chart, plan) {
  const [longest, rows] = chart.data.datasets;
  longest.data = plan.length_order.map(point => ({x: point[0], y: point[1]}));
  rows.data = plan.length_order.map(point => ({x: point[0], y: point[2]}));
  chart.options.scales.x.max = Math.max(1, plan.batches - 1);
  chart.update("none");
}
