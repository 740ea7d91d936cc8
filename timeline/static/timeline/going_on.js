// Sends the form of what is under way again, until it is done; a link on the page stops that. Without scripts, a button goes on.
"use strict";

const under_way = document.querySelector("[data-timeline-going-on]");
if (under_way) {
  const timer = setTimeout(() => under_way.requestSubmit(), 300);
  for (const link of under_way.querySelectorAll("a")) {
    link.addEventListener("click", () => clearTimeout(timer));
  }
}
