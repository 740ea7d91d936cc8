// Brings the list up to date every few seconds, and rests while nobody looks, somebody is choosing, or it was paused. Where it cannot,
// it says so. The page works without it.
"use strict";

const EVERY = 3000;
const PAUSED = "timeline-paused"; // Remembered for the session, in this tab.

const remembered = () => {
  try {
    return sessionStorage.getItem(PAUSED) === "yes";
  } catch {
    return false; // Storage may be forbidden.
  }
};

const remember = (paused) => {
  try {
    sessionStorage.setItem(PAUSED, paused ? "yes" : "no");
  } catch {
    // Then it holds for this page.
  }
};

for (const part of document.querySelectorAll("[data-timeline-refresh]")) {
  const pause = document.querySelector("[data-timeline-pause]");
  const said = document.querySelector("[data-timeline-said]");
  let shown = null;
  let failed = 0;
  let paused = remembered();
  let saying = "";

  const isBusy = () =>
    paused || document.hidden || part.querySelector("input:checked") !== null || part.contains(document.activeElement);

  // One of the texts that wait in the page: "out", "refused" or "away"; empty: all is well.
  const say = (what) => {
    if (what !== saying) {
      const text = what && document.querySelector(`template[data-timeline-when="${what}"]`);
      said.replaceChildren(...(text ? [text.content.cloneNode(true)] : []));
      saying = what;
    }
  };

  const show = () => {
    pause.hidden = false;
    pause.textContent = paused ? pause.dataset.goOn : pause.dataset.pause;
  };

  const take = (text) => {
    if (saying === "out") {
      location.reload(); // After a login, forms need another token.
    } else if (text !== shown && !isBusy()) {
      part.innerHTML = text;
      shown = text;
    }
  };

  const ask = async () => {
    const answer = await fetch(part.dataset.timelineRefresh, { redirect: "manual" });
    const text = answer.ok ? await answer.text() : "";
    if (text.includes("data-timeline-part")) {
      failed = 0;
      take(text);
      say("");
    } else if (answer.ok || answer.type === "opaqueredirect" || answer.status === 401) {
      say("out"); // A login page instead of the list.
    } else if (answer.status === 403 || answer.status === 404) {
      say("refused");
    } else {
      throw new Error(`${answer.status}`);
    }
  };

  const refresh = async () => {
    if (!isBusy()) {
      try {
        await ask();
      } catch {
        failed += 1;
        if (failed > 1) {
          say("away");
        }
      }
    }
    setTimeout(refresh, EVERY);
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    remember(paused);
    show();
  });
  show();
  setTimeout(refresh, EVERY);
}
