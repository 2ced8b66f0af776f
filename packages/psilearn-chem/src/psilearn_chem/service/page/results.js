// Results of a job: spectra by confidence, ranked structures, choices and notes.
import { create, createSvg, download, find, request, setStatus, showNumber } from "../service.js";
import { plotSpectrum } from "./plot.js";

let results, job, shown;
let choices = {}; // by the number of the spectrum: { smiles, note }
const filters = { unseen: false, inSet: false, formula: "" };

// Structures are drawn when they come into view.
const views = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((item) => item.isIntersecting)) {
    views.unobserve(entry.target);
    drawStructure(entry.target);
  }
}, { rootMargin: "400px" });

export function showResults(content, id) {
  [results, job] = [content, id];
  choices = JSON.parse(localStorage.getItem(`psilearn-${id}`) || "{}");
  find("results").hidden = false;
  const order = [...results.spectra].sort((a, b) => isSingle(a) - isSingle(b) || confidence(b) - confidence(a));
  find("spectra-rows").replaceChildren(...order.map(createRow));
  const notes = results.problems.map((problem) => `Not ranked: ${problem.source}: ${problem.reason}`);
  const byMass = results.spectra.filter((spectrum) => spectrum.set_size !== null && spectrum.found_by.startsWith("mass")).length;
  if (byMass) notes.unshift(`The candidates of ${byMass} spectra were found by mass: the coverage of their sets is not promised, because the calibration used candidates of one formula.`);
  find("problems").replaceChildren(...notes.map((note) => create("p", { class: "soft" }, note)));
  for (const button of document.querySelectorAll("[data-download]")) button.onclick = () => save(button.dataset.download).catch((error) => setStatus("rank-status", error.message, true));
  if (order.length) show(order[0]);
  else find("detail").replaceChildren();
}

const isSingle = (spectrum) => Number(spectrum.n_candidates === 1); // nothing was compared: last
const confidence = (spectrum) => spectrum.confidence ?? spectrum.candidates[0]?.margin ?? 0;
const title = (spectrum) => spectrum.name || `spectrum ${spectrum.number}`;

function createRow(spectrum) {
  const button = create("button", { type: "button", onclick: () => show(spectrum) }, title(spectrum));
  const value = isSingle(spectrum) ? "only candidate" : spectrum.confidence === null ? "–" : spectrum.confidence.toFixed(2);
  const size = spectrum.set_size === null ? "–" : `${spectrum.set_size} of ${spectrum.n_candidates}`;
  return create("tr", { "data-number": spectrum.number }, create("td", {}, button), create("td", {}, spectrum.precursor_mz?.toFixed(4) ?? "–"), create("td", {}, value), create("td", {}, size));
}

function show(spectrum) {
  shown = spectrum;
  for (const row of find("spectra-rows").children) row.setAttribute("aria-current", String(row.dataset.number === String(spectrum.number)));
  const chosen = choices[spectrum.number]?.smiles;
  const selected = spectrum.candidates.find((candidate) => candidate.smiles === chosen) || spectrum.candidates[0];
  const facts = [spectrum.adduct, `${spectrum.mz.length} peaks`, `${spectrum.n_candidates} candidates of ${spectrum.found_by}`].filter(Boolean).join(" · ");
  find("detail").replaceChildren(
    create("h3", {}, title(spectrum)),
    create("p", { class: "soft" }, facts),
    create("figure", { id: "plot" }),
    createFilters(),
    create("div", { role: "radiogroup", "aria-label": "Preferred structure" }, create("ol", { class: "candidates", id: "candidates" })),
    create("label", {}, "Note on this spectrum", create("textarea", { id: "note", rows: 2, oninput: (event) => remember({ note: event.target.value }) })),
  );
  setStatus("shown", `${title(spectrum)}: ${spectrum.candidates.length} structures`);
  find("note").value = choices[spectrum.number]?.note || "";
  showPlot(selected);
  showCandidates();
}

