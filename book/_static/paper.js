// Paper is white: a page that is dark on the screen is printed as it looks by day.
(() => {
  const { dataset } = document.documentElement;
  let theme = null; // on the screen, while the page is being printed
  const dress = (printing) => {
    if (printing === (theme !== null)) return;
    [dataset.theme, theme] = printing ? ["light", dataset.theme] : [theme, null];
  };
  addEventListener("beforeprint", () => dress(true));
  addEventListener("afterprint", () => dress(false));
  const paper = matchMedia("print");
  paper.addEventListener("change", () => dress(paper.matches));
  dress(paper.matches);
})();
