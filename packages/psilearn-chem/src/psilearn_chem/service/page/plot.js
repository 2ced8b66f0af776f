// A spectrum as SVG: one line per peak; those that a formula explains are colored and labeled.
import { createSvg } from "../service.js";

const MAX_WIDTH = 640, HEIGHT = 260, MARGIN = 36, MAX_LABELS = 8, LABEL_WIDTH = 56;

export function plotSpectrum(spectrum, explained) {
  const width = Math.max(300, Math.min(MAX_WIDTH, document.documentElement.clientWidth - 32)); // so that texts keep their size
  const low = Math.min(...spectrum.mz), high = Math.max(...spectrum.mz, spectrum.precursor_mz || 0);
  const scale = (width - 2 * MARGIN) / Math.max(high - low, 1);
  const tallest = Math.max(...spectrum.intensity);
  const floor = HEIGHT - MARGIN;
  const x = (mz) => MARGIN + (mz - low) * scale;
  const y = (intensity) => floor - (floor - MARGIN) * (intensity / tallest);
  const count = explained.filter(Boolean).length;
  const svg = createSvg("svg", { class: "spectrum", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": `Mass spectrum with ${spectrum.mz.length} peaks from m/z ${low.toFixed(1)} to ${high.toFixed(1)}; ${count} are explained by the chosen formula` });
  if (spectrum.precursor_mz) svg.append(line("precursor", x(spectrum.precursor_mz), floor, MARGIN));
  svg.append(createSvg("path", { class: "axis", d: `M${MARGIN} ${floor}H${width - MARGIN}` }));
  spectrum.mz.forEach((mz, i) => {
    const peak = line(explained[i] ? "peak explained" : "peak", x(mz), floor, y(spectrum.intensity[i]));
    peak.append(createSvg("title", {}, `m/z ${mz.toFixed(4)}${explained[i] ? `, ${explained[i]}` : ""}`));
    svg.append(peak);
  });
  for (const i of chooseLabels(spectrum, x)) {
    svg.append(text(x(spectrum.mz[i]), y(spectrum.intensity[i]) - 5, explained[i] || spectrum.mz[i].toFixed(3), explained[i] ? "explained-text" : ""));
  }
  for (const tick of ticks(low, high)) svg.append(text(x(tick), floor + 16, String(tick)));
  svg.append(text(width - MARGIN, HEIGHT - 4, "m/z"));
  return svg;
}

const line = (name, x, from, to) => createSvg("path", { class: name, d: `M${x.toFixed(1)} ${from}V${to.toFixed(1)}` });
const text = (x, y, content, name = "") => createSvg("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": "middle", class: name }, content);

function chooseLabels(spectrum, x) {
  const order = spectrum.mz.map((_, i) => i).sort((a, b) => spectrum.intensity[b] - spectrum.intensity[a]);
  const chosen = [];
  for (const i of order) {
    if (chosen.length < MAX_LABELS && chosen.every((j) => Math.abs(x(spectrum.mz[i]) - x(spectrum.mz[j])) > LABEL_WIDTH)) chosen.push(i);
  }
  return chosen;
}

function ticks(low, high) {
  let step = 10 ** Math.floor(Math.log10(Math.max(high - low, 1) / 2));
  while ((high - low) / step > 6) step *= 2;
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) values.push(+value.toFixed(3));
  return values;
}
