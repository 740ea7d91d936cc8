// Keeps an open page as the site would show it now: asks each second whether anything changed, or is told so where the site can, and
// changes just what differs. It rests while nobody looks or it was paused, never takes away what somebody has begun to fill in or choose, and says where it cannot go on.
// The page works without it.
"use strict";

const EVERY = 1000; // Milliseconds from an answer to the next question.
const MOST = 30000; // The longest time between two: while the site does not answer, or tells of each change by itself.
const QUIET = 20000; // So long nothing may be heard of a site that tells by itself: it says at least each ten seconds that it is there.
const PAUSED = "timeline-paused"; // Remembered for the session, in this tab, for each page.

const place = `${PAUSED}:${location.pathname}`;

const remembered = () => {
  try {
    return sessionStorage.getItem(place) === "yes";
  } catch {
    return false; // Storage may be forbidden.
  }
};

const remember = (paused) => {
  try {
    sessionStorage.setItem(place, paused ? "yes" : "no");
  } catch {
    // Then it holds for this page.
  }
};

const FIELDS = "input:not([type=hidden]), select, textarea";

const isTouched = (field) => {
  if (field === document.activeElement && !["button", "submit", "checkbox", "radio"].includes(field.type)) {
    return true;
  }
  if (field.matches("select")) {
    const chosen = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(chosen, 0);
  }
  return ["checkbox", "radio"].includes(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
};

// What somebody reads there, but for the time of day.
const wordsOf = (element) => {
  const copy = element.cloneNode(true);
  copy.querySelectorAll(".tl-clock").forEach((clock) => clock.remove());
  return copy.textContent.replace(/\s+/g, " ").trim();
};

// Removes a node; gives the one after it.
const without = (node) => {
  const next = node.nextSibling;
  node.remove();
  return next;
};

// Makes an element like another one, and leaves alone what is alike: the focus, where it is scrolled to, and what is folded open.
const liken = (old, fresh) => {
  if (old.isEqualNode(fresh)) {
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.matches("details"))) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
    }
  }
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    while (at && at.nodeType !== 1 && node.nodeType === 1) {
      at = without(at); // Such as the blanks before the first element, which an answer does not have.
    }
    const known = node.id ? [...old.children].find((child) => child.id === node.id) : null;
    while (known && at && known !== at && known.contains(document.activeElement)) {
      at = without(at); // If it were moved, it would lose the focus.
    }
    if (known && known !== at) {
      old.insertBefore(known, at);
      at = known;
    }
    if (at && at.nodeType === 1 && at.nodeName === node.nodeName && at.id === node.id) {
      liken(at, node);
      at = at.nextSibling;
    } else if (at && at.nodeType !== 1 && at.nodeType === node.nodeType) {
      if (at.data !== node.data) {
        at.data = node.data;
      }
      at = at.nextSibling;
    } else {
      old.insertBefore(document.importNode(node, true), at);
    }
  }
  while (at) {
    at = without(at);
  }
};

const PARTS = "[data-timeline-refresh]"; // Of one page: asked for, and shown, together.
const parts = [...document.querySelectorAll(PARTS)];

