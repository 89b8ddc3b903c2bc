"use strict";
// The server renders everything, and escapes all values; this only puts changed parts in the place of old ones.
(() => {
  // On a phone the page's own link comes into view; scrollIntoView would have the keyboard begin there, too.
  const bar = document.querySelector(".bar nav"), here = bar?.querySelector("[aria-current]");
  if (here) bar.scrollLeft = here.offsetLeft - bar.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;

  const sign = document.getElementById("live");
  if (sign) {
    const events = new EventSource(sign.dataset.events);
    const say = (state, text) => {
      if (sign.textContent !== text) sign.textContent = text;
      sign.className = `live ${state}`;
    };
    events.addEventListener("open", () => say("on", "live"));
    // A browser does not ask again after an answer that is an error, such as the form to log in once the program has
    // started anew.
    events.addEventListener("error", () => say("off", events.readyState === EventSource.CLOSED
      ? "not live: load the page again" : "not live: the page's program does not answer"));
    events.addEventListener("parts", (event) => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) replace(document.getElementById(id), html);
    });
  }

  // Sends a command, and shows the program's answer where it was given.
  for (const form of document.querySelectorAll("form[data-command]")) form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = form.querySelector("output");
    said.textContent = "…";
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(event.submitter?.formAction ?? form.action, { method: "POST", body });
      said.textContent = answer.status === 401 ? "Log in again: load the page again." : await answer.text();
    } catch {
      said.textContent = "The page's program does not answer.";
    }
  });

  // Suggests names of tables while one is typed.
  const table = document.querySelector("input[data-tables]");
  if (table) {
    let newest = 0;
    const suggest = async () => {
      const mine = ++newest;
      const answer = await fetch(`${table.dataset.tables}?text=${encodeURIComponent(table.value)}`);
      if (!answer.ok || mine !== newest) return;
      const names = await answer.json();
      table.list.replaceChildren(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
    };
    let timer;
    table.addEventListener("focus", suggest, { once: true });
    table.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(suggest, 150); });
  }

  // Shows what the index has got meanwhile.
  const results = document.getElementById("results");
  const again = async () => {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    const found = page.getElementById("results");
    if (found) {
      replace(results, found.innerHTML);
      if (found.dataset.refresh) setTimeout(() => again().catch(later), Number(found.dataset.refresh));
    }
  };
  const later = () => setTimeout(() => again().catch(later), 5000);
  if (results?.dataset.refresh) setTimeout(() => again().catch(later), Number(results.dataset.refresh));

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
