// Numbers as people read them: at most four digits and a unit.

const kilo = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const kibi = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]];

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const places = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return value.toFixed(places);
}

function scaled(value, steps, unit) {
  const step = steps.find(([size]) => Math.abs(value) >= size);
  if (!step) return (Number.isInteger(value) ? String(value) : digits(value)) + " " + unit;
  return digits(value / step[0]) + " " + step[1] + unit;
}

function duration(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return digits(seconds * 1e6) + " µs";
  if (seconds < 1) return digits(seconds * 1e3) + " ms";
  if (seconds < 120) return digits(seconds) + " s";
  const [big, small, units] = seconds < 7200 ? [60, 1, ["min", "s"]]
    : seconds < 172800 ? [3600, 60, ["h", "min"]] : [86400, 3600, ["d", "h"]];
  const whole = Math.floor(seconds / big);
  return whole + " " + units[0] + " " + Math.floor((seconds - whole * big) / small) + " " + units[1];
}

// null stands for a figure that there is none of.
function orDash(write) {
  return value => value === null || value === undefined ? "–" : write(value);
}

const show = {
  text: orDash(String),
  whole: orDash(value => value.toLocaleString("en")),
  rate: orDash(value => scaled(value, kilo, "").trim() + "/s"),
  byteRate: orDash(value => scaled(value, kibi, "B/s")),
  bytes: orDash(value => scaled(value, kibi, "B")),
  share: orDash(value => (100 * value).toFixed(1) + " %"),
  length: orDash(value => digits(value) + (value === 1 ? " frame" : " frames")),
  time: orDash(duration),
  cores: orDash(value => digits(value) + (value === 1 ? " core" : " cores")),
};
