// Airflow shows this page in a frame that may not navigate the whole window itself; links to runs
// are therefore followed by the window's own document. Without scripts they open on their own.
"use strict";
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.run");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const outer = window.parent.document;
  const twin = outer.createElement("a");
  twin.href = link.href;
  outer.body.append(twin);
  twin.click();
  twin.remove();
});