if (parts.length) {
  const [first] = parts;
  const pause = document.querySelector("[data-timeline-pause]");
  const said = document.querySelector("[data-timeline-said]");
  let seen = ""; // The version that is shown.
  let failed = 0;
  let paused = remembered();
  let saying = "";
  let timer = 0;
  let isAsking = false;
  let asked = 0;
  let hasNews = false; // Told while it was asking.
  let source = null; // What tells it of changes.
  let heard = 0; // When it did so last; 0: not yet, as behind a proxy that keeps what is said.
  let lost = 0; // How often in a row it went away.

  const isBusy = () => parts.some((part) => [...part.querySelectorAll(FIELDS)].some(isTouched));

  // One of the texts that wait in the page: "out", "refused", "away" or "new"; empty: all is well.
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

  // The answer is a page that has the parts, or the inside of the only one.
  const take = (text, version) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const found = [...page.querySelectorAll(PARTS)];
    const insides = found.length ? found : [page.body];
    const fresh = parts.map((part, at) => {
      const copy = part.cloneNode(false);
      copy.append(...(insides[at] ? insides[at].childNodes : []));
      return copy;
    });
    if (isBusy()) {
      const isSame = insides.length === parts.length && parts.every((part, at) => wordsOf(part) === wordsOf(fresh[at]));
      say(isSame ? "" : "new");
    } else if (insides.length !== parts.length) {
      location.reload(); // It has other parts now: which of them is which, nobody knows.
    } else {
      parts.forEach((part, at) => liken(part, fresh[at]));
      const [bar, counted] = [document, page].map((each) => each.querySelector(".tl-bar-nav"));
      if (bar && counted) {
        liken(bar, counted); // So that its counts are those of what is shown below it.
      }
      seen = version;
      say("");
    }
  };

  const ask = async () => {
    const answer = await fetch(first.dataset.timelineRefresh, { redirect: "manual", headers: { "X-Timeline-Seen": seen } });
    const text = answer.status === 200 ? await answer.text() : "";
    const isKnown = answer.status === 204 || text.includes("data-timeline-part");
    if (isKnown && saying === "out") {
      location.reload(); // After a login, forms need another token.
    } else if (answer.status === 204) {
      seen = answer.headers.get("X-Timeline-Version") || "";
      say("");
    } else if (isKnown) {
      take(text, answer.headers.get("X-Timeline-Version") || "");
    } else if (answer.ok || answer.type === "opaqueredirect" || answer.status === 401) {
      say("out"); // A login page instead of ours.
    } else if (answer.status === 403 || answer.status === 404) {
      say("refused");
    } else {
      throw new Error(`${answer.status}`);
    }
    failed = 0;
  };

  const isTold = () => source && Date.now() - heard < QUIET;

  const deafen = () => {
    source?.close();
    source = null;
    heard = 0;
  };

  const hear = (hasChanged) => {
    heard = Date.now();
    lost = 0;
    if (hasChanged) {
      hasNews = true;
      refresh();
    }
  };

  // Listens, where the page says that the site can tell. Whatever is wrong with it: the page asks, as it would without.
  const listen = () => {
    if (source || paused || document.hidden || !first.hasAttribute("data-timeline-told") || !window.EventSource) {
      return;
    }
    const mine = new EventSource(first.dataset.timelineRefresh);
    const end = () => {
      if (source === mine) {
        deafen();
        lost += 1;
        setTimeout(listen, Math.min(EVERY * 2 ** lost, MOST) * (1 + Math.random()));
        clearTimeout(timer);
        timer = setTimeout(refresh, EVERY * Math.random()); // Not all pages at once, when a server stops.
      }
    };
    source = mine;
    mine.addEventListener("here", () => hear(true));
    mine.addEventListener("changed", () => hear(true));
    mine.addEventListener("still", () => hear(false));
    mine.addEventListener("over", end);
    mine.addEventListener("full", () => {
      lost = 4; // Others listen already: it tries again in half a minute.
      end();
    });
    mine.addEventListener("error", end);
  };

  const refresh = async () => {
    clearTimeout(timer);
    if (isAsking || paused || document.hidden) {
      return;
    }
    const early = asked + EVERY / 2 - Date.now();
    if (early > 0) {
      timer = setTimeout(refresh, early); // However often it is told: twice a second at most.
      return;
    }
    isAsking = true;
    hasNews = false;
    asked = Date.now();
    try {
      await ask();
    } catch {
      failed += 1;
      if (failed > 1) {
        say("away");
      }
    }
    isAsking = false;
    const rest = failed ? EVERY * 2 ** (failed - 1) * (1 + Math.random()) : isTold() && saying !== "new" ? MOST / 2 : EVERY;
    timer = setTimeout(refresh, Math.min(hasNews ? EVERY / 2 : rest, MOST));
  };

  const wake = () => {
    if (paused || document.hidden) {
      deafen();
    }
    listen();
    refresh();
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    remember(paused);
    show();
    wake();
  });
  document.addEventListener("visibilitychange", wake);
  addEventListener("pagehide", deafen);
  addEventListener("pageshow", (event) => event.persisted && wake());
  addEventListener("online", wake);
  show();
  listen();
  timer = setTimeout(refresh, EVERY);
}
