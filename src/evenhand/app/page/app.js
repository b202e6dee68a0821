"use strict";
// Every page works without this file: it drops files, says what is going on and follows an audit while it runs.

// A file may be dropped anywhere on its form; one that is too large is refused before it is sent.
const size = (bytes) => (bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toPrecision(3)} GB` : `${(bytes / 2 ** 20).toPrecision(3)} MB`);
document.querySelectorAll("form.drop").forEach((form) => {
  const input = form.querySelector("input[type=file]");
  const check = () => {
    const file = input.files[0];
    const limit = Number(input.dataset.limit);
    const over = file && file.size > limit;
    input.setCustomValidity(over
      ? `The file has ${size(file.size)}; at most ${size(limit)} are taken as an upload. Name its path on this machine instead.`
      : "");
    if (over) input.reportValidity();
  };
  input.addEventListener("change", check);
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    check();
    input.focus();
  });
});

// A form that was sent says so and is not sent twice.
document.querySelectorAll("form[method=post]").forEach((form) => {
  form.addEventListener("submit", () => {
    const place = form.querySelector(".busy");
    if (place) place.textContent = form.dataset.busy;
    form.querySelectorAll("button").forEach((button) => { button.disabled = true; });
  });
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // come back to: what was sent before may be outdated
});

// Ask for the favourable value only of the decision and the outcome, and for cuts and a reference only of a group.
document.querySelectorAll("select[data-role]").forEach((select) => {
  const asked = { favourable: ["decision", "outcome"], cuts: ["group"], reference: ["group"] };
  for (const [name, roles] of Object.entries(asked)) {
    const place = document.querySelector(`[data-${name}="${select.dataset.role}"]`);
    if (!place) continue;
    const show = () => { place.hidden = !roles.includes(select.value); };
    select.addEventListener("change", show);
    show();
  }
});

// A margin of one's own is typed only when it is chosen.
const own = document.querySelector("input[name=margin][value=own]");
if (own) {
  const points = document.getElementById("own_margin").closest(".line");
  const show = () => { points.hidden = !own.checked; };
  document.querySelectorAll("input[name=margin]").forEach((one) => one.addEventListener("change", show));
  show();
}

// Follow work until it ends, then show the page that says how.
const following = document.querySelector("[data-state]");
if (following) {
  const now = document.getElementById("now");
  const lines = document.getElementById("lines");
  const look = async () => {
    try {
      const answer = await fetch(following.dataset.state, { cache: "no-store" });
      if (!answer.ok) return location.reload();
      const state = await answer.json();
      if (state.word !== "running") return location.reload();
      const last = state.progress.at(-1);
      if (last && now.textContent !== last) now.textContent = last;
      lines.replaceChildren(...state.progress.slice(0, -1).map((text) => {
        const line = document.createElement("li");
        line.textContent = text;
        return line;
      }));
    } catch {
      now.textContent = "The app does not answer. Is it still running in its window?";
    }
    setTimeout(look, 1000);
  };
  setTimeout(look, 500);
}
