// Hands a timeline to the public Perfetto UI, once the button is pressed: docs/viewing.md.
"use strict";
const button = document.getElementById("open");
const state = document.getElementById("state");
const PATIENCE_MS = 60000;

button.addEventListener("click", async () => {
  const { trace, ui, title } = button.dataset;
  const tab = window.open(ui); // at once: a browser opens windows only while the click is being handled
  if (tab === null) {
    state.textContent = "The browser kept the tab from opening; allow pop-ups for this page and try again.";
    return;
  }
  state.textContent = "Waiting for the Perfetto UI …";
  const ready = new Promise((resolve, reject) => {
    const ping = setInterval(() => tab.postMessage("PING", ui), 100);
    const late = setTimeout(() => {
      clearInterval(ping);
      reject(new Error("the Perfetto UI did not answer"));
    }, PATIENCE_MS);
    addEventListener("message", (event) => {
      if (event.origin !== ui || event.source !== tab || event.data !== "PONG") return;
      clearInterval(ping);
      clearTimeout(late);
      resolve();
    });
  });
  try {
    const answer = await fetch(trace);
    if (!answer.ok) throw new Error(await answer.text());
    const buffer = await answer.arrayBuffer();
    await ready;
    tab.postMessage({ perfetto: { buffer, title } }, ui, [buffer]);
    state.textContent = "Handed over.";
  } catch (error) {
    state.textContent = `It did not work: ${error.message}`;
  }
});
