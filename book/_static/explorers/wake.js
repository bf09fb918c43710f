// Loads what wakes this page's explorers, where there are any. Opened from a file, a page can't load it.
(() => {
  const page = new URL("page.js", document.currentScript.src);
  if (location.protocol !== "file:" && document.querySelector("[data-explorer]")) import(page);
})();
