// Brings the list up to date every few seconds, and rests while nobody looks or somebody is choosing. The page works without it.
"use strict";

const EVERY = 3000;

for (const part of document.querySelectorAll("[data-timeline-refresh]")) {
  let shown = null;

  const isBusy = () =>
    document.hidden || part.querySelector("input:checked") !== null || part.contains(document.activeElement);

  const refresh = async () => {
    if (!isBusy()) {
      try {
        const answer = await fetch(part.dataset.timelineRefresh, { redirect: "error" });
        const text = answer.ok ? await answer.text() : shown;
        if (text !== shown && !isBusy()) {
          part.innerHTML = text;
          shown = text;
        }
      } catch {
        // The site is away, or one has to log in again: the next round asks once more.
      }
    }
    setTimeout(refresh, EVERY);
  };

  setTimeout(refresh, EVERY);
}
