// "/" leads to the box that finds, and what may be meant is offered while somebody types. The page works without it.
"use strict";

const isTyping = (element) => element.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);

document.addEventListener("keydown", (event) => {
  const box = document.querySelector("[data-timeline-find]");
  if (!box || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
    return;
  }
  event.preventDefault(); // Else the character would be typed into it.
  box.focus();
  box.select();
});

const REST = 250; // Milliseconds for which nobody types, before the site is asked.
let typing = 0;
let asked = "";

document.addEventListener("input", (event) => {
  const box = event.target;
  if (!box.matches || !box.matches("[data-timeline-find]")) {
    return;
  }
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const words = box.value.trim();
    if (words.length < 2 || words === asked) {
      return;
    }
    asked = words;
    try {
      const answer = await fetch(`${box.dataset.timelineFind}?suggest&words=${encodeURIComponent(words)}`, { redirect: "error" });
      const { names } = await answer.json();
      if (box.value.trim() === words) {
        box.list.replaceChildren(...names.map((name) => new Option("", name)));
      }
    } catch {
      // Nothing is offered then.
    }
  }, REST);
});
