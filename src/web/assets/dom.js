// Building and finding elements. Text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** An HTML element: `html("p", { class: "hint" }, "text", otherElement)`. */
export const html = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

/** The same for SVG. */
export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

/** Where numbers are rounded for attributes. */
export const round = (number) => Math.round(number * 100) / 100;

/** What the page remembers from visit to visit. Private windows may refuse. */
export const memory = {
  get(key, otherwise = null) {
    try {
      const text = localStorage.getItem(`tanren.${key}`);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`tanren.${key}`, JSON.stringify(value));
    } catch {
      // Then it is forgotten.
    }
  },
};
