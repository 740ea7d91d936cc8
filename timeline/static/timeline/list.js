// Keys of the list: j and k go from row to row, x chooses one, Enter opens it (its link has the focus), ? says so. And one link
// chooses all that are shown. The page works without it.
"use strict";

{
  const OFF = "timeline-keys-off";
  const ROWS = "#tl-tasks tbody tr";

  const isOff = () => {
    try {
      return localStorage.getItem(OFF) === "yes";
    } catch {
      return false; // Storage may be forbidden.
    }
  };

  const keep = (off) => {
    try {
      localStorage.setItem(OFF, off ? "yes" : "no");
    } catch {
      // Then it holds for nothing.
    }
  };

  const isWriting = (element) =>
    element.isContentEditable || element.matches("input:not([type=checkbox]), textarea, select, dialog *");

  const here = () => document.activeElement.closest(ROWS);

  const go = (step) => {
    const rows = [...document.querySelectorAll(ROWS)];
    const at = rows.indexOf(here());
    const row = at < 0 ? rows[0] : rows[at + step];
    row?.querySelector(".tl-what a")?.focus();
  };

  const boxes = () => [...document.querySelectorAll("#tl-tasks input[name=task]")];

  // The link says what it would do now.
  const sayAll = () => {
    const link = document.querySelector("[data-timeline-all]");
    if (link) {
      link.textContent = boxes().every((box) => box.checked) ? link.dataset.timelineNone : link.dataset.timelineAll;
    }
  };

  const help = document.querySelector("[data-timeline-keys]");
  const acts = {
    j: () => go(1),
    k: () => go(-1),
    x: () => here()?.querySelector("input[name=task]")?.click(),
    "?": () => help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    const isOurs = act && (event.key === "?" || !isOff());
    if (!isOurs || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) {
      return;
    }
    event.preventDefault();
    act();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-timeline-keys-show]")) {
      help.showModal();
    } else if (event.target.closest("[data-timeline-all]") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      const isAll = boxes().every((box) => box.checked);
      boxes().forEach((box) => {
        box.checked = !isAll;
      });
      sayAll();
    }
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-timeline-keys-on]")) {
      keep(!event.target.checked);
    } else if (event.target.matches("#tl-tasks input[name=task]")) {
      sayAll();
    }
  });

  help.querySelector("[data-timeline-keys-on]").checked = !isOff();

  // What brings the page up to date shows the button as the site sends it.
  const show = () => {
    const button = document.querySelector("[data-timeline-keys-show]");
    if (button?.hidden) {
      button.hidden = false;
    }
  };
  show();
  new MutationObserver(show).observe(document.querySelector("#tl-tasks").parentElement, { attributes: true, subtree: true });
}
