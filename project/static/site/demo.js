// Keeps the bar of the demo up to date, and presses its buttons without loading the two pages anew. It works without, too.
"use strict";

const bar = document.querySelector("[data-demo]");
const EVERY = 500;

const refresh = async () => {
  const at = document.activeElement;
  const focused = bar.contains(at) ? [...bar.querySelectorAll("button")].indexOf(at) : -1;
  try {
    const answer = await fetch(bar.dataset.demo, { headers: { "X-Requested-With": "fetch" } });
    if (answer.ok && !answer.redirected) {
      bar.innerHTML = await answer.text();
      if (focused >= 0) {
        bar.querySelectorAll("button")[focused].focus();
      }
    }
  } catch {
    // The site is away; the next round asks again.
  }
};

const go = async () => {
  if (!document.hidden) {
    await refresh();
  }
  setTimeout(go, EVERY);
};

bar.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter;
  if (button.getAttribute("aria-disabled") === "true") {
    return;
  }
  const answer = await fetch(event.target.action, {
    method: "POST",
    body: new FormData(event.target, button),
    headers: { "X-Requested-With": "fetch" },
  });
  if (answer.ok) {
    const pages = await answer.json();
    for (const name of ["customer", "operator"]) {
      if (pages[name]) {
        document.querySelector(`iframe[name=${name}]`).src = pages[name];
      }
    }
  }
  refresh();
});

setTimeout(go, EVERY);
