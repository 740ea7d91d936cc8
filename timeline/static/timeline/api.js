/* The page of the REST API: names for what Swagger UI opens and leaves without one. */
"use strict";

(() => {
  const name = () => {
    for (const button of document.querySelectorAll(".swagger-ui .close-modal:not([aria-label])")) {
      button.setAttribute("aria-label", "Close");
    }
    for (const button of document.querySelectorAll(".swagger-ui .auth-btn-wrapper button[aria-label]")) {
      button.removeAttribute("aria-label"); // It says another word than the one that is seen.
    }
    for (const field of document.querySelectorAll(".swagger-ui .auth-container input:not([aria-label])")) {
      const label = field.closest(".wrapper")?.querySelector("label");
      field.setAttribute("aria-label", label ? label.textContent.replace(/:$/, "") : "Value");
    }
  };
  new MutationObserver(name).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });
})();
