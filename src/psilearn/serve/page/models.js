// A form for models of rows, texts, numbers and other objects.
import { create, find, postJson, setStatus } from "./service.js";

const HELP = {
  rows: (model) => `${model.input_width} numbers, separated by spaces or commas`,
  "sparse rows": (model) => `JSON: {"indices": […], "values": […]} with indices below ${model.input_width}, or a list of all numbers`,
  texts: () => "A text",
  numbers: () => "A number",
  "table rows": (model) => `JSON object with the columns ${model.columns.slice(0, 12).join(", ")}`,
  objects: () => "An object as JSON",
};

export function startModels(models) {
  find("models").hidden = false;
  find("model").append(...models.map((model) => create("option", { value: model.name }, `${model.name} (${model.estimator})`)));
  const chosen = () => models.find((model) => model.name === find("model").value);
  const adapt = () => {
    find("input-label").textContent = (HELP[chosen().input_kind] || HELP.objects)(chosen());
    find("coverage-label").hidden = !chosen().calibrated;
  };
  find("model").addEventListener("change", adapt);
  adapt();
  find("predict-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await predict(chosen());
    } catch (error) {
      setStatus("predict-status", error.message, true);
    }
  });
}

async function predict(model) {
  const body = { model: model.name, inputs: [readInput(find("input").value, model.input_kind)] };
  const [top, set] = await Promise.all([
    postJson("/v1/topk", { ...body, k: Math.min(Number(find("k").value), model.n_candidates) }),
    model.calibrated ? postJson("/v1/sets", { ...body, coverage: Number(find("set-coverage").value) }) : null,
  ]);
  const size = set ? ` The conformal set has ${set.results[0].size} of ${model.n_candidates} outputs.` : "";
  setStatus("predict-status", `Nearest of ${model.n_candidates} candidates.${size}`);
  const { outputs, distances } = top.results[0];
  const members = set ? set.results[0].size : 0;
  find("outputs").replaceChildren(create("ol", { class: "outputs" }, ...outputs.map((output, i) =>
    create("li", {}, `${showOutput(output)} `, create("span", { class: "soft" }, `distance ${distances[i].toFixed(4)}${set ? (i < members ? ", in the set" : ", not in the set") : ""}`)))));
}

function readInput(text, kind) {
  if (kind === "texts") return text;
  if (kind === "rows") return text.trim().split(/[\s,;]+/).map(readNumber);
  if (kind === "numbers") return readNumber(text.trim());
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("The input is not JSON.");
  }
}

function readNumber(text) {
  const number = Number(text);
  if (text === "" || !Number.isFinite(number)) throw new Error(`“${text.slice(0, 30)}” is not a number.`);
  return number;
}

function showOutput(output) {
  if (typeof output === "string") return output;
  if (Array.isArray(output) && output.length > 2 && output.every((value) => value === 0 || value === 1)) {
    const labels = output.flatMap((value, i) => (value ? [i] : []));
    return labels.length ? `labels ${labels.join(", ")}` : "no label";
  }
  if (Array.isArray(output)) return output.map((value) => (typeof value === "number" ? +value.toFixed(4) : JSON.stringify(value))).join(", ");
  return JSON.stringify(output);
}
