// Elements are made node by node: whatever comes from a run becomes text, never markup.
"use strict";

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

let language = "en";

// A text of the page itself, in both languages.
function say(en, zh) {
  return el("span", { "data-en": en, "data-zh": zh }, language === "zh" ? zh : en);
}

function words(en, zh) {
  return language === "zh" ? zh : en;
}

function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-en]")) {
    node.textContent = node.getAttribute("data-" + chosen);
  }
}

function score(value) {
  return value === null || value === undefined ? "–" : String(Math.round(value * 1000) / 1000);
}
