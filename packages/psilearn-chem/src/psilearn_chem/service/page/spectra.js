// Send spectra, follow the job, and show its results.
import { create, find, getJson, postJson, request, setStatus } from "../service.js";
import { showResults } from "./results.js";

const FORMATS = { mgf: "mgf", msp: "msp", mzml: "mzml", ms: "ms", txt: "massbank", massbank: "massbank", parquet: "parquet" };
const OPTIONS = ["adduct", "by", "ppm", "top", "coverage", "merge"]; // ids of the form, and names in the address
const FLAGS = ["any_adduct", "whole_set"];
const PAUSE = 400; // milliseconds between questions for the progress

let job = null;

export function startExtension(service) {
  find("title").textContent = "Identify molecules from mass spectra";
  find("spectra").hidden = false;
  find("adducts").append(...service.adducts.map((adduct) => create("option", { value: adduct })));
  const parameters = new URLSearchParams(location.search);
  for (const name of OPTIONS) if (parameters.has(name)) find(name).value = parameters.get(name);
  for (const name of FLAGS) find(name).checked = parameters.get(name) === "true";
  find("rank-form").addEventListener("submit", submit);
  find("rank-form").addEventListener("change", updateAddress);
  find("cancel").addEventListener("click", () => request(`/v1/spectra/${job}`, { method: "DELETE" }).catch(showError));
  watchDrops(find("drop"));
  if (/^[0-9a-f]{32}$/.test(parameters.get("job") || "")) follow(parameters.get("job")).catch(showError);
  return `Metabolite model “${service.model}”, ${service.molecules.toLocaleString("en")} candidate molecules.`;
}

function watchDrops(area) {
  for (const name of ["dragenter", "dragover"]) area.addEventListener(name, (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    area.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    find("file").files = event.dataTransfer.files;
    setStatus("rank-status", `${event.dataTransfer.files[0].name} is ready.`);
  });
  // A file that is dropped next to the area must not replace the page.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
}

function readOptions() {
  const options = { by: find("by").value, ppm: Number(find("ppm").value), top: Number(find("top").value), coverage: Number(find("coverage").value) };
  for (const name of FLAGS) options[name] = find(name).checked;
  if (find("merge").value) options.merge = find("merge").value;
  if (find("adduct").value.trim()) options.adduct = find("adduct").value.trim();
  return options;
}

// Keep the parameters and the job in the address, so that it can be shared.
function updateAddress() {
  const parameters = new URLSearchParams(readOptions());
  if (job) parameters.set("job", job);
  history.replaceState(null, "", `?${parameters}`);
}

async function submit(event) {
  event.preventDefault();
  try {
    const file = find("file").files[0];
    if (file && find("peaks").value.trim()) throw new Error("There are a file and pasted peaks: remove the peaks, or reload the page.");
    const state = file ? await sendFile(file) : await sendPeaks();
    await follow(state.id);
  } catch (error) {
    showError(error);
  }
}

function sendFile(file) {
  const format = FORMATS[file.name.split(".").pop().toLowerCase()];
  if (!format) throw new Error("The name of the file must end in .mgf, .msp, .mzML, .ms, .txt, .massbank or .parquet.");
  const parameters = new URLSearchParams({ ...readOptions(), format });
  return getJson(`/v1/spectra/upload?${parameters}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
}

function sendPeaks() {
  const lines = find("peaks").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!lines.length) throw new Error("Choose a file, or paste the peaks of a spectrum.");
  const peaks = lines.map((line) => line.split(/[\s,;:]+/).map(Number));
  const wrong = peaks.findIndex((peak) => peak.length < 2 || !peak.slice(0, 2).every(Number.isFinite));
  if (wrong >= 0) throw new Error(`Line ${wrong + 1} of the peaks is not an m/z and an intensity.`);
  const spectrum = { mz: peaks.map((peak) => peak[0]), intensity: peaks.map((peak) => peak[1]), name: "pasted" };
  const precursor = Number(find("precursor").value.trim() || NaN);
  if (!Number.isFinite(precursor)) throw new Error("The precursor m/z is needed.");
  spectrum.precursor_mz = precursor;
  if (find("formula").value.trim()) spectrum.formula = find("formula").value.trim();
  return postJson("/v1/spectra", { spectra: [spectrum], options: readOptions() });
}

async function follow(id) {
  job = id;
  updateAddress();
  find("cancel").hidden = false;
  find("results").hidden = true;
  const bar = find("progress");
  bar.hidden = false;
  bar.removeAttribute("value");
  let state;
  for (;;) {
    state = await getJson(`/v1/spectra/${id}`);
    if (job !== id) return; // another job was started
    if (state.state !== "waiting" && state.state !== "running") break;
    if (state.total) { bar.max = state.total; bar.value = state.done; }
    setStatus("rank-status", state.total ? `${state.done} of ${state.total} spectra are ranked.` : "The spectra are being read.");
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  bar.hidden = true;
  find("cancel").hidden = true;
  if (state.state !== "finished") throw new Error(state.error || `The job was ${state.state}.`);
  const results = await getJson(`/v1/spectra/${id}/results`);
  setStatus("rank-status", `${state.done} spectra ranked, ${state.n_problems} not ranked.`);
  showResults(results, id);
}

function showError(error) {
  find("progress").hidden = true;
  find("cancel").hidden = true;
  setStatus("rank-status", error.message, true);
}
