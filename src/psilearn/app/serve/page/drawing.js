// Draw the upper part of an image; the models complete it.
import { create, find, postJson, setStatus, showNumber } from "./service.js";

const CELL = 36; // pixels of the screen per pixel of the image
const SMALL = 16;
const DELAY = 80; // milliseconds after the last stroke
const EXAMPLE = [[2, 0.3, 1.5], [4, 0.2, 1.5], [5.4, 1, 1.4], [1.6, 1, 1.4], [1.6, 2, 1.3], [2.4, 3, 1.3], [4, 3.3, 1.3], [5.4, 2, 1.3], [5.5, 3, 1.3]];

let models, width, height, pixels, timer, cursor = { x: 0, y: 0 };
let number = 0; // of the latest request

export function startDrawing(served) {
  models = served;
  width = served[0].image_width;
  height = served[0].input_width / width;
  pixels = new Float32Array(width * height);
  find("drawing").hidden = false;
  const board = find("board");
  board.width = width * CELL;
  board.height = height * CELL;
  board.addEventListener("pointerdown", (event) => { board.setPointerCapture(event.pointerId); stroke(event); });
  board.addEventListener("pointermove", (event) => { if (event.buttons) stroke(event); });
  board.addEventListener("keydown", moveCursor);
  board.addEventListener("focus", paint);
  board.addEventListener("blur", paint);
  find("clear").addEventListener("click", () => { pixels.fill(0); changed(); });
  find("example").addEventListener("click", () => { pixels.fill(0); EXAMPLE.forEach(([x, y, size]) => dab(x, y, size)); changed(); });
  find("completions").replaceChildren(...models.map(createCompletion));
  paint();
}

function createCompletion(model) {
  const rows = height + model.output_width / width;
  const canvas = create("canvas", { id: `completion-${model.name}`, width: width * SMALL, height: rows * SMALL, role: "img", "aria-label": `${model.name}: nothing drawn yet` });
  return create("figure", {}, canvas, create("figcaption", {}, model.name, create("span", { class: "soft", id: `distance-${model.name}` })));
}

function stroke(event) {
  const box = event.target.getBoundingClientRect();
  dab(((event.clientX - box.left) / box.width) * width - 0.5, ((event.clientY - box.top) / box.height) * height - 0.5, 1.6);
  changed();
}

// Darken the pixels around a point, in units of pixels of the image.
function dab(x, y, size) {
  for (let i = 0; i < pixels.length; i++) {
    const distance = Math.hypot((i % width) - x, Math.floor(i / width) - y);
    pixels[i] = Math.max(pixels[i], Math.min(1, Math.max(0, size - distance)));
  }
}

function moveCursor(event) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (step) {
    cursor = { x: Math.min(width - 1, Math.max(0, cursor.x + step[0])), y: Math.min(height - 1, Math.max(0, cursor.y + step[1])) };
    paint();
  } else if (event.key === " ") {
    dab(cursor.x, cursor.y, 1.6);
    changed();
  } else if (event.key === "Delete" || event.key === "Backspace") {
    pixels[cursor.y * width + cursor.x] = 0;
    changed();
  } else return;
  event.preventDefault();
}

function changed() {
  paint();
  clearTimeout(timer);
  timer = setTimeout(() => complete().catch((error) => setStatus("drawing-status", error.message, true)), DELAY);
}

function paint() {
  const board = find("board");
  draw(board, Array.from(pixels), CELL);
  const n = pixels.filter((value) => value > 0.1).length;
  board.setAttribute("aria-label", n ? `Upper half of a digit, ${n} of ${pixels.length} pixels drawn` : "Upper half of a digit, empty");
  if (document.activeElement === board) {
    const context = board.getContext("2d");
    context.strokeStyle = "#0b6965";
    context.lineWidth = 3;
    context.strokeRect(cursor.x * CELL + 2, cursor.y * CELL + 2, CELL - 4, CELL - 4);
  }
}

function draw(canvas, values, cell) {
  const context = canvas.getContext("2d");
  values.forEach((value, i) => {
    const gray = Math.round(255 * (1 - Math.min(1, Math.max(0, value))));
    context.fillStyle = `rgb(${gray},${gray},${gray})`;
    context.fillRect((i % width) * cell, Math.floor(i / width) * cell, cell, cell);
  });
}

async function complete() {
  const mine = ++number;
  const upper = Array.from(pixels);
  const answers = await Promise.all(models.map((model) => postJson("/v1/topk", { model: model.name, inputs: [upper], k: 1 })));
  if (mine !== number) return; // a later stroke was answered first
  answers.forEach((answer, i) => {
    const { outputs, distances } = answer.results[0];
    const canvas = find(`completion-${models[i].name}`);
    draw(canvas, [...upper, ...outputs[0]], SMALL);
    canvas.setAttribute("aria-label", `${models[i].name}: completed digit`);
    find(`distance-${models[i].name}`).textContent = ` · distance ${showNumber(distances[0], 3)}`;
  });
  const lower = new Set(answers.map((answer) => JSON.stringify(answer.results[0].outputs[0])));
  setStatus("drawing-status", lower.size === 1 ? "All methods choose the same lower half." : `The methods choose ${lower.size} different lower halves.`);
}
