// The page: shows the parts that the models of the service need.
import { find, getJson, setToken } from "./service.js";
import { startDrawing } from "./drawing.js";
import { startModels } from "./models.js";

async function start() {
  let service;
  try {
    service = await getJson("/v1/models");
  } catch (error) {
    find("summary").textContent = error.status === 401 ? "This service needs a token." : `The service does not answer: ${error.message}`;
    find("token-form").hidden = error.status !== 401;
    return;
  }
  find("token-form").hidden = true;
  find("version").textContent = `psilearn ${service.version}`;
  const images = service.models.filter((model) => model.image_width && model.input_kind === "rows");
  const others = service.models.filter((model) => !images.includes(model));
  const parts = [];
  for (const [name, extension] of Object.entries(service.extensions)) {
    const { startExtension } = await import(`./${name}/${name}.js`);
    parts.push(startExtension(extension));
  }
  if (images.length) {
    find("title").textContent = "Complete handwritten digits";
    parts.push(`${images.map((model) => model.name).join(", ")} predict the lower half from the upper half.`);
    startDrawing(images);
  }
  if (others.length) {
    parts.push(`${others.length === 1 ? "Model" : "Models"}: ${others.map((model) => model.name).join(", ")}.`);
    startModels(others);
  }
  find("summary").textContent = parts.join(" ");
}

find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(find("token").value.trim());
  start();
});
start();
