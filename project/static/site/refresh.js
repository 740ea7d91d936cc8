// Brings the page up to date every second, and rests while nobody looks at it. The page works without it.
"use strict";

const EVERY = 1000;

for (const part of document.querySelectorAll("[data-refresh]")) {
  let shown = null;

  const refresh = async () => {
    const busy = part.contains(document.activeElement) && document.activeElement.tagName === "BUTTON";
    if (!document.hidden && !busy) {
      try {
        const answer = await fetch(part.dataset.refresh, { headers: { "X-Requested-With": "fetch" } });
        if (answer.ok) {
          const text = await answer.text();
          const bare = text.replace(/name="csrfmiddlewaretoken" value="[^"]*"/g, "");
          if (bare !== shown) {
            part.innerHTML = text;
            shown = bare;
          }
        }
      } catch {
        // The site is away; the next round asks again.
      }
    }
    setTimeout(refresh, EVERY);
  };

  setTimeout(refresh, EVERY);
}
