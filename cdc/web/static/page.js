"use strict";
// The server renders everything, and escapes all values; this only puts changed parts in the place of old ones.
(() => {
  const sign = document.getElementById("live");
  if (sign) {
    const events = new EventSource(sign.dataset.events);
    const say = (state, text) => {
      if (sign.textContent !== text) sign.textContent = text;
      sign.className = `live ${state}`;
    };
    events.addEventListener("open", () => say("on", "live"));
    events.addEventListener("error", () => say("off", "not live: the page's program does not answer"));
    events.addEventListener("parts", (event) => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) replace(document.getElementById(id), html);
    });
  }

  function replace(element, html) {
    if (!element) return;
    const selection = getSelection();
    // A text that somebody selects stays until they have copied it.
    if (selection && !selection.isCollapsed && element.contains(selection.anchorNode)) return;
    const open = new Set([...element.querySelectorAll("details[open]")].map((each) => each.id));
    const scrolled = new Map([...element.querySelectorAll(".scroll")].map((each, at) => [at, each.scrollLeft]));
    const focused = element.contains(document.activeElement) ? place(element, document.activeElement) : -1;
    element.innerHTML = html;
    for (const each of element.querySelectorAll("details")) each.open = open.has(each.id);
    element.querySelectorAll(".scroll").forEach((each, at) => { each.scrollLeft = scrolled.get(at) ?? 0; });
    if (focused >= 0) element.querySelectorAll("a, summary")[focused]?.focus({ preventScroll: true });
  }

  function place(element, focused) {
    return [...element.querySelectorAll("a, summary")].indexOf(focused);
  }
})();
