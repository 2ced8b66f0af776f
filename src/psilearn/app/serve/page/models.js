// A form for models of rows, texts, numbers and other objects.
import { create, find, postJson, setStatus, showNumber } from "./service.js";

const MAX_FIELDS = 60; // columns of a table that get a field each
const HELP = {
  rows: (model) => `${model.input_width} numbers, separated by spaces or commas`,
  "sparse rows": (model) => `JSON: {"indices": […], "values": […]} with indices below ${model.input_width}, or a list of all numbers`,
  texts: () => "A text",
  numbers: () => "A number",
  "table rows": (model) => `JSON object with the columns ${model.columns.slice(0, 12).join(", ")}`,
  graphs: () => 'A graph as JSON: {"node_labels": ["C", "O"], "edges": [[0, 1]]}',
  objects: () => "An object as JSON",
};

export function startModels(models) {
  find("models").hidden = false;
  find("model").append(...models.map((model) => create("option", { value: model.name }, `${model.name} (${model.estimator})`)));
  const chosen = () => models.find((model) => model.name === find("model").value);
  const adapt = () => {
    const model = chosen(), fields = hasFields(model) ? model.columns.map((name) => createField(name, model)) : [];
    find("input-label").textContent = (HELP[model.input_kind] || HELP.objects)(model);
    find("columns").replaceChildren(...fields);
    find("columns").hidden = !fields.length;
    find("input-field").hidden = fields.length > 0;
    find("input").required = !fields.length;
    find("coverage-label").hidden = !model.calibrated;
    find("outputs").replaceChildren();
    setStatus("predict-status", "");
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

const hasFields = (model) => model.input_kind === "table rows" && model.columns.length <= MAX_FIELDS;

// A field of a table row; an empty one is a missing value.
function createField(name, model) {
  const isText = model.text_columns.includes(name);
  return create("label", {}, name, create("input", { "data-column": name, inputmode: isText ? null : "decimal", spellcheck: "false" }));
}

function readRow(model) {
  const cells = [...find("columns").querySelectorAll("input")].map((field) => {
    const name = field.dataset.column, text = field.value.trim();
    return [name, text === "" ? null : model.text_columns.includes(name) ? text : readNumber(text)];
  });
  return Object.fromEntries(cells);
}

async function predict(model) {
  const input = hasFields(model) ? readRow(model) : readInput(find("input").value, model.input_kind);
  const body = { model: model.name, inputs: [input] };
  const [top, set] = await Promise.all([
    postJson("/v1/topk", { ...body, k: Math.min(Number(find("k").value), model.n_candidates) }),
    model.calibrated ? postJson("/v1/sets", { ...body, coverage: Number(find("set-coverage").value) }) : null,
  ]);
  const size = set ? ` The conformal set has ${set.results[0].size} of ${model.n_candidates} outputs.` : "";
  setStatus("predict-status", `Nearest of ${model.n_candidates} candidates.${size}`);
  const { outputs, distances } = top.results[0];
  const members = set ? set.results[0].size : 0;
  find("outputs").replaceChildren(create("ol", { class: "outputs" }, ...outputs.map((output, i) =>
    create("li", {}, `${showOutput(output)} `, create("span", { class: "soft" }, `distance ${showNumber(distances[i], 4)}${set ? (i < members ? ", in the set" : ", not in the set") : ""}`)))));
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
  if (output && Array.isArray(output.indices)) return output.indices.length ? `columns ${output.indices.join(", ")}` : "no column";
  if (output && output.node_labels) return `graph ${output.node_labels.join(" ")}, edges ${output.edges.map(([i, j, label]) => `${i}–${j}${label === null ? "" : ` (${label})`}`).join(" ")}`;
  if (output && typeof output === "object") return Object.entries(output).map(([name, value]) => `${name}: ${value}`).join(", ");
  return JSON.stringify(output);
}
