"use strict";
// Draw each chart when it is first seen: a page with many charts opens at once.
const page = JSON.parse(document.getElementById("charts").textContent);
const draw = async (figure) => {
  const place = figure.querySelector(".live");
  figure.classList.add("drawn");
  try {
    await vegaEmbed(place, { ...page.charts[figure.dataset.chart], config: page.config, width: "container" }, {
      actions: false,
      ast: true,
      renderer: "svg",
    });
  } catch (error) {
    figure.classList.remove("drawn");
    console.error(error);
  }
};
const watcher = new IntersectionObserver((seen) => {
  for (const entry of seen) {
    if (entry.isIntersecting) {
      watcher.unobserve(entry.target);
      draw(entry.target);
    }
  }
}, { rootMargin: "200px" });
document.querySelectorAll("figure[data-chart]").forEach((figure) => watcher.observe(figure));

// A link to a finding opens its evidence.
const open = () => {
  const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  if (!target) return;
  for (let place = target; place; place = place.parentElement) {
    if (place.tagName === "DETAILS") place.open = true;
  }
  target.scrollIntoView();
};
addEventListener("hashchange", open);
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) open();
});
open();

// A cell as a spreadsheet takes it: names come from strangers, and one that begins like a formula would be run.
const inert = (cell) => {
  const text = (cell.dataset.value ?? cell.innerText).replace(/\s+/g, " ").trim();
  return /^[=+@-]/.test(text) && !/^[+-]?(\d|∞|\.)/.test(text) ? `'${text}` : text;
};

// Copy a table with all digits, tabs between cells.
const copy = async (button) => {
  const rows = [...button.closest(".tabled").querySelectorAll("tr")];
  const text = rows.map((row) => [...row.cells].map(inert).join("\t")).join("\n");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
};
document.querySelectorAll("button.copy").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
});