function createFilters() {
  const toggle = (name, text) => create("label", { class: "check" }, create("input", { type: "checkbox", id: `filter-${name}`, checked: filters[name], onchange: (event) => { filters[name] = event.target.checked; showCandidates(); } }), ` ${text}`);
  const formula = create("input", { id: "filter-formula", value: filters.formula, spellcheck: "false", oninput: (event) => { filters.formula = event.target.value.trim(); showCandidates(); } });
  return create("div", { class: "fields", role: "group", "aria-label": "Filters" }, toggle("unseen", "hide molecules of the training"), toggle("inSet", "only the conformal set"), create("label", {}, "Formula", formula));
}

function showPlot(candidate) {
  const explained = candidate ? shown.explained[candidate.formula] : shown.mz.map(() => "");
  const caption = candidate ? `${explained.filter(Boolean).length} of ${shown.mz.length} peaks are parts of ${candidate.formula}` : "";
  find("plot").replaceChildren(plotSpectrum(shown, explained), create("figcaption", { class: "soft" }, caption));
}

const passes = (candidate) => !(filters.unseen && candidate.trained_on) && !(filters.inSet && candidate.in_set === false) && (!filters.formula || candidate.formula === filters.formula);

function showCandidates() {
  const listed = shown.candidates.filter(passes);
  views.disconnect();
  find("candidates").replaceChildren(...listed.map(createCard));
  if (!listed.length) find("candidates").append(create("li", {}, "No structure passes the filters."));
}

function createCard(candidate) {
  const isChosen = choices[shown.number]?.smiles === candidate.smiles;
  const radio = create("input", { type: "radio", name: "preferred", value: candidate.smiles, checked: isChosen, onchange: () => choose(candidate) });
  const figure = create("div", { class: "structure", "data-row": candidate.row, "data-smiles": candidate.smiles });
  views.observe(figure);
  const numbers = [`distance ${showNumber(candidate.distance, 4)}`, candidate.p_value === null ? null : `p-value ${candidate.p_value.toFixed(2)}`];
  const marks = [candidate.in_set ? "in the conformal set" : null, candidate.trained_on ? "trained on" : null].filter(Boolean);
  return create("li", { class: `${candidate.in_set ? "in-set" : ""} ${isChosen ? "chosen" : ""}` },
    create("label", {}, radio, ` rank ${candidate.rank}${candidate.name ? ` · ${candidate.name}` : ""}`),
    figure,
    create("p", {}, numbers.filter(Boolean).join(" · ")),
    create("p", {}, [candidate.formula, ...marks].join(" · ")),
    create("p", {}, create("code", {}, candidate.smiles)));
}

function choose(candidate) {
  remember({ smiles: candidate.smiles });
  for (const card of find("candidates").children) card.classList.toggle("chosen", card.querySelector("input")?.value === candidate.smiles);
  showPlot(candidate);
}

function remember(change) {
  choices[shown.number] = { ...choices[shown.number], ...change };
  localStorage.setItem(`psilearn-${job}`, JSON.stringify(choices));
}

async function drawStructure(figure) {
  try {
    const text = await (await request(`/v1/molecules/${figure.dataset.row}/structure`)).text();
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (svg.nodeName !== "svg") throw new Error("not a drawing");
    svg.setAttribute("role", "img");
    svg.prepend(createSvg("title", {}, figure.dataset.smiles));
    figure.replaceChildren(document.importNode(svg, true));
  } catch {
    figure.textContent = "(cannot be drawn)";
  }
}

async function save(kind) {
  if (kind === "choices") return download("choices.csv", formatChoices(), "text/csv");
  if (kind === "json") return download("results.json", JSON.stringify({ ...results, choices }), "application/json");
  const blob = await (await request(`/v1/spectra/${job}/results?format=${kind}`)).blob();
  return download(kind === "csv" ? "ranks.csv" : "results.mztab", blob, blob.type);
}

function formatChoices() {
  const quote = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const rows = results.spectra.map((spectrum) => {
    const choice = choices[spectrum.number] || {};
    const candidate = spectrum.candidates.find((item) => item.smiles === choice.smiles);
    return [spectrum.number, title(spectrum), choice.smiles, candidate?.name, candidate?.formula, candidate?.rank, candidate?.distance, choice.note];
  });
  const header = ["query", "spectrum", "smiles", "name", "formula", "rank", "distance", "note"];
  return [header, ...rows].map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}
