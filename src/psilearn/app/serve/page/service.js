// Requests to the service, and small helpers for the elements of the page.

export const find = (id) => document.getElementById(id);

let token = sessionStorage.getItem("psilearn-token") || "";

export function setToken(text) {
  token = text;
  sessionStorage.setItem("psilearn-token", text);
}

export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  let detail = response.statusText;
  try {
    detail = describe((await response.json()).detail);
  } catch { /* the answer has no explanation */ }
  throw new ServiceError(response.status, detail);
}

export const getJson = async (path, options) => (await request(path, options)).json();

export const postJson = (path, content) =>
  getJson(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) });

function describe(detail) {
  if (!Array.isArray(detail)) return String(detail);
  return detail.map((item) => `${item.where.slice(1).join(".")}: ${item.problem}`).join("; ");
}

// Create an element. Texts are added as text nodes, never as HTML.
export function create(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  return fill(element, attributes, children);
}

export function createSvg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// The service writes null for ∞.
export const showNumber = (value, digits) => (value === null ? "∞" : value.toFixed(digits));

export function setStatus(id, text, isError = false) {
  const element = find(id);
  element.textContent = text;
  element.classList.toggle("error", isError);
}

export function download(name, content, type) {
  const link = create("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
