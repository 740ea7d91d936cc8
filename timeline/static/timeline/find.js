// "/" leads to the box that finds somebody. The page works without it.
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
