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

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

// The buttons every page has; `redraw` is called after the language changed.
function startFrame(redraw) {
  const choose = (chosen) => {
    speak(chosen);
    $("language").textContent = chosen === "zh" ? "English" : "中文";
    redraw();
  };
  document.querySelector(".tools").hidden = false;
  $("language").addEventListener("click", () => choose(language === "zh" ? "en" : "zh"));
  $("theme").addEventListener("click", turnTheme);
  choose((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");
}
